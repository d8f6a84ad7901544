package explore

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/smooth"
	"github.com/octavo-fp8/octavo/swiglu"
)

// methods of smoothing return what values are multiplied by, powers of two: one for each
// channel, or, by token, for each row.
var methods = []struct {
	name, title string
	byRow       bool
	factors     func(m *matrix, strength float64) []float32
}{
	{"smooth-swiglu", "Smooth-SwiGLU, by channel", false, func(m *matrix, _ float64) []float32 {
		return (&swiglu.Smoother{}).Peek(m.values, m.cols).Values
	}},
	{"smooth-swiglu-token", "Smooth-SwiGLU, by token", true, func(m *matrix, _ float64) []float32 {
		s := swiglu.Smoother{Smoothing: swiglu.Smoothing{Axis: swiglu.PerToken}}
		return s.Peek(m.values, m.cols).Values
	}},
	{"smoothquant", "SmoothQuant, convert --smooth", false, func(m *matrix, strength float64) []float32 {
		all := m.amax()
		for i, x := range all {
			all[i] = float32(math.Ldexp(1, -smooth.Power(strength, float64(x), 1)))
		}
		return all
	}},
}

// smoothed is a matrix before and after smoothing.
type smoothed struct {
	byRow         bool
	factors       []float32
	after         matrix
	plain, smooth []*outcome // by block
}

func smoothen(m *matrix, method string, strength float64, plain []*outcome) (*smoothed, error) {
	for _, by := range methods {
		if by.name != method {
			continue
		}
		s := &smoothed{byRow: by.byRow, factors: by.factors(m, strength), after: *m, plain: plain}
		s.after.values = slices.Clone(m.values)
		for i := range s.after.values {
			s.after.values[i] *= s.factor(i)
		}
		all, err := byBlock(&s.after, plain[0].recipe.Format)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			o.judge(m, s.factor)
		}
		s.smooth = all
		return s, nil
	}
	return nil, fmt.Errorf("unknown smoothing %q", method)
}

func (s *smoothed) factor(i int) float32 {
	if s.byRow {
		return s.factors[i/s.after.cols]
	}
	return s.factors[i%s.after.cols]
}

// finding says what smoothing does under one scale for the tensor.
func (s *smoothed) finding() string {
	n, lo, hi := 0, float32(math.MaxFloat32), float32(0)
	for _, f := range s.factors {
		if f != 1 {
			n, lo, hi = n+1, min(lo, f), max(hi, f)
		}
	}
	what := "channels"
	if s.byRow {
		what = "rows"
	}
	if n == 0 {
		return fmt.Sprintf("This smoothing changes none of %d %s.", len(s.factors), what)
	}
	before, after := s.plain[0], s.smooth[0]
	return fmt.Sprintf("It multiplies %d of %d %s by powers of two, %s to %s: under one scale for the tensor %d instead of %d values are lost, and the median error is %s instead of %s.",
		n, len(s.factors), what, power(lo), power(hi), after.lost(), before.lost(), after.typical(), before.typical())
}

// put shows channels, or rows, before and after, then what blocks of each size lose.
func (s *smoothed) put(b *page.Body, m *matrix) {
	inverse := "The columns of a weight that meet the channels are multiplied by the inverse: outliers move there, which pays where the weight has room for them."
	if s.byRow {
		inverse = "The rows of the product are divided by the same."
	}
	b.Put("<p><b>%s</b> %s</p>\n", s.finding(), inverse)
	b.Put("<div class=\"beside\">%s<div class=\"dense\">", s.picture(m))
	columns := append([]page.Column{{Name: "scales", Attributes: page.Whole}}, page.Columns(page.Number, "lost before", "after", "median error before", "after")...)
	b.Table(page.Table{Label: "What smoothing does", Columns: columns, Rows: page.Rows(s.plain, func(o *outcome) []any {
		after := s.smooth[slices.Index(s.plain, o)]
		return []any{block(o.recipe.Block), mark(o.lost()), mark(after.lost()), o.typical(), after.typical()}
	})})
	b.Put("</div></div>\n")
	s.putFactors(b, m)
}

// putFactors is the picture as a table.
func (s *smoothed) putFactors(b *page.Body, m *matrix) {
	const few = 32
	what, before, after := s.maxima(m)
	b.Put("<details><summary>Factors as a table</summary><div class=\"dense\">")
	t := page.Table{Label: "Factors", Columns: page.Columns(page.Number, what, "largest before", "factor", "after")}
	for i := range min(len(before), few) {
		t.Rows = append(t.Rows, []any{i + 1, number(before[i]), power(s.factors[i]), number(after[i])})
	}
	b.Table(t)
	if len(before) > few {
		b.Put("<p class=\"note\">The first %s of %s.</p>", few, len(before))
	}
	b.Put("</div></details>\n")
}

// maxima are the largest magnitudes of each channel or row, before and after.
func (s *smoothed) maxima(m *matrix) (what string, before, after []float32) {
	if s.byRow {
		return "row", rowAmax(m), rowAmax(&s.after)
	}
	return "channel", m.amax(), s.after.amax()
}

// picture draws the largest magnitude of each channel or row, before and after.
func (s *smoothed) picture(m *matrix) page.HTML {
	what, before, after := s.maxima(m)
	n := min(len(before), mostCols)
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range append(slices.Clone(before[:n]), after[:n]...) {
		if x > 0 && x <= math.MaxFloat32 {
			lo, hi = min(lo, math.Floor(math.Log2(float64(x)))), max(hi, math.Ceil(math.Log2(float64(x))))
		}
	}
	if lo > hi {
		return ""
	}
	hi = max(hi, lo+1)
	const width, height, left = 360.0, 150.0, 44.0
	draw := func(all []float32) string {
		var path strings.Builder
		wide := (width - left) / float64(n)
		for i, x := range all[:n] {
			if x > 0 && x <= math.MaxFloat32 {
				y := 10 + (hi-math.Log2(float64(x)))/(hi-lo)*height
				fmt.Fprintf(&path, "M%.5g %.5gh%.4g", left+float64(i)*wide, y, max(wide-3, 0.01))
			}
		}
		return path.String()
	}
	var b page.Body
	b.Put(`<figure><figcaption>Largest magnitude of each %s: <span class="before">before</span> and <span class="after">after</span></figcaption>
<svg class="lines" viewBox="0 0 %s %s" width="%s" role="img" aria-label="Largest magnitude of each %s, before and after smoothing">`, what, width, height+20, width, what)
	for _, at := range []float64{hi, lo} {
		y := 10 + (hi-at)/(hi-lo)*height
		b.Put(`<line class="axis" x1="%s" x2="%s" y1="%s" y2="%s"/><text x="0" y="%s">2^%s</text>`, left, width, y, y, y+4, at)
	}
	b.Put(`<path class="before" d="%s"/><path class="after" d="%s"/></svg></figure>`+"\n", draw(before), draw(after))
	if n < len(before) {
		b.Put("<p class=\"note\">The first %s of %s %ss.</p>\n", n, len(before), what)
	}
	return b.HTML()
}

// rowAmax returns the largest magnitude of each row.
func rowAmax(m *matrix) []float32 {
	all := make([]float32, m.rows)
	fp8.AmaxBlocks(all, m.values, m.cols)
	return all
}
