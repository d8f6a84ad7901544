package nn

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// noting is a Recorder that also keeps what it hears of values that are not finite.
type noting struct {
	telemetry.Recorder
	calls  []string
	except string // prefix of layers whose inputs do not matter
}

func (n *noting) NonFinite(op, tensor string, index int, value float64) {
	if n.shared(tensor) {
		n.calls = append(n.calls, fmt.Sprintln(op, tensor, index, value))
	}
	n.Recorder.NonFinite(op, tensor, index, value)
}

// plain is a Reporter that hears of blocks one by one.
type plain struct{ tensor.Reporter }

// sharing is a layer that gives several linear layers the same input.
type sharing struct {
	input     *commonInput
	layers    []*Linear
	params    []*Param
	forward   func(ctx context.Context, y, x []float32) error
	backward  func(ctx context.Context, dx, dy []float32) error
	untouched string // prefix of the layer that has another input
}

const sharedRows = 150

// sharingLayers returns an MLP and an attention, of the given width.
func sharingLayers(t *testing.T, dim int, o Options) []sharing {
	m, err := NewMLP("mlp.", dim, 56, o)
	require.NoError(t, err)
	a, err := NewAttention("attention.", AttentionConfig{Dim: dim, Heads: 2, KVHeads: 1}, o)
	require.NoError(t, err)
	list := []sharing{
		{m.input, []*Linear{m.Gate, m.Up}, m.Params(), func(ctx context.Context, y, x []float32) error {
			return m.Forward(ctx, y, x, sharedRows)
		}, m.Backward, "mlp.down"},
		{a.input, []*Linear{a.Query, a.Key, a.Value}, a.Params(), func(ctx context.Context, y, x []float32) error {
			return a.Forward(ctx, y, x, 3, sharedRows/3)
		}, a.Backward, "attention.o"},
	}
	for _, s := range list {
		for i, p := range s.params {
			p.Randomize(3, uint64(i), 0.1)
		}
	}
	return list
}

// TestCommonInput compares what is heard of the input of layers that quantize it
// together with what layers report that know nothing of each other.
func TestCommonInput(t *testing.T) {
	stochastic := DefaultFP8()
	stochastic.Forward.A.Policy.Rounding = fp8.Stochastic
	stochastic.WeightGradient.B.Policy.Rounding = fp8.Stochastic
	for _, recipes := range []struct {
		name   string
		dim    int // below 16, blocks of whole tensors are heard of one by one
		shared bool
		FP8
	}{
		{"default", 40, true, DefaultFP8()},
		{"current", 40, true, ProfileFP8(scaling.TECurrent, fp8.E5M2)},
		{"narrow", 8, true, ProfileFP8(scaling.TECurrent, fp8.E5M2)},
		{"delayed", 40, false, ProfileFP8(scaling.TEDelayed, fp8.E5M2)},
		{"stochastic", 40, false, stochastic},
	} {
		for _, format := range []ActivationFormat{ActivationsFP32, ActivationsFP8} {
			for _, bad := range []bool{false, true} {
				for _, many := range []bool{false, true} {
					o := Options{FP8: &recipes.FP8, Activations: format}
					t.Run(fmt.Sprint(recipes.name, format, bad, many), func(t *testing.T) {
						compareShared(t, recipes.dim, o, recipes.shared, bad, many)
					})
				}
			}
		}
	}
}

func compareShared(t *testing.T, dim int, o Options, shared, bad, many bool) {
	x, dy, other := randoms(1, sharedRows*dim), randoms(2, sharedRows*dim), randoms(4, sharedRows*dim)
	if bad {
		x[77] = float32(math.Inf(-1))
	}
	for i := range 2 {
		var common, apart noting
		listen := func(s *Shared, r *noting) {
			if s.Reporter = r; !many {
				s.Reporter = plain{r}
			}
		}
		o.Shared = new(Shared)
		s := sharingLayers(t, dim, o)[i]
		common.except, apart.except = s.untouched, s.untouched
		listen(o.Shared, &common)
		y, dx := make([]float32, len(x)), make([]float32, len(x))
		for _, x := range [][]float32{x, other} {
			require.NoError(t, s.forward(t.Context(), y, x))
			require.Equal(t, shared, s.input.forward.filled)
			if o.Activations == ActivationsFP8 {
				require.Equal(t, shared, s.layers[0].kept == s.layers[1].kept)
			}
			require.NoError(t, s.backward(t.Context(), dx, dy))
			if o.Activations == ActivationsFP32 {
				require.Equal(t, shared, s.input.transposed.filled)
			}
		}

		o.Shared = new(Shared)
		listen(o.Shared, &apart)
		for _, like := range s.layers {
			l, err := NewLinear(like.Weight.Name, like.Weight.Rows, dim, o)
			require.NoError(t, err)
			wide := make([]float32, sharedRows*like.Weight.Rows)
			for _, x := range [][]float32{x, other} {
				require.NoError(t, l.Forward(t.Context(), wide, x, sharedRows))
				require.NoError(t, l.Backward(t.Context(), dx, wide))
			}
		}
		want, got := apart.inputs(), common.inputs()
		require.Len(t, want, 2*len(s.layers))
		require.Equal(t, want, got)
		require.ElementsMatch(t, apart.calls, common.calls)
		require.Equal(t, bad, len(common.calls) == 2*len(s.layers))
	}
}

