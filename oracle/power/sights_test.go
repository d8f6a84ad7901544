package power

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestSights puts faults into products, and demands that those are seen that are said to
// be.
func TestSights(t *testing.T) {
	t.Run("float32", testSights[float32])
	t.Run("bfloat16", testSights[fp8.BFloat16])
}

func testSights[T gemm.Output](t *testing.T) {
	const m, n, k = 40, 48, 1024
	a, b := normalPair(m, n, k, tensor.Block{}, 7, 8)
	honest := octavo[T](t, a, b)
	alarm := func(c []T) bool {
		r, err := Measure(t.Context(), c, nil, a, b, Options{})
		require.NoError(t, err)
		return r.Alarm
	}
	r, err := Measure(t.Context(), honest, nil, a, b, Options{})
	require.NoError(t, err)
	require.False(t, r.Alarm)
	require.Len(t, r.Sights, 5)
	exact := make([]float32, m*n)
	require.NoError(t, oracle.Exact(t.Context(), exact, a, b, oracle.Options{}))

	// The smallest error of an element, of the mean magnitude.
	one, squares := r.Sights[0], 0.0
	for _, x := range exact {
		squares += float64(x) * float64(x)
	}
	rms := math.Sqrt(squares / (m * n))
	require.Equal(t, "the root mean square of C", one.Unit)
	seenFrom := func(factor float64) bool {
		for at, x := range exact {
			if d := math.Abs(float64(x)) / rms; d > 0.75 && d < 0.85 {
				c := slices.Clone(honest)
				c[at] = number.From[T](x + float32(factor*float64(one.Least)*rms))
				return alarm(c)
			}
		}
		panic("no such element")
	}
	require.True(t, seenFrom(1.5))
	require.False(t, seenFrom(0.2))

	scaled := func(factor float64) bool {
		c := make([]T, m*n)
		for i, x := range exact {
			c[i] = number.From[T](float32(float64(x) * (1 - factor*float64(r.Sights[1].Least))))
		}
		return alarm(c)
	}
	require.True(t, scaled(1.5))
	require.False(t, scaled(0.2))

	random := rand.New(rand.NewPCG(9, 0))
	place := 0
	seen := func(sight Sight, tries int, inject func(x *tensor.Tensor, codes []byte), first bool) {
		if testing.Short() {
			tries = 5
		}
		found, changes := 0, 0
		for range tries {
			x, y := a, b
			if first {
				x = changed(a, func(codes []byte) { inject(a, codes) })
			} else {
				y = changed(b, func(codes []byte) { inject(b, codes) })
			}
			c := octavo[T](t, x, y)
			changes++
			if alarm(c) {
				found++
			}
		}
		said, is := float64(sight.Seen)/float64(sight.Tried), float64(found)/float64(changes)
		t.Logf("%s: %.2f, %.2f injected", sight.Fault, said, is)
		require.GreaterOrEqual(t, is, said-2*math.Sqrt(0.25/float64(tries)), sight.Fault)
		require.LessOrEqual(t, is, said+0.35, sight.Fault)
	}
	seen(r.Sights[2], 6, func(x *tensor.Tensor, codes []byte) {
		place = random.IntN(k)
		for i := place; i < len(codes); i += k {
			codes[i] = 0
		}
	}, true)
	flip := func(x *tensor.Tensor, codes []byte) {
		for {
			place = random.IntN(len(codes))
			if !x.Format.IsNaN(codes[place] ^ 1) {
				codes[place] ^= 1
				return
			}
		}
	}
	seen(r.Sights[3], 40, flip, true)
	seen(r.Sights[4], 40, flip, false)
}

