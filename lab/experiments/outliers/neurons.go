package outliers

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
)

// mlpWeights are the projections of a layer's SwiGLU; a neuron is a row of up and
// of gate, [hidden, dim], and a column of down, [dim, hidden].
type mlpWeights struct{ up, gate, down *nn.Param }

func mlpOf(m *nn.Llama, layer int) mlpWeights {
	param := func(name string) *nn.Param {
		return m.Param(fmt.Sprintf("model.layers.%d.mlp.%s_proj.weight", layer, name))
	}
	return mlpWeights{up: param("up"), gate: param("gate"), down: param("down")}
}

// rowOf returns a row of p, which shares its memory.
func rowOf(p *nn.Param, i int) []float32 { return p.Value[i*p.Cols : (i+1)*p.Cols] }

// cosine is that of the angle between a neuron's two branches; 0 where one is zero.
func (w mlpWeights) cosine(neuron int) float64 {
	if w.gain(neuron) == 0 {
		return 0
	}
	return scalarProduct(rowOf(w.up, neuron), rowOf(w.gate, neuron)) / w.gain(neuron)
}

// gain is the product of the lengths of a neuron's branches: if they are aligned, the
// factor before the square of its input.
func (w mlpWeights) gain(neuron int) float64 {
	up, gate := rowOf(w.up, neuron), rowOf(w.gate, neuron)
	return math.Sqrt(scalarProduct(up, up) * scalarProduct(gate, gate))
}

func scalarProduct(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(float64(x) * float64(b[i]))
	}
	return sum
}

// alignment is what became of the neurons of a layer.
type alignment struct {
	step, layer int

	cosine    float64 // median |cosine| of the branches of all neurons
	cosineTop float64 // of the twentieth with the largest gain
	amax      float64 // largest |z|
	rms       float64 // root mean square of z
}

func (a alignment) top() float64 { return a.cosineTop }
func (a alignment) all() float64 { return a.cosine }

// logOutlier is how far the largest value stands out, as a logarithm to base 2.
func (a alignment) logOutlier() float64 { return math.Log2(a.amax / a.rms) }

// cosineAtRandom is about the median |cosine| of random directions: a normal variable
// of deviation 1/√dim, whose median magnitude is 0.6745 of that.
func cosineAtRandom(dim int) float64 { return 0.6745 / math.Sqrt(float64(dim)) }

func alignmentOf(m *nn.Llama, step int, layers []branches) (all []alignment) {
	for layer, b := range layers {
		w := mlpOf(m, layer)
		byGain := make([]int, b.channels)
		for i := range byGain {
			byGain[i] = i
		}
		slices.SortStableFunc(byGain, func(i, j int) int { return cmp.Compare(w.gain(j), w.gain(i)) })
		cosines := make([]float64, b.channels)
		for i, neuron := range byGain {
			cosines[i] = math.Abs(w.cosine(neuron))
		}
		z := b.plain()
		all = append(all, alignment{
			step: step, layer: layer,
			cosine:    statistics.Median(cosines),
			cosineTop: statistics.Median(cosines[:(b.channels+19)/20]),
			amax:      largestMagnitude(z),
			rms:       math.Sqrt(scalarProduct(z, z) / float64(len(z))),
		})
	}
	return all
}

// copyParams makes the parameters of dst those of src, which has the same shape.
func copyParams(dst, src *nn.Llama) {
	for i, p := range src.Params() {
		copy(dst.Params()[i].Value, p.Value)
	}
}
