package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// change is what a fault makes of a problem and a kernel before the steps of the kernel.
type change struct {
	p    *attention.Problem
	k    Kernel
	tail int // keys that are not padding; 0: there is none
}

// change returns what the fault changes, or an [ErrNotHere] where it would change nothing.
func (f Fault) change(p *attention.Problem, k Kernel) (change, error) {
	copied := *p
	c := change{p: &copied, k: k}
	s := p.Sizes()
	if why := f.lacks(p, k, s); why != "" {
		return c, notHere(f, why)
	}
	q := c.p
	switch f.Kind {
	case finiteMax:
		c.k.FirstMax = firstMax(f.Factor)
	case TailUnmasked:
		tile := k.tile(s.Keys)
		c.tail = s.Keys
		q.Keys = (s.Keys + tile - 1) / tile * tile
		q.K = rebuilt(p.K, s.KVHeads, q.Keys, padded(p.K, s.Keys), nil)
		q.V = rebuilt(p.V, s.KVHeads, q.Keys, padded(p.V, s.Keys), nil)
	case causalIgnored:
		q.Mask.Causal = false
	case windowIgnored:
		q.Mask.Window = nil
	case softmaxScaleDropped:
		q.Scale = 1
	case softmaxScaleOfValues:
		q.Scale = float32(1 / math.Sqrt(float64(s.ValueDim)))
	case LSEBase2:
		if k.splits() == 1 {
			c.k.Base2 = !k.Base2
		}
	case lseReported:
		c.k.Base2 = !k.Base2
	case PSaturated:
		c.k.Threshold = saturating(k)
	case pNotLifted:
		c.k.Offset = 0
	case HeadModulo:
		modulo := func(o attention.Operand) attention.Operand {
			_, tokens, _ := o.Dims()
			return rebuilt(o, s.Heads, tokens, func(h, t int) (int, int) {
				row := h%s.KVHeads*tokens + t
				return row, row
			}, nil)
		}
		q.K, q.V = modulo(p.K), modulo(p.V)
	case SinkOmitted:
		q.Sinks = nil
	case sinkScaled, sinkBase2:
		factor := p.SoftmaxScale()
		if f.Kind == sinkBase2 {
			factor = ln2
		}
		q.Sinks = make([]float32, len(p.Sinks))
		for h, x := range p.Sinks {
			q.Sinks[h] = x * factor
		}
	case ScaleDropped, scaleTwice, ScaleOfHead0, scaleOfNext:
		return c, f.changeScales(q)
	case keysSwapped, keysInterleaved:
		_, tokens, _ := p.V.Dims()
		q.V = rebuilt(p.V, s.KVHeads, tokens, f.permuted(tokens, s.Keys), nil)
	case columnsSwapped:
		q.V = swapColumns(p.V, f.By)
	}
	return c, nil
}

// lacks says what keeps a problem or a kernel from having the fault, or nothing.
func (f Fault) lacks(p *attention.Problem, k Kernel, s attention.Sizes) string {
	splits, tile := k.splits(), k.tile(s.Keys)
	cases := map[Kind]struct {
		lacks bool
		why   string
	}{
		RescaleDropped:    {s.Keys <= tile, "there is one tile"},
		sumRescaleDropped: {s.Keys <= tile, "there is one tile"},
		StaleMax:          {s.Keys <= tile, "there is one tile"},
		tileMax:           {s.Keys <= tile, "there is one tile"},
		MaskedMax:         {s.Keys <= tile || p.Mask == (attention.Mask{}), "no tile is masked"},
		finiteMax:         {k.FirstMax != 0, "the maximum begins at a number"},
		TailUnmasked:      {s.Keys%tile == 0, "the last tile is full"},
		lastKeysLost:      {f.By < 1 || f.By >= s.Keys, "there are no such keys"},
		RightOff:          {!ends(p.Mask), "the mask does not end before the last key"},
		leftOff: {p.Mask.Window == nil || p.Mask.Window.Left < 0,
			"there is no window to the left"},
		TopLeft: {p.Mask == (attention.Mask{}) || s.Queries == s.Keys,
			"the mask has one alignment"},
		causalIgnored:        {!p.Mask.Causal, "the mask is not causal"},
		windowIgnored:        {p.Mask.Window == nil, "there is no window"},
		softmaxScaleDropped:  {p.SoftmaxScale() == 1, "the softmax's scale is 1"},
		softmaxScaleOfValues: {s.Dim == s.ValueDim || s.ValueDim == 0, "K and V have one dimension"},
		SplitMean:            {splits == 1, "there is one split"},
		splitLost:            {splits == 1 || f.By < 0 || f.By >= splits, "there is no such split"},
		emptySplit:           {splits == 1, "there is one split"},
		lseReported:          {splits == 1, "there is one split: it is the same as lse-base-2"},
		LSEBase2:             {splits > 1 && k.Base2, "log-sum-exps are in base 2"},
		offsetKept:           {k.Offset == 0, "P is not lifted"},
		PScaleKept:           {k.pScale() == 1, "P has no scale"},
		PSaturated:           {saturating(k) <= k.Threshold, "P cannot saturate"},
		pNotLifted:           {k.Offset == 0, "P is not lifted"},
		HeadModulo:           {s.KVHeads == 1 || s.KVHeads == s.Heads, "heads are not grouped"},
		SinkOmitted:          {p.Sinks == nil, "there are no sinks"},
		sinkPerSplit:         {p.Sinks == nil || splits == 1, "there are no sinks or splits"},
		sinkInLSE:            {p.Sinks == nil, "there are no sinks"},
		sinkScaled:           {p.Sinks == nil, "there are no sinks"},
		sinkBase2:            {p.Sinks == nil, "there are no sinks"},
		keysSwapped:          {f.By < 2 || s.Keys < 2, "there are no groups of keys"},
		keysInterleaved:      {f.By < 4 || f.By%2 != 0 || s.Keys < 4, "there are no groups of keys"},
		columnsSwapped:       {f.By < 2 || s.ValueDim < 2, "there are no groups of columns"},
	}
	if c := cases[f.Kind]; c.lacks {
		return c.why
	}
	return ""
}

