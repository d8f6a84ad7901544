package power

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// along is products [lo, hi) of K of a t without blocks along it.
func along(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	x := *t
	rows, _ := t.Dims()
	x.Shape, x.Codes = []int{rows, hi - lo}, nil
	for i := range rows {
		x.Codes = append(x.Codes, t.Row(i)[lo:hi]...)
	}
	return &x
}

// predicted is what a model's kernel gives that adds the products of a block in an order of
// its own, in so many splits of K.
func predicted(t *testing.T, a, b *tensor.Tensor, k oracle.Kernel, order func(n int) []int, splits int) []float32 {
	m, _ := a.Dims()
	n, length := b.Dims()
	size, err := gemm.CheckOperands(a, b)
	require.NoError(t, err)
	p := population{k: size.K, block: size.Block}
	a, b = p.reordered(a, order), p.reordered(b, order)
	sum, part := make([]float32, m*n), make([]float32, m*n)
	for s := range splits {
		x, y := a, b
		if splits > 1 {
			x, y = along(a, s*length/splits, (s+1)*length/splits), along(b, s*length/splits, (s+1)*length/splits)
		}
		require.NoError(t, oracle.Predict(t.Context(), part, nil, x, y, k, oracle.Options{}))
		for i := range sum {
			sum[i] += part[i]
		}
	}
	return sum
}

// claimed measures a result under the claim of a kernel, as each type of C.
func claimed(t *testing.T, c []float32, a, b *tensor.Tensor, k oracle.Kernel) map[string]*Result {
	o := Options{Accumulation: oracle.Accumulation{Kernel: k}}
	bfloats, halves := make([]fp8.BFloat16, len(c)), make([]float16.Float16, len(c))
	for i, x := range c {
		bfloats[i], halves[i] = number.From[fp8.BFloat16](x), number.From[float16.Float16](x)
	}
	var err error
	all := map[string]*Result{}
	all["F32"], err = Measure(t.Context(), c, nil, a, b, o)
	require.NoError(t, err)
	all["BF16"], err = Measure(t.Context(), bfloats, nil, a, b, o)
	require.NoError(t, err)
	all["F16"], err = Measure(t.Context(), halves, nil, a, b, o)
	require.NoError(t, err)
	return all
}

// TestHonestModels raises no alarm of kernels that keep to their models, in other orders of
// adding than those that are predicted, in splits, and with sums that are better.
func TestHonestModels(t *testing.T) {
	lengths, rounds := []int{512, 2048}, 1
	if testutil.Full() {
		lengths, rounds = []int{512, 1024, 2048, 4096, 8192, 16384}, 4
	}
	results, worst := 0, 0.0
	r := rand.New(rand.NewPCG(33, 3))
	for round := range rounds {
		for l, k := range lengths {
			for d, data := range []struct {
				name string
				draw func() float64
			}{
				{"normal", r.NormFloat64},
				{"positive", func() float64 { return math.Abs(r.NormFloat64()) }},
				{"wide", func() float64 { return math.Exp(2*r.NormFloat64()) * r.NormFloat64() }},
				{"few", func() float64 { return float64(1 + r.IntN(2)) }},
			} {
				for n, kernel := range []oracle.Kernel{{Model: oracle.HopperWGMMA(), Promote: 128}, {Model: oracle.HopperWGMMA()}, {Model: oracle.AdaMMA(), Promote: 128}, {Model: oracle.BlackwellTCGen05()}} {
					if (n+d+l)%2 != 0 && !testutil.Full() {
						continue // each kernel has each kind of numbers, at one of the lengths
					}
					blocks := [][2]tensor.Block{{}, {{Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}}}[(k/512+round)%2]
					a, b := operand("a", fp8.E4M3, blocks[0], 24+r.IntN(40), k, data.draw), operand("b", fp8.E4M3, blocks[1], 24+r.IntN(40), k, data.draw)
					seed := r.Uint64()
					shuffle := func(n int) []int { return rand.New(rand.NewPCG(seed, uint64(n))).Perm(n) }
					halves := func(n int) []int { // every other product first
						order := shuffle(n)
						slices.SortStableFunc(order, func(x, y int) int { return x%2 - y%2 })
						return order
					}
					kinds := map[string][]float32{"shuffled": predicted(t, a, b, kernel, shuffle, 1), "halves": predicted(t, a, b, kernel, halves, 1),
						"as it comes": predicted(t, a, b, kernel, nil, 1), "float32": octavo[float32](t, a, b)}
					if blocks[0] == (tensor.Block{}) {
						kinds["splits"] = predicted(t, a, b, kernel, shuffle, 4)
					}
					for kind, c := range kinds {
						for name, report := range claimed(t, c, a, b, kernel) {
							results++
							for _, x := range report.Tests {
								worst = max(worst, float64(x.Score/x.Limit))
							}
							if report.Alarm {
								log(t, fmt.Sprintf("%s %s K = %d, %v, %s, promote %d, %s", data.name, kind, k, blocks[0], kernel.Model.Name, kernel.Promote, name), report)
								t.Fail()
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d results; the largest score is %.2f of its limit", results, worst)
}

// TestUnpromoted finds the sums that are never promoted to float32 where a promotion every
// 128 products is claimed, which the bound allows, and names them.
func TestUnpromoted(t *testing.T) {
	lengths := []int{512, 4096}
	if testutil.Full() {
		lengths = []int{512, 1024, 2048, 4096, 8192, 16384}
	}
	kernel := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128}
	for _, k := range lengths {
		a, b := normalPair(128, 128, k, tensor.Block{}, 7, 8)
		c := predicted(t, a, b, oracle.Kernel{Model: kernel.Model}, nil, 1)
		for name, report := range claimed(t, c, a, b, kernel) {
			require.True(t, report.Alarm, "%s, K = %d", name, k)
			require.Equal(t, "sums lose bits below 2^-13 of their largest term, as 14-bit accumulators do: "+
				"all 4096 elements compared have the bits of hopper-wgmma, unpromoted", report.Likely[0])
		}
	}
}
