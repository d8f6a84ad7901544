package flash

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// change is what a fault makes of a problem and a kernel before the steps of the kernel.
type change struct {
	p    *attention.Problem // a copy
	k    Kernel
	s    attention.Sizes // of the problem as it was
	tail int             // keys that are not padding; 0: there is none
}

func newChange(p *attention.Problem, k Kernel) *change {
	copied := *p
	return &change{p: &copied, k: k, s: p.Sizes()}
}

// tile is the number of keys of a tile.
func (c *change) tile() int { return c.k.tile(c.s.Keys) }

// change returns what the fault changes, or an [ErrNotHere] where it would change nothing.
func (f Fault) change(p *attention.Problem, k Kernel) (*change, error) {
	row, err := table.Row(f.Kind)
	if err != nil {
		return nil, err
	}
	c := newChange(p, k)
	if row.need.has != nil && !row.need.has(f, c) {
		return nil, notHere(f, row.need.why)
	}
	if row.change != nil {
		err = row.change(f, c)
	}
	return c, err
}

// setKernel changes the kernel.
func setKernel(set func(f Fault, k *Kernel)) func(Fault, *change) error {
	return func(f Fault, c *change) error {
		set(f, &c.k)
		return nil
	}
}

// setProblem changes the problem.
func setProblem(set func(p *attention.Problem)) func(Fault, *change) error {
	return func(_ Fault, c *change) error {
		set(c.p)
		return nil
	}
}

// padTail fills the last tile with keys of zeros.
func padTail(_ Fault, c *change) error {
	tile, p := c.tile(), c.p
	c.tail = c.s.Keys
	p.Keys = (c.s.Keys + tile - 1) / tile * tile
	p.K = rebuilt(p.K, c.s.KVHeads, p.Keys, padded(p.K, c.s.Keys), nil)
	p.V = rebuilt(p.V, c.s.KVHeads, p.Keys, padded(p.V, c.s.Keys), nil)
	return nil
}

// headModulo gives each query head a head of K and V of its own: that of its number modulo
// KVHeads.
func headModulo(_ Fault, c *change) error {
	for _, o := range []*attention.Operand{&c.p.K, &c.p.V} {
		_, tokens, _ := o.Dims()
		*o = rebuilt(*o, c.s.Heads, tokens, func(h, t int) (int, int) {
			row := h%c.s.KVHeads*tokens + t
			return row, row
		}, nil)
	}
	return nil
}

func scaleSinks(p *attention.Problem, factor float32) {
	p.Sinks = slices.Clone(p.Sinks)
	for h := range p.Sinks {
		p.Sinks[h] *= factor
	}
}

// saturating is a threshold with which P exceeds its format: the one that
// FlashAttention-4 had, or what is needed.
func saturating(k Kernel) float32 {
	limit := map[Cast]float64{E4M3: 448, E5M2: 57344}[k.P]
	if limit == 0 {
		return 0
	}
	room := math.Log2(limit) - math.Log2(float64(k.pScale())) - float64(k.Offset)
	return max(4, float32(math.Ceil(room+1)))
}

// changeScales reads the scales of another head of the fault's operands, and makes something
// else of them where scale is not nil.
func changeScales(head func(h, heads int) int,
	scale func(c *change, o *attention.Operand) func(row, col int, s float32) float32,
) func(Fault, *change) error {
	return func(f Fault, c *change) error {
		changed := false
		c.sided(f, func(o *attention.Operand) {
			was := *o
			heads, tokens, _ := was.Dims()
			var of func(row, col int, s float32) float32
			if scale != nil {
				of = scale(c, o)
			}
			*o = rebuilt(was, heads, tokens, func(h, t int) (int, int) {
				return h*tokens + t, head(h, heads)*tokens + t
			}, of)
			changed = changed || !sameScales(was, *o)
		})
		if !changed {
			return notHere(f, "the scales are the same")
		}
		return nil
	}
}

func sameHead(h, _ int) int { return h }

// sided calls do with each operand of the fault that has codes.
func (c *change) sided(f Fault, do func(o *attention.Operand)) {
	for _, side := range []struct {
		o  *attention.Operand
		is bool
	}{
		{&c.p.Q, f.Of == ofQ},
		{&c.p.K, f.Of == OfK || f.Of == OfKV},
		{&c.p.V, f.Of == OfV || f.Of == OfKV},
	} {
		if side.is && side.o.Codes != nil {
			do(side.o)
		}
	}
}

