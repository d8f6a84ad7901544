package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/tensor"
)

// grid says which scale is whose. Its extents are [sequences or batch, heads, blocks of
// tokens, parts of a row]; of 1 sequence or head it is that of all.
type grid struct {
	shape
	block      int  // tokens that share a scale, where there are several blocks
	bySequence bool // the first dimension is of several sequences; else of the file's batch

	of    string // what has a scale
	whole []int  // how it is written where only that may be meant
}

// gridOf returns the grid that a tensor of several scales holds, of the n sequences. block is
// how many tokens share a scale; 0 is what fits.
func (a *array) gridOf(t operands.Tensor, n, block int) (grid, error) {
	packed := n > 0 && a.rank == 3
	n = cmp.Or(n, a.extents[0])
	var fit []grid
	var failed error
	for _, g := range a.readings(t.Shape) {
		same := func(o grid) bool { return o.extents == g.extents && o.bySequence == g.bySequence }
		if !g.fits(a, n) || slices.ContainsFunc(fit, same) {
			continue
		}
		if g.extents[2] > 1 || block > 0 {
			var err error
			if g.block, err = a.tokensOf(t, g.extents[2], block, packed); err != nil {
				failed = cmp.Or(failed, err)
				continue
			}
		}
		fit = append(fit, g)
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		var may, shapes []string
		for _, g := range fit {
			may, shapes = append(may, g.of), append(shapes, fmt.Sprint(g.whole))
		}
		return grid{}, fmt.Errorf("tensor %q of shape %v may hold scales of %s of tensor %q: reshape it to %s",
			t.Name, t.Shape, strings.Join(may, " or "), a.name, strings.Join(shapes, " or "))
	case failed != nil:
		return grid{}, failed
	}
	return grid{}, fmt.Errorf("tensor %q of shape %v does not hold the scales of tensor %q of shape %v: want %s",
		t.Name, t.Shape, a.name, a.dims(), a.wanted(n))
}

// readings lists what a shape may be of.
func (a *array) readings(dims []int) (all []grid) {
	if slices.Contains(dims, 0) {
		return nil
	}
	add := func(of string, whole ...int) {
		if s, ok := newShape(whole, a.tokensFirst); ok && s.rank == a.rank {
			all = append(all, grid{shape: s, of: of, whole: whole})
		}
	}
	add("blocks", dims...)
	add("tokens", append(slices.Clone(dims), 1)...)
	if a.flag == "v" && len(dims) == a.rank-1 { // the tokens may be left out
		at := a.rank - 2
		if a.tokensFirst {
			at--
		}
		add("columns", slices.Insert(slices.Clone(dims), at, 1)...)
	}
	switch len(dims) {
	case 1:
		s := a.with([4]int{1, dims[0], 1, 1})
		all = append(all, grid{shape: s, of: "heads", whole: s.dims()})
	case 2:
		all = append(all, grid{shape: a.with([4]int{dims[0], dims[1], 1, 1}), of: "heads", whole: dims[1:], bySequence: dims[0] > 1})
	}
	return all
}

// with returns a shape of the same layout.
func (s shape) with(extents [4]int) shape {
	s.extents = extents
	return s
}

// fits reports whether the grid may be one of n sequences of the array.
func (g grid) fits(a *array, n int) bool {
	e, first := g.extents, a.extents[0]
	if g.bySequence {
		first = n
	}
	return (e[0] == first || e[0] == 1) &&
		a.extents[1]%e[1] == 0 && (e[1] == a.extents[1] || a.flag == "q" || e[1] == 1) &&
		e[2] <= a.extents[2] && a.extents[3]%e[3] == 0
}

// wanted lists the shapes that scales may have.
func (a *array) wanted(n int) string {
	batch, h, s, d := a.extents[0], a.extents[1], a.extents[2], a.extents[3]
	heads := fmt.Sprint([]int{h})
	if n > 1 {
		heads += fmt.Sprintf(" or %v", []int{n, h})
	}
	text := fmt.Sprintf("[1] for all, %s for heads, %v for tokens", heads, a.with([4]int{batch, h, s, 1}).dims())
	if a.flag == "v" {
		text += fmt.Sprintf(", %v for columns", a.with([4]int{batch, h, 1, d}).dims())
	}
	return text + ", or fewer tokens or columns for blocks of them"
}

// tokensOf returns how many tokens share a scale where there are some blocks of them.
func (a *array) tokensOf(t operands.Tensor, blocks, block int, packed bool) (int, error) {
	n := a.extents[2]
	wrong := func(format string, args ...any) (int, error) {
		return 0, fmt.Errorf("tensor %q of shape %v has %d scales for "+format, append([]any{t.Name, t.Shape, blocks}, args...)...)
	}
	fitting := []int{block}
	if block == 0 {
		fitting = operands.FittingExtents(n, blocks)
	}
	switch {
	case packed && blocks != n:
		return wrong("the %d tokens of all sequences: want one for each", n)
	case block > 0 && (n-1)/block+1 != blocks:
		return wrong("%d tokens, and not one for %d tokens each: change --%s-block", n, block, a.flag)
	case len(fitting) != 1:
		return wrong("%d tokens: say with --%s-block how many tokens share one", n, a.flag)
	}
	return fitting[0], nil
}

// scalesOf returns the scales of sequence b, whose tokens are of the given places, and their
// blocks: of all tokens of a head or of each token, and of parts of a row.
func (a *array) scalesOf(b int, places []place) (scales []float32, block tensor.Block) {
	block.Rows = 1
	if len(places) == 0 {
		return nil, block
	}
	g, rows := &a.grid, places
	sameEntry := !slices.ContainsFunc(places, func(p place) bool { return p.entry != places[0].entry })
	if g.extents[2] == 1 && (g.extents[0] == 1 || g.bySequence || sameEntry) {
		block.Rows, rows = len(places), places[:1]
	}
	parts := g.extents[3]
	if parts > 1 {
		block.Cols = a.extents[3] / parts
	}
	for h := range a.extents[1] {
		for _, p := range rows {
			first := p.entry
			if g.bySequence {
				first = b
			}
			at := g.row(min(first, g.extents[0]-1), h*g.extents[1]/a.extents[1], min(p.token/max(g.block, 1), g.extents[2]-1))
			scales = append(scales, a.scales[at*parts:][:parts]...)
		}
	}
	return scales, block
}
