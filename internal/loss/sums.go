package loss

import (
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/tensor"
)

// Sums are those of [BlockEnergies] and [Decoder.BlockNoise] over all blocks.
type Sums struct{ Signal, Noise float64 }

// Add adds the sums of values that follow.
func (s *Sums) Add(o Sums) {
	s.Signal += o.Signal
	s.Noise += o.Noise
}

// Sums returns both sums of values that were not widened, in one pass. Their order
// depends on nothing but the shape.
func (d *Decoder) Sums(values tensorfile.Array, allFinite bool, t *tensor.Tensor) (sum Sums) {
	var wide [longestRun]float32
	for r, scale := range runs(t) {
		codes := t.Codes[r.lo:r.hi]
		switch values := values.(type) {
		case tensorfile.Values[float64]:
			sum.Add(sumsOf(d, values[r.lo:r.hi], codes, scale, allFinite))
		case tensorfile.Values[float32]:
			sum.Add(sumsOf(d, values[r.lo:r.hi], codes, scale, allFinite))
		case tensorfile.Values[fp8.BFloat16]:
			dst := wide[:len(codes)]
			for i, v := range values[r.lo:r.hi][:len(dst)] {
				dst[i] = v.Float32()
			}
			sum.Add(sumsOf(d, dst, codes, scale, allFinite))
		case tensorfile.Values[float16.Float16]:
			dst := wide[:len(codes)]
			for i, v := range values[r.lo:r.hi][:len(dst)] {
				dst[i] = v.Float32()
			}
			sum.Add(sumsOf(d, dst, codes, scale, allFinite))
		}
	}
	return sum
}

// sumsOf returns both sums of values that share a scale.
func sumsOf[T float32 | float64](d *Decoder, values []T, codes []byte, scale float64, allFinite bool) Sums {
	if !allFinite {
		return Sums{signal(values, false), noiseOfSome(d, values, codes, scale)}
	}
	return sumsOfAll(d, values, codes, scale)
}

// sumsOfAll is sumsOf finite values. Sums of even and odd elements go on at once, in
// variables that stay in registers. No compiler may fuse the operations: each is rounded
// to float64.
func sumsOfAll[T float32 | float64](d *Decoder, values []T, codes []byte, scale float64) Sums {
	var signal0, signal1, noise0, noise1 float64
	codes = codes[:len(values)]
	i := 0
	for ; i+2 <= len(values); i += 2 {
		v, w := float64(values[i]), float64(values[i+1])
		x, y := v-float64(d[codes[i]]*scale), w-float64(d[codes[i+1]]*scale)
		signal0 += float64(v * v)
		signal1 += float64(w * w)
		noise0 += float64(x * x)
		noise1 += float64(y * y)
	}
	if i < len(values) {
		v := float64(values[i])
		x := v - float64(d[codes[i]]*scale)
		signal0 += float64(v * v)
		noise0 += float64(x * x)
	}
	return Sums{signal0 + signal1, noise0 + noise1}
}
