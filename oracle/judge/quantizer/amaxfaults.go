package quantizer

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// from makes scales by the claim of the amaxes of other blocks: at names the block of each.
func (j *job) from(kind Kind, words string, at func(b int) (of int, a amaxes)) rule {
	return j.claimed().changed(kind, words, func(r *rule) {
		r.scale = func(b int) fp8.Scale {
			n, a := at(b)
			return j.scaleOf(j.recipe, b, a.of[n], a.nan[n])
		}
	})
}

// amaxAlone reports whether the claim makes a scale of an amax alone.
func (j *job) amaxAlone() bool { return !chooses(j.recipe.Profile) && !j.recipe.Profile.Delayed() }

func neighboursOver(j *job, kind Kind) (all []rule) {
	p := &j.part
	for _, d := range []struct {
		rows, cols int
		words      string
	}{{0, 1, "to the right"}, {0, -1, "to the left"}, {1, 0, "below"}, {-1, 0, "above"}} {
		if d.rows != 0 && p.gridRows < 2 || d.cols != 0 && p.gridCols < 2 {
			continue
		}
		for _, wrap := range []bool{false, true} {
			at := func(b int) int {
				r, c := b/p.gridCols+d.rows, b%p.gridCols+d.cols
				if wrap {
					r, c = (r+p.gridRows)%p.gridRows, (c+p.gridCols)%p.gridCols
				} else if r < 0 || r >= p.gridRows || c < 0 || c >= p.gridCols {
					return b
				}
				return r*p.gridCols + c
			}
			words := "scales are those of the neighbour's block, the one " + d.words
			all = append(all, j.claimed().changed(kind, words+", from whose amax they are made", func(r *rule) {
				r.scale = func(b int) fp8.Scale {
					if j.amaxAlone() && j.levelOf(b) == j.levelOf(at(b)) {
						return j.scaleOf(j.recipe, b, j.amaxes.of[at(b)], j.amaxes.nan[at(b)])
					}
					return j.claimedScale(at(b))
				}
			}), j.claimed().changed(kind, words+"; codes are those of their own", func(r *rule) {
				r.scale = func(b int) fp8.Scale {
					by := encodesBy(j.claimedScale(b))
					by.Stored = j.claimedScale(at(b)).Stored
					return by
				}
			}))
		}
	}
	return all
}

func otherAxis(j *job, kind Kind) (all []rule) {
	own := tensor.Block{Rows: j.part.height, Cols: j.part.width}
	if !j.amaxAlone() || own.Rows == own.Cols {
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
		for _, codes := range []bool{true, false} {
			w := words
			if !codes {
				w += ", of scales; codes are those of the claim"
			}
			all = append(all, j.claimed().changed(kind, w, func(r *rule) {
				r.scale = func(b int) fp8.Scale {
					n := b
					if turned { // scales are kept as those of the transposed matrix
						n = b%p.gridRows*p.gridCols + b/p.gridRows
					}
					s := encodesBy(j.claimedScale(b))
					s.Stored = scaleAt(n).Stored
					return s
				}
				if codes {
					r.blocks = &p
					r.with = func(n int, _ fp8.Scale) fp8.Scale { return scaleAt(n) }
				}
			}))
		}
	}
	return all
}

func otherBlocks(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	p := j.part
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
		a := func() amaxes { return j.lazily(x.words, func() amaxes { return j.amaxesOf(&q, j.x, nil) }) }
		all = append(all, j.from(kind, fmt.Sprintf("the amax of a scale is that of %s, %dx%d, not that of its own block", x.words, q.height, q.width), func(b int) (int, amaxes) {
			i0, _, j0, _ := p.bounds(b)
			return q.block(i0, j0), a()
		}))
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
		a := func() amaxes { return j.lazily(half.words, func() amaxes { return j.amaxesOf(&p, j.x, half.keep) }) }
		all = append(all, j.from(kind, "the amax of a scale is that of "+half.words+" alone", func(b int) (int, amaxes) { return b, a() }))
	}
	return all
}

