package layers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// through is one row sent in a format.
func through(t *testing.T, w collective.Wire, row []float32) []float32 {
	t.Helper()
	back := make([]float32, len(row))
	switch w.String() {
	case "fp32":
		copy(back, row)
	case "bf16":
		for i, v := range row {
			back[i] = toBF16(v)
		}
	default:
		q := tensor.Tensor{Shape: []int{1, len(row)}}
		require.NoError(t, scaling.Quantize(t.Context(), &q, row, scaling.Quantizer{Recipe: w.Recipe}))
		tensor.Dequantize(back, &q)
	}
	return back
}

// TestExperts compares with the definition, token by token, for formats there and back.
func TestExperts(t *testing.T) {
	const cols, experts, topK = 40, 10, 3
	expert := func(e int, v float32, i int) float32 { return float32(v*float32(e+1)) + float32(float32(i)*0.1) }
	apply := func(e int, y, x []float32, rows int) error {
		if len(x) != rows*cols || len(y) != len(x) {
			return fmt.Errorf("%d rows of %d elements", rows, len(x))
		}
		for i, v := range x {
			y[i] = expert(e, v, i%cols)
		}
		return nil
	}
	for _, formats := range [][2]string{{"fp32", "fp32"}, {"e4m3-block", "bf16"}, {"bf16", "e4m3-token"}, {"mxfp4", "e5m2-block"}} {
		for _, ranks := range []int{1, 3, 4} {
			for _, atSource := range []bool{false, true} {
				e := Experts{
					Count: experts, SumAtSource: atSource,
					Dispatch: collective.Exchange{Name: "dispatch", Cols: cols, Wire: wire(t, formats[0])},
					Combine:  collective.Exchange{Name: "combine", Cols: cols, Wire: wire(t, formats[1])},
				}
				var x [][]float32
				var routes []Routes
				for r := range ranks {
					n := (r*3 + 2) % 6 // none on one of them
					x = append(x, randoms(uint64(r), n*cols))
					routes = append(routes, Routes{TopK: topK})
					for token := range n {
						first := int(random.Hash(1, uint64(r), uint64(token)) % experts)
						for k := range topK {
							routes[r].Experts = append(routes[r].Experts, (first+k*3)%experts)
							routes[r].Weights = append(routes[r].Weights, 0.3+float32(float32(k)*0.21))
						}
					}
				}
				y, _, err := e.Forward(t.Context(), x, routes, apply)
				require.NoError(t, err)
				for r := range ranks {
					for token := range len(x[r]) / cols {
						sent := through(t, e.Dispatch.Wire, x[r][token*cols:(token+1)*cols])
						result := func(k int) []float32 {
							out := make([]float32, cols)
							for i := range out {
								out[i] = expert(routes[r].Experts[token*topK+k], sent[i], i)
							}
							return out
						}
						want := make([]float32, cols)
						if atSource {
							for from := range ranks { // experts of each rank, and then ranks
								var part []float32
								for k := range topK {
									if id := routes[r].Experts[token*topK+k]; id < from*experts/ranks || id >= (from+1)*experts/ranks {
										continue
									}
									if part == nil {
										part = make([]float32, cols)
									}
									for i, v := range result(k) {
										part[i] += float32(v * routes[r].Weights[k])
									}
								}
								if part != nil {
									for i, v := range through(t, e.Combine.Wire, part) {
										want[i] += v
									}
								}
							}
						} else {
							for k := range topK {
								for i, v := range through(t, e.Combine.Wire, result(k)) {
									want[i] += float32(v * routes[r].Weights[k])
								}
							}
						}
						require.Equal(t, want, y[r][token*cols:(token+1)*cols], "%v, %d ranks, at source %v", formats, ranks, atSource)
					}
				}
			}
		}
	}
}

func TestExpertsRefusals(t *testing.T) {
	e := Experts{Count: 4, Dispatch: collective.Exchange{Cols: 2}, Combine: collective.Exchange{Cols: 2}}
	_, _, err := e.Forward(t.Context(), [][]float32{{1, 2}}, []Routes{{1, []int{4}, []float32{1}}}, nil)
	require.EqualError(t, err, "rank 0: layers: rank 0: token 0 goes to expert 4: there are 4")
	e.Combine.Cols = 3
	require.ErrorIs(t, e.Check(), collective.ErrInput)
}
