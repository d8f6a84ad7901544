package fp8_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

// TestDivisor: values are divided by Divisor as they would be by a stored scale of that
// size, and codes stand for multiples of what is stored.
func TestDivisor(t *testing.T) {
	forLevels(t, func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(16, 16))
		src := make([]float32, 1000)
		for i := range src {
			src[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(20)))
		}
		half := make([]fp8.BFloat16, len(src))
		double := make([]float64, len(src))
		for i, x := range src {
			half[i], double[i] = fp8.BFloat16FromFloat32(x), float64(x)
		}
		for _, f := range fp8.Formats() {
			compareDivisor(t, r, src, f)
			compareDivisor(t, r, half, f)
			compareDivisor(t, r, double, f)
		}
	})
}

func compareDivisor[T fp8.Float](t *testing.T, r *rand.Rand, src []T, f fp8.Format) {
	const block = 16
	n := (len(src) + block - 1) / block
	with, plain := make([]fp8.Scale, n), make([]fp8.Scale, n)
	for i := range with {
		d := float32(math.Ldexp(1+r.Float64(), r.IntN(12)-2))
		with[i], plain[i] = fp8.Scale{Stored: 1 + r.Float32(), Divisor: d}, fp8.Scale{Stored: d}
	}
	codes := func(scales []fp8.Scale) ([]byte, fp8.Stats) {
		var st fp8.Stats
		e := fp8.NewEncoder(f, fp8.Policy{})
		row, each := make([]byte, len(src)), make([]byte, len(src))
		var b fp8.BlockScales
		b.Set(scales, block)
		fp8.EncodeBlocks(&e, row, src, &b, 0, &st)
		for i, s := range scales {
			lo, hi := i*block, min((i+1)*block, len(src))
			fp8.EncodeBlock(&e, each[lo:hi], src[lo:hi], s, 0, nil)
		}
		require.Equal(t, each, row)
		return row, st
	}
	got, gotStats := codes(with)
	want, wantStats := codes(plain)
	require.Equal(t, want, got, "%v %T", f, src)
	require.Equal(t, wantStats, gotStats, "%v %T", f, src)

	// What a Detail calls an error is judged by what is stored.
	st := fp8.Stats{Detail: new(fp8.Detail)}
	code := make([]byte, 1)
	fp8.EncodeScaled(code, []float32{3}, f, fp8.Policy{}, fp8.Scale{Stored: 0.5, Divisor: 3}, 0, &st)
	require.Equal(t, float32(1), f.Float32(code[0]))
	require.Equal(t, fmt.Sprint(2.5*2.5), fmt.Sprint(st.Detail.SquaredError))

	// A Multiplier goes before a Divisor.
	fp8.EncodeScaled(code, []float32{0.75}, f, fp8.Policy{}, fp8.Scale{Stored: 1, Multiplier: 2, Divisor: 3}, 0, nil)
	require.Equal(t, float32(1.5), f.Float32(code[0]))
}
