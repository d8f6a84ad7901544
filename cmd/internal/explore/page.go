//go:build !js

package explore

import (
	_ "embed"
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/wasm"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/page"
	labpage "github.com/octavo-fp8/octavo/lab/page"
)

var (
	//go:embed explore.js
	script string

	//go:embed explore.css
	style string
)

// examples are what the page offers to begin with.
var examples = []struct{ name, values string }{
	{"activations with one outlier channel", Example()},
	{"gradients, far below the range", gradients()},
	{"edges: where formats saturate, round and flush", "448 464 464.1 480 240 248 57344 61440 6 7 5 2.5\n" +
		"0x1p-6 0x1p-9 0x1p-10 0x1.8p-10 0x1p-16 0x1p-17 0 -0 1e-30 0.3\n"},
	{"what is not finite", "1 2 inf -inf nan 3\n"},
}

// WritePage writes the page, at first with the answer to First.
func WritePage(w io.Writer, command, machine string) error {
	q := First()
	a, err := Explore(q, nil)
	if err != nil {
		return err
	}
	p := labpage.Page{Style: page.HTML("<style>" + style + "</style>")}
	part := func(tag, id string) {
		p.Put(`<%s id="%s">%s</%s>`+"\n", page.HTML(tag), id, a.Parts[id], page.HTML(tag))
	}
	part("h1", "finding")
	p.Put("<p class=\"note\">These are numbers to play with, computed by the library itself: type others, or drop a safetensors or .npy file anywhere here. Nothing leaves this page.</p>\n")
	p.Put("<form id=\"ask\"><label for=\"values\">Values, a row a line</label>\n<textarea id=\"values\" name=\"Values\" rows=\"4\" spellcheck=\"false\">%s</textarea>\n<div class=\"fields\">", q.Values)
	p.Put("<label>Example <select name=\"example\"><option value=\"\">choose …</option>")
	for _, e := range examples {
		p.Put("<option value=\"%s\">%s</option>", e.values, e.name)
	}
	p.Put("</select></label>\n<label>File <input type=\"file\" name=\"file\" accept=\".safetensors,.npy\"></label>\n" +
		"<label hidden>Tensor <select name=\"Tensor\"></select></label>\n<button type=\"button\" name=\"back\" hidden>Back to typed values</button>\n")
	choice(&p.Body, "Format", "Format", fp8.Formats())
	p.Put("</div>\n")
	p.Put("<p class=\"note\">Looked at: <span id=\"about\">%s</span>.</p>\n<p id=\"problem\" class=\"bad\" role=\"alert\"></p></form>\n", a.Parts["about"])
	p.Put("<noscript><p class=\"notice\">Scripts are off: what follows is of the values above and stays so.</p></noscript>\n")

	p.Put("<h2>Which values share a scale</h2>\n<p>A scale brings the largest magnitude of its block into the range of the format; it is rounded up to a power of two (profile te-block-pow2). A cell is a value, a frame a block. A cell that is clicked is looked at below.</p>\n")
	part("div", "blocks")
	p.Put("<h2>What each recipe makes of them</h2>\n<p>Profiles are the arithmetic of scales of a library, each in its own blocks; those that give the same codes and scales are one row. The median error is that of a half of the values, each relative to itself; SQNR is mostly about the largest. te-delayed has its scale from a step before with the same values.</p>\n")
	part("div", "profiles")

	p.Put("<h2>One value in every format</h2>\n<p>Without a scale. An ulp is the distance between the two values of the format that the value lies between, or the last two.</p>\n<div class=\"fields\">\n")
	p.Put("<label>Value no. <input form=\"ask\" type=\"number\" name=\"At\" min=\"1\" max=\"%s\" value=\"%s\"></label>\n", a.Values, q.At)
	choice(&p.Body, "Rounding", "Rounding", []fp8.Rounding{fp8.NearestEven, fp8.NearestTowardZero, fp8.TowardZero, fp8.Stochastic})
	choice(&p.Body, "Overflow", "Overflow", []fp8.Overflow{fp8.OverflowSaturate, fp8.OverflowNonFinite})
	choice(&p.Body, "Infinity", "Inf", []fp8.Inf{fp8.InfSaturate, fp8.InfPropagate})
	choice(&p.Body, "NaN", "NaN", []fp8.NaN{fp8.NaNKeepSign, fp8.NaNCanonical, fp8.NaNZero, fp8.NaNOppositeZero})
	choice(&p.Body, "Zero", "Zero", []fp8.Zero{fp8.ZeroKeepSign, fp8.ZeroPositive, fp8.ZeroNegative, fp8.ZeroUnsigned})
	p.Put("</div>\n")
	part("div", "value")
	p.Put("<details><summary>Codes of the other values</summary>\n")
	part("div", "codes")
	p.Put("</details>\n<h2>What smoothing does</h2>\n<div class=\"fields\">\n<label>Method <select form=\"ask\" name=\"Method\">")
	for _, m := range methods {
		p.Put("<option value=\"%s\">%s</option>", m.name, m.title)
	}
	p.Put("</select></label>\n<label>Strength of SmoothQuant <input form=\"ask\" type=\"range\" name=\"Strength\" min=\"0\" max=\"1\" step=\"0.05\" value=\"%s\"> <output>%s</output></label>\n</div>\n", q.Strength, q.Strength)
	part("div", "smoothing")
	p.Put("<h2>How it is computed</h2>\n<p>By packages fp8, scaling and swiglu of octavo, which this page carries as WebAssembly: no number of it is computed in JavaScript. Of a file, the header and the first rows of one tensor are read.</p>\n")
	p.Repeat(command, machine)
	wasm.Add(&p, script)
	return p.Write(w, "octavo explore: numbers to play with")
}

// choice adds a field with texts to choose from, the first at first.
func choice[T any](b *page.Body, label, name string, of []T) {
	b.Put("<label>%s <select form=\"ask\" name=\"%s\">", label, name)
	for _, v := range of {
		b.Put("<option>%s</option>", v)
	}
	b.Put("</select></label>\n")
}
