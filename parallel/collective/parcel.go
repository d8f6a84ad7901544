package collective

import (
	"context"
	"hash/fnv"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// parcel is values on their way. Nobody changes it.
type parcel struct {
	wire       Wire
	rows, cols int

	values []float32 // of FP32
	halves []fp8.BFloat16
	coded  tensor.Tensor
}

func (p *parcel) len() int     { return p.rows * p.cols }
func (p *parcel) bytes() int64 { return p.wire.Bytes(p.rows, p.cols) }

// decode writes the values to dst.
func (p *parcel) decode(dst []float32) {
	switch p.wire.kind {
	case kindFP32:
		copy(dst, p.values)
	case kindBF16:
		for i, h := range p.halves {
			dst[i] = h.Float32()
		}
	default:
		tensor.Dequantize(dst, &p.coded)
	}
}

// pack encodes values for operation op, and leaves them as they are. Where amax is not
// nil, they are the amaxes of the blocks that scales follow from. Different salts and names
// give different random numbers.
func (x *Exchange) pack(
	ctx context.Context, op string, w Wire, values []float32, amax []float32, salt uint64,
) (*parcel, error) {
	rows, cols := x.shape(len(values))
	p := &parcel{wire: w, rows: rows, cols: cols}
	switch w.kind {
	case kindFP32:
		p.values = slices.Clone(values)
		return p, nil
	case kindBF16:
		p.halves = x.halves(op, values)
		return p, nil
	}
	r := w.Recipe
	if r.Policy.Rounding == fp8.Stochastic {
		name := fnv.New64a()
		name.Write([]byte(x.Name))
		r.Policy.Seed = random.Hash(r.Policy.Seed, salt, name.Sum64())
	}
	p.coded = tensor.Tensor{Name: x.Name, Shape: []int{rows, cols}}
	options := tensor.Options{Op: op, Reporter: x.Reporter, Workers: 1}
	scale := func(block int, _ float32, _ bool) fp8.Scale { return r.Scale(amax[block]) }
	switch {
	case w.kind == kindCast:
		scale = func(int, float32, bool) fp8.Scale { return fp8.Scale{Stored: 1} }
	case amax == nil:
		return p, scaling.Quantize(ctx, &p.coded, values, scaling.Quantizer{Recipe: r, Options: options})
	}
	p.coded.Format, p.coded.Block = r.Format, r.Block
	return p, tensor.Quantize(ctx, &p.coded, values, tensor.Quantizer{
		Scale: scale, Policy: r.EncodePolicy(), ScaleFormat: r.Profile.ScaleFormat(), Options: options,
	})
}

// halves rounds values to BF16, and reports what was lost.
func (x *Exchange) halves(op string, values []float32) []fp8.BFloat16 {
	halves := make([]fp8.BFloat16, len(values))
	for i, v := range values {
		halves[i] = fp8.BFloat16FromFloat32(v)
	}
	if x.Reporter == nil {
		return halves
	}
	var st fp8.Stats
	for i, v := range values {
		rounding.Count(&st, v, halves[i].Float32())
	}
	x.report(op, &st, values)
	return halves
}

// report tells the reporter of one message that has no scales.
func (x *Exchange) report(op string, st *fp8.Stats, values []float32) {
	x.Reporter.Block(op, x.Name, 0, 0, 1, st)
	for i, v := range values {
		if isNonFinite(v) {
			x.Reporter.NonFinite(op, x.Name, i, float64(v))
			return
		}
	}
}

func isNonFinite(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }

// AddTo adds b, which is as long, to a, in FP32. A NaN becomes the canonical one, so that its bits depend
// on no machine.
func AddTo(a, b []float32) {
	b = b[:len(a)]
	for i := range a {
		if a[i] += b[i]; a[i] != a[i] {
			a[i] = canonicalNaN
		}
	}
}

var canonicalNaN = math.Float32frombits(0x7FC00000)
