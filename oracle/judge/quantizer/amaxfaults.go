package quantizer

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// selection is what an amax is taken over in place of its own block: of the block of a partition
// in which that begins, what keep allows.
type selection struct {
	words string
	part  partition
	keep  func(i, k int) bool // nil: all
}

// of makes scales by the claim of the amaxes of a selection.
func (j *job) of(s selection) func(b int) fp8.Scale {
	return func(b int) fp8.Scale {
		a := j.lazily(s.words, func() amaxes { return j.amaxesOf(&s.part, j.x, s.keep) })
		n := s.part.block(j.part.first(b))
		return j.scaleOf(j.recipe, b, a.of[n], a.nan[n])
	}
}

func (j *job) over(all ...selection) (rules []rule) {
	for _, s := range all {
		rules = append(rules, j.scaling(s.words, j.of(s)))
	}
	return rules
}

// neighbour is the block beside each: at the edge it is the block itself or, if wrap, the one at
// the other edge.
type neighbour struct {
	words string
	wrap  bool
	of    func(b int) int
}

func (j *job) neighbours() (all []neighbour) {
	p := &j.part
	for _, d := range []struct {
		rows, cols int
		words      string
	}{{0, 1, "to the right"}, {0, -1, "to the left"}, {1, 0, "below"}, {-1, 0, "above"}} {
		if d.rows != 0 && p.gridRows < 2 || d.cols != 0 && p.gridCols < 2 {
			continue
		}
		for _, wrap := range []bool{false, true} {
			all = append(all, neighbour{d.words, wrap, func(b int) int {
				r, c := b/p.gridCols+d.rows, b%p.gridCols+d.cols
				if wrap {
					r, c = (r+p.gridRows)%p.gridRows, (c+p.gridCols)%p.gridCols
				} else if r < 0 || r >= p.gridRows || c < 0 || c >= p.gridCols {
					return b
				}
				return r*p.gridCols + c
			}})
		}
	}
	return all
}

func neighboursOver(j *job) (all []rule) {
	for _, n := range j.neighbours() {
		words := "scales are those of the neighbour's block, the one " + n.words
		all = append(all, j.scaling(words+", from whose amax they are made", func(b int) fp8.Scale {
			if at := n.of(b); j.has(ofAmax) && j.levelOf(b) == j.levelOf(at) {
				return j.scaleOf(j.recipe, b, j.amaxes.of[at], j.amaxes.nan[at])
			}
			return j.claimedScale(n.of(b))
		}), j.storing(words+"; codes are those of their own", func(b int, _ fp8.Scale) float32 { return j.claimedScale(n.of(b)).Stored }))
	}
	return all
}

func otherAxis(j *job) (all []rule) {
	own := tensor.Block{Rows: j.part.height, Cols: j.part.width}
	if own.Rows == own.Cols {
		return nil
	}
	b := own.Transposed()
	p := newPartition(j.rows, j.cols, b)
	if p.blocks() != j.part.blocks() {
		return nil
	}
	a := func() amaxes { return j.lazily("axis", func() amaxes { return j.amaxesOf(&p, j.x, nil) }) }
	scaleAt := func(n int) fp8.Scale { return j.scaleOf(j.recipe, 0, a().of[n], a().nan[n]) }
	words := fmt.Sprintf("blocks are cut along the other axis: %v along columns, where %v was claimed", b, own)
	if own.Rows > own.Cols {
		words = fmt.Sprintf("blocks are cut along the other axis: %v along rows, where %v along columns was claimed", b, own)
	}
	for _, turned := range []bool{false, true} {
		store := func(b int, _ fp8.Scale) float32 {
			if turned { // scales are kept as those of the transposed matrix
				b = b%p.gridRows*p.gridCols + b/p.gridRows
			}
			return scaleAt(b).Stored
		}
		all = append(all, j.vary(words, func(r *rule) {
			r.scale, r.blocks, r.with = j.stored(store), &p, func(n int, _ fp8.Scale) fp8.Scale { return scaleAt(n) }
		}), j.storing(words+", of scales; codes are those of the claim", store))
	}
	return all
}

func otherBlocks(j *job) []rule {
	p := j.part
	var all []selection
	for _, x := range []struct {
		words string
		b     tensor.Block
	}{
		{"the whole tensor", tensor.Block{}}, {"whole rows", tensor.Block{Rows: p.height}}, {"whole columns", tensor.Block{Cols: p.width}},
		{"two blocks side by side", tensor.Block{Rows: p.height, Cols: 2 * p.width}}, {"four blocks side by side", tensor.Block{Rows: p.height, Cols: 4 * p.width}},
		{"two blocks one below the other", tensor.Block{Rows: 2 * p.height, Cols: p.width}},
		{"square blocks", tensor.Block{Rows: max(p.height, p.width), Cols: max(p.height, p.width)}},
	} {
		q := newPartition(j.rows, j.cols, x.b)
		if q.height == p.height && q.width == p.width || q.height%p.height != 0 && q.gridRows > 1 || q.width%p.width != 0 && q.gridCols > 1 {
			continue
		}
		all = append(all, selection{fmt.Sprintf("the amax of a scale is that of %s, %dx%d, not that of its own block", x.words, q.height, q.width), q, nil})
	}
	for _, half := range []struct {
		words string
		keep  func(i, k int) bool
	}{
		{"the first half of the columns of its block", func(_, k int) bool { return k%p.width < p.width/2 }},
		{"the second half of the columns of its block", func(_, k int) bool { return k%p.width >= p.width/2 }},
		{"the first row of its block", func(i, _ int) bool { return i%p.height == 0 }},
		{"the even columns", func(_, k int) bool { return k%2 == 0 }},
		{"all but the first column of its block", func(_, k int) bool { return k%p.width > 0 }},
		{"all but the last column of its block", func(_, k int) bool { return k%p.width < p.width-1 }},
	} {
		all = append(all, selection{"the amax of a scale is that of " + half.words + " alone", p, half.keep})
	}
	return j.over(all...)
}

