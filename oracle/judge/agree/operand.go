package agree

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Scales is what became of the scales of an operand.
type Scales uint8

const (
	asMade     Scales = iota
	RoundedUp         // to powers of two, before values were encoded under them
	ReadUp            // to powers of two, of codes that were made under others
	Transposed        // the grid is read column by column
)

// Treatment is what an engine does with an operand before it multiplies. The zero Treatment
// takes it as it is stored: values, or codes and their scales.
type Treatment struct {
	Quantized bool // by Recipe, from values
	Recipe    scaling.Recipe
	Rounded   Type // what values, or what codes stand for, are rounded to; F32 or none: not
	Scales    Scales
	Static    bool // the scale is the one that the checkpoint holds for inputs
}

// quantizedBy returns what a recipe does with an operand; nil leaves it.
func quantizedBy(r *scaling.Recipe) Treatment {
	if r == nil {
		return Treatment{}
	}
	return Treatment{Quantized: true, Recipe: *r}
}

// text says what is done with an operand of which stored is how it is stored.
func (t Treatment) text(stored string) string {
	parts := []string{stored}
	if t.Quantized {
		r := t.Recipe
		parts[0] = fmt.Sprintf("%v %v %s", r.Format, r.Block, cmp.Or(r.Profile, scaling.TEBlockPow2))
		if t.Static {
			parts[0] = fmt.Sprintf("%v under the checkpoint's input scale", r.Format)
		}
	}
	switch t.Scales {
	case RoundedUp:
		parts = append(parts, "scales rounded up to powers of two")
	case ReadUp:
		parts = append(parts, "scales rounded up to powers of two, codes kept")
	case Transposed:
		parts = append(parts, "the grid of scales transposed")
	}
	if t.Rounded != "" && t.Rounded != F32 {
		parts = append(parts, "rounded to "+string(t.Rounded))
	}
	return strings.Join(parts, ", ")
}

// operand is some rows of an operand as an engine multiplies them.
type operand struct {
	cols   int
	values []float64
	raised []float64 // magnitudes, subnormal codes as the least normal number; nil: the same
	codes  *tensor.Tensor
	blocks int     // of a row
	scale  float64 // the largest
}

func (o *operand) row(i int) []float64 { return o.values[i*o.cols : (i+1)*o.cols] }

func (o *operand) magnitudes(i int) []float64 {
	if o.raised == nil {
		return o.row(i)
	}
	return o.raised[i*o.cols : (i+1)*o.cols]
}

// ofValues returns an operand of values, which it may change.
func ofValues(values []float32, cols int, to Type) *operand {
	o := &operand{cols: cols, values: make([]float64, len(values)), blocks: 1, scale: 1}
	f, round := to.format(), to == BF16 || to == F16
	for i, x := range values {
		if round {
			x = f.Round(x)
		}
		o.values[i] = float64(x)
	}
	return o
}

// ofCodes returns an operand of some rows of codes, all if that is nil. Raised is for bounds of
// tensor cores.
func ofCodes(t *tensor.Tensor, some []int, raised bool) *operand {
	all, cols := t.Dims()
	_, grid := t.Grid()
	rows := all
	if some != nil {
		rows = len(some)
	}
	o := &operand{cols: cols, values: make([]float64, rows*cols), codes: t, blocks: grid}
	var least float64
	if raised {
		o.raised = make([]float64, rows*cols)
		least = leastNormal(t.Format)
	}
	height, width := t.Block.Extents(all, cols)
	decoded := make([]float32, cols)
	for i := range rows {
		at := i
		if some != nil {
			at = some[i]
		}
		fp8.Decode(decoded, t.Row(at), t.Format)
		outer, divide := outerOf(t, at)
		scales := t.ScaleRow(at / height)
		for b, s := range scales {
			scale := float64(s)
			if divide {
				scale /= outer
			} else {
				scale *= outer
			}
			o.scale = max(o.scale, scale, float64(s))
			lo, hi := b*width, min((b+1)*width, cols)
			values := o.values[i*cols+lo : i*cols+hi]
			for k, v := range decoded[lo:hi] {
				values[k] = float64(v) * scale
			}
			if raised {
				for k := lo; k < hi; k++ {
					m := math.Abs(float64(decoded[k]))
					if m != 0 {
						m = max(m, least)
					}
					o.raised[i*cols+k] = m * scale
				}
			}
		}
	}
	return o
}

// leastNormal returns the least normal number of a format.
func leastNormal(f fp8.Format) float64 {
	if n, ok := number.Parse(f.String()); ok {
		return math.Ldexp(1, 1-n.Bias())
	}
	return 1
}

