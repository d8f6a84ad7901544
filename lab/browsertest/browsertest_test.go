//go:build !js

package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// document returns the text of a page with the given body, with which nothing is wrong.
func document(body string) string {
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<style>body { margin: 1em; background: #fff; color: #222 }</style></head>
<body><main><h1>A page</h1>` + body + `</main></body></html>`
}

// canvas is a page with a canvas of 300x100 pixels on which script draws with c.
func canvas(script string) string {
	return document(`<canvas id="c" width="300" height="100"></canvas><script>
const c = document.getElementById('c').getContext('2d'); c.font = '16px sans-serif'; ` + script + `</script>`)
}

// cases are pages and a part of what is found wrong with them at 400 pixels.
var cases = []struct{ name, page, problem string }{
	{"nothing", document(`<p>Some text.</p>`), ""},
	{"console", document(`<script>console.error('broken', 7)</script>`), "console: broken 7"},
	{"exception", document(`<script>undefinedThing()</script>`), "exception: Uncaught ReferenceError: undefinedThing"},
	{"external image", document(`<img alt="x" src="http://192.0.2.1/x.png">`), "http://192.0.2.1/x.png"},
	{"image beside the file", document(`<img alt="x" src="x.png">`), "security: Loading the image"},
	{"asks by script", document(`<script>fetch('http://192.0.2.1/x').catch(() => 0)</script>`), "http://192.0.2.1/x"},
	{"asks without a policy", strings.Replace(document(`<img alt="x" src="x.png">`), "http-equiv", "data-was", 1), "asks for file://"},
	{"wide table", document(`<table><tr><td style="min-width: 600px">wide</td></tr></table>`), "overflow: the page is 6"},
	{"wide table that scrolls", document(`<div style="overflow-x: auto" tabindex="0"><table><tr><td style="min-width: 600px">wide</td></tr></table></div>`), ""},
	{"no viewport", strings.Replace(document(`<p>Text.</p>`), `name="viewport"`, `name="other"`, 1), "overflow: the page is 9"},
	{"cut to the right", document(`<p style="width: 50px; overflow: hidden; white-space: nowrap">Some longer text.</p>`), `cut: "Some longer text." by <p>`},
	{"cut below", document(`<div style="height: 10px; overflow: hidden"><p>Some text.</p></div>`), `cut: "Some text." by <div>`},
	{"cut to the left", document(`<p style="text-indent: -30px">Some text.</p>`), `cut: "Some text." by <html>`},
	{"for screen readers", document(`<span style="position: absolute; width: 1px; height: 1px; overflow: hidden">Some text.</span>`), ""},
	{"small text", document(`<p style="font-size: 7px">Some text.</p>`), `small: "Some text."`},
	{"in details", document(`<details><summary>More</summary><p style="font-size: 7px">Some text.</p></details>`), `small: "Some text."`},
	{"svg", document(`<svg width="100" height="30"><text x="5" y="20">fits</text></svg>`), ""},
	{"svg cut", document(`<svg width="100" height="30"><text x="60" y="20">does not fit</text></svg>`), `cut: "does not fit" by <svg>`},
	{"svg small", document(`<svg width="100" height="30" viewBox="0 0 400 120"><text x="5" y="20">tiny</text></svg>`), `small: "tiny" of 4.0 pixels`},
	{"svg overlap", document(`<svg width="200" height="30"><text x="5" y="20">first</text><text x="25" y="20">second</text></svg>`), "overlap: first and second"},
	{"svg pale", document(`<svg width="100" height="30"><text x="5" y="20" fill="#aaa">pale</text></svg>`), `contrast of 2.3: "pale"`},
	{"canvas", canvas(`c.fillText('text', 20, 50)`), ""},
	{"canvas blank", canvas(``), `blank: <canvas#c>`},
	{"canvas cut", canvas(`c.fillText('text', 290, 50)`), `cut: "text" by <canvas#c>`},
	{"canvas pale", canvas(`c.fillStyle = '#aaa'; c.fillText('text', 20, 50)`), `contrast of 2.3: "text"`},
	{"canvas overlap", canvas(`c.fillText('text', 20, 50); c.translate(10, 0); c.fillText('more', 20, 50)`), "overlap: text and more"},
	{"canvas slanted", canvas(`for (const x of [50, 80]) { c.setTransform(.7, .7, -.7, .7, x, 10); c.fillText('slanted text', 0, 0) }`), ""},
	{"canvas slanted overlap", canvas(`for (const x of [50, 60]) { c.setTransform(.7, .7, -.7, .7, x, 10); c.fillText('slanted text', 0, 0) }`), "overlap: slanted text and slanted text"},
	{"canvas drawn again", canvas(`c.fillText('text', 20, 50); c.clearRect(0, 0, 300, 100); c.fillText('more', 20, 50)`), ""},
}

// rules are pages and a part of what axe-core finds wrong with them.
var rules = []struct{ name, page, problem string }{
	{"nothing", document(`<p>Some text.</p>`), ""},
	{"pale text", document(`<p style="color: #aaa">Some text.</p>`), "color-contrast: p: "},
	{"no title", strings.Replace(document(``), "A page</title>", "</title>", 1), "document-title: "},
	{"image without words", document(`<svg role="img" width="9" height="9"></svg>`), "svg-img-alt: "},
}

// TestInBrowser finds problems in one browser.
func TestInBrowser(t *testing.T) {
	b := Start(t)
	for name, test := range map[string]func(*testing.T, *Browser){
		"ProblemsAreFound": testProblemsAreFound,
		"RulesAreChecked":  testRulesAreChecked,
		"DeadChart":        testDeadChart,
		"TabReachesChart":  testTabReachesChart,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

func testProblemsAreFound(t *testing.T, b *Browser) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := b.openText(t, c.page)
			problems := append(o.reported(), o.layout(t)...)
			if c.problem == "" {
				require.Empty(t, problems)
				return
			}
			require.Contains(t, strings.Join(problems, "\n"), c.problem)
		})
	}
}

