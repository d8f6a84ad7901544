package moe

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Ways to share scales, by their index.
const (
	oneScale  = iota // for the tokens of all experts, as for one tensor
	scaleEach        // for those of each expert
	scaleTile        // for 1x128, as recipes have it
)

var shareWays = []string{"all experts", "each expert", "1x128"}

// roundings is what E4M3 makes of an operand of a layer's experts, by way to share scales.
type roundings struct {
	place // of expert 0
	all   [3]rounding
	least [3]rounding // of the expert with the least amax
}

// rounding is what was lost of values.
type rounding struct {
	nonzero, flushed int
	off, squares     float64 // of the errors, and of the values
}

func (r *rounding) add(other rounding) {
	r.nonzero += other.nonzero
	r.flushed += other.flushed
	r.off += other.off
	r.squares += other.squares
}

// roundingOf compares values with what became of them.
func roundingOf(values, became []float32) (r rounding) {
	for i, v := range values {
		if v != 0 {
			r.nonzero++
			if became[i] == 0 {
				r.flushed++
			}
		}
		d := float64(became[i]) - float64(v)
		r.off += float64(d * d)
		r.squares += float64(float64(v) * float64(v))
	}
	return r
}

// rounded returns what values, [.., cols], are after they were quantized to E4M3.
func rounded(ctx context.Context, values []float32, cols int, r scaling.Recipe) ([]float32, error) {
	t := &tensor.Tensor{Shape: []int{len(values) / cols, cols}}
	q := scaling.Quantizer{Recipe: r, Options: tensor.Options{Workers: 1}}
	if err := scaling.Quantize(ctx, t, values, q); err != nil {
		return nil, err
	}
	became := make([]float32, len(values))
	tensor.Dequantize(became, t)
	return became, nil
}

// roundings returns what E4M3 makes of the operands of a model's experts, in a batch after
// its training.
func (r *seedRun) roundings(ctx context.Context, m *nn.Llama) (all []roundings, err error) {
	names := make(map[string]place)
	for _, p := range r.places() {
		names[r.tensor(p)] = p
	}
	values, widths := make(map[place][]float32), make(map[place]int)
	m.Shared().Tap = func(name string, v []float32, _, cols int) {
		if p, ok := names[name]; ok {
			values[p], widths[p] = append([]float32(nil), v...), cols
		}
	}
	defer func() { m.Shared().Tap = nil }()
	if err := r.pass(ctx, m, 0); err != nil {
		return nil, err
	}
	for o := range operands() {
		for mixture := range r.mixtures() {
			var experts [][]float32
			cols := 0
			for e := range r.experts() {
				p := place{o, mixture, e}
				if v := values[p]; len(v) > 0 { // it had tokens
					experts, cols = append(experts, v), widths[p]
				}
			}
			found, err := roundExperts(ctx, experts, cols)
			if err != nil {
				return nil, err
			}
			found.place = place{operand: o, mixture: mixture}
			all = append(all, found)
		}
	}
	return all, nil
}

func amaxOf(values []float32) float32 {
	amax, _ := fp8.Amax(values)
	return amax
}

// roundExperts rounds an operand of each expert, [.., cols], under scales that are shared in
// all ways.
func roundExperts(ctx context.Context, experts [][]float32, cols int) (r roundings, err error) {
	perTensor := scaling.Recipe{Profile: scaling.TECurrent, Format: fp8.E4M3}
	var joined []float32
	least := 0 // the expert with the least amax
	for e, values := range experts {
		joined = append(joined, values...)
		if amaxOf(values) < amaxOf(experts[least]) {
			least = e
		}
	}
	ofAll, err := rounded(ctx, joined, cols, perTensor)
	if err != nil {
		return r, err
	}
	first := 0
	for e, values := range experts {
		ofEach, err := rounded(ctx, values, cols, perTensor)
		if err != nil {
			return r, err
		}
		ofTiles, err := rounded(ctx, values, cols, scaling.Default(scaling.Input))
		if err != nil {
			return r, err
		}
		own := [][]float32{oneScale: ofAll[first:][:len(values)], scaleEach: ofEach, scaleTile: ofTiles}
		first += len(values)
		for way, became := range own {
			lost := roundingOf(values, became)
			r.all[way].add(lost)
			if e == least {
				r.least[way] = lost
			}
		}
	}
	return r, nil
}
