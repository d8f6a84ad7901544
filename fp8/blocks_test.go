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
)

// blockScales returns a scale for each block: mostly of one kind, as a recipe
// gives, now and then of the other, 0, infinite or NaN.
func blockScales(r *rand.Rand, n int) []fp8.Scale {
	odd := []fp8.Scale{{}, {Stored: 3}, {Stored: float32(math.Inf(1))}, {Stored: float32(math.NaN()), Multiplier: 1}, {Stored: 2, Multiplier: float32(math.Inf(1))}}
	scales := make([]fp8.Scale, n)
	divide := r.IntN(2) == 0
	for i := range scales {
		s := float32(math.Ldexp(1+r.Float64(), r.IntN(40)-20))
		scales[i] = fp8.Scale{Stored: s}
		if !divide {
			scales[i].Multiplier = 1 / s
		}
		if r.IntN(60) == 0 {
			scales[i] = odd[r.IntN(len(odd))]
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
				block := []int{1, 5, 16, 32, 48, 128}[r.IntN(6)]
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
	want, wantStats := make([]byte, len(src)), fp8.Stats{}
	wantAmax, wantNaN := make([]float32, len(scales)), make([]bool, len(scales))
	at(cpu.Generic, func() error {
		for i, s := range scales {
			lo, hi := i*block, min((i+1)*block, len(src))
			fp8.EncodeScaled(want[lo:hi], src[lo:hi], f, p, s, first+uint64(lo), &wantStats)
			wantAmax[i], wantNaN[i] = fp8.Amax(src[lo:hi])
		}
		return nil
	})
	return at(level, func() error {
		got, stats := make([]byte, len(src)), fp8.Stats{}
		amax, nan := make([]float32, len(scales)), make([]bool, len(scales))
		e := fp8.NewEncoder(f, p)
		fp8.EncodeBlocks(&e, got, src, scales, block, first, &stats)
		fp8.AmaxBlocks(amax, nan, src, block)
		switch {
		case !slices.Equal(got, want):
			return fmt.Errorf("%v, blocks of %d: codes differ", f, block)
		case stats != wantStats:
			return fmt.Errorf("%v, blocks of %d: stats are %+v, want %+v", f, block, stats, wantStats)
		case !slices.Equal(amax, wantAmax) || !slices.Equal(nan, wantNaN):
			return fmt.Errorf("blocks of %d: amax is %v %v, want %v %v", block, amax, nan, wantAmax, wantNaN)
		}
		return nil
	})
}

func TestBlocksOfOtherTypes(t *testing.T) {
	src := []float32{1, -2, 3, 400, 0.5, 6, -7}
	scales := []fp8.Scale{{}, {Stored: 2, Multiplier: 0.5}, {Stored: 4}}
	e := fp8.NewEncoder(fp8.E4M3, fp8.Policy{})
	want := make([]byte, 7)
	fp8.EncodeBlocks(&e, want, src, scales, 3, 0, nil)
	half, brain := make([]float16.Float16, 7), make([]fp8.BFloat16, 7)
	for i, v := range src {
		half[i], brain[i] = float16.Fromfloat32(v), fp8.BFloat16FromFloat32(v)
	}
	got := make([]byte, 7)
	fp8.EncodeBlocks(&e, got, half, scales, 3, 0, nil)
	require.Equal(t, want, got)
	fp8.EncodeBlocks(&e, got, brain, scales, 3, 0, nil)
	require.Equal(t, want, got)
	amax, nan := make([]float32, 3), make([]bool, 3)
	fp8.AmaxBlocks(amax, nan, half, 3)
	require.Equal(t, []float32{3, 400, 7}, amax)
}

func TestBlocksMisuse(t *testing.T) {
	e := fp8.NewEncoder(fp8.E4M3, fp8.Policy{})
	src := make([]float32, 5)
	const few = "fp8: fewer scales or places for amax than blocks"
	require.PanicsWithValue(t, few, func() { fp8.EncodeBlocks(&e, make([]byte, 5), src, make([]fp8.Scale, 2), 2, 0, nil) })
	require.PanicsWithValue(t, few, func() { fp8.AmaxBlocks(make([]float32, 3), make([]bool, 2), src, 2) })
	require.PanicsWithValue(t, "fp8: destination shorter than source", func() { fp8.EncodeBlocks(&e, make([]byte, 4), src, make([]fp8.Scale, 3), 2, 0, nil) })
}
