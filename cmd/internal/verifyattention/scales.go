package verifyattention

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/tensor"
)

// grid says which scale is whose: extents are those of the grid, [sequences or batch, heads,
// blocks of tokens, parts of a row]. Of 1 sequence or head it is that of all.
type grid struct {
	extents
	block      int  // tokens that share a scale, where there are several blocks
	bySequence bool // the first dimension is of sequences; else of the file's batch
}

// reading is a grid that the shape of a tensor of scales may be, and how it is written where
// only that may be meant.
type reading struct {
	grid
	of    string
	whole []int
}

// gridOf returns the grid that a tensor of several scales holds, of the n sequences. block is
// how many tokens share a scale; 0 is what fits.
func (a *array) gridOf(t operands.Tensor, l Layout, n, block int) (grid, error) {
	packed := n > 0 && a.rank == 3
	if n == 0 {
		n = a.extents[0]
	}
	var all []reading
	for _, r := range a.readings(t.Shape, l) {
		if r.fits(a, n) && !slices.ContainsFunc(all, func(o reading) bool { return o.grid == r.grid }) {
			all = append(all, r)
		}
	}
	var fit []reading
	var failed error
	for _, r := range all {
		var err error
		if r.extents[2] > 1 || block > 0 {
			r.block, err = a.tokensOf(t, r.extents[2], block, packed)
		}
		if err == nil {
			fit = append(fit, r)
		} else if failed == nil {
			failed = err
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0].grid, nil
	case len(fit) > 1:
		var may, shapes []string
		for _, r := range fit {
			may = append(may, r.of)
			shapes = append(shapes, fmt.Sprint(r.whole))
		}
		return grid{}, fmt.Errorf("tensor %q of shape %v may hold scales of %s of tensor %q: reshape "+
			"it to %s",
			t.Name, t.Shape, strings.Join(may, " or "), a.name, strings.Join(shapes, " or "))
	case failed != nil:
		return grid{}, failed
	}
	return grid{}, fmt.Errorf("tensor %q of shape %v does not hold the scales of tensor %q of "+
		"shape %v: want %s",
		t.Name, t.Shape, a.name, l.shape(a.extents, a.rank), a.wanted(l, n))
}

// readings lists what a shape may be of.
func (a *array) readings(shape []int, l Layout) (all []reading) {
	if slices.Contains(shape, 0) {
		return nil
	}
	add := func(whole []int, of string) {
		if e, ok := l.of(whole); ok && len(whole) == a.rank {
			all = append(all, reading{grid{extents: e}, of, whole})
		}
	}
	byToken, byHead := "tokens", "heads"
	add(shape, "blocks")
	add(append(slices.Clone(shape), 1), byToken)
	if a.flag == "v" && len(shape) == a.rank-1 { // the tokens may be left out
		at := a.rank - 2
		if l == BSHD {
			at--
		}
		add(slices.Insert(slices.Clone(shape), at, 1), "columns")
	}
	switch len(shape) {
	case 1:
		e := extents{1, shape[0], 1, 1}
		all = append(all, reading{grid{extents: e}, byHead, l.shape(e, a.rank)})
	case 2:
		e := extents{shape[0], shape[1], 1, 1}
		all = append(all, reading{grid{extents: e, bySequence: true}, byHead, shape[1:]})
	}
	return all
}

// fits reports whether the grid may be one of n sequences of the array.
func (r *reading) fits(a *array, n int) bool {
	e, first := r.extents, a.extents[0]
	if r.bySequence {
		first = n
	}
	if e[0] == 1 {
		r.bySequence = false
	}
	return (e[0] == first || e[0] == 1) &&
		a.extents[1]%e[1] == 0 && (e[1] == a.extents[1] || a.flag == "q" || e[1] == 1) &&
		e[2] <= a.extents[2] && a.extents[3]%e[3] == 0
}

// wanted lists the shapes that scales may have.
func (a *array) wanted(l Layout, n int) string {
	batch, h, s, d := a.extents[0], a.extents[1], a.extents[2], a.extents[3]
	heads := fmt.Sprint([]int{h})
	if n > 1 {
		heads += fmt.Sprintf(" or %v", []int{n, h})
	}
	text := fmt.Sprintf("[1] for all, %s for heads, %v for tokens", heads,
		l.shape(extents{batch, h, s, 1}, a.rank))
	if a.flag == "v" {
		text += fmt.Sprintf(", %v for columns", l.shape(extents{batch, h, 1, d}, a.rank))
	}
	return text + ", or fewer tokens or columns for blocks of them"
}

// tokensOf returns how many tokens share a scale where there are some blocks of them.
func (a *array) tokensOf(t operands.Tensor, blocks, block int, packed bool) (int, error) {
	n := a.extents[2]
	if packed && blocks != n {
		return 0, fmt.Errorf("tensor %q of shape %v has %d scales for the %d tokens of all sequences: "+
			"want one for each",
			t.Name, t.Shape, blocks, n)
	}
	if block > 0 {
		if (n-1)/block+1 != blocks {
			return 0, fmt.Errorf("tensor %q of shape %v has %d scales for %d tokens, and not one for %d "+
				"tokens each: change --%s-block",
				t.Name, t.Shape, blocks, n, block, a.flag)
		}
		return block, nil
	}
	var fitting []int
	for b := 1; b < n; b *= 2 {
		if (n-1)/b+1 == blocks {
			fitting = append(fitting, b)
		}
	}
	if b := n / blocks; n%blocks == 0 && !slices.Contains(fitting, b) {
		fitting = append(fitting, b)
	}
	if len(fitting) != 1 {
		return 0, fmt.Errorf("tensor %q of shape %v has %d scales for %d tokens: say with --%s-block "+
			"how many tokens share one",
			t.Name, t.Shape, blocks, n, a.flag)
	}
	return fitting[0], nil
}

// scalesOf returns the scales of sequence b, whose tokens are of the given places, and their
// blocks: of all tokens of a head or of each token, and of parts of a row.
func (a *array) scalesOf(b int, places []place) (scales []float32, block tensor.Block) {
	if len(places) == 0 {
		return nil, tensor.Block{Rows: 1}
	}
	g, parts := a.grid, a.grid.extents[3]
	rows := places
	if g.extents[2] == 1 && (g.extents[0] == 1 || g.bySequence || oneEntry(places)) {
		block.Rows, rows = len(places), places[:1]
	} else {
		block.Rows = 1
	}
	if parts > 1 {
		block.Cols = a.extents[3] / parts
	}
	for h := range a.extents[1] {
		h = h / (a.extents[1] / g.extents[1])
		for _, p := range rows {
			first := p.entry
			if g.bySequence {
				first = b
			}
			at := (min(first, g.extents[0]-1)*g.extents[1]+h)*g.extents[2] +
				min(p.token/max(g.block, 1), g.extents[2]-1)
			scales = append(scales, a.scales[at*parts:][:parts]...)
		}
	}
	return scales, block
}

func oneEntry(places []place) bool {
	return !slices.ContainsFunc(places, func(p place) bool { return p.entry != places[0].entry })
}