func raggedOver(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	p := j.part
	add := func(words string, keep func(i, k int) bool) {
		a := func() amaxes { return j.lazily(words, func() amaxes { return j.amaxesOf(&p, j.x, keep) }) }
		all = append(all, j.from(kind, words, func(b int) (int, amaxes) { return b, a() }))
	}
	add("the amax of the last block of a row leaves out the last column", func(_, k int) bool { return k < j.cols-1 })
	for v := 2; v <= 64; v *= 2 {
		if end := j.cols / v * v; end < j.cols-1 && end > 0 {
			add(fmt.Sprintf("the amax of the last, ragged block leaves out columns %d to %d, behind the last multiple of %d", end, j.cols-1, v), func(_, k int) bool { return k < end })
		}
	}
	if end := j.cols / p.width * p.width; p.width < j.cols && end < j.cols {
		add("the amax of the last, ragged block of columns counts none of its columns", func(_, k int) bool { return k < end })
	}
	if p.height > 1 {
		add("the amax of the last block of a column leaves out the last row", func(i, _ int) bool { return i < j.rows-1 })
		for v := 2; v <= 64; v *= 2 {
			if end := j.rows / v * v; end < j.rows-1 && end > 0 {
				add(fmt.Sprintf("the amax of the last, ragged blocks leaves out rows %d to %d, behind the last multiple of %d", end, j.rows-1, v), func(i, _ int) bool { return i < end })
			}
		}
	}
	return all
}

func signedOver(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	for _, x := range []struct {
		words string
		keep  func(v float32) bool
	}{{"the largest value, not the largest magnitude: negative values do not count", func(v float32) bool { return v > 0 }},
		{"the smallest value, not the largest magnitude: positive values do not count", func(v float32) bool { return v < 0 }}} {
		a := func() amaxes {
			return j.lazily(x.words, func() amaxes {
				return j.amaxesOf(&j.part, j.x, func(i, k int) bool { return x.keep(j.x[i*j.cols+k]) })
			})
		}
		all = append(all, j.from(kind, "amax is "+x.words, func(b int) (int, amaxes) { return b, a() }))
	}
	return all
}

func roundedOver(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	for _, x := range []struct {
		words string
		round func(x float32) float32
	}{{"bfloat16", throughBF16}, {"float16", throughFP16}} {
		r := j.claimed().changed(kind, "amax is rounded to "+x.words, func(r *rule) {
			r.scale = func(b int) fp8.Scale {
				return j.scaleOf(j.recipe, b, x.round(j.amaxes.of[b]), j.amaxes.nan[b])
			}
		})
		all = append(all, r, r.changed("double-rounding", "values are rounded twice, to "+x.words+" first", func(r *rule) { r.before = x.round }))
	}
	return all
}

// zeroBlocks is what is stored of blocks of zeros, if it is the same for all that are wrong.
func zeroBlocks(j *job, kind Kind) (all []rule) {
	var stored float32
	found, nan := 0, 0
	for b, s := range j.scales {
		if j.amaxes.of[b] != 0 || j.amaxes.nan[b] || j.scaleState[b] != wrong {
			continue
		}
		if found++; found > 1 && !same(stored, s) {
			return nil
		}
		stored = s
		i0, _, j0, _ := j.part.bounds(b)
		if j.recipe.Format.IsNaN(j.codes[i0*j.cols+j0]) {
			nan++
		}
	}
	if found == 0 {
		return nil
	}
	words := fmt.Sprintf("blocks of zeros have the scale %v", Number(stored))
	if nan > 0 {
		words += ", and their codes are NaN (0 divided by 0)"
	}
	return []rule{j.claimed().changed(kind, words, func(r *rule) {
		r.zeroNaN = nan > 0
		r.scale = func(b int) fp8.Scale {
			s := encodesBy(j.claimedScale(b))
			if j.amaxes.of[b] == 0 && !j.amaxes.nan[b] {
				s.Stored = stored
			}
			return s
		}
	})}
}

// clamped is a smallest and a largest scale, if those that are wrong are all the same.
func clamped(j *job, kind Kind) (all []rule) {
	var at float32
	found, above := 0, 0
	for b, s := range j.scales {
		if j.scaleState[b] != wrong {
			continue
		}
		if found++; found > 1 && !same(at, s) {
			return nil
		}
		if at = s; s > j.want.Scales[b] {
			above++
		}
	}
	if found < 2 || above != 0 && above != found {
		return nil
	}
	words, clamp := fmt.Sprintf("scales are clamped at a smallest one, %v", Number(at)), func(s float32) float32 { return max(s, at) }
	if above == 0 {
		words, clamp = fmt.Sprintf("scales are clamped at a largest one, %v", Number(at)), func(s float32) float32 { return min(s, at) }
	}
	return []rule{j.claimed().changed(kind, words, func(r *rule) {
		r.scale = func(b int) fp8.Scale {
			s := j.claimedScale(b)
			if clamp(s.Stored) == s.Stored {
				return s
			}
			return j.under(at, b, nil)
		}
	}), j.claimed().changed(kind, words+" (which codes do not follow)", func(r *rule) {
		r.scale = func(b int) fp8.Scale {
			s := encodesBy(j.claimedScale(b))
			s.Stored = clamp(s.Stored)
			return s
		}
	})}
}
