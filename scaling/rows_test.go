package scaling

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestProductIsFinite: it is rounded before anything is subtracted from it.
func TestProductIsFinite(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 100 {
		x, y := r.Float32(), r.Float32()
		require.True(t, number.IsFinite(x*y), "%v and %v", x, y)
	}
	inf := float32(math.Inf(1))
	for _, x := range []float32{inf, -inf, float32(math.NaN()), math.MaxFloat32 * inf} {
		require.False(t, number.IsFinite(x))
	}
	require.True(t, number.IsFinite(-math.MaxFloat32))
}

// edges are amaxes from which scales may go another way.
func edges() []float32 {
	return []float32{0, math.SmallestNonzeroFloat32, 0x1p-127, 0x1p-126, 1e-30, 1e-12, 1e-4, 0.5, 1, 448, 57344, math.MaxFloat32, float32(math.Inf(1))}
}

// TestRows compares scales of blocks side by side with those of each alone: near the edges,
// at either end of each power of two and at random, and on either side of where a scale
// changes.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	amax := edges()
	for _, a := range edges() {
		for d := range uint32(5) {
			amax = append(amax, math.Float32frombits(max(math.Float32bits(a), 2)+d-2))
		}
	}
	for field := range uint32(255) {
		for _, bits := range []uint32{0, 1, 0x7FFFFE, 0x7FFFFF, r.Uint32N(1 << 23)} {
			amax = append(amax, math.Float32frombits(field<<23|bits))
		}
	}
	amax = slices.DeleteFunc(amax, func(a float32) bool { return a != a })
	for i := range profiles {
		tr := &profiles[i]
		if tr.delayed || tr.choice != nil {
			continue
		}
		for _, f := range fp8.Formats() {
			if !tr.profile.For(f) {
				continue
			}
			for _, source := range []float32{65504, 0x1.FEp127, math.MaxFloat32} {
				l := Recipe{Profile: tr.profile, Format: f}.limits(source)
				if tr.epsilon && r.IntN(2) == 0 {
					l.epsilon = 0.01
				}
				if tr.outer != nil {
					l.level = tr.outer.level([]float32{0, 1e-30, 1, 65504, float32(math.Inf(1))}[r.IntN(5)])
				}
				compareRow(t, tr, amax, l)
				compareRow(t, tr, borders(tr, l), l)
			}
		}
	}
}

// borders are the amaxes on either side of where the scales of a profile change within a
// power of two.
func borders(tr *traits, l limits) (amax []float32) {
	stored := func(bits uint32) uint32 {
		return math.Float32bits(tr.blockScale(math.Float32frombits(bits), false, l).Stored)
	}
	for field := range uint32(255) {
		lo, hi := field<<23, field<<23|0x7FFFFF
		if stored(lo) == stored(hi) {
			continue
		}
		for first := stored(lo); lo+1 < hi; {
			if middle := lo + (hi-lo)/2; stored(middle) == first {
				lo = middle
			} else {
				hi = middle
			}
		}
		for d := range uint32(4) {
			amax = append(amax, math.Float32frombits(max(lo, 1)+d-1))
		}
	}
	return amax
}

func compareRow(t *testing.T, tr *traits, amax []float32, l limits) {
	t.Helper()
	stored, factors := make([]float32, len(amax)), make([]float32, len(amax))
	compare := func(row string) {
		for i, a := range amax {
			s := tr.blockScale(a, false, l)
			want := sameEffect(s)
			got := sameEffect(fp8.FactorScale(stored[i], factors[i], tr.divide))
			if got != want {
				t.Fatalf("%s of %s, %+v, amax %v (%08x): %08x, want %08x", row, tr.profile, l, a, math.Float32bits(a), got, want)
			}
		}
	}
	tr.scaleRow(stored, factors, amax, l)
	compare("row")
	s := tr.steps(l)
	if tr.scaleFormat == tensor.E8M0Scales && s == nil {
		t.Fatalf("%s, %+v: no steps", tr.profile, l)
	}
	if s != nil {
		s.row(stored, factors, amax)
		compare("steps")
	}
}

// sameEffect are the bits of what s stores and of what it does: it multiplies by the first
// or divides by the second, which is 1 where it does not.
func sameEffect(s fp8.Scale) [3]uint32 {
	by, of := s.Multiplier, float32(1)
	if by == 0 {
		by, of = 1, s.Stored
		if s.Divisor != 0 {
			of = s.Divisor
		}
		if math.IsInf(float64(of), 0) {
			by, of = 0, 1
		}
	}
	return [3]uint32{math.Float32bits(s.Stored), math.Float32bits(by), math.Float32bits(of)}
}

// TestStepsEverywhere compares the steps of profiles with scales in E8M0 with their formulas at
// every amax, on all processors: only where OCTAVO_EXHAUSTIVE is 1.
func TestStepsEverywhere(t *testing.T) {
	if !testutil.Full() {
		t.Skip("OCTAVO_EXHAUSTIVE is not 1")
	}
	for i := range profiles {
		tr := &profiles[i]
		if tr.scaleFormat != tensor.E8M0Scales {
			continue
		}
		t.Run(string(tr.profile), func(t *testing.T) {
			const amaxes = 0x7F800001 // the last is infinity
			l := Recipe{Profile: tr.profile, Format: tr.profile.Recipe(Input).Format}.limits(math.MaxFloat32)
			s := tr.steps(l)
			var compared atomic.Int64
			parallel.For(amaxes, chunk, 0, func(lo, hi int) {
				for lo < hi && !t.Failed() {
					n := min(chunk, hi-lo)
					if bits, want, got := firstOther(tr, l, s, uint32(lo), n); want != got {
						t.Errorf("amax %v (%08x): %016x, want %016x", math.Float32frombits(bits), bits, got, want)
					}
					compared.Add(int64(n))
					lo += n
				}
			})
			if !t.Failed() {
				require.EqualValues(t, amaxes, compared.Load())
			}
		})
	}
}

// chunk is how many amaxes are compared at a time.
const chunk = 1 << 10

// firstOther returns the first of n amaxes, the bits of which follow each other, at which steps
// are not what their formula is, and both; or the same twice.
func firstOther(tr *traits, l limits, s *steps, first uint32, n int) (bits uint32, want, got uint64) {
	var amax, stored, factors [chunk]float32
	for i := range amax {
		amax[i] = math.Float32frombits(first + uint32(i))
	}
	s.row(stored[:n], factors[:n], amax[:n])
	for i, a := range amax[:n] {
		got := uint64(math.Float32bits(stored[i])) | uint64(math.Float32bits(factors[i]))<<32
		if want := bothBits(tr.scale(a, l), tr.divide); want != got {
			return math.Float32bits(a), want, got
		}
	}
	return 0, 0, 0
}