// mapScales makes another number of every scale.
func mapScales(to func(s float32) float32) func(Fault, *change) error {
	return func(f Fault, c *change) error {
		changed := false
		c.sided(f, func(o *attention.Operand) {
			t := *o.Codes
			t.Scales = make([]float32, len(t.Scales))
			for i, s := range o.Codes.Scales {
				t.Scales[i] = to(s)
				changed = changed || t.Scales[i] != s
			}
			t.ScaleFormat = tensor.Float32Scales
			*o = attention.Operand{Codes: &t}
		})
		if !changed {
			return notHere(f, "the scales are the same")
		}
		return nil
	}
}

// exchangeScales reads the scales of K for those of V, and the other way round.
func exchangeScales(f Fault, c *change) error {
	k, v := c.p.K, c.p.V
	var err error
	if c.p.K, err = withScales(f, k, v); err == nil {
		c.p.V, err = withScales(f, v, k)
	}
	return err
}

// otherScales reads one of K and V with the scales of the other.
func otherScales(f Fault, c *change) (err error) {
	if f.Of == OfK {
		c.p.K, err = withScales(f, c.p.K, c.p.V)
	} else {
		c.p.V, err = withScales(f, c.p.V, c.p.K)
	}
	return err
}

// withScales returns an operand with the scales of another whose blocks are alike.
func withScales(f Fault, o, other attention.Operand) (attention.Operand, error) {
	if o.Codes == nil || other.Codes == nil {
		return o, notHere(f, "K and V have no scales")
	}
	t, s := *o.Codes, other.Codes
	rows, cols := t.Grid()
	if r, n := s.Grid(); r != rows || n != cols {
		return o, notHere(f, "K and V have other blocks")
	}
	t.Scales, t.ScaleStride, t.ScaleFormat, t.Outer = s.Scales, s.ScaleStride, s.ScaleFormat, s.Outer
	read := attention.Operand{Codes: &t}
	if sameScales(o, read) {
		return o, notHere(f, "the scales are the same")
	}
	return read, nil
}

// otherToken reads the scales of another token of the same head.
func otherToken(token func(f Fault, t, tokens int) int) func(Fault, *change) error {
	return func(f Fault, c *change) error {
		changed := false
		c.sided(f, func(o *attention.Operand) {
			was := *o
			heads, tokens, _ := was.Dims()
			used := c.s.Keys
			if o == &c.p.Q {
				used = c.s.Queries
			}
			*o = rebuilt(was, heads, tokens, func(h, t int) (int, int) {
				if t >= used {
					return h*tokens + t, h*tokens + t
				}
				return h*tokens + t, h*tokens + token(f, t, used)
			}, nil)
			changed = changed || !sameScales(was, *o)
		})
		if !changed {
			return notHere(f, "the scales are the same")
		}
		return nil
	}
}

// otherFormats are the formats for which codes of 8 bits are taken.
func otherFormats(c *change) (all []Fault) {
	for _, of := range []Side{OfKV, ofQ, OfK, OfV} {
		for _, format := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ, fp8.E5M2FNUZ} {
			all = append(all, Fault{Of: of, Format: format})
		}
	}
	return all
}

func readFormat(f Fault, c *change) error {
	changed := false
	c.sided(f, func(o *attention.Operand) {
		if o.Codes.Format.Bits() != 8 || f.Format.Bits() != 8 || o.Codes.Format == f.Format {
			return
		}
		t := *o.Codes
		t.Format, changed = f.Format, true
		*o = attention.Operand{Codes: &t}
	})
	if !changed {
		return notHere(f, "the format is the same")
	}
	return nil
}

func squareScale(*change, *attention.Operand) func(row, col int, s float32) float32 {
	return func(_, _ int, s float32) float32 { return s * s }
}

// dropScale takes scales for 1; P keeps what it has taken of those of V.
func dropScale(c *change, o *attention.Operand) func(row, col int, s float32) float32 {
	v := newOperand(*o)
	if o != &c.p.V || v.scattered() {
		return func(int, int, float32) float32 { return 1 }
	}
	codes, keys := o.Codes, c.s.Keys
	_, tokens, _ := o.Dims()
	return func(row, col int, s float32) float32 {
		return s / largestScale(codes, row, col, tokens, keys)
	}
}

// largestScale is the largest scale of a column of the head that row is of: what the output is
// multiplied by, while P takes what the token's scale is of that.
func largestScale(t *tensor.Tensor, row, col, tokens, keys int) (top float32) {
	from := row / tokens * tokens
	for i := from; i < from+keys; i++ {
		top = max(top, t.Scale(i, col))
	}
	return top
}

