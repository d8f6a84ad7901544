package explore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// outcome is what a recipe makes of a matrix.
type outcome struct {
	recipe scaling.Recipe
	tensor tensor.Tensor
	stats  fp8.Stats // with Detail
	median float64   // of |error|/|value|; NaN where there is no finite value but 0
}

func quantize(m *matrix, r scaling.Recipe) (*outcome, error) {
	o := &outcome{recipe: r, tensor: tensor.Tensor{Shape: []int{m.rows, m.cols}}}
	q := scaling.Quantizer{Recipe: r, Options: tensor.Options{Workers: 1}}
	if r.Profile.Delayed() { // of the step before, which had these values too
		history, err := scaling.NewHistory(r)
		if err != nil {
			return nil, err
		}
		q.History = history
		if err := scaling.Quantize(context.Background(), &o.tensor, m.values, q); err != nil {
			return nil, err
		}
		history.Update()
	}
	q.Stats = &o.stats
	if err := scaling.Quantize(context.Background(), &o.tensor, m.values, q); err != nil {
		return nil, err
	}
	o.judge(m, func(int) float32 { return 1 })
	return o, nil
}

// judge compares with values that were multiplied by factors before they were quantized.
func (o *outcome) judge(m *matrix, factor func(i int) float32) {
	detail := fp8.Detail{}
	errs := make([]float64, 0, len(m.values))
	for i, y := range o.decoded(m) {
		x, y := m.values[i], float64(y)/float64(factor(i))
		if x-x != 0 || y-y != 0 {
			continue
		}
		detail.Add(float64(x), y)
		if x != 0 {
			errs = append(errs, math.Abs(y/float64(x)-1))
		}
	}
	o.stats.Detail, o.median = &detail, math.NaN()
	if slices.Sort(errs); len(errs) > 0 {
		o.median = errs[len(errs)/2]
	}
}

// typical writes the error that a half of the values stays below.
func (o *outcome) typical() string {
	switch {
	case o.median != o.median:
		return "-"
	case o.median > 0.99: // two digits of more would be an exponent
		return strconv.FormatFloat(100*o.median, 'f', 0, 64) + "%"
	}
	return strconv.FormatFloat(100*o.median, 'g', 2, 64) + "%"
}

// lost is how many values the recipe has no number for.
func (o *outcome) lost() int64 {
	return o.stats.Saturated() + o.stats.Flushed + o.stats.BecameNonFinite
}

func (o *outcome) sqnr() float64 { return o.stats.Detail.SQNR() }

// block names what shares a scale.
func block(b tensor.Block) string {
	switch b {
	case tensor.Block{}:
		return "one for the tensor"
	case tensor.Block{Rows: 1}:
		return "one a row"
	}
	return b.String()
}

// blocks are those that are compared, the largest first.
var blocks = []tensor.Block{{}, {Rows: 128, Cols: 128}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 16}}