// outerOf returns the outer scale of a row, and whether it divides.
func outerOf(t *tensor.Tensor, row int) (scale float64, divide bool) {
	all := t.Outer.Scales
	if len(all) == 0 {
		return 1, false
	}
	rows, _ := t.Dims()
	each := (rows + len(all) - 1) / len(all)
	return float64(all[row/each]), t.Outer.Divide
}

// up returns the least power of two at or above s.
func up(s float32) float32 {
	if !(s > 0) || math.IsInf(float64(s), 0) {
		return s
	}
	fraction, e := math.Frexp(float64(s))
	if fraction == 0.5 {
		return s
	}
	return float32(math.Ldexp(1, e))
}

// quantized returns values under a treatment. Amax is that of all that a scale of the whole
// tensor is for, and static the scale of one that is known before.
func quantized(ctx context.Context, values []float32, rows, cols int, t Treatment, amax, static float32) (*tensor.Tensor, error) {
	r := t.Recipe
	out := &tensor.Tensor{Shape: []int{rows, cols}, Format: r.Format, Block: r.Block}
	if r.Profile.Outer() {
		q := scaling.Quantizer{Recipe: r}
		if !r.PerRow() && r.OuterRows == 0 {
			q.OuterAmax = []float32{amax}
		}
		return out, scaling.Quantize(ctx, out, values, q)
	}
	whole := r.Block == tensor.Block{}
	if t.Scales == asMade && !whole && !t.Static {
		return out, scaling.Quantize(ctx, out, values, scaling.Quantizer{Recipe: r})
	}
	scaleOf := func(a float32, nan bool) fp8.Scale {
		switch {
		case t.Static:
			return fp8.Scale{Stored: static, Divisor: static}
		case whole && !nan:
			a = amax
		}
		s, err := scaling.Scale[float32](r, a, nan)
		if err != nil {
			return fp8.Scale{}
		}
		return s
	}
	if _, err := scaling.Scale[float32](r, 1, false); err != nil {
		return nil, err
	}
	made := scaleOf
	if t.Scales == RoundedUp {
		made = func(a float32, nan bool) fp8.Scale {
			p := up(scaleOf(a, nan).Stored)
			return fp8.Scale{Stored: p, Divisor: p}
		}
	}
	q := tensor.Quantizer{
		Scale:       func(_ int, a float32, nan bool) fp8.Scale { return made(a, nan) },
		Policy:      r.EncodePolicy(),
		ScaleFormat: r.Profile.ScaleFormat(),
	}
	err := tensor.Quantize(ctx, out, values, q)
	if t.Scales == ReadUp {
		for i, s := range out.Scales {
			out.Scales[i] = up(s)
		}
	}
	return out, err
}

// source makes operands of a layer.
type source struct {
	*Layer
	height int // of a strip of the weight, in rows
	raised bool

	passOf []int     // of each token
	amaxes []float32 // of each pass
	amax   float32   // of the weight
}

func newSource(l *Layer, c *Claim) (*source, error) {
	s := &source{Layer: l, height: stripRows, raised: c.Kernel.Model.Name != "", passOf: make([]int, l.Tokens)}
	passes := l.Passes
	if passes == nil {
		passes = []int{l.Tokens}
	}
	at := 0
	for p, n := range passes {
		amax, _ := fp8.Amax(l.Input[at*l.Weight.Cols : (at+n)*l.Weight.Cols])
		s.amaxes = append(s.amaxes, amax)
		for i := range n {
			s.passOf[at+i] = p
		}
		at += n
	}
	for _, b := range []tensor.Block{l.Weight.block(), blockOf(c.Recipe.Weight)} {
		if b.Rows > 0 {
			s.height = number.LeastCommonMultiple(s.height, min(b.Rows, l.Weight.Rows))
		}
	}
	s.height = min(s.height, l.Weight.Rows)
	var err error
	s.amax, err = l.Weight.Amax()
	return s, err
}

func blockOf(r *scaling.Recipe) tensor.Block {
	if r == nil {
		return tensor.Block{Rows: 1}
	}
	return r.Block
}

func (w *Weight) block() tensor.Block {
	if w.Codes == nil {
		return tensor.Block{Rows: 1}
	}
	return w.Codes.Block
}

// makesInput reports whether operands of the input can be made under a treatment.
func (s *source) makesInput(t Treatment) bool {
	b := t.Recipe.Block
	return !t.Quantized || t.Recipe.Check() == nil && !t.Recipe.Profile.Delayed() &&
		(b.Rows == 1 || b == tensor.Block{} || s.Tokens == 1)
}

