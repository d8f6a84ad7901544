package outliers

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/swiglu"
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
	up, gate := rowOf(w.up, neuron), rowOf(w.gate, neuron)
	if w.gain(neuron) == 0 {
		return 0
	}
	return scalarProduct(up, gate) / w.gain(neuron)
}

// gain is the product of the lengths of a neuron's branches: if they are aligned, the
// factor before the square of its input.
func (w mlpWeights) gain(neuron int) float64 {
	up, gate := rowOf(w.up, neuron), rowOf(w.gate, neuron)
	return math.Sqrt(scalarProduct(up, up) * scalarProduct(gate, gate))
}

// weight is the length of a neuron's column of down.
func (w mlpWeights) weight(neuron int) float64 {
	var squares float64
	for i := range w.down.Rows {
		v := float64(rowOf(w.down, i)[neuron])
		squares += float64(v * v)
	}
	return math.Sqrt(squares)
}

// align turns a neuron's linear branch into the direction of its gate, or into the
// opposite one if that is nearer, and keeps its length.
func (w mlpWeights) align(neuron int) {
	up, gate := rowOf(w.up, neuron), rowOf(w.gate, neuron)
	factor := math.Copysign(math.Sqrt(scalarProduct(up, up)/scalarProduct(gate, gate)), scalarProduct(up, gate))
	for i, g := range gate {
		up[i] = float32(factor * float64(g))
	}
}

// grow multiplies both rows of a neuron by a factor and divides its column by the
// square: where the gate is far from 0, what leaves the layer stays the same.
func (w mlpWeights) grow(neuron int, factor float64) {
	up, gate := rowOf(w.up, neuron), rowOf(w.gate, neuron)
	for i := range up {
		up[i] = float32(float64(up[i]) * factor)
		gate[i] = float32(float64(gate[i]) * factor)
	}
	for i := range w.down.Rows {
		down := rowOf(w.down, i)
		down[neuron] = float32(float64(down[neuron]) / (factor * factor))
	}
}

func scalarProduct(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(float64(x) * float64(b[i]))
	}
	return sum
}

// neurons are some of each layer.
type neurons [][]int

// each calls do for all of them.
func (n neurons) each(m *nn.Llama, do func(w mlpWeights, layer, neuron int)) {
	for layer, some := range n {
		w := mlpOf(m, layer)
		for _, neuron := range some {
			do(w, layer, neuron)
		}
	}
}

func (n neurons) align(m *nn.Llama) {
	n.each(m, func(w mlpWeights, _, neuron int) { w.align(neuron) })
}

func (n neurons) grow(m *nn.Llama, factor float64) {
	n.each(m, func(w mlpWeights, _, neuron int) { w.grow(neuron, factor) })
}

// largest returns the largest |z| of each of them, by layer, smoothed in a way or not.
func (n neurons) largest(layers []branches, way *swiglu.Smoothing) [][]float64 {
	all := make([][]float64, len(n))
	for layer, some := range n {
		b := layers[layer]
		amax := channelAmax(b.smooth(scalesOf(b, way)), b.channels)
		for _, neuron := range some {
			all[layer] = append(all[layer], amax[neuron])
		}
	}
	return all
}

// level grows each neuron until its largest |z| is that of the layer.
func (n neurons) level(m *nn.Llama, layers []branches) {
	for layer, amax := range n.largest(layers, nil) {
		top := largestMagnitude(layers[layer].plain())
		for i, neuron := range n[layer] {
			mlpOf(m, layer).grow(neuron, math.Sqrt(top/amax[i]))
		}
	}
}

// mattering returns the n neurons of each layer that add most to the residual stream,
// most first: the root mean square of z times the length of the column of down.
func mattering(m *nn.Llama, layers []branches, n int) neurons {
	chosen := make(neurons, len(layers))
	for layer, b := range layers {
		w := mlpOf(m, layer)
		squares := make([]float64, b.channels)
		for i, z := range b.plain() {
			squares[i%b.channels] += float64(float64(z) * float64(z))
		}
		all := make([]int, b.channels)
		adds := make([]float64, b.channels)
		for i := range all {
			all[i], adds[i] = i, math.Sqrt(squares[i])*w.weight(i)
		}
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(adds[b], adds[a]) })
		chosen[layer] = all[:n]
	}
	return chosen
}

// copyParams makes the parameters of dst those of src, which has the same shape.
func copyParams(dst, src *nn.Llama) {
	for i, p := range src.Params() {
		copy(dst.Params()[i].Value, p.Value)
	}
}