// TestCommonInputReporterSetMeanwhile by a Tap: layers after it are heard of whole.
func TestCommonInputReporterSetMeanwhile(t *testing.T) {
	const dim = 40
	recipes := DefaultFP8()
	o := Options{FP8: &recipes, Shared: new(Shared)}
	s := sharingLayers(t, dim, o)[1]
	var r telemetry.Recorder
	o.Shared.Tap = func(name string, _ []float32, _, _ int) {
		if name == s.layers[1].layer+".input" {
			o.Shared.Reporter = &r
		}
	}
	x := randoms(1, sharedRows*dim)
	require.NoError(t, s.forward(t.Context(), make([]float32, len(x)), x))
	require.NoError(t, r.Flush())
	elements := map[string]int64{}
	for _, total := range r.Totals() {
		elements[total.Tensor] = int64(total.Stats.Elements)
	}
	require.Zero(t, elements[s.layers[0].layer+".input"])
	require.EqualValues(t, len(x), elements[s.layers[1].layer+".input"])
	require.EqualValues(t, len(x), elements[s.layers[2].layer+".input"])
}

// TestCommonInputCancelled while the first layer quantizes it: nobody takes it for made.
func TestCommonInputCancelled(t *testing.T) {
	const dim = 40
	recipes := DefaultFP8()
	for i := range 2 {
		o := Options{FP8: &recipes, Activations: ActivationsFP8, Shared: new(Shared)}
		s := sharingLayers(t, dim, o)[i]
		x, other, dy := randoms(1, sharedRows*dim), randoms(2, sharedRows*dim), randoms(3, sharedRows*dim)
		results := func(x []float32) (y, dx []float32) {
			y, dx = make([]float32, len(x)), make([]float32, len(x))
			require.NoError(t, s.forward(t.Context(), y, x))
			require.NoError(t, s.backward(t.Context(), dx, dy))
			return y, dx
		}
		wantY, wantDX := results(x)
		results(other)
		ctx, cancel := context.WithCancel(t.Context())
		o.Shared.Tap = func(string, []float32, int, int) { cancel() }
		require.ErrorIs(t, s.forward(ctx, make([]float32, len(x)), x), context.Canceled)
		require.False(t, s.input.forward.filled)
		require.False(t, s.input.transposed.filled)
		o.Shared.Tap = nil
		y, dx := results(x)
		require.Equal(t, wantY, y)
		require.Equal(t, wantDX, dx)
	}
}

// TestCommonInputErrors name the operand of the layer whose product fails.
func TestCommonInputErrors(t *testing.T) {
	const dim = 40
	recipes := DefaultFP8()
	recipes.WeightGradient.B.Profile = scaling.DeepGEMM // whose scale of an infinity is none
	for i := range 2 {
		for _, format := range []ActivationFormat{ActivationsFP32, ActivationsFP8} {
			s := sharingLayers(t, dim, Options{FP8: &recipes, Activations: format, Shared: new(Shared)})[i]
			x := randoms(1, sharedRows*dim)
			x[77] = float32(math.Inf(-1))
			require.NoError(t, s.forward(t.Context(), make([]float32, len(x)), x))
			err := s.backward(t.Context(), make([]float32, len(x)), randoms(2, len(x)))
			require.ErrorIs(t, err, tensor.ErrScale)
			require.ErrorContains(t, err, s.layers[0].layer+".input")
		}
	}
}

// blocksReporter does what a [tensor.BlocksReporter] may: it looks at the first block.
type blocksReporter struct{ telemetry.Recorder }

func (r *blocksReporter) Blocks(op, tensor string, first, gridCols int, scales []float32, stats []fp8.Stats) {
	_ = stats[0]
	r.Recorder.Blocks(op, tensor, first, gridCols, scales, stats)
}

// TestCommonInputOfNoRows: there are no blocks to hear of.
func TestCommonInputOfNoRows(t *testing.T) {
	recipes := DefaultFP8()
	m, err := NewMLP("mlp.", 8, 16, Options{FP8: &recipes, Shared: &Shared{Reporter: new(blocksReporter)}})
	require.NoError(t, err)
	require.NoError(t, m.Forward(t.Context(), nil, nil, 0))
	require.NoError(t, m.Backward(t.Context(), nil, nil))
}

// inputs returns what was heard of the input that layers share.
func (n *noting) inputs() (list []telemetry.Total) {
	for _, total := range n.Totals() {
		if n.shared(total.Tensor) {
			list = append(list, total)
		}
	}
	return list
}

// shared reports whether a tensor is the input that layers share.
func (n *noting) shared(tensor string) bool {
	return strings.HasSuffix(tensor, ".input") && !strings.HasPrefix(tensor, n.except)
}
