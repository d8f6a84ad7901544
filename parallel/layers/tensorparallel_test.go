package layers

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/swiglu"
)

const (
	tpRows, tpDim, tpHidden = 5, 24, 83
)

// ofMLP is what an MLP computes: y, dx, and the gradients of gate, up and down.
type ofMLP struct{ y, dx, gate, up, down []float32 }

// runMLP runs the MLP on ranks, and puts the gradients of slices together.
func runMLP(t *testing.T, ranks int, s collective.Slices, o nn.Options) ofMLP {
	t.Helper()
	var got ofMLP
	results := make([]ofMLP, ranks)
	_, err := collective.Run(t.Context(), ranks, func(r *collective.Rank) error {
		o := o
		o.Shared = new(nn.Shared)
		m, err := NewMLP(r.ID(), ranks, "mlp.", tpDim, tpHidden, s, o)
		if err != nil {
			return err
		}
		own := ofMLP{y: make([]float32, tpRows*tpDim), dx: make([]float32, tpRows*tpDim)}
		err = errors.Join(
			m.Load(randoms(1, tpHidden*tpDim), randoms(2, tpHidden*tpDim), randoms(3, tpHidden*tpDim)),
			m.Forward(r, own.y, randoms(4, tpRows*tpDim), tpRows),
			m.Backward(r, own.dx, randoms(5, tpRows*tpDim)),
		)
		own.down = make([]float32, tpHidden*tpDim)
		for k, part := range m.Parts {
			if part == nil {
				continue
			}
			lo, hi := s.Range(tpHidden, m.first+k)
			own.gate = append(own.gate, part.Gate.Weight.Grad...)
			own.up = append(own.up, part.Up.Weight.Grad...)
			for row := range tpDim {
				copy(own.down[row*tpHidden+lo:row*tpHidden+hi], part.Down.Weight.Grad[row*(hi-lo):])
			}
		}
		results[r.ID()] = own
		return err
	})
	require.NoError(t, err)
	got = results[0]
	for _, other := range results[1:] {
		requireSame(t, got.y, other.y)
		requireSame(t, got.dx, other.dx)
		got.gate, got.up = append(got.gate, other.gate...), append(got.up, other.up...)
		for i, v := range other.down {
			got.down[i] += v
		}
	}
	return got
}

func fp8Options() nn.Options {
	f := nn.DefaultFP8()
	f.Stochastic = true
	return nn.Options{FP8: &f, Workers: 1, Smoothing: &swiglu.Smoothing{}}
}

// TestMLP: 1, 2, 4 and 8 ranks, and others, have the same bits, and one slice has those of
// nn.MLP.
func TestMLP(t *testing.T) {
	for what, o := range map[string]nn.Options{"FP32": {Workers: 1}, "FP8": fp8Options()} {
		whole := o
		whole.Shared = new(nn.Shared)
		m, err := nn.NewMLP("mlp.slice.0.", tpDim, tpHidden, whole)
		require.NoError(t, err)
		for i, p := range m.Params() {
			copy(p.Value, randoms(uint64(i+1), tpHidden*tpDim))
		}
		want := ofMLP{y: make([]float32, tpRows*tpDim), dx: make([]float32, tpRows*tpDim)}
		require.NoError(t, m.Forward(t.Context(), want.y, randoms(4, tpRows*tpDim), tpRows))
		require.NoError(t, m.Backward(t.Context(), want.dx, randoms(5, tpRows*tpDim)))
		want.gate, want.up, want.down = m.Gate.Weight.Grad, m.Up.Weight.Grad, m.Down.Weight.Grad
		tree := collective.Exchange{Order: collective.OrderTree}
		require.Equal(t, want, runMLP(t, 1, collective.Slices{Exchange: tree, Count: 1}, o), what)

		eight := collective.Slices{Exchange: tree, Count: 8, Align: 4}
		same := runMLP(t, 1, eight, o)
		for _, ranks := range []int{2, 3, 4, 8} {
			require.Equal(t, same, runMLP(t, ranks, eight, o), "%s, %d ranks", what, ranks)
		}
		require.NotEqual(t, want.y, same.y)
		if what == "FP32" {
			for i := range want.y {
				require.InDelta(t, want.y[i], same.y[i], 0.05*(1+abs(want.y[i])))
				require.InDelta(t, want.dx[i], same.dx[i], 0.05*(1+abs(want.dx[i])))
			}
			byRank := eight
			byRank.Count = 4 // as many as ranks, and so other bits than 8 or 2
			require.NotEqual(t, same.y, runMLP(t, 4, byRank, o).y)
		}
	}
}

