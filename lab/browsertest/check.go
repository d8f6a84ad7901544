//go:build !js

package browsertest

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed layout.js
var layout string

// screenshotsVariable names the environment variable with the directory that receives a
// picture of each page in each view.
const screenshotsVariable = "OCTAVO_SCREENSHOTS"

// Check opens a page in each of the Views and reports what is wrong. Its screenshots are
// named after kind.
func (b *Browser) Check(t *testing.T, kind, file string) {
	for _, view := range Views() {
		b.Look(t, kind, file, view)
	}
	t.Run("without scripts", func(t *testing.T) { report(t, b.withoutScripts(t, kind, file)) })
}

// Look is Check in one view: for pages with the template and scripts of one that was checked.
func (b *Browser) Look(t *testing.T, kind, file string, view View) {
	t.Run(view.String(), func(t *testing.T) {
		o := b.open(t, file, view)
		o.settle(t)
		o.screenshot(t, kind+"-"+view.String())
		o.openDetails(t)
		report(t, o.layout(t))
		report(t, o.curves(t))
		t.Run("axe", func(t *testing.T) { report(t, o.rules(t, b)) })
		if view == Views()[0] {
			report(t, o.answers(t))
		}
		report(t, o.reported())
	})
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// openDetails shows what the page hides until it is asked for. Of the tables of charts,
// which are all alike, it opens the first.
func (o *tab) openDetails(t *testing.T) {
	t.Helper()
	evaluate[any](t, o, `document.querySelectorAll('details').forEach(d => { d.open = !d.closest('figure.chart ~ figure.chart') || d.open }), true`)
	o.settle(t)
}

// reported returns what the browser reported so far.
func (o *tab) reported() []string {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.problems
}

// layout returns what of the page does not look as it should.
func (o *tab) layout(t *testing.T) []string {
	t.Helper()
	return evaluate[[]string](t, o, fmt.Sprintf("(%s)(%d)", layout, o.view.Width))
}

// screenshot keeps a picture of the whole page, if they are wanted.
func (o *tab) screenshot(t *testing.T, name string) {
	t.Helper()
	directory := os.Getenv(screenshotsVariable)
	if directory == "" {
		return
	}
	picture, err := chromedp.Run(o.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(directory, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(directory, name+".png"), picture, 0o666))
}

// Evaluate opens a page on a desk and returns what a script in it, or the promise that it
// gives, comes to.
func Evaluate[T any](t *testing.T, b *Browser, file, script string) T {
	t.Helper()
	o := b.open(t, file, Views()[0])
	o.settle(t)
	result := evaluate[T](t, o, script)
	report(t, o.reported())
	return result
}