// makesWeight is the same for the weight, whose strips must begin and end with blocks.
func (s *source) makesWeight(t Treatment) bool {
	b, w := t.Recipe.Block, &s.Weight
	switch {
	case t.Scales == Transposed:
		return w.Codes != nil && len(w.Codes.Scales) > 1
	case t.Scales == ReadUp && !t.Quantized:
		return w.Codes != nil
	case !t.Quantized:
		return true
	case t.Recipe.Check() != nil || t.Recipe.Profile.Delayed():
		return false
	case b == tensor.Block{}:
		return true
	}
	return s.height == w.Rows || b.Rows > 0 && s.height%b.Rows == 0
}

// input returns tokens of the input under a treatment.
func (s *source) input(ctx context.Context, tokens []int, t Treatment) (*operand, error) {
	k := s.Weight.Cols
	if !t.Quantized {
		values := make([]float32, 0, len(tokens)*k)
		for _, at := range tokens {
			values = append(values, s.Input[at*k:(at+1)*k]...)
		}
		return ofValues(values, k, t.Rounded), nil
	}
	var all *tensor.Tensor
	for _, at := range tokens {
		row, err := quantized(ctx, s.Input[at*k:(at+1)*k], 1, k, t, s.amaxes[s.passOf[at]], s.Weight.InputScale)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = row
			all.Block.Rows = 1
			continue
		}
		all.Shape[0]++
		all.Codes, all.Scales = append(all.Codes, row.Codes...), append(all.Scales, row.Scales...)
		all.Outer.Scales = append(all.Outer.Scales, row.Outer.Scales...)
	}
	o := ofCodes(all, nil, s.raised)
	o.round(t.Rounded)
	return o, nil
}

// round rounds what codes stand for: then it is no operand of codes.
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

// strip returns rows of the weight under a treatment: of the strip that begins at lo, those
// that are named from there on, or all if that is nil.
func (s *source) strip(ctx context.Context, lo int, some []int, t Treatment) (*operand, error) {
	w := &s.Weight
	hi := min(lo+s.height, w.Rows)
	if w.Codes != nil && !t.Quantized {
		part, err := w.Codes.RowRange(lo, hi)
		if err != nil {
			return nil, err
		}
		if t.Scales != asMade {
			part = s.rescaled(part, lo, t.Scales)
		}
		o := ofCodes(part, some, s.raised)
		o.round(t.Rounded)
		return o, nil
	}
	rows := some
	if some == nil || t.Quantized && t.Recipe.Block.Rows != 1 && t.Recipe.Block != (tensor.Block{}) {
		rows = explain.Spread(hi-lo, hi-lo) // a block needs them all
	} else {
		some = nil // what is read is all that is asked for
	}
	values := make([]float32, len(rows)*w.Cols)
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to] == rows[to-1]+1 {
			to++
		}
		part := values[from*w.Cols : to*w.Cols]
		if w.Codes != nil {
			tensor.DequantizeRows(part, w.Codes, lo+rows[from])
		} else if err := w.Values(part, lo+rows[from]); err != nil {
			return nil, err
		}
		from = to
	}
	if !t.Quantized {
		return ofValues(values, w.Cols, t.Rounded), nil
	}
	out, err := quantized(ctx, values, len(rows), w.Cols, t, s.amax, 0)
	if err != nil {
		return nil, err
	}
	o := ofCodes(out, some, s.raised)
	o.round(t.Rounded)
	return o, nil
}

// rescaled returns a strip of stored codes, from row lo on, under other scales.
func (s *source) rescaled(part *tensor.Tensor, lo int, how Scales) *tensor.Tensor {
	all := s.Weight.Codes
	gridRows, gridCols := all.Grid()
	height, _ := all.Block.Extents(all.Dims())
	rows, cols := part.Dims()
	out := &tensor.Tensor{
		Format: part.Format, Shape: []int{rows, cols}, Block: part.Block, Outer: part.Outer,
		Codes: make([]byte, 0, rows*cols),
	}
	for i := range rows {
		out.Codes = append(out.Codes, part.Row(i)...)
	}
	count, _ := part.Grid()
	for i := range count {
		for j := range gridCols {
			at := (lo/height+i)*gridCols + j
			if how == Transposed { // the memory of the grid is read as if it were [gridCols, gridRows]
				at = j*gridRows + lo/height + i
			}
			scale := all.Scales[at]
			if how == ReadUp {
				scale = up(scale)
			}
			out.Scales = append(out.Scales, scale)
		}
	}
	return out
}