func abs(x float32) float64 { return float64(max(x, -x)) }

// linearParts makes the slices of a layer of so many inputs.
func linearParts(name string, in int) func(i, lo, hi int) (*nn.Linear, error) {
	return func(i, lo, hi int) (*nn.Linear, error) {
		return nn.NewLinear(fmt.Sprintf("%s.slice.%d.weight", name, i), hi-lo, in, nn.Options{Workers: 1})
	}
}

// TestLinear compares a layer by columns with a whole one, whose sum is not cut, and among
// numbers of ranks.
func TestLinear(t *testing.T) {
	weight, x, dy := randoms(1, tpHidden*tpDim), randoms(3, tpRows*tpDim), randoms(4, tpRows*tpHidden)
	whole, err := nn.NewLinear("a.weight", tpHidden, tpDim, nn.Options{})
	require.NoError(t, err)
	copy(whole.Weight.Value, weight)
	wantY, wantDX := make([]float32, len(dy)), make([]float32, len(x))
	require.NoError(t, whole.Forward(t.Context(), wantY, x, tpRows))
	require.NoError(t, whole.Backward(t.Context(), wantDX, dy))

	s := collective.Slices{Exchange: collective.Exchange{Order: collective.OrderTree}, Count: 6}
	var oneDX []float32
	for _, ranks := range []int{1, 2, 3, 6} {
		gotDX := make([]float32, len(x))
		_, err := collective.Run(t.Context(), ranks, func(r *collective.Rank) error {
			l, err := newLinear(r.ID(), ranks, "a.weight", tpHidden, tpDim, s, linearParts("a", tpDim))
			if err != nil {
				return err
			}
			err = load(l.cuts(), []*nn.Param{{Name: "a.weight", Rows: tpHidden, Cols: tpDim, Value: weight}})
			if err != nil {
				return err
			}
			columns := func(all []float32, k int) (of []float32) {
				lo, hi := s.Range(tpHidden, l.first+k)
				for row := range tpRows {
					of = append(of, all[row*tpHidden+lo:row*tpHidden+hi]...)
				}
				return of
			}
			var y, dys [][]float32
			for k, part := range l.Parts {
				y, dys = append(y, make([]float32, tpRows*part.Weight.Rows)), append(dys, columns(dy, k))
			}
			dx := make([]float32, len(x))
			if err := errors.Join(l.Forward(r, y, x, tpRows), l.Backward(r, dx, dys)); err != nil {
				return err
			}
			if r.ID() == ranks-1 {
				gotDX = dx
			}
			for k, part := range l.Parts {
				if want := columns(wantY, k); !slices.Equal(want, y[k]) {
					err = errors.Join(err, fmt.Errorf("slice %d: outputs %v, want %v", k, y[k], want))
				}
				lo, hi := s.Range(tpHidden, l.first+k)
				for i, g := range part.Weight.Grad {
					if want := whole.Weight.Grad[lo*tpDim+i]; abs(g-want) > 1e-3*(1+abs(want)) {
						err = errors.Join(err, fmt.Errorf("slice %d to %d: gradient %v, want %v", lo, hi, g, want))
					}
				}
			}
			return err
		})
		require.NoError(t, err)
		if ranks == 1 {
			oneDX = gotDX
		}
		requireSame(t, oneDX, gotDX)
		for i := range wantDX {
			require.InDelta(t, wantDX[i], gotDX[i], 1e-3*(1+abs(wantDX[i])))
		}
	}
}
