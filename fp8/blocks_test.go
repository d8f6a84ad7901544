package fp8_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// blockScales returns a scale for each block: mostly of one kind, as a recipe
// gives, now and then of another, which for many rows is one alone.
func blockScales(r *rand.Rand, n int) []fp8.Scale {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	odd := []fp8.Scale{
		{}, {Stored: 3}, {Stored: inf}, {Stored: nan, Multiplier: 1}, {Stored: 2, Multiplier: inf},
		{Stored: -3}, {Stored: 2, Multiplier: -0.5}, {Stored: nan, Multiplier: 2}, {Stored: 0.1, Multiplier: 0x1p120},
	}
	scales := make([]fp8.Scale, n)
	divide := r.IntN(2) == 0
	only := r.IntN(2 * len(odd))
	for i := range scales {
		s := float32(math.Ldexp(1+r.Float64(), r.IntN(40)-20))
		scales[i] = fp8.Scale{Stored: s}
		if !divide {
			scales[i].Multiplier = 1 / s
		}
		if r.IntN(40) == 0 {
			scales[i] = odd[r.IntN(len(odd))]
			if only < len(odd) {
				scales[i] = odd[only]
			}
		}
	}
	return scales
}

// blockValues are of all magnitudes; special ones come now and then.
func blockValues(r *rand.Rand, n int) []float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)),
		float32(math.NaN()), math.Float32frombits(0xFF800001), math.SmallestNonzeroFloat32, math.MaxFloat32}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(24)-12))
		if r.IntN(200) == 0 {
			v[i] = special[r.IntN(len(special))]
		}
	}
	return v
}

// TestBlocks compares rows of blocks, at every level, with the blocks one by one
// at the generic level.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 400
	if testing.Short() {
		rounds = 80
	}
	for _, level := range cpu.Levels() {
		t.Run(level.String(), func(t *testing.T) {
			for range rounds {
				block := []int{1, 5, 16, 32, 48, 128, 1040}[r.IntN(7)]
				src := blockValues(r, r.IntN(70*block+3))
				p := fp8.Policy{Overflow: fp8.Overflow(r.IntN(2)), Inf: fp8.Inf(r.IntN(2)), NaN: fp8.NaN(r.IntN(2)), Rounding: fp8.Rounding(r.IntN(3)), Seed: r.Uint64()}
				f := fp8.Formats()[r.IntN(4)]
				first := r.Uint64N(1 << 33)
				require.NoError(t, differBlocks(level, src, f, p, blockScales(r, (len(src)+block-1)/block), block, first))
			}
		})
	}
}

func differBlocks(level cpu.Level, src []float32, f fp8.Format, p fp8.Policy, scales []fp8.Scale, block int, first uint64) error {
	var detail fp8.Detail
	want, wantStats := make([]byte, len(src)), fp8.Stats{Detail: &detail}
	wantAmax, wantEach := make([]float32, len(scales)), make([]fp8.Stats, len(scales))
	at(cpu.Generic, func() error {
		for i, s := range scales {
			lo, hi := i*block, min((i+1)*block, len(src))
			fp8.EncodeScaled(want[lo:hi], src[lo:hi], f, p, s, first+uint64(lo), &wantStats)
			fp8.EncodeScaled(want[lo:hi], src[lo:hi], f, p, s, first+uint64(lo), &wantEach[i])
			a, nan := fp8.Amax(src[lo:hi])
			if wantAmax[i] = max(a, 0.5); nan {
				wantAmax[i] = float32(math.NaN())
			}
		}
		wantStats.Detail = nil
		return nil
	})
	return at(level, func() error {
		got, stats := make([]byte, len(src)), fp8.Stats{}
		amax := slices.Repeat([]float32{0.5}, len(scales)) // to be raised
		e := fp8.NewEncoder(f, p)
		var b fp8.BlockScales
		b.Set(scales, block)
		fp8.EncodeBlocks(&e, got, src, &b, first, &stats)
		fp8.AmaxBlocks(amax, src, block)
		switch {
		case !slices.Equal(got, want):
			return fmt.Errorf("%v, blocks of %d: codes differ", f, block)
		case stats != wantStats:
			return fmt.Errorf("%v, blocks of %d: stats are %+v, want %+v", f, block, stats, wantStats)
		}
		if err := differEach(&e, got, src, &b, block, first, wantEach); err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("%v, blocks of %d, counted one by one: %w, codes are equal: %v", f, block, err, slices.Equal(got, want))
		}
		detailed := fp8.Stats{Detail: new(fp8.Detail)}
		fp8.EncodeBlocks(&e, got, src, &b, first, &detailed)
		if !sameDetail(detailed.Detail, &detail) {
			return fmt.Errorf("%v, blocks of %d: squared error %v of %v, want %v of %v", f, block,
				detailed.Detail.SquaredError, detailed.Detail.SquaredSum, detail.SquaredError, detail.SquaredSum)
		}
		if err := differFactors(&e, got, src, scales, block, first, wantStats); err != nil {
			return fmt.Errorf("%v, blocks of %d: %w", f, block, err)
		}
		for i, a := range amax {
			if a != wantAmax[i] && (a == a || wantAmax[i] == wantAmax[i]) {
				return fmt.Errorf("blocks of %d: amax of block %d is %v, want %v", block, i, a, wantAmax[i])
			}
		}
		return nil
	})
}