func (b *Browser) openText(t *testing.T, text string) *tab {
	file := filepath.Join(t.TempDir(), "a page.html")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	o := b.open(t, file, View{Width: phone})
	o.settle(t)
	o.openDetails(t)
	return o
}

func testRulesAreChecked(t *testing.T, b *Browser) {
	for _, c := range rules {
		t.Run(c.name, func(t *testing.T) {
			problems := b.openText(t, c.page).rules(t, b)
			if c.problem == "" {
				require.Empty(t, problems)
				return
			}
			require.Contains(t, strings.Join(problems, "\n"), c.problem)
		})
	}
}

// deadChart is the markup of a chart with a line FP32 of which nothing is drawn, in a page
// whose scripts do nothing.
var deadChart = strings.Replace(document(`<figure class="chart">
<div class="plot"><canvas id="c" width="300" height="100"></canvas><div class="u-over" style="width: 200px; height: 80px"></div></div>
<div class="legend"><span class="at"></span></div>
<script type="application/json">{"title": "Loss", "series": [{"name": "FP32", "mark": "line", "light": "#0072b2", "dark": "#4ba6e8", "x": [1, 2], "y": [3, null]}]}</script>
</figure><script>const c = document.getElementById('c').getContext('2d'); c.fillText('text', 20, 50)</script>`),
	"<main>", "<header><button>Dark</button></header><main>", 1)

func testDeadChart(t *testing.T, b *Browser) {
	o := b.openText(t, deadChart)
	require.Equal(t, []string{`blank: "Loss" shows no curve`, `hidden: FP32 of "Loss"`}, o.curves(t))
	require.Equal(t, []string{
		"chart 1: pointing at it shows no values",
		"chart 1: dragging over it does not zoom",
		"chart 1: the right arrow key shows no values",
		"keyboard: the Tab key does not reach a chart",
		"the switch between light and dark changes nothing",
	}, o.answers(t))

	t.Setenv(screenshotsVariable, "") // there is nothing to look at
	file := filepath.Join(t.TempDir(), "dead.html")
	require.NoError(t, os.WriteFile(file, []byte(deadChart), 0o666))
	require.Equal(t, []string{"0 of 1 charts show a picture"}, b.withoutScripts(t, "dead", file)[:1])
}

// testTabReachesChart: however many links come before it.
func testTabReachesChart(t *testing.T, b *Browser) {
	links := strings.Repeat(`<a href="#x">link</a> `, 70)
	chart := `<figure class="chart"><div class="plot" tabindex="0">A chart</div></figure>`
	for page, reaches := range map[string]bool{
		links + chart: true,
		links + strings.Replace(chart, `"0"`, `"-1"`, 1):                     false,
		links + strings.Replace(chart, `<div`, `<div style="outline: 0"`, 1): false,
		strings.Replace(chart, `"0"`, `"-1"`, 1):                             false,
	} {
		require.Equal(t, reaches, b.openText(t, document(page)).tabReachesChart(t), page)
	}
}
