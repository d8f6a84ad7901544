package agree

import (
	"context"
	"math"
	"sort"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand is some rows of an operand as an engine multiplies them.
type operand struct {
	cols   int
	values []float64
	raised []float64      // magnitudes, subnormal codes as the least normal number; nil: the same
	codes  *tensor.Tensor // in blocks of one row; nil: values
	blocks int            // of a row
	scale  float64        // the largest
}

func (o *operand) row(i int) []float64 { return o.values[i*o.cols : (i+1)*o.cols] }

func (o *operand) magnitudes(i int) []float64 {
	if o.raised == nil {
		return o.row(i)
	}
	return o.raised[i*o.cols : (i+1)*o.cols]
}

// ofCodes returns an operand of codes in blocks of one row. Raised is for bounds of tensor
// cores.
func ofCodes(t *tensor.Tensor, raised bool) *operand {
	rows, cols := t.Dims()
	_, width := t.Block.Extents(rows, cols)
	_, grid := t.Grid()
	o := &operand{cols: cols, values: make([]float64, rows*cols), codes: t, blocks: grid, scale: 1}
	least := 1.0
	if n, ok := number.Parse(t.Format.String()); ok {
		least = math.Ldexp(1, 1-n.Bias())
	}
	if raised {
		o.raised = make([]float64, rows*cols)
	}
	decoded := make([]float32, cols)
	for i := range rows {
		fp8.Decode(decoded, t.Row(i), t.Format)
		for b, s := range t.ScaleRow(i) {
			scale := float64(s)
			switch {
			case len(t.Outer.Scales) == 0:
			case t.Outer.Divide:
				scale /= float64(t.Outer.Scales[i])
			default:
				scale *= float64(t.Outer.Scales[i])
			}
			o.scale = max(o.scale, scale, float64(s))
			lo, hi := b*width, min((b+1)*width, cols)
			values := o.values[i*cols+lo : i*cols+hi]
			for k, v := range decoded[lo:hi] {
				values[k] = float64(v) * scale
			}
			for k := lo; raised && k < hi; k++ {
				if m := math.Abs(float64(decoded[k])); m != 0 {
					o.raised[i*cols+k] = max(m, least) * scale
				}
			}
		}
	}
	return o
}

// round rounds the values, which are none of codes then.
func (o *operand) round(to Type) {
	if to != BF16 && to != F16 {
		return
	}
	f := to.format()
	for i, x := range o.values {
		o.values[i] = float64(f.Round(float32(x)))
	}
	o.codes, o.raised, o.blocks, o.scale = nil, nil, 1, 1
}

// source makes operands of a matrix.
type source struct {
	rows, cols int
	stored     *tensor.Tensor // codes; nil: values
	values     func(dst []float32, lo int) error
	raised     bool
	static     float32 // the scale that is known before

	// ends are where parts end: those of the input that an engine quantizes at once. amax is
	// the largest magnitude of one.
	ends []int
	amax func(part int) (float32, error)
}

func newSources(l *Layer, c *Claim) (x, w *source) {
	raised, k := c.Kernel.Model.Name != "", l.Weight.Cols
	x = &source{rows: l.Tokens, cols: k, raised: raised, static: l.Weight.InputScale}
	x.values = func(dst []float32, lo int) error { copy(dst, l.Input[lo*k:]); return nil }
	passes, at := l.Passes, 0
	if passes == nil {
		passes = []int{l.Tokens}
	}
	var amaxes []float32
	for _, n := range passes {
		amax, _ := fp8.Amax(l.Input[at*k : (at+n)*k])
		at += n
		x.ends, amaxes = append(x.ends, at), append(amaxes, amax)
	}
	x.amax = func(part int) (float32, error) { return amaxes[part], nil }
	w = &source{rows: l.Weight.Rows, cols: k, raised: raised, stored: l.Weight.Codes, values: l.Weight.Values, ends: []int{l.Weight.Rows}}
	w.amax = func(int) (float32, error) { return l.Weight.Amax() }
	return x, w
}

// makes reports whether operands can be made under a treatment.
func (s *source) makes(t Treatment) bool {
	switch {
	case t.Static && !(s.static > 0):
		return false
	case t.Scales == Transposed:
		return s.stored != nil && len(s.stored.Scales) > 1
	case t.Scales == ReadUp && !t.Quantized:
		return s.stored != nil
	case t.Scales == RoundedUp && (!t.Quantized || t.Recipe.Profile.Outer()):
		return false
	}
	r := t.Recipe
	return !t.Quantized || r.Check() == nil && !r.Profile.Delayed() && r.EncodePolicy().Rounding != fp8.Stochastic
}

// together returns the rows that have to be quantized with a row, and the part that they are of.
func (s *source) together(row int, r *scaling.Recipe) (lo, hi, part int) {
	part = sort.SearchInts(s.ends, row+1)
	first, end := 0, s.ends[part]
	if part > 0 {
		first = s.ends[part-1]
	}
	height := max(r.Block.Rows, r.OuterRows, 1)
	if r.Block.Rows == 0 && r.Block.Cols != 0 {
		height = end - first
	}
	lo = first + (row-first)/height*height
	return lo, min(lo+height, end), part
}

// operand returns rows under a treatment.
func (s *source) operand(ctx context.Context, rows []int, t Treatment) (*operand, error) {
	var o *operand
	if t.Quantized || s.stored != nil {
		codes, err := s.codes(ctx, rows, t)
		if err != nil {
			return nil, err
		}
		o = ofCodes(codes, s.raised)
	} else {
		o = &operand{cols: s.cols, blocks: 1, scale: 1}
		row := make([]float32, s.cols)
		for _, at := range rows {
			if err := s.values(row, at); err != nil {
				return nil, err
			}
			for _, x := range row {
				o.values = append(o.values, float64(x))
			}
		}
	}
	o.round(t.Rounded)
	return o, ctx.Err()
}

// codes returns rows, in order, as codes in blocks of one row.
func (s *source) codes(ctx context.Context, rows []int, t Treatment) (*tensor.Tensor, error) {
	all := &tensor.Tensor{}
	if !t.Quantized {
		gather(all, rescaled(s.stored, t.Scales), rows, 0)
		return all, nil
	}
	for n := 0; n < len(rows); {
		lo, hi, part := s.together(rows[n], &t.Recipe)
		from := n
		for n++; n < len(rows); n++ {
			l, h, p := s.together(rows[n], &t.Recipe)
			if l > hi || p != part {
				break
			}
			hi = h
		}
		values := make([]float32, (hi-lo)*s.cols)
		if err := s.values(values, lo); err != nil {
			return nil, err
		}
		amax, err := s.amax(part)
		if err != nil {
			return nil, err
		}
		made, err := s.quantized(ctx, values, hi-lo, t, amax)
		if err != nil {
			return nil, err
		}
		gather(all, made, rows[from:n], lo)
	}
	return all, nil
}

// quantized returns values under a treatment. Amax is that of all that a scale of the whole
// tensor is for.
func (s *source) quantized(ctx context.Context, values []float32, rows int, t Treatment, amax float32) (*tensor.Tensor, error) {
	r := t.Recipe
	out := &tensor.Tensor{Shape: []int{rows, s.cols}, Format: r.Format, Block: r.Block}
	whole := r.Block == tensor.Block{}
	switch {
	case r.Profile.Outer():
		q := scaling.Quantizer{Recipe: r}
		if t.Static {
			amax = outerAmax(r, s.static)
		}
		if !r.PerRow() && r.OuterRows == 0 {
			q.OuterAmax = []float32{amax}
		}
		return out, scaling.Quantize(ctx, out, values, q)
	case t.Scales == asMade && !whole && !t.Static:
		return out, scaling.Quantize(ctx, out, values, scaling.Quantizer{Recipe: r})
	}
	q := tensor.Quantizer{Policy: r.EncodePolicy(), ScaleFormat: r.Profile.ScaleFormat()}
	q.Scale = func(_ int, a float32, nan bool) fp8.Scale {
		if t.Static {
			return fp8.Scale{Stored: s.static, Divisor: s.static}
		}
		if whole && !nan {
			a = amax
		}
		made, _ := scaling.Scale[float32](r, a, nan) // the recipe has been checked
		if t.Scales == RoundedUp {
			p := up(made.Stored)
			return fp8.Scale{Stored: p, Divisor: p}
		}
		return made
	}
	err := tensor.Quantize(ctx, out, values, q)
	return rescaled(out, t.Scales), err
}

// outerAmax returns an amax whose outer scale, a multiplier or a divisor, is the given one, or
// nearly so where there is none.
func outerAmax(r scaling.Recipe, scale float32) float32 {
	const largest = 6 * 448
	for _, a := range []float32{scale * largest, largest / scale} {
		for ulps := range int32(9) {
			if near := math.Float32frombits(uint32(int32(math.Float32bits(a)) + ulps - 4)); r.OuterScale(near) == scale {
				return near
			}
		}
	}
	return scale * largest
}

// gather adds rows of t, from row first on, to all, each with scales of its own.
func gather(all, t *tensor.Tensor, rows []int, first int) {
	total, cols := t.Dims()
	height, width := t.Block.Extents(total, cols)
	all.Format, all.Block, all.ScaleFormat = t.Format, tensor.Block{Rows: 1, Cols: width}, t.ScaleFormat
	for _, at := range rows {
		row := at - first
		all.Codes, all.Scales = append(all.Codes, t.Row(row)...), append(all.Scales, t.ScaleRow(row/height)...)
		if n := len(t.Outer.Scales); n > 0 {
			all.Outer.Rows, all.Outer.Divide = 1, t.Outer.Divide
			all.Outer.Scales = append(all.Outer.Scales, t.Outer.Scales[row/((total+n-1)/n)])
		}
	}
	all.Shape = []int{len(all.Codes) / cols, cols}
}

// rescaled returns codes under other scales.
func rescaled(t *tensor.Tensor, how Scales) *tensor.Tensor {
	if how != ReadUp && how != Transposed {
		return t
	}
	out := *t
	out.Scales = make([]float32, len(t.Scales))
	rows, cols := t.Grid()
	for i, s := range t.Scales {
		if how == Transposed { // the memory of the grid is read as if it were [cols, rows]
			out.Scales[i] = t.Scales[i%cols*rows+i/cols]
		} else {
			out.Scales[i] = up(s)
		}
	}
	return &out
}

// up returns the least power of two at or above s.
func up(s float32) float32 {
	fraction, e := math.Frexp(float64(s))
	if !(s > 0) || math.IsInf(float64(s), 0) || fraction == 0.5 {
		return s
	}
	return float32(math.Ldexp(1, e))
}