// differEach encodes in two parts, the second of which begins with a block, and looks at the
// stats of each block.
func differEach(e *fp8.Encoder, got []byte, src []float32, b *fp8.BlockScales, block int, first uint64, want []fp8.Stats) error {
	clear(got)
	stats := make([]fp8.Stats, len(want))
	half := len(want) / 2
	fp8.EncodeBlocksStats(e, got, src[:half*block], b, 0, first, stats)
	fp8.EncodeBlocksStats(e, got[half*block:], src[half*block:], b, half, first+uint64(half*block), stats[half:])
	for i := range want {
		if stats[i] != want[i] {
			return fmt.Errorf("stats of block %d are %+v, want %+v", i, stats[i], want[i])
		}
	}
	return nil
}

// differFactors encodes under the scales, where all multiply or all divide, as factors. Got
// are the codes.
func differFactors(e *fp8.Encoder, got []byte, src []float32, scales []fp8.Scale, block int, first uint64, want fp8.Stats) error {
	stored, factors := make([]float32, len(scales)), make([]float32, len(scales))
	divide := len(scales) > 0 && scales[0].Multiplier == 0
	for i, s := range scales {
		if stored[i], factors[i] = s.Stored, s.Multiplier; s.Multiplier == 0 {
			factors[i] = s.Stored
		}
		if (s.Multiplier == 0) != divide || factors[i] == 0 {
			return nil
		}
	}
	var b fp8.BlockScales
	var stats fp8.Stats
	b.SetFactors(stored, factors, divide, block)
	codes := make([]byte, len(src))
	fp8.EncodeBlocks(e, codes, src, &b, first, &stats)
	if !slices.Equal(codes, got) || stats != want {
		return fmt.Errorf("with factors, codes or stats differ: %+v, want %+v", stats, want)
	}
	return nil
}

// TestFactorScale: dividing by infinity is multiplying by 0, and the other way round.
func TestFactorScale(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	values := []float32{0, 1, -3, math.MaxFloat32, inf, -inf, nan}
	for _, divide := range []bool{false, true} {
		for _, factor := range []float32{0, 1, 0.3, 0x1p-130, 0x1p126, inf, nan} {
			for _, x := range values {
				y := x * factor
				if divide {
					y = x / factor
				}
				if math.IsInf(float64(y), 0) && !math.IsInf(float64(x), 0) {
					y = float32(math.Copysign(math.MaxFloat32, float64(y)))
				}
				p := fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate, NaN: fp8.NaNCanonical}
				var code [1]byte
				fp8.EncodeScaled(code[:], []float32{x}, fp8.E5M2, p, fp8.FactorScale(2, factor, divide), 0, nil)
				require.Equal(t, fp8.EncodeOne(y, fp8.E5M2, p), code[0], "%v, %v, divide %t", x, factor, divide)
				require.Equal(t, float32(2), fp8.FactorScale(2, factor, divide).Stored)
			}
		}
	}
}

// sameDetail compares to the bit, but for a NaN's.
func sameDetail(a, b *fp8.Detail) bool {
	same := func(x, y float64) bool { return x == y || x != x && y != y }
	return same(a.SquaredError, b.SquaredError) && same(a.SquaredSum, b.SquaredSum) && a.Exponents == b.Exponents
}

// TestBlocksOfOtherTypes compares values of 16 bits, and float64, with the same
// as float32.
func TestBlocksOfOtherTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, block := range []int{1, 3, 16, 48, 128, 511, 512, 513, 1024} {
		for _, n := range []int{0, 1, 7, 100, 511, 512, 513, 1100, 2048} {
			scales := blockScales(r, (n+block-1)/block)
			half, brain, double := make([]float16.Float16, n), make([]fp8.BFloat16, n), make([]float64, n)
			halves, brains := make([]float32, n), make([]float32, n)
			for i, v := range blockValues(r, n) {
				half[i], brain[i] = float16.Fromfloat32(v), fp8.BFloat16FromFloat32(v)
				halves[i], brains[i] = half[i].Float32(), brain[i].Float32()
				double[i] = float64(halves[i])
			}
			sameBlocks(t, halves, half, scales, block)
			sameBlocks(t, brains, brain, scales, block)
			sameBlocks(t, halves, double, scales, block)
		}
	}
}

