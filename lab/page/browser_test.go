//go:build !js

package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/browsertest"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// fileOf writes a page of charts.
func fileOf(t *testing.T, charts ...chart.Chart) string {
	var html bytes.Buffer
	var p Page
	p.Put("<h1>Charts of all kinds</h1>")
	p.Charts(charts...)
	require.NoError(t, p.Write(&html, "Charts of all kinds"))
	file := filepath.Join(t.TempDir(), "charts.html")
	require.NoError(t, os.WriteFile(file, html.Bytes(), 0o666))
	return file
}

// TestInBrowser opens pages in one browser.
func TestInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	for name, test := range map[string]func(*testing.T, *browsertest.Browser){
		"Atlas":                           testAtlas,
		"MarksAreNotDashed":               testMarksAreNotDashed,
		"KeysReachEveryPoint":             testKeysReachEveryPoint,
		"SavedPictureIsXML":               testSavedPictureIsXML,
		"ZoomBetweenPoints":               testZoomBetweenPoints,
		"ZoomIsAlongX":                    testZoomIsAlongX,
		"ManyPoints":                      testManyPoints,
		"ReplacedChartsEnd":               testReplacedChartsEnd,
		"HeatMap":                         testHeatMap,
		"BinnedHeatMap":                   testBinnedHeatMap,
		"LivePage":                        testLivePage,
		"StackedBars":                     testStackedBars,
		"TicksOfScriptAreThoseOfPictures": testTicksOfScriptAreThoseOfPictures,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

func testAtlas(t *testing.T, b *browsertest.Browser) {
	file := fileOf(t, atlas()...)
	b.Check(t, "charts", file)
	b.Answers(t, file)
}

// testMarksAreNotDashed, whatever line was drawn before them.
func testMarksAreNotDashed(t *testing.T, b *browsertest.Browser) {
	points := []chart.Point{{X: 1, Y: 1}, {X: 2, Y: 2}}
	file := fileOf(t, chart.Chart{Title: "Roof", Series: []chart.Series{{Name: "roof", Dashed: true, Points: points}, {Name: "product", Mark: chart.Rings, Points: points}}})
	dashes := browsertest.Evaluate[[]int](t, b, file, `(async () => {
		const dashes = [], context = CanvasRenderingContext2D.prototype, { arc, stroke } = context;
		let round = false;
		context.arc = function (...all) { round = true; return arc.apply(this, all); };
		context.stroke = function (...all) { if (round) dashes.push(this.getLineDash().length); round = false; return stroke.apply(this, all); };
		document.querySelector('header button').click();
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		return dashes;
	})()`)
	require.Equal(t, []int{0, 0}, dashes)
}

// testKeysReachEveryPoint, those with names and at the same place too.
func testKeysReachEveryPoint(t *testing.T, b *browsertest.Browser) {
	file := fileOf(t, chart.Chart{Title: "Throughput", X: "K", Series: []chart.Series{
		{Name: "octavo", Mark: chart.Dots, Points: []chart.Point{{X: 3, Y: 120, Name: "small"}, {X: 30, Y: 900, Name: "square"}, {X: 30, Y: 1, Name: "thin"}, {X: 40, Y: 5, Name: "last"}}},
	}})
	values := browsertest.Evaluate[[]string](t, b, file, `[1, 2, 3, 4].map(() => {
		document.querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', cancelable: true }));
		return document.querySelector('.at').textContent + ', ' + document.querySelector('.value').textContent;
	})`)
	require.Equal(t, []string{"K 3, small: 120", "K 30, square: 900", "K 30, thin: 1", "K 40, last: 5"}, values)
}

// testSavedPictureIsXML and nothing else.
func testSavedPictureIsXML(t *testing.T, b *browsertest.Browser) {
	saved := browsertest.Evaluate[string](t, b, fileOf(t, atlas()[0]), `new Promise(done => {
		URL.createObjectURL = blob => { blob.text().then(done); return '#'; };
		[...document.querySelectorAll('.tools button')].find(b => b.textContent === 'Save as SVG').click();
	})`)
	require.True(t, strings.HasPrefix(saved, "<svg"), "it starts with %.40s", saved)
	for d := xml.NewDecoder(strings.NewReader(saved)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// heatFile writes a page with a heat map.
func heatFile(t *testing.T, h HeatMap) string {
	file := filepath.Join(t.TempDir(), "heat.html")
	require.NoError(t, os.WriteFile(file, []byte(heatPage(t, h)), 0o666))
	return file
}

// heatScript has what a reader of a heat map does and sees.
const heatScript = `
	const figure = document.querySelector('figure.heat'), plot = figure.querySelector('.plot'), canvas = figure.querySelector('canvas');
	const data = JSON.parse(figure.querySelector('script').textContent), rows = data.rows.length, columns = data.from.length;
	const left = Math.min(...octavoTextOf(canvas).filter(t => data.rows.includes(t.text)).map(t => t.right)) + 6;
	const to = (what, row, column) => {
		const box = canvas.getBoundingClientRect(), width = box.width - left - 4, height = box.height - 24;
		canvas.dispatchEvent(new PointerEvent(what, { clientX: box.left + left + (column + 0.5) * width / columns, clientY: box.top + (row + 0.5) * height / rows, bubbles: true }));
	};
	const key = key => plot.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));
	const seen = () => figure.querySelector('.at').textContent + ' | ' + [...figure.querySelectorAll('.cell > div')].map(d => d.textContent).join(' | ');
	const curves = () => document.querySelector('figure.heat + div figure .title').textContent;
	const pixel = (row, column) => {
		const box = canvas.getBoundingClientRect(), width = box.width - left - 4, height = box.height - 24;
		const [r, g, b] = canvas.getContext('2d').getImageData(left + (column + 0.5) * width / columns, (row + 0.5) * height / rows, 1, 1).data;
		return '#' + [r, g, b].map(v => v.toString(16).padStart(2, '0')).join('');
	};
`

// testHeatMap points at cells, clicks, uses keys and chooses another measure.
func testHeatMap(t *testing.T, b *browsertest.Browser) {
	h := heatMap(2, 3, 4)
	other := h.Measures[0]
	other.Name, other.Unit, other.Classes = "amax", "", []Class{{0.05, "small", chart.Shade(0.2)}, {5, "large", chart.Shade(1)}}
	h.Measures = append(h.Measures, other)
	h.Measures[0].Values = append([]float64{math.Inf(1), math.NaN()}, h.Measures[0].Values[2:]...)
	file := heatFile(t, h)
	t.Run("looks", func(t *testing.T) { b.Check(t, "heat", file) })
	got := browsertest.Evaluate[[]string](t, b, file, `(() => {`+heatScript+`
		const said = [curves(), pixel(0, 0), pixel(1, 2)];
		to('pointermove', 4, 2); said.push(seen());
		to('pointermove', 0, 0); said.push(seen());
		to('pointerleave', 0, 0); said.push(figure.querySelector('.cell').textContent);
		to('click', 4, 2); said.push(curves(), String(document.querySelector('figure.heat + div').contains(document.activeElement)));
		plot.focus();
		key('ArrowRight'); key('ArrowDown'); key('End'); said.push(seen(), figure.querySelector('output').textContent);
		key('Enter'); said.push(curves());
		figure.querySelectorAll('.tools button')[1].click(); said.push(curves(), figure.querySelector('.scale').textContent, pixel(1, 2));
		const details = document.querySelector('figure.heat + div details');
		details.open = true;
		return new Promise(done => details.addEventListener('toggle', () => setTimeout(() => {
			said.push([...details.querySelectorAll('tr')].map(r => [...r.cells].map(c => c.textContent).join(' ')).join(' | '));
			said.push(octavoTextOf(document.querySelector('figure.heat + div canvas')).map(t => t.text).join(' '));
			done(said);
		})));
	})()`)
	require.Equal(t, []string{
		"0.0: lost", chart.Bad.Light, chart.Shade(1).Light,
		"1.1, step 20 | lost input 4 %, weight 4.1 % | amax input 4, weight 4.1",
		"0.0, step 0 | lost input not finite | amax input 0, weight 0.1",
		"Point at a cell, or move to it with the arrow keys, for its values. Click or press Enter for the curves of its layer.",
		"1.1: lost", "true",
		"1.2, step 30 | lost input 5 %, weight 5.1 % | amax input 5, weight 5.1",
		"1.2, step 30: lost input 5 %, weight 5.1 %; amax input 5, weight 5.1",
		"1.2: lost",
		"1.2: amax", "smalllarge", chart.Shade(0.2).Light,
		"step input weight | 0 5 5.1 | 10 5 5.1 | 20 5 5.1 | 30 5 5.1",
		"0 5 10 15 20 25 30 0 1 2 3 4 5",
	}, got)
}

// testBinnedHeatMap says where the largest value of many is.
func testBinnedHeatMap(t *testing.T, b *browsertest.Browser) {
	file := heatFile(t, heatMap(100, 7, 1000))
	got := browsertest.Evaluate[[]string](t, b, file, `(() => {`+heatScript+`
		to('pointermove', 30, 100);
		return [seen(), String(rows), String(columns)];
	})()`)
	require.Equal(t, []string{"layer 30, steps 5000 to 5040 | lost input 216 %, weight 216 %; the largest in 30.6, step 5040", "100", "200"}, got)
}

// testLivePage is written again while a reader looks at it, and then not any more.
func testLivePage(t *testing.T, b *browsertest.Browser) {
	file := filepath.Join(t.TempDir(), "live.html")
	write := func(status string, ago time.Duration) {
		p := Page{Live: page.Live{Status: status, Written: time.Now().Add(-ago), Every: 3 * time.Second, Late: time.Minute}}
		p.Live.Put(&p.Body)
		p.Charts(atlas()[0])
		p.HeatMap(heatMap(2, 3, 4))
		p.Put(`<p style="height: 3000px"></p>`)
		var html bytes.Buffer
		require.NoError(t, p.Write(&html, "A run"))
		require.NoError(t, atomicfile.Write(file, func(w io.Writer) error { _, err := w.Write(html.Bytes()); return err }))
	}
	write("step 3 of 8", 0)
	o := b.Open(t, file)
	const status = `document.querySelector('.live strong')?.textContent ?? ''`
	browsertest.Until(t, o, status, "Running: step 3 of 8")
	browsertest.In[bool](t, o, `(() => {
		document.querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', { key: '+', cancelable: true }));
		document.querySelector('.legend button').click();
		document.querySelector('figure.heat').querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', cancelable: true }));
		document.querySelector('figure.heat').querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', cancelable: true }));
		document.querySelectorAll('details')[1].open = true;
		scrollTo(0, 1234);
		return true;
	})()`)
	const view = `[Math.round(scrollY), document.querySelector('.legend button').getAttribute('aria-pressed'), document.querySelectorAll('details')[1].open,
		[...document.querySelectorAll('.tools button')].find(b => b.textContent === 'Reset zoom').hidden,
		document.querySelector('figure.heat + div .title').textContent].join(' ')`
	before := browsertest.In[string](t, o, view)
	require.Regexp(t, "^1234 false true false 1.1: lost$", before)
	write("step 5 of 8", 0)
	browsertest.Until(t, o, status, "Running: step 5 of 8") // by itself
	browsertest.Until(t, o, view, before)                   // what the reader had chosen
	kept := browsertest.In[string](t, o, `(async () => { // while a reader keeps text selected
		const now = Date.now, text = () => document.querySelector('.live').textContent.split(',')[0] + document.querySelector('.late').textContent;
		getSelection().selectAllChildren(document.querySelector('figcaption'));
		Date.now = () => now() + 300000;
		await new Promise(done => setTimeout(done, 2500));
		const kept = text();
		getSelection().removeAllRanges();
		return kept;
	})()`)
	require.Equal(t, "Running: step 5 of 8", kept)
	write("step 6 of 8", 3*time.Minute)
	browsertest.Until(t, o, status, "Was running: step 6 of 8")
	browsertest.Until(t, o, `String(document.querySelector('.live')?.textContent.includes('It was not written again for 3 minutes'))`, "true")
}

// testZoomBetweenPoints shows the line that goes through, and ends where numbers do.
func testZoomBetweenPoints(t *testing.T, b *browsertest.Browser) {
	file := fileOf(t, chart.Chart{Title: "Loss", Series: []chart.Series{{Name: "FP8", Points: []chart.Point{{X: 0, Y: 50}, {X: 1.5, Y: 60}}}}})
	labels := browsertest.Evaluate[[]string](t, b, file, `(async () => {
		for (let i = 0; i < 100; i++) document.querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', { key: '+', cancelable: true }));
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		return octavoTextOf(document.querySelector('canvas')).map(t => t.text);
	})()`)
	require.Contains(t, labels, "52")
	require.Contains(t, labels, "58")
	require.Greater(t, len(labels), 8, "the X axis has labels too: %v", labels)
}

// testZoomIsAlongX of a drag in any direction; Y follows what is in view. Keys come nearer, go
// farther and, by the view that follows them, to every point; the last shows all.
func testZoomIsAlongX(t *testing.T, b *browsertest.Browser) {
	var points []chart.Point
	for i := range 101 {
		points = append(points, chart.Point{X: float64(i), Y: float64(i * i)})
	}
	file := fileOf(t, chart.Chart{Title: "Squares", X: "step", Series: []chart.Series{{Name: "a", Points: points}}})
	spans := browsertest.Evaluate[[][4]float64](t, b, file, `(async () => {
		const plot = document.querySelector('.plot'), over = plot.querySelector('.u-over'), box = over.getBoundingClientRect(), spans = [];
		const mouse = (on, what, x, y) => on.dispatchEvent(new MouseEvent(what, { clientX: box.left + x * box.width, clientY: box.top + y * box.height, button: 0, movementX: 1, bubbles: true }));
		const span = async () => {
			await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
			const at = octavoTextOf(document.querySelector('canvas')).map(t => [Number(t.text), t.left, t.top]), n = at.findIndex(t => Math.abs(t[2] - at[0][2]) > 2);
			const [x, y] = [at.slice(0, n), at.slice(n)].map(all => all.map(t => t[0]));
			spans.push([Math.min(...x), Math.max(...x), Math.min(...y), Math.max(...y)]);
		};
		const key = async key => { plot.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true })); await span(); };
		mouse(over, 'mousemove', 0.2, 0.5); mouse(over, 'mousedown', 0.2, 0.5); mouse(over, 'mousemove', 0.3, 0.6); mouse(over, 'mousemove', 0.4, 0.7); mouse(document, 'mouseup', 0.4, 0.7);
		await span();
		await key('+'); await key('-'); await key('End'); await key('0');
		return spans;
	})()`)
	// The plot is of 0 to 100 and a margin of 1.5 on each side: the drag is from 19.1 to 39.7.
	require.Len(t, spans, 5)
	within := func(of [4]float64, low, high float64) {
		require.True(t, of[0] >= low && of[1] <= high && of[1]-of[0] > 0.6*(high-low), "X is of %v to %v, got %v", low, high, of)
		margin := 0.05 * (high*high - low*low)
		require.True(t, of[2] >= low*low-margin-1 && of[3] <= high*high+margin+1 && of[3]-of[2] > 0.6*(high*high-low*low), "Y is of %v to %v, got %v", low*low, high*high, of)
	}
	within(spans[0], 19.1, 39.7)
	within(spans[2], spans[0][0]-3, spans[0][1]+3)
	require.Less(t, spans[1][1]-spans[1][0], 0.6*(spans[0][1]-spans[0][0]))
	within(spans[3], 79.4, 100)
	within(spans[4], 0, 101.5)
}

// testStackedBars: rectangles stand on each other, and on nothing that is hidden.
func testStackedBars(t *testing.T, b *browsertest.Browser) {
	heights := browsertest.Evaluate[[][]float64](t, b, fileOf(t, stackedBars()), `(async () => {
		const all = [], context = CanvasRenderingContext2D.prototype, { fillRect, clearRect } = context;
		let drawn = [];
		context.fillRect = function (x, y, width, height) { drawn.push([y, height]); return fillRect.call(this, x, y, width, height); };
		context.clearRect = function (...box) { drawn = []; return clearRect.apply(this, box); };
		const legend = document.querySelectorAll('.legend button');
		const redraw = async button => {
			button.click();
			await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
			const bars = drawn.filter(([y, height]) => height > 20), unit = bars[0][1];
			all.push(bars.map(([y, height]) => height / unit), bars.map(([y, height]) => (bars[0][0] + bars[0][1] - y - height) / unit));
		};
		await redraw(legend[0]);
		await redraw(legend[0]);
		return all;
	})()`)
	require.Len(t, heights, 4)
	for i, want := range [][]float64{{1, 2}, {0, 0}, {1, 3, 2, 4}, {0, 0, 1, 3}} {
		require.InDeltaSlice(t, want, heights[i], 0.02, "heights and feet, in units of the first")
	}
}

// testManyPoints, more of them than a call has arguments.
func testManyPoints(t *testing.T, b *browsertest.Browser) {
	var points []chart.Point
	for i := range 200_000 {
		points = append(points, chart.Point{X: float64(i), Y: math.Abs(math.Sin(float64(i) / 1e4))})
	}
	file := fileOf(t, chart.Chart{Title: "Lines", Smooth: true, Series: []chart.Series{{Name: "a", Points: points}}},
		chart.Chart{Title: "Bars", Series: []chart.Series{{Name: "a", Points: points, Mark: chart.Bars}}})
	drawn := browsertest.Evaluate[int](t, b, file, `document.querySelectorAll('canvas').length`)
	require.Equal(t, 2, drawn)
}

// testReplacedChartsEnd: nothing of them is kept, neither of those of a part of a page nor of the curves of a row.
func testReplacedChartsEnd(t *testing.T, b *browsertest.Browser) {
	var html bytes.Buffer
	p := Page{Script: "window.own = { views, scheme, drawCharts };\n"}
	p.Charts(atlas()[:2]...)
	p.HeatMap(heatMap(2, 3, 4))
	require.NoError(t, p.Write(&html, "Replaced"))
	file := filepath.Join(t.TempDir(), "replaced.html")
	require.NoError(t, os.WriteFile(file, html.Bytes(), 0o666))
	kept := browsertest.Evaluate[[]int](t, b, file, `(() => {
		const { views, scheme, drawCharts } = own;
		const count = () => [views.length, scheme.watchers.length], before = count();
		const map = views.find(view => view.curves), old = [views[0].u, map.curves.u], was = views[0].figure, figure = was.cloneNode(true);
		figure.querySelectorAll('.plot, .legend, .tools').forEach(e => e.replaceChildren());
		was.replaceWith(figure);
		drawCharts(figure.parentElement.appendChild(document.createElement('div')).appendChild(figure).parentElement);
		map.showSeries(1);
		return [...before, ...count(), ...old.map(u => u.root.parentNode ? 1 : 0), views.filter(view => view.figure === figure).length];
	})()`)
	require.Len(t, kept, 7)
	require.EqualValues(t, 3, kept[0])
	require.Equal(t, kept[:2], kept[2:4], "views and watchers")
	require.Equal(t, []int{0, 0, 1}, kept[4:], "neither is in its plot, and the new one is drawn")
}

// testTicksOfScriptAreThoseOfPictures: both have the labels that the table says.
func testTicksOfScriptAreThoseOfPictures(t *testing.T, b *browsertest.Browser) {
	table, err := os.ReadFile("../chart/testdata/ticks.json")
	require.NoError(t, err)
	var cases []struct{ Labels []string }
	require.NoError(t, json.Unmarshal(table, &cases))
	script := string(read("script/ticks.js")) + `;` + string(table) + `.map(c => ticks(c.low, c.high, 8, c).map(t => t.label).filter(Boolean))`
	file := fileOf(t)
	for i, got := range browsertest.Evaluate[[][]string](t, b, file, script) {
		require.Equal(t, cases[i].Labels, got, "case %d", i)
	}
}
