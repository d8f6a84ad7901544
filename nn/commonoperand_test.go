package nn

import (
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
	calls []string
}

func (n *noting) NonFinite(op, tensor string, index int, value float64) {
	if strings.HasSuffix(tensor, ".input") && !strings.Contains(tensor, "down") {
		n.calls = append(n.calls, fmt.Sprintln(op, tensor, index, value))
	}
	n.Recorder.NonFinite(op, tensor, index, value)
}

// plain is a Reporter that hears of blocks one by one.
type plain struct{ tensor.Reporter }

// TestCommonInput compares what is heard of the input of an MLP's gate and up, which
// quantize it together, with what two layers report that know nothing of each other.
func TestCommonInput(t *testing.T) {
	const rows, dim, hidden = 150, 40, 56
	for _, recipes := range []FP8{DefaultFP8(), ProfileFP8(scaling.TECurrent, fp8.E5M2)} {
		for _, format := range []ActivationFormat{ActivationsFP32, ActivationsFP8} {
			for _, bad := range []bool{false, true} {
				for _, many := range []bool{false, true} {
					var common, apart noting
					listen := func(s *Shared, r *noting) {
						if s.Reporter = r; !many {
							s.Reporter = plain{r}
						}
					}
					o := Options{FP8: &recipes, Activations: format, Shared: new(Shared)}
					listen(o.Shared, &common)
					m, err := NewMLP("mlp.", dim, hidden, o)
					require.NoError(t, err)
					x, dy := randoms(1, rows*dim), randoms(2, rows*dim)
					if bad {
						x[77] = float32(math.Inf(-1))
					}
					for i, p := range m.Params() {
						p.Randomize(3, uint64(i), 0.1)
					}
					other := randoms(4, len(x))
					y, dx := make([]float32, len(x)), make([]float32, len(x))
					for _, x := range [][]float32{x, other} {
						require.NoError(t, m.Forward(t.Context(), y, x, rows))
						require.NoError(t, m.Backward(t.Context(), dx, dy))
					}

					o.Shared = new(Shared)
					listen(o.Shared, &apart)
					for _, like := range []*Linear{m.Gate, m.Up} {
						l, err := NewLinear(like.Weight.Name, hidden, dim, o)
						require.NoError(t, err)
						wide := make([]float32, rows*hidden)
						for _, x := range [][]float32{x, other} {
							require.NoError(t, l.Forward(t.Context(), wide, x, rows))
							require.NoError(t, l.Backward(t.Context(), dx, wide))
						}
					}
					want, got := inputs(&apart), inputs(&common)
					require.Len(t, want, 4)
					require.Equal(t, want, got)
					require.ElementsMatch(t, apart.calls, common.calls)
					require.Equal(t, bad, len(common.calls) == 4)
				}
			}
		}
	}
}

// inputs returns what was heard of inputs of gate and up.
func inputs(r *noting) (list []telemetry.Total) {
	for _, total := range r.Totals() {
		if strings.HasSuffix(total.Tensor, ".input") && !strings.Contains(total.Tensor, "down") {
			list = append(list, total)
		}
	}
	return list
}
