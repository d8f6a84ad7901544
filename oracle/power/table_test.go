package power

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// seen counts the results of a fault that changes C in which it was found, by the alarm
// and by the worst case.
type seen struct{ changed, found, outside int }

func (s *seen) String() string {
	if s.changed == 0 {
		return "no change"
	}
	return fmt.Sprintf("%d of %d (%d)", s.found, s.changed, s.outside)
}

// bench is operands of which products are measured.
type bench[T gemm.Output] struct {
	t          *testing.T
	a, b       *tensor.Tensor
	population *population
	bound      []float64
	honest     []T
	known      []*scores
}

func newBench[T gemm.Output](t *testing.T, a, b *tensor.Tensor) *bench[T] {
	h := &bench[T]{t: t, a: a, b: b, honest: octavo[T](t, a, b)}
	var err error
	o := Options{Rate: defaultRate}
	h.population, err = newPopulation[T](t.Context(), nil, a, b, &o)
	require.NoError(t, err)
	h.bound = make([]float64, len(h.honest))
	require.NoError(t, oracle.Bound[T](t.Context(), h.bound, nil, a, b, oracle.Accumulation{}, oracle.Options{}))
	return h
}

// measure is [Measure], of many results.
func (h *bench[T]) measure(c []T) *Result {
	o := Options{Rate: defaultRate}
	s, err := newScores(h.t.Context(), h.population, c, &o)
	require.NoError(h.t, err)
	if s.suspicious(defaultRate) {
		if h.known == nil {
			for _, control := range controls[T](false) {
				c, err := control(h.t.Context(), h.population, nil, &o)
				require.NoError(h.t, err)
				known, err := newScores(h.t.Context(), h.population, c, &o)
				require.NoError(h.t, err)
				h.known = append(h.known, known)
			}
		}
		for _, known := range h.known {
			s.control(known)
		}
	}
	return s.result(defaultRate)
}

// take counts a result.
func (h *bench[T]) take(s *seen, name string, c []T) {
	if slices.Equal(c, h.honest) {
		return
	}
	s.changed++
	for i, x := range c {
		if d := number.Float64(x) - float64(h.population.exact[i]); max(d, -d) > h.bound[i] {
			s.outside++
			break
		}
	}
	r := h.measure(c)
	if r.Alarm {
		s.found++
		return
	}
	log(h.t, name+", not found", r)
}

// faults of the table, in its order.
var faults = []string{"last k dropped", "a bit in one row", "subnormals flushed", "Hopper, unpromoted", "Hopper, every 128", "BF16, wrong way"}

// injected injects the faults into products of operands of normal data.
func injected(t *testing.T, size, k int, block [2]tensor.Block, seed uint64, flips int, found map[string]*seen) {
	r, s := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	a, b := operand("a", fp8.E4M3, block[0], size, k, r.NormFloat64), operand("b", fp8.E4M3, block[1], size, k, s.NormFloat64)
	h := newBench[float32](t, a, b)
	name := func(fault string) string {
		return fmt.Sprintf("%s, K = %d, %v by %v, seed %d", fault, k, block[0], block[1], seed)
	}
	require.False(t, h.measure(h.honest).Alarm, name("honest"))
	take := func(fault string, c []float32) { h.take(found[fault], name(fault), c) }
	take(faults[0], octavo[float32](t, changed(a, func(codes []byte) {
		for i := k - 1; i < len(codes); i += k {
			codes[i] = 0
		}
	}), b))
	for range flips {
		row, at := r.IntN(size), r.IntN(k)
		for a.Format.IsNaN(a.Row(row)[at] ^ 1) { // which the worst case sees
			at = r.IntN(k)
		}
		one := &tensor.Tensor{Name: "a", Format: a.Format, Shape: []int{1, k}, Block: tensor.Block{Rows: 1, Cols: a.Block.Cols}, Codes: slices.Clone(a.Row(row))}
		one.Codes[at] ^= 1
		height, _ := a.Block.Extents(size, k)
		one.Scales = a.ScaleRow(row / height)
		c := slices.Clone(h.honest)
		copy(c[row*size:], octavo[float32](t, one, b))
		take(faults[1], c)
	}
	take(faults[2], octavo[float32](t, flushed(a), flushed(b)))
	c := make([]float32, size*size)
	for i, promote := range []int{0, 128} {
		require.NoError(t, oracle.Predict(t.Context(), c, nil, a, b, oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: promote}, oracle.Options{}))
		take(faults[3+i], c)
	}
	narrow := newBench[fp8.BFloat16](t, a, b)
	require.False(t, narrow.measure(narrow.honest).Alarm, name("honest BF16"))
	narrow.take(found[faults[5]], name(faults[5]), wrongWay(h.honest))
}

// TestTable fills the table of the package's documentation: how many of the results of
// faults raise the alarm, and, in parentheses, in how many an element is outside of its
// worst-case bound. Faults that change C have to be found.
func TestTable(t *testing.T) {
	size, lengths, seeds, flips := 64, []int{512, 2048}, 2, 4
	if testutil.Full() {
		size, lengths, seeds, flips = 256, []int{512, 4096, 8192, 16384}, 2, 10
	}
	if testing.Short() {
		lengths, seeds = lengths[:1], 1
	}
	var text strings.Builder
	for _, block := range [][2]tensor.Block{{}, {{Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}}} {
		for _, k := range lengths {
			found := map[string]*seen{}
			for _, fault := range faults {
				found[fault] = &seen{}
			}
			for seed := range seeds {
				injected(t, size, k, block, uint64(101+seed), flips, found)
			}
			fmt.Fprintf(&text, "\n%v by %v, K = %d", block[0], block[1], k)
			for _, fault := range faults {
				s := found[fault]
				fmt.Fprintf(&text, " | %v", s)
				if fault == faults[1] {
					assert.GreaterOrEqual(t, 100*s.found, 95*s.changed, "%s, K = %d", fault, k)
					continue
				}
				assert.Equal(t, s.changed, s.found, "%s, K = %d", fault, k)
			}
		}
	}
	t.Logf("%s of %dx%d elements%s", strings.Join(faults, " | "), size, size, text.String())
}
