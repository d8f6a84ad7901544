//go:build !js

package browsertest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
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
	return In[T](t, b.Open(t, file), script)
}

// Tab is a page that stays open.
type Tab struct{ *tab }

// Open opens a page on a desk. It is closed with the test.
func (b *Browser) Open(t *testing.T, file string) Tab {
	t.Helper()
	o := b.open(t, file, Views()[0])
	o.settle(t)
	return Tab{o}
}

// Until evaluates a script in a page that is open until it comes to what is wanted. The page may
// load anew meanwhile.
func Until(t *testing.T, o Tab, script, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(patience / 4); time.Now().Before(end) && got != want; time.Sleep(50 * time.Millisecond) {
		if now, err := chromedp.Run(o.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise)); err == nil {
			got = now
		}
	}
	require.Equal(t, want, got)
}

// In is [Evaluate] in a page that is open.
func In[T any](t *testing.T, o Tab, script string) T {
	t.Helper()
	result := evaluate[T](t, o.tab, script)
	report(t, o.reported())
	return result
}

//go:embed curves.js
var curves string

// The parts of a page that answer, as page/script makes them.
const (
	countCharts = `document.querySelectorAll('figure.chart:not(.heat)').length`

	// of the i-th chart: the place of its plotting area in the window, what it says about
	// the place that is pointed at, the text on its axes, and whether its zoom can be reset.
	chartBox = `(i => {
		const area = document.querySelectorAll('figure.chart:not(.heat)')[i].querySelector('.u-over');
		area.scrollIntoView({ block: 'center', behavior: 'instant' });
		const box = area.getBoundingClientRect();
		return [box.left, box.top, box.width, box.height];
	})(%d)`
	chartValues = `(figure => [...figure.querySelectorAll('.legend .at, .legend .value')].map(e => e.textContent).join(' ').trim())
		(document.querySelectorAll('figure.chart:not(.heat)')[%d])`
	chartTicks = `(figure => octavoTextOf(figure.querySelector('canvas')).map(t => t.text + '@' + Math.round(t.left) + ',' + Math.round(t.top)).join(' '))
		(document.querySelectorAll('figure.chart:not(.heat)')[%d])`

	focusChart = `document.querySelectorAll('figure.chart:not(.heat) .plot')[%d].focus(), true`
	focused    = `[...document.querySelectorAll('figure.chart:not(.heat) .plot')].indexOf(document.activeElement)`
	outline    = `getComputedStyle(document.activeElement).outlineStyle`
	keyStops   = `[...document.querySelectorAll('a, button, input, select, summary, [tabindex]')].filter(e => e.tabIndex >= 0).length`

	background  = `getComputedStyle(document.body).backgroundColor`
	clickSwitch = `document.querySelector('header button').click(), true`

	// figures, and those that show a picture where scripts are off.
	countFigures = `document.querySelectorAll('figure.chart').length`
	pictures     = `[...document.querySelectorAll('figure.chart')].filter(figure =>
		[...figure.querySelectorAll('svg, img')].some(e => e.checkVisibility() && e.getBoundingClientRect().width > 100)).length`
)

// Answers reports which charts of a page do not answer to who uses them.
func (b *Browser) Answers(t *testing.T, file string) {
	t.Helper()
	o := b.open(t, file, Views()[0])
	o.settle(t)
	for i := range evaluate[int](t, o, countCharts) {
		report(t, o.chartAnswers(t, i))
	}
}

// answers returns what of a page does not answer to who uses it. Of its charts, which have
// one script, it tries the first and the last.
func (o *tab) answers(t *testing.T) (problems []string) {
	t.Helper()
	charts := evaluate[int](t, o, countCharts)
	if charts > 0 {
		problems = o.chartAnswers(t, 0)
	}
	if charts > 1 {
		problems = append(problems, o.chartAnswers(t, charts-1)...)
	}
	if charts > 0 && !o.tabReachesChart(t) {
		problems = append(problems, "keyboard: the Tab key does not reach a chart")
	}
	before := evaluate[string](t, o, background)
	evaluate[bool](t, o, clickSwitch)
	o.settle(t)
	if evaluate[string](t, o, background) == before {
		problems = append(problems, "the switch between light and dark changes nothing")
	}
	for _, p := range o.layout(t) {
		problems = append(problems, "after the switch between light and dark: "+p)
	}
	return problems
}

