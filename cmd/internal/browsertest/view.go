//go:build !js

package browsertest

import "fmt"

// View is how a page is looked at.
type View struct {
	Width int // of the window, in CSS pixels
	Dark  bool
}

// Views are how every page is looked at: on a desk and on a phone.
func Views() []View {
	return []View{{1280, false}, {1280, true}, {phone, false}, {phone, true}}
}

const phone = 400

// judged reports whether the rules of axe-core are for this view: they take most of the
// time, and two views have both widths and both schemes.
func (v View) judged() bool { return v.Dark == (v.Width == phone) }

func (v View) String() string { return fmt.Sprintf("%d-%s", v.Width, v.scheme()) }

func (v View) scheme() string {
	if v.Dark {
		return "dark"
	}
	return "light"
}

func (v View) height() int {
	if v.Width <= phone {
		return 800
	}
	return 900
}