func sameBlocks[T fp8.Float](t *testing.T, values []float32, src []T, scales []fp8.Scale, block int) {
	want, wantStats, wantAmax := encodeBlocks(values, scales, block)
	got, stats, amax := encodeBlocks(src, scales, block)
	require.Equal(t, want, got, "%T, blocks of %d", src, block)
	if stats != wantStats || fmt.Sprint(amax) != fmt.Sprint(wantAmax) {
		t.Fatalf("%T, blocks of %d: %+v %v, want %+v %v", src, block, stats, amax, wantStats, wantAmax)
	}
}

func encodeBlocks[T fp8.Float](src []T, scales []fp8.Scale, block int) (codes []byte, st fp8.Stats, amax []float32) {
	e := fp8.NewEncoder(fp8.E5M2, fp8.Policy{})
	var b fp8.BlockScales
	b.Set(scales, block)
	codes, amax = make([]byte, len(src)), make([]float32, len(scales))
	fp8.EncodeBlocks(&e, codes, src, &b, 0, &st)
	fp8.AmaxBlocks(amax, src, block)
	return codes, st, amax
}

// TestAmaxOfManyBlocks has more blocks than a kernel is given at a time.
func TestAmaxOfManyBlocks(t *testing.T) {
	src := blockValues(rand.New(rand.NewPCG(7, 8)), 200_000)
	for _, block := range []int{1, 16, 48} {
		amax := make([]float32, (len(src)+block-1)/block)
		fp8.AmaxBlocks(amax, src, block)
		for i, got := range amax {
			want, nan := fp8.Amax(src[i*block : min((i+1)*block, len(src))])
			require.Equal(t, nan, got != got)
			require.True(t, nan || got == want, "blocks of %d: amax of block %d is %v, want %v", block, i, got, want)
		}
	}
}

func TestBlocksMisuse(t *testing.T) {
	e := fp8.NewEncoder(fp8.E4M3, fp8.Policy{})
	src := make([]float32, 5)
	const few = "fp8: fewer scales or places for amax than blocks"
	encode := func(codes, scales int) func() {
		var b fp8.BlockScales
		b.Set(make([]fp8.Scale, scales), 2)
		return func() { fp8.EncodeBlocks(&e, make([]byte, codes), src, &b, 0, nil) }
	}
	require.PanicsWithValue(t, few, encode(5, 2))
	require.PanicsWithValue(t, few, func() { fp8.AmaxBlocks(make([]float32, 2), src, 2) })
	require.PanicsWithValue(t, "fp8: destination shorter than source", encode(4, 3))
	count := func(codes, at, stats int) func() {
		var b fp8.BlockScales
		b.Set(make([]fp8.Scale, 4), 2)
		return func() { fp8.EncodeBlocksStats(&e, make([]byte, codes), src, &b, at, 0, make([]fp8.Stats, stats)) }
	}
	require.NotPanics(t, count(5, 1, 3))
	require.PanicsWithValue(t, few, count(5, 2, 3))
	require.PanicsWithValue(t, few, count(5, -1, 3))
	require.PanicsWithValue(t, few, count(5, 0, 2))
	require.PanicsWithValue(t, "fp8: destination shorter than source", count(4, 0, 3))
}

// TestAmaxBlocksNaN has NaNs of all kinds among the values and among the magnitudes
// that are raised: every NaN becomes the canonical one, at every level.
func TestAmaxBlocksNaN(t *testing.T) {
	for _, level := range cpu.Levels() {
		kernelstest.At(t, level, func(t *testing.T) {
			for _, block := range []int{1, 5, 16, 32, 1040} {
				for _, bits := range []uint32{0x7F800001, 0x7FC00001, 0x7FFFFFFF, 0xFF800001, 0xFFC00000, 0xFFFFFFFF} {
					for place := range 40 {
						src, amax := make([]float32, 70*block), make([]float32, 70)
						src[place*block+place%block] = math.Float32frombits(bits)
						amax[place+20] = math.Float32frombits(bits &^ (1 << 31))
						fp8.AmaxBlocks(amax, src, block)
						for i, a := range amax {
							want := uint32(0)
							if i == place || i == place+20 {
								want = 0x7FC00000
							}
							if got := math.Float32bits(a); got != want {
								t.Fatalf("blocks of %d, %08x at %d, block %d: %08x, want %08x", block, bits, place, i, got, want)
							}
						}
					}
				}
			}
		})
	}
}
