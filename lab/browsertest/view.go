//go:build !js

package browsertest

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// View is how a page is looked at.
type View struct {
	Width int // of the window, in CSS pixels
	Dark  bool
}

// Views are how every page is looked at: on a desk and on a phone, by light and by dark.
// Nothing of a page depends on both; all four views are looked at where tests are to be
// exhaustive.
func Views() []View {
	if testutil.Full() {
		return []View{{1280, false}, {1280, true}, {phone, false}, {phone, true}}
	}
	return []View{{1280, false}, {phone, true}}
}

const phone = 400

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
