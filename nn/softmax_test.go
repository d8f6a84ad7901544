package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/elementary"
)

// definedSoftmax is the softmax of scale·row in float32, and the logarithm of the
// sum of the exponentials: every operation rounded, sums in order.
func definedSoftmax(row []float32, scale float32) (p []float32, logSum float32) {
	largest := slices.Max(row)
	var sum float32
	for _, v := range row {
		e := elementary.Exp(float32(float32(v-largest) * scale))
		p = append(p, e)
		sum = float32(sum + e)
	}
	inverse := 1 / sum
	for i, e := range p {
		p[i] = float32(e * inverse)
	}
	return p, float32(largest + elementary.Log(sum))
}

// scores returns random rows of all lengths of interest, one in three with special
// values.
func scores(check func(row []float32)) {
	r := rand.New(rand.NewPCG(1, 1))
	special := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32, 0, -60}
	for n := 1; n < 300; n++ {
		for trial := range 6 {
			row := make([]float32, n)
			for i := range row {
				row[i] = float32(r.NormFloat64() * 8)
				if trial > 3 && r.IntN(n) < 2 {
					row[i] = special[r.IntN(len(special))]
				}
			}
			check(row)
		}
	}
}

// atLevels runs a test at every level of this machine.
func atLevels(t *testing.T, test func(t *testing.T)) {
	for _, l := range cpu.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			restore, err := cpu.Force(l)
			require.NoError(t, err)
			defer restore()
			test(t)
		})
	}
}

func TestSoftmaxBits(t *testing.T) {
	same := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y }
	atLevels(t, func(t *testing.T) {
		scores(func(row []float32) {
			const scale = 0.3535
			want, _ := definedSoftmax(row, scale)
			_, wantSum := definedSoftmax(row, 1)
			if sum := logSumExp(row, sums{}); !same(sum, wantSum) {
				t.Fatalf("logSumExp of %v: %v, want %v", row, sum, wantSum)
			}
			got := slices.Clone(row)
			softmax(got, scale, noSink, sums{})
			if !slices.EqualFunc(got, want, same) {
				t.Fatalf("softmax of %v: %v, want %v", row, got, want)
			}
		})
	})
}

// TestMaximum has every value of a row be the largest, and a NaN everywhere.
func TestMaximum(t *testing.T) {
	for n := 1; n < 20; n++ {
		for at := range n {
			row := slices.Repeat([]float32{-3}, n)
			row[at] = -2
			require.Equal(t, float32(-2), maximum(row), "%d of %d", at, n)
			row[at] = float32(math.NaN())
			require.True(t, math.IsNaN(float64(maximum(row))), "%d of %d", at, n)
			row[at] = float32(math.Inf(-1))
			require.Equal(t, slices.Max(row), maximum(row), "%d of %d", at, n)
		}
	}
}

// TestCrossEntropyGradient compares with the definition in float64.
func TestCrossEntropyGradient(t *testing.T) {
	const rows, vocab, scale = 3, 37, 4
	logits, dLogits := randoms(2, rows*vocab), make([]float32, rows*vocab)
	targets := []int32{0, 17, vocab - 1}
	var c CrossEntropy
	_, err := c.Forward(t.Context(), logits, targets, vocab)
	require.NoError(t, err)
	require.NoError(t, c.Backward(t.Context(), dLogits, scale))
	for row, target := range targets {
		logits := logits[row*vocab : (row+1)*vocab]
		var sum float64
		for _, v := range logits {
			sum += math.Exp(float64(v))
		}
		for i, v := range logits {
			want := math.Exp(float64(v)) / sum
			if int32(i) == target {
				want--
			}
			require.InDelta(t, want*scale/rows, dLogits[row*vocab+i], 1e-6, "row %d, logit %d", row, i)
		}
	}
}
