package power

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestEdges has sizes of 0 and 1, with and without what is added: no alarm of octavo's
// product, and no number that JSON could not say.
func TestEdges(t *testing.T) {
	t.Run("float32", testEdges[float32])
	t.Run("bfloat16", testEdges[fp8.BFloat16])
	t.Run("float16", testEdges[float16.Float16])
}

func testEdges[T gemm.Output](t *testing.T) {
	for _, m := range []int{0, 1, 3} {
		for _, n := range []int{0, 1, 2} {
			for _, k := range []int{0, 1, 2, 130} {
				for _, special := range []string{"", "NaN", "Inf", "zero"} {
					name := fmt.Sprintf("%dx%dx%d %s", m, n, k, special)
					a, b := normalPair(m, n, k, tensor.Block{Rows: 1, Cols: 64}, 5, 6)
					bias, old := make([]float32, n), make([]T, m*n)
					for j := range bias {
						bias[j] = float32(1 + j)
					}
					for i := range old {
						old[i] = number.From[T](float32(i))
					}
					switch {
					case special == "zero":
						clear(a.Codes)
					case n > 0 && special != "":
						bias[0] = map[string]float32{"NaN": float32(math.NaN()), "Inf": float32(math.Inf(1))}[special]
					}
					for _, added := range []bool{false, true} {
						got, o := make([]T, m*n), Options{}
						before := old
						if added {
							o.Bias = bias
							copy(got, old)
						} else {
							before = nil
						}
						require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Bias: o.Bias, Accumulate: added}), name)
						r, err := Measure(t.Context(), got, before, a, b, o)
						require.NoError(t, err, name)
						require.False(t, r.Alarm, name)
						require.Equal(t, m*n, r.Elements+r.Left, name)
						_, err = json.Marshal(r)
						require.NoError(t, err, name)
						for _, x := range r.Tests {
							require.False(t, math.IsNaN(float64(x.Score+x.P)), "%s: %s", name, x.Name)
						}
						for _, x := range r.Sights {
							require.False(t, math.IsNaN(float64(x.Least)), "%s: %s", name, x.Fault)
						}
						_, err = Bits(t.Context(), before, a, b, oracle.Kernel{}, o)
						require.NoError(t, err, name)
					}
				}
			}
		}
	}
}
