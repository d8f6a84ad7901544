package nn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/swiglu"
)

// TestSublayersAlone: the linear layers of an MLP and of an attention are layers of
// their own. By themselves each computes and keeps what a NewLinear of its weight does,
// whatever the layer around and its other layers were given before and after.
func TestSublayersAlone(t *testing.T) {
	const rows, dim, hidden = 6, 8, 12
	for _, f := range ActivationFormats() {
		recipes := DefaultFP8()
		o := Options{FP8: &recipes, Activations: f, Smoothing: &swiglu.Smoothing{}}
		mlp, err := NewMLP("mlp.", dim, hidden, o)
		require.NoError(t, err)
		attention, err := NewAttention("attention.", AttentionConfig{Dim: dim, Heads: 2}, o)
		require.NoError(t, err)
		layers := []*Linear{mlp.Gate, mlp.Up, mlp.Down, attention.Query, attention.Key, attention.Value, attention.Output}
		y := make([]float32, rows*dim)
		for i, l := range layers {
			copy(l.Weight.Value, randoms(uint64(i), len(l.Weight.Value)))
			alone, err := NewLinearOf("alone", newParam("alone", l.Weight.Rows, l.Weight.Cols), o)
			require.NoError(t, err)
			copy(alone.Weight.Value, l.Weight.Value)
			x, dy := randoms(50, rows*l.Weight.Cols), randoms(51, rows*l.Weight.Rows)
			results := func(l *Linear, between func()) (y, dx, dw []float32) {
				y, dx = make([]float32, len(dy)), make([]float32, len(x))
				clear(l.Weight.Grad)
				require.NoError(t, l.Forward(t.Context(), y, x, rows))
				between()
				require.NoError(t, l.Backward(t.Context(), dx, dy), l.layer)
				return y, dx, l.Weight.Grad
			}
			others := func() {
				for _, other := range layers {
					if other != l {
						x := randoms(52, rows*other.Weight.Cols)
						require.NoError(t, other.Forward(t.Context(), make([]float32, rows*other.Weight.Rows), x, rows))
					}
				}
			}
			wantY, wantDX, wantDW := results(alone, func() {})
			check := func(when string, between func()) {
				gotY, gotDX, gotDW := results(l, between)
				require.Equal(t, wantY, gotY, "%v %s %s", f, l.layer, when)
				require.Equal(t, wantDX, gotDX, "%v %s %s", f, l.layer, when)
				require.Equal(t, wantDW, gotDW, "%v %s %s", f, l.layer, when)
			}
			check("first", func() {})
			check("before others", others)
			check("after others", func() {})
			require.NoError(t, mlp.Forward(t.Context(), y, randoms(53, rows*dim), rows))
			require.NoError(t, attention.Forward(t.Context(), y, randoms(53, rows*dim), 2, rows/2))
			check("after the layer around", func() {})
		}

		// What the MLP is to compute again is not there for Down alone.
		x, dy := randoms(54, rows*dim), randoms(55, rows*dim)
		require.NoError(t, mlp.Forward(t.Context(), y, x, rows))
		err = mlp.Down.Backward(t.Context(), make([]float32, rows*hidden), dy)
		if f == ActivationsFP8SwiGLU || f == ActivationsDeepSeekV3 {
			require.ErrorIs(t, err, ErrInput)
			require.NoError(t, mlp.Backward(t.Context(), make([]float32, len(x)), dy))
		} else {
			require.NoError(t, err)
		}
	}
}
