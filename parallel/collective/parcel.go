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

// packer makes parcels of one tensor.
type packer struct {
	ctx      context.Context
	name, op string
	reporter tensor.Reporter // may be nil
}

// pack encodes values, [rows, cols], and leaves them as they are. Where amax is not
// nil, they are the amaxes of the blocks that scales follow from. Different salts and names
// give different random numbers.
func (k *packer) pack(w Wire, values []float32, rows, cols int, amax []float32, salt uint64) (*parcel, error) {
	p := &parcel{wire: w, rows: rows, cols: cols}
	switch w.kind {
	case kindFP32:
		p.values = slices.Clone(values)
		return p, nil
	case kindBF16:
		p.halves = k.halves(values)
		return p, nil
	}
	r := w.Recipe
	if r.Policy.Rounding == fp8.Stochastic {
		name := fnv.New64a()
		name.Write([]byte(k.name))
		r.Policy.Seed = random.Hash(r.Policy.Seed, salt, name.Sum64())
	}
	p.coded = tensor.Tensor{Name: k.name, Shape: []int{rows, cols}}
	options := tensor.Options{Op: k.op, Reporter: k.reporter, Workers: 1}
	scale := func(block int, _ float32, _ bool) fp8.Scale { return r.Scale(amax[block]) }
	switch {
	case w.kind == kindCast:
		scale = func(int, float32, bool) fp8.Scale { return fp8.Scale{Stored: 1} }
	case amax == nil:
		return p, scaling.Quantize(k.ctx, &p.coded, values, scaling.Quantizer{Recipe: r, Options: options})
	}
	p.coded.Format, p.coded.Block = r.Format, r.Block
	return p, tensor.Quantize(k.ctx, &p.coded, values, tensor.Quantizer{
		Scale: scale, Policy: r.EncodePolicy(), ScaleFormat: r.Profile.ScaleFormat(), Options: options,
	})
}

// halves rounds values to BF16, and reports what was lost.
func (k *packer) halves(values []float32) []fp8.BFloat16 {
	halves := make([]fp8.BFloat16, len(values))
	for i, v := range values {
		halves[i] = fp8.BFloat16FromFloat32(v)
	}
	if k.reporter == nil {
		return halves
	}
	var st fp8.Stats
	for i, v := range values {
		rounding.Count(&st, v, halves[i].Float32())
	}
	k.report(&st, values)
	return halves
}

// report tells the reporter of one message that has no scales.
func (k *packer) report(st *fp8.Stats, values []float32) {
	k.reporter.Block(k.op, k.name, 0, 0, 1, st)
	for i, v := range values {
		if isNonFinite(v) {
			k.reporter.NonFinite(k.op, k.name, i, float64(v))
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

// blockAmaxes raises amax, one for each block of values, [rows, cols], to the largest
// magnitudes.
func blockAmaxes(amax, values []float32, rows, cols int, b tensor.Block) {
	blockRows, blockCols := b.Extents(rows, cols)
	_, gridCols := b.Grid(rows, cols)
	for i := range rows {
		fp8.AmaxBlocks(amax[i/blockRows*gridCols:][:gridCols], values[i*cols:][:cols], blockCols)
	}
}