// byBlock quantizes by the same arithmetic in blocks of each size: by that of the library's
// default, whose scales are powers of two.
func byBlock(m *matrix, f fp8.Format) (all []*outcome, err error) {
	for _, b := range blocks {
		o, err := quantize(m, scaling.Recipe{Profile: scaling.TEBlockPow2, Format: f, Block: b})
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// finding says what the size of blocks does to the values, in a sentence.
func finding(m *matrix, all []*outcome) string {
	whole, best, n := all[0], all[0], textout.Count(len(m.values), "value")
	for _, o := range all[1:] {
		if o.lost() < best.lost() {
			best = o
		}
	}
	text := ""
	if k := whole.stats.NonFinite(); k > 0 {
		text = plural(k, "value is", "values are") + " not finite. "
	}
	if whole.stats.Elements == whole.stats.Zeros {
		return "All values are zero."
	}
	text += fmt.Sprintf("Under one %s scale for the tensor ", whole.recipe.Format)
	fewer := ""
	if k := whole.stats.Subnormal; k > 0 {
		fewer = ", but " + plural(k, "has", "have") + " fewer bits, as subnormals"
	}
	switch {
	case whole.lost() == 0 && whole.exact(m):
		return text + plural(len(m.values), "value is", "values are") + " exact."
	case whole.lost() == 0:
		return text + fmt.Sprintf("none of %s saturates or flushes to zero%s.", n, fewer)
	case best == whole:
		return text + whole.fates(" of "+n) + "; no block that is tried saves one."
	}
	with := "in blocks of " + best.recipe.Block.String()
	if best.recipe.Block.Cols == 0 {
		with = "with one a row"
	}
	return text + whole.fates(" of "+n) + "; " + with + ", " + best.fates("") + "."
}

// exact reports whether each value is as it was.
func (o *outcome) exact(m *matrix) bool {
	return slices.Equal(o.decoded(m), m.values)
}

// decoded are the values that are left.
func (o *outcome) decoded(m *matrix) []float32 {
	values := make([]float32, len(m.values))
	tensor.Dequantize(values, &o.tensor)
	return values
}

func plural[T int | int64](n T, one, many string) string {
	if n != 1 {
		one = many
	}
	return strings.ReplaceAll(fmt.Sprintf("%d %s", n, one), "  ", " ")
}

// fates says in words how many values are lost, the first time with of behind the number.
func (o *outcome) fates(of string) string {
	var all []string
	for _, fate := range []struct {
		n         int64
		one, many string
	}{
		{o.stats.Saturated(), "saturates", "saturate"}, {o.stats.Flushed, "flushes to zero", "flush to zero"},
		{o.stats.BecameNonFinite, "becomes NaN or infinite", "become NaN or infinite"},
	} {
		if fate.n > 0 {
			all = append(all, plural(fate.n, of+" "+fate.one, of+" "+fate.many))
			of = ""
		}
	}
	if all == nil {
		return "none is lost"
	}
	return strings.Join(all, " and ")
}

// putBlocks shows each size of blocks as a picture.
func putBlocks(b *page.Body, m *matrix, all []*outcome) {
	rows, cols := min(m.rows, mostRows), min(m.cols, mostCols)
	if rows < m.rows || cols < m.cols {
		b.Put("<p class=\"note\">Pictures show the first %s of %s rows and %s of %s columns.</p>\n", rows, m.rows, cols, m.cols)
	}
	b.Put("<div class=\"grids\">\n")
	for _, o := range all {
		text := o.fates("") + ", median error " + o.typical()
		b.Put("<figure><figcaption><b>%s</b>: %s</figcaption>\n%s\n<p class=\"note\">%s</p></figure>\n", block(o.recipe.Block), text, o.picture(m, rows, cols, text), o.scales())
	}
	b.Put("</div>\n<p class=\"key\">")
	for _, s := range shades {
		b.Put(`<span><svg width="12" height="12" aria-hidden="true"><rect class="%s" width="12" height="12"/></svg> %s</span> `, s.class, s.name)
	}
	b.Put("</p>\n<details><summary>Blocks as a table</summary><div class=\"dense\">")
	t := page.Table{Label: "Blocks", Columns: append(page.Columns("", "scales"), page.Columns(page.Number, "rows", "columns", "scale", "flushed", "saturated", "subnormal")...)}
	for _, o := range all {
		t.Rows = append(t.Rows, o.blockRows(m)...)
	}
	b.Table(t)
	b.Put("</div></details>\n")
}

// blockRows are rows of a table about the first blocks.
func (o *outcome) blockRows(m *matrix) (rows [][]any) {
	const few = 16
	height, wide := o.recipe.Block.Extents(m.rows, m.cols)
	for row := 0; row < m.rows; row += height {
		for col := 0; col < m.cols && len(rows) < few; col += wide {
			counts := make([]int, len(shades))
			below, to := min(row+height, m.rows), min(col+wide, m.cols)
			for i := row; i < below; i++ {
				for j := col; j < to; j++ {
					counts[o.shade(m, i, j)]++
				}
			}
			rows = append(rows, []any{block(o.recipe.Block), fmt.Sprintf("%d-%d", row+1, below), fmt.Sprintf("%d-%d", col+1, to),
				power(o.tensor.Scale(row, col)), counts[flushed], counts[saturated], counts[subnormal]})
		}
	}
	if n := len(o.tensor.Scales) - len(rows); n > 0 {
		rows = append(rows, []any{fmt.Sprintf("%d more of %s", n, block(o.recipe.Block)), "", "", "", "", "", ""})
	}
	return rows
}

// scales says in words which scales the blocks have.
func (o *outcome) scales() string {
	const few = 4
	all := o.tensor.Scales
	var texts []string
	for _, s := range all[:min(len(all), few)] {
		texts = append(texts, power(s))
	}
	text := plural(len(all), "scale: ", "scales: ") + strings.Join(texts, ", ")
	if len(all) > few {
		text += fmt.Sprintf(", …, from %s to %s", power(slices.Min(all)), power(slices.Max(all)))
	}
	return text
}

// power writes a power of two as one.
func power(x float32) string {
	if fraction, exponent := math.Frexp(float64(x)); fraction == 0.5 {
		return "2^" + strconv.Itoa(exponent-1)
	}
	return number(x)
}

func number(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// tied are profiles that make the same of the values: the same blocks and codes under the
// same scales.
type tied struct {
	profiles []scaling.Profile
	*outcome
}

// byProfile quantizes by all profiles for a format, each in its own blocks, best first.
func byProfile(m *matrix, f fp8.Format) (all []*tied, err error) {
	for _, p := range scaling.ProfilesFor(f) {
		o, err := quantize(m, scaling.Recipe{Profile: p, Format: f, Block: p.Block(scaling.Input)})
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(t *tied) bool { return t.same(o) })
		if at < 0 {
			at = len(all)
			all = append(all, &tied{outcome: o})
		}
		all[at].profiles = append(all[at].profiles, p)
	}
	slices.SortStableFunc(all, func(a, b *tied) int {
		return cmp.Or(cmp.Compare(a.stats.BecameNonFinite, b.stats.BecameNonFinite), cmp.Compare(a.median, b.median), -cmp.Compare(a.sqnr(), b.sqnr()))
	})
	return all, nil
}

func (o *outcome) same(p *outcome) bool {
	return o.recipe.Block == p.recipe.Block && o.tensor.ScaleFormat == p.tensor.ScaleFormat && string(o.tensor.Codes) == string(p.tensor.Codes) &&
		slices.EqualFunc(o.tensor.Scales, p.tensor.Scales, sameBits) && slices.EqualFunc(o.tensor.Outer.Scales, p.tensor.Outer.Scales, sameBits)
}

func sameBits(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }

// putProfiles adds the table of profiles.
func putProfiles(b *page.Body, all []*tied) {
	b.Put("<div class=\"dense\">")
	b.Table(page.Table{
		Label: "What each profile of scaling makes of the values",
		Columns: append(page.Columns(` style="min-width: 8rem"`, "profile"),
			page.Columns(page.Number, "median error", "flushed", "saturated", "not finite", "subnormal", "SQNR, dB")...),
		Rows: page.Rows(all, func(t *tied) []any {
			var names []string
			for _, p := range t.profiles {
				names = append(names, string(p))
			}
			scales := block(t.recipe.Block) + ", " + t.tensor.ScaleFormat.String()
			if !t.tensor.Outer.None() {
				scales += ", and one above"
			}
			return []any{page.Format("%s<br><span class=\"note\">%s</span>", strings.Join(names, ", "), scales), t.typical(), mark(t.stats.Flushed), mark(t.stats.Saturated()), mark(t.stats.NonFinite() + t.stats.BecameNonFinite), t.stats.Subnormal, textout.Decibels(t.sqnr())}
		}),
	})
	b.Put("</div>\n")
}

// mark shows a number that should be 0 as what is wrong.
func mark(n int64) any {
	if n == 0 {
		return n
	}
	return page.Format(`<span class="bad">%s</span>`, n)
}