func raggedOver(j *job) (all []rule) {
	edge := func(n int, at func(i, k int) int, last, ragged string) {
		before := func(end int) func(i, k int) bool { return func(i, k int) bool { return at(i, k) < end } }
		all = append(all, j.over(selection{last, j.part, before(n - 1)})...)
		for v := 2; v <= 64; v *= 2 {
			if end := n / v * v; end < n-1 && end > 0 {
				all = append(all, j.over(selection{fmt.Sprintf(ragged, end, n-1, v), j.part, before(end)})...)
			}
		}
	}
	column := func(_, k int) int { return k }
	edge(j.cols, column, "the amax of the last block of a row leaves out the last column",
		"the amax of the last, ragged block leaves out columns %d to %d, behind the last multiple of %d")
	if p := &j.part; p.width < j.cols && j.cols%p.width != 0 {
		all = append(all, j.over(selection{"the amax of the last, ragged block of columns counts none of its columns", *p,
			func(_, k int) bool { return k < j.cols/p.width*p.width }})...)
	}
	if j.part.height > 1 {
		edge(j.rows, func(i, _ int) int { return i }, "the amax of the last block of a column leaves out the last row",
			"the amax of the last, ragged blocks leaves out rows %d to %d, behind the last multiple of %d")
	}
	return all
}

func signedOver(j *job) []rule {
	at := func(i, k int) float32 { return j.x[i*j.cols+k] }
	return j.over(selection{"amax is the largest value, not the largest magnitude: negative values do not count", j.part, func(i, k int) bool { return at(i, k) > 0 }},
		selection{"amax is the smallest value, not the largest magnitude: positive values do not count", j.part, func(i, k int) bool { return at(i, k) < 0 }})
}

// narrow are the types through which values and scales may go.
var narrow = []struct {
	words string
	round func(x float32) float32
}{{"bfloat16", throughBF16}, {"float16", throughFP16}}

func roundedOver(j *job) (all []rule) {
	for _, x := range narrow {
		r := j.scaling("amax is rounded to "+x.words, func(b int) fp8.Scale { return j.scaleOf(j.recipe, b, x.round(j.amaxes.of[b]), j.amaxes.nan[b]) })
		all = append(all, r, r.changed("double-rounding", "values are rounded twice, to "+x.words+" first", func(r *rule) { r.before = x.round }))
	}
	return all
}

// wrongScale returns the scale that is stored in all blocks that are wrong and of which of says
// so, if it is the same, and how many there are.
func (j *job) wrongScale(of func(b int) bool) (stored float32, n int) {
	for b, s := range j.scales {
		if j.scaleState[b] != wrong || !of(b) {
			continue
		}
		if n++; n > 1 && !same(stored, s) {
			return 0, 0
		}
		stored = s
	}
	return stored, n
}

// zeroBlocks is what is stored of blocks of zeros.
func zeroBlocks(j *job) []rule {
	zeros := func(b int) bool { return j.amaxes.of[b] == 0 && !j.amaxes.nan[b] }
	nan := false
	stored, found := j.wrongScale(func(b int) bool {
		i, k := j.part.first(b)
		nan = nan || zeros(b) && j.recipe.Format.IsNaN(j.codes[i*j.cols+k])
		return zeros(b)
	})
	if found == 0 {
		return nil
	}
	words := fmt.Sprintf("blocks of zeros have the scale %v", Number(stored))
	if nan {
		words += ", and their codes are NaN (0 divided by 0)"
	}
	return []rule{j.vary(words, func(r *rule) {
		r.zeroNaN = nan
		r.scale = j.stored(func(b int, s fp8.Scale) float32 {
			if zeros(b) {
				return stored
			}
			return s.Stored
		})
	})}
}

// clamped is a smallest and a largest scale.
func clamped(j *job) []rule {
	above := 0
	at, found := j.wrongScale(func(b int) bool {
		if j.scales[b] > j.want.Scales[b] {
			above++
		}
		return true
	})
	if found < 2 || above != 0 && above != found {
		return nil
	}
	words, clamp := fmt.Sprintf("scales are clamped at a smallest one, %v", Number(at)), func(s float32) float32 { return max(s, at) }
	if above == 0 {
		words, clamp = fmt.Sprintf("scales are clamped at a largest one, %v", Number(at)), func(s float32) float32 { return min(s, at) }
	}
	return []rule{j.scaling(words, func(b int) fp8.Scale {
		s := j.claimedScale(b)
		if clamp(s.Stored) == s.Stored {
			return s
		}
		return j.under(at, b, nil)
	}), j.storing(words+" (which codes do not follow)", func(_ int, s fp8.Scale) float32 { return clamp(s.Stored) })}
}