// TestSightsOfSubnormals demands that an error of one element that is less than the
// distance of two subnormals of float16 is not said to be seen.
func TestSightsOfSubnormals(t *testing.T) {
	a, b := normalPair(20, 20, 64, tensor.Block{}, 9, 10)
	exact := make([]float32, 400)
	require.NoError(t, oracle.Exact(t.Context(), exact, a, b, oracle.Options{}))
	squares := 0.0
	for _, x := range exact {
		squares += float64(x) * float64(x)
	}
	// So that the root mean square of C is 16 subnormals.
	scale := 16 * 0x1p-24 / math.Sqrt(squares/400)
	a.Scales[0] = float32(float64(a.Scales[0]) * scale)
	r, err := Measure(t.Context(), octavo[float16.Float16](t, a, b), nil, a, b, Options{})
	require.NoError(t, err)
	require.False(t, r.Alarm)
	require.Equal(t, "the root mean square of C", r.Sights[0].Unit)
	require.InDelta(t, 1./16, float64(r.Sights[0].Least), 1./1000)
}

// TestSaturated has an element beyond the range of float16, which the kernel saturates:
// the others are judged as without it.
func TestSaturated(t *testing.T) {
	a, b := normalPair(60, 40, 256, tensor.Block{}, 11, 12)
	bias := make([]float32, 40)
	bias[3] = 70000
	c := octavo[float32](t, a, b)
	got := make([]float16.Float16, len(c))
	for i, x := range c {
		got[i] = number.From[float16.Float16](x)
		if i%40 == 3 {
			got[i] = float16.Frombits(0x7BFF)
			continue
		}
		got[i] = next(got[i], -1)
	}
	r, err := Measure(t.Context(), got, nil, a, b, Options{Bias: bias})
	require.NoError(t, err)
	for _, x := range r.Tests {
		require.True(t, number.IsFinite(float64(x.Score)), x.Name)
		if x.Name == "all of C" {
			require.True(t, x.Alarm)
		}
	}
	require.True(t, r.Alarm)
}

// TestEffect compares the effect of changes with its definition, of an element that rounds
// in steps of three times its spread.
func TestEffect(t *testing.T) {
	p := &population{m: 1, n: 1, exact: []float32{0}, sigma: []float64{1}, spread: []float64{2}, ties: &ties{step: []float64{-3}}}
	var e effect
	e.add(p, 0, 4) // two times the spread: every other time by three times
	require.Equal(t, effect{signal: 2, squares: 6, largest: 0}, e)
	e.add(p, 0, 8)
	require.Equal(t, effect{signal: 6, squares: 22, largest: 2}, e)
}

// TestSeen has a fault that the errors of a correct kernel hide.
func TestSeen(t *testing.T) {
	e := effect{signal: 20, squares: 9, allowed: 1, largest: 5}
	// 20 - 1 - 2.33·4 is 9.68, and 5 the root of 9 + 16.
	require.True(t, e.seen(16, 1.93, 9))
	require.False(t, e.seen(16, 1.94, 9))
	require.True(t, e.seen(0, 6.3, 9)) // 19 and 3
	require.False(t, e.seen(0, 6.4, 9))
	require.True(t, e.seen(16, 100, 2.66)) // an element by itself
	require.False(t, e.seen(16, 100, 2.68))
	require.False(t, (&effect{signal: 1, allowed: 2}).seen(0, 1, 9))
}

// TestShrinking demands that what all of C is off by, at the least, is seen by one of two
// statistics with a probability of 99 in 100.
func TestShrinking(t *testing.T) {
	p := &population{
		m: 1, n: 3, exact: []float32{300, -500, 7}, sigma: []float64{1, 1, 0}, spread: []float64{2, 4, 0},
		shared: []float64{0.5, 0.25, 8}, ties: &ties{step: []float64{-3, 2, 0}, near: [][]int{{0, 1}}},
	}
	const all = 11.
	x := float64(p.shrinking(nil, &norms{all: all}, defaultRate).Least)
	const signal = 150. + 125
	const allowed = 0.75 + 5 // a tie is 3 toward zero, another 2
	const steps = 150*3 + 125*2
	lambda := math.Sqrt(2*math.Log(2*8*2/defaultRate)) + 2.33
	require.InEpsilon(t, lambda*math.Sqrt(all+x*steps), x*signal-allowed, 1e-12)
}
