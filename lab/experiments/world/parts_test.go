package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
)

// TestSlicedAlone: on one rank without fixed slices it is an MLP in training.
func TestSlicedAlone(t *testing.T) {
	s := newStudy(labtest.Short()).samples[0]
	l := &sliced{kind: slicedFP8, ranks: 1}
	require.NoError(t, s.trainSlices(t.Context(), l))

	recipes := nn.DefaultFP8()
	m, err := nn.NewMLP("mlp.", slicedDim, slicedHidden, nn.Options{FP8: &recipes})
	require.NoError(t, err)
	for i, w := range s.slicedWeights() {
		copy([]*nn.Linear{m.Gate, m.Up, m.Down}[i].Weight.Value, w)
	}
	x, wanted := s.normal(10, slicedRows*slicedDim, 1), s.normal(11, slicedRows*slicedDim, 1)
	y, dx, dy := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	require.NoError(t, m.Forward(t.Context(), y, x, slicedRows))
	for i := range dy {
		dy[i] = (y[i] - wanted[i]) / slicedRows
	}
	require.NoError(t, m.Backward(t.Context(), dx, dy))
	want := [][]float32{y, dx}
	for _, layer := range []*nn.Linear{m.Gate, m.Up, m.Down} {
		for i, g := range layer.Weight.Grad {
			layer.Weight.Value[i] -= float32(0.1 * g)
		}
		want = append(want, layer.Weight.Value)
	}
	require.Equal(t, want, l.results)
}

// TestCompareSlices counts bits that differ.
func TestCompareSlices(t *testing.T) {
	twin := &sliced{results: [][]float32{{1, 2, 0}, {4}}}
	zero := float32(0)
	l := &sliced{results: [][]float32{{1, 2.5, -zero}, {4}}}
	l.compare(twin)
	require.Equal(t, []int{4, 2}, []int{l.elements, l.differ}, "-0 is not 0")
	require.InDelta(t, 0.5/4.58257569, l.apart, 1e-8)
	require.NotNil(t, twin.results)
}

// TestDescribe: means and deviations of elements over sequences.
func TestDescribe(t *testing.T) {
	g := &gradients{
		measured: [][]float32{{1, 5}, {3, 5}, {8, 5}}, mean: make([]float64, 2), deviation: make([]float64, 2),
	}
	g.describe()
	require.Equal(t, []float64{4, 5}, g.mean)
	require.InDeltaSlice(t, []float64{3.605551275, 0}, g.deviation, 1e-9)
}

// TestMade: operands that are made have the deviations asked for, and differ by rank.
func TestMade(t *testing.T) {
	s := newStudy(labtest.Short()).samples[0]
	s.elements = 2
	made := s.made(&gradients{deviation: []float64{3, 0.5}}, 4000)
	var squares [2]float64
	for i, v := range made {
		squares[i%2] += float64(v) * float64(v) / 4000
	}
	require.InDelta(t, 9, squares[0], 0.9)
	require.InDelta(t, 0.25, squares[1], 0.025)
	require.NotEqual(t, made[:2], made[2:4])
}

// TestSumsAreSums: a sum of a sample is that of its operands, whatever the order.
func TestSumsAreSums(t *testing.T) {
	s := newStudy(labtest.Short()).samples[0]
	s.elements = 3
	ranks := map[int]bool{}
	for _, order := range sumOrders {
		k := &sum{operands: noise, ranks: 5, order: order, format: sumFP32}
		require.NoError(t, s.sum(t.Context(), new(lab.Steps), k, func(dst []float32, rank int) {
			ranks[rank] = true
			for i := range dst {
				dst[i] = float32(rank - i)
			}
		}))
		require.Zero(t, s.sumOf(noise, 5, order, sumFP32).RMS)
	}
	require.Len(t, ranks, 5)
}

// TestTeamOptions: a team differs from what it is compared with in one thing.
func TestTeamOptions(t *testing.T) {
	named := map[string]teamKind{}
	for _, k := range teamKinds {
		named[k.name] = k
	}
	require.Len(t, named, len(teamKinds))
	for _, k := range teamKinds {
		var counted saturation
		o, want := k.options(&counted), named[k.reference()].options(&counted)
		require.NoError(t, o.Check(), k.name)
		require.Equal(t, 3, o.Stage)
		require.Equal(t, named[k.reference()].config(), k.config(), k.name)
		changed := 0
		for _, c := range []bool{o.Weights != want.Weights, o.Amax != want.Amax, o.Gradients.Amax != want.Gradients.Amax} {
			if c {
				changed++
			}
		}
		if k.name == k.reference() {
			require.Zero(t, changed, k.name)
		} else {
			require.Equal(t, 1, changed, k.name)
		}
	}
	require.Equal(t, collective.AmaxShared, named[sumShared].options(nil).Gradients.Amax)
	require.Equal(t, layers.AmaxOnTime, named[amaxOnTime].options(nil).Amax)
}

func TestSaturation(t *testing.T) {
	var c saturation
	require.Zero(t, c.share())
	c.Block("", "", 0, 0, 1, &fp8.Stats{Elements: 6, SaturatedPos: 1, SaturatedNeg: 2})
	c.Block("", "", 0, 0, 1, &fp8.Stats{Elements: 4})
	require.InDelta(t, 0.3, c.share(), 1e-12)
}
