// Package expvars shows a [telemetry.Recorder] as a variable of package expvar.
//
// It is a package of its own because importing expvar registers the page
// /debug/vars with http.DefaultServeMux. Nothing else in octavo's library imports
// expvar, so a program that does not import this package has no such page.
package expvars

import (
	"expvar"

	"github.com/octavo-fp8/octavo/telemetry"
)

// Var returns a variable whose value is r as JSON ([telemetry.Recorder.MarshalJSON]),
// computed anew for each reading. A nil r is an empty Recorder.
func Var(r *telemetry.Recorder) expvar.Var {
	if r == nil {
		r = new(telemetry.Recorder)
	}
	return expvar.Func(func() any { return r })
}

// Publish publishes [Var] of r under name. Like [expvar.Publish] it panics
// if the name is taken. A nil r publishes nothing.
func Publish(name string, r *telemetry.Recorder) {
	if r != nil {
		expvar.Publish(name, Var(r))
	}
}
