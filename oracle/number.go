package oracle

import "github.com/octavo-fp8/octavo/internal/jsonfloat"

// Number is a float64 in a [Comparison]. JSON has no NaN and no infinities: those are
// the strings "NaN", "+Inf" and "-Inf", as in package telemetry.
type Number = jsonfloat.Number