// chartAnswers points at a chart, drags over it, clicks twice and uses keys.
func (o *tab) chartAnswers(t *testing.T, i int) (problems []string) {
	t.Helper()
	problem := func(what string) { problems = append(problems, fmt.Sprintf("chart %d: %s", i+1, what)) }
	box := evaluate[[4]float64](t, o, fmt.Sprintf(chartBox, i))
	values := func() string { return evaluate[string](t, o, fmt.Sprintf(chartValues, i)) }
	ticks := func() string { return evaluate[string](t, o, fmt.Sprintf(chartTicks, i)) }
	at := func(x, y float64) (float64, float64) { return box[0] + x*box[2], box[1] + y*box[3] }
	mouse := func(what input.DispatchMouseEventType, x, y float64, options ...chromedp.MouseOption) {
		left, top := at(x, y)
		o.do(t, chromedp.MouseEvent(what, left, top, options...))
	}

	mouse(input.DispatchMouseEventTypeMouseMoved, 0.5, 0.5)
	if values() == "" {
		problem("pointing at it shows no values")
	}

	whole := ticks()
	zoom := func() bool {
		box = evaluate[[4]float64](t, o, fmt.Sprintf(chartBox, i))
		mouse(input.DispatchMouseEventTypeMouseMoved, 0.3, 0.4)
		mouse(input.DispatchMouseEventTypeMousePressed, 0.3, 0.4, chromedp.ButtonLeft, chromedp.ClickCount(1))
		mouse(input.DispatchMouseEventTypeMouseMoved, 0.45, 0.4, chromedp.ButtonLeft)
		mouse(input.DispatchMouseEventTypeMouseMoved, 0.6, 0.41, chromedp.ButtonLeft)
		mouse(input.DispatchMouseEventTypeMouseReleased, 0.6, 0.41, chromedp.ButtonLeft, chromedp.ClickCount(1))
		o.settle(t)
		return ticks() != whole
	}
	if !succeeds(zoom) {
		problem("dragging over it does not zoom")
	}
	reset := func() bool {
		left, top := at(0.5, 0.5)
		time.Sleep(doubleClick) // or this click would be one of those before
		o.do(t, chromedp.MouseClickXY(left, top), chromedp.MouseClickXY(left, top, chromedp.ClickCount(2)))
		o.settle(t)
		return ticks() == whole
	}
	if !succeeds(reset) {
		problem("a double click does not reset the zoom")
	}
	mouse(input.DispatchMouseEventTypeMouseMoved, -0.5, -0.5)

	evaluate[bool](t, o, fmt.Sprintf(focusChart, i))
	o.do(t, chromedp.KeyEvent(kb.ArrowRight))
	if evaluate[int](t, o, focused) != i || values() == "" {
		problem("the right arrow key shows no values")
	}
	return problems
}

// succeeds tries a few times: a browser on a busy machine drops movements.
func succeeds(try func() bool) bool {
	for range 3 {
		if try() {
			return true
		}
	}
	return false
}

// doubleClick is within which time two clicks are one double click.
const doubleClick = 600 * time.Millisecond

// tabReachesChart reports whether the Tab key leads to a chart, around which there is an
// outline then, before it has been at all it can stop at.
func (o *tab) tabReachesChart(t *testing.T) bool {
	t.Helper()
	evaluate[bool](t, o, `document.activeElement.blur(), scrollTo(0, 0), true`)
	for range evaluate[int](t, o, keyStops) {
		o.do(t, chromedp.KeyEvent(kb.Tab))
		if evaluate[int](t, o, focused) >= 0 {
			return evaluate[string](t, o, outline) != "none"
		}
	}
	return false
}

// curves returns which curves of charts cannot be seen.
func (o *tab) curves(t *testing.T) []string {
	t.Helper()
	return evaluate[[]string](t, o, curves)
}

// withoutScripts opens a page where scripts are off, and returns what is wrong with it.
func (b *Browser) withoutScripts(t *testing.T, kind, file string) (problems []string) {
	t.Helper()
	o := b.open(t, file, View{Width: phone}, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	o.screenshot(t, kind+"-without-scripts")
	if shown, all := evaluate[int](t, o, pictures), evaluate[int](t, o, countFigures); shown < all {
		problems = append(problems, fmt.Sprintf("%d of %d charts show a picture", shown, all))
	}
	return append(append(problems, o.reported()...), o.layout(t)...)
}

// axeVariable names the environment variable with the path of axe.min.js of axe-core,
// which is no part of the repository.
const axeVariable = "OCTAVO_AXE"

// axeSum is the SHA-256 of axe.min.js of axe-core 4.14.1.
const axeSum = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

func readAxe(t *testing.T) string {
	t.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		return ""
	}
	script, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(script)
	require.Equal(t, axeSum, hex.EncodeToString(sum[:]), "%s: want axe.min.js of axe-core 4.14.1", path)
	return string(script)
}

// runAxe returns the rules that the page breaks, and where.
const runAxe = `axe.run(document, { resultTypes: ['violations'] }).then(result => result.violations.flatMap(rule =>
	rule.nodes.slice(0, 5).map(node => rule.id + ': ' + node.target.join(' ') + ': ' + node.failureSummary.replace(/\s+/g, ' '))))`

// rules returns what the rules of axe-core find.
func (o *tab) rules(t *testing.T, b *Browser) []string {
	t.Helper()
	if b.axe == "" {
		skipAxe(t)
	}
	evaluate[any](t, o, b.axe+"\ntrue")
	return evaluate[[]string](t, o, runAxe)
}

func skipAxe(t *testing.T) {
	t.Helper()
	testutil.Lacking(t, "contrast and other rules of accessibility are not checked: %s names no axe.min.js", axeVariable)
}