// sameScales reports whether two operands of one shape have the same scales.
func sameScales(a, b attention.Operand) bool {
	rows, cols := a.Codes.Dims()
	_, width := a.Codes.Block.Extents(rows, cols)
	for i := range rows {
		for c := 0; c < cols; c += max(width, 1) {
			if a.Codes.Scale(i, c) != b.Codes.Scale(i, c) || outerOf(a.Codes, i) != outerOf(b.Codes, i) {
				return false
			}
		}
	}
	return true
}

// padded reads the first keys of a head, and zeros after them.
func padded(o attention.Operand, keys int) func(h, t int) (int, int) {
	_, tokens, _ := o.Dims()
	return func(h, t int) (int, int) {
		if t >= keys {
			return -1, h * tokens
		}
		return h*tokens + t, h*tokens + t
	}
}

// permuteKeys multiplies P by the codes of V with keys in another order, and their scales in
// the right one: place returns which key of a group is read for the one at a place, where
// the last group may be smaller than a whole one.
func permuteKeys(place func(at, size, whole int) int) func(Fault, *change) error {
	return func(f Fault, c *change) error {
		_, tokens, _ := c.p.V.Dims()
		c.p.V = rebuilt(c.p.V, c.s.KVHeads, tokens, func(h, t int) (int, int) {
			row := h*tokens + t
			if t >= c.s.Keys {
				return row, row
			}
			at := t % f.By
			return row - at + place(at, min(f.By, c.s.Keys-t+at), f.By), row
		}, nil)
		return nil
	}
}

// rebuilt returns an operand of the given heads and tokens. read says of which row of o, head
// times tokens plus token, a token's codes are and its scales; codes of row -1 are 0. scale,
// unless nil, changes scales, outer ones too.
func rebuilt(o attention.Operand, heads, tokens int, read func(h, t int) (codes, scales int),
	scale func(row, col int, s float32) float32) attention.Operand {
	_, had, dim := o.Dims()
	if o.Codes == nil {
		r := attention.Operand{BFloat16: make([]fp8.BFloat16, heads*tokens*dim),
			Shape: [3]int{heads, tokens, dim}}
		for i := range heads * tokens {
			if from, _ := read(i/tokens, i%tokens); from >= 0 {
				copy(r.BFloat16[i*dim:][:dim], o.BFloat16[from*dim:][:dim])
			}
		}
		return r
	}
	t := o.Codes
	all, _ := t.Dims()
	high, width := t.Block.Extents(all, dim)
	r := &tensor.Tensor{Name: t.Name, Format: t.Format, Shape: []int{heads, tokens, dim},
		ScaleFormat: t.ScaleFormat,
		Block:       tensor.Block{Rows: 1, Cols: width}, Codes: make([]byte, heads*tokens*dim)}
	byHead := high%max(had, 1) == 0
	if byHead {
		r.Block.Rows = tokens
	}
	if !t.Outer.None() {
		r.Outer = tensor.Outer{Rows: 1, Divide: t.Outer.Divide}
	}
	if scale != nil {
		r.ScaleFormat = tensor.Float32Scales
	}
	for i := range heads * tokens {
		from, scales := read(i/tokens, i%tokens)
		if from >= 0 {
			copy(r.Codes[i*dim:][:dim], t.Row(from))
		}
		if r.Outer.Rows == 1 {
			outer := t.Outer.At(scales)
			if scale != nil {
				outer = scale(scales, 0, outer)
			}
			r.Outer.Scales = append(r.Outer.Scales, outer)
		}
		if byHead && i%tokens != 0 {
			continue
		}
		for c := 0; c < dim; c += width {
			s := t.Scale(scales, c)
			if scale != nil {
				s = scale(scales, c, s)
			}
			r.Scales = append(r.Scales, s)
		}
	}
	return attention.Operand{Codes: r}
}

// swapColumns reads groups of columns of V in reverse.
func swapColumns(o attention.Operand, by int) attention.Operand {
	heads, tokens, dim := o.Dims()
	r := rebuilt(o, heads, tokens, func(h, t int) (int, int) { return h*tokens + t, h*tokens + t },
		nil)
	for i := range heads * tokens {
		for from := 0; from < dim; from += by {
			to := min(from+by, dim)
			for a, b := i*dim+from, i*dim+to-1; a < b; a, b = a+1, b-1 {
				if r.Codes == nil {
					r.BFloat16[a], r.BFloat16[b] = r.BFloat16[b], r.BFloat16[a]
				} else {
					r.Codes.Codes[a], r.Codes.Codes[b] = r.Codes.Codes[b], r.Codes.Codes[a]
				}
			}
		}
	}
	return r
}