// ends says that a mask hides keys to the right.
func ends(m attention.Mask) bool { return m.Causal || m.Window != nil && m.Window.Right >= 0 }

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

// changeScales changes the scales of the fault's operands.
func (f Fault) changeScales(p *attention.Problem) error {
	changed, keys := false, p.Sizes().Keys
	for _, side := range []struct {
		o  *attention.Operand
		is bool
	}{{&p.Q, f.Of == ofQ}, {&p.K, f.Of == OfK || f.Of == OfKV}, {&p.V, f.Of == OfV || f.Of == OfKV}} {
		if !side.is || side.o.Codes == nil {
			continue
		}
		heads, tokens, _ := side.o.Dims()
		codes := side.o.Codes
		read := func(h, t int) (int, int) { return h*tokens + t, h*tokens + t }
		var scale func(row, col int, s float32) float32
		switch f.Kind {
		case ScaleDropped:
			scale = func(row, col int, s float32) float32 {
				return s / largestScale(codes, row, col, tokens, keys)
			}
			if side.o != &p.V {
				scale = func(int, int, float32) float32 { return 1 }
			}
		case scaleTwice:
			scale = func(_, _ int, s float32) float32 { return s * s }
		case ScaleOfHead0:
			read = func(h, t int) (int, int) { return h*tokens + t, t }
		case scaleOfNext:
			read = func(h, t int) (int, int) { return h*tokens + t, (h+1)%heads*tokens + t }
		}
		was := *side.o
		*side.o = rebuilt(was, heads, tokens, read, scale)
		changed = changed || !sameScales(was, *side.o)
	}
	if !changed {
		return notHere(f, "the scales are the same")
	}
	return nil
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

// permuted reads the codes of keys in another order, and their scales in the right one.
func (f Fault) permuted(tokens, keys int) func(h, t int) (int, int) {
	return func(h, t int) (int, int) {
		if t >= keys {
			return h*tokens + t, h*tokens + t
		}
		group := t / f.By * f.By
		size := min(f.By, keys-group)
		at := t - group
		switch {
		case f.Kind == keysSwapped:
			at = size - 1 - at
		case size == f.By:
			at = at/2 + at%2*(size/2)
		}
		return h*tokens + group + at, h*tokens + t
	}
}

// rebuilt returns an operand of the given heads and tokens. read says of which row of o, head
// times tokens plus token, a token's codes are and its scales; codes of row -1 are 0. scale,
// unless nil, changes scales; it takes outer ones away.
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
	if !t.Outer.None() && scale == nil {
		r.Outer = tensor.Outer{Rows: 1, Divide: t.Outer.Divide}
	}
	for i := range heads * tokens {
		from, scales := read(i/tokens, i%tokens)
		if from >= 0 {
			copy(r.Codes[i*dim:][:dim], t.Row(from))
		}
		if r.Outer.Rows == 1 {
			r.Outer.Scales = append(r.Outer.Scales, t.Outer.At(scales))
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
