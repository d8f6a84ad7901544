package fouroversix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "fouroversix.")) }

// nearest is the magnitude of E2M1 that is nearest to y, of two the one with the even code:
// 0, 1, 2 and 4.
func nearest(y float32) float32 {
	switch {
	case y <= 0.25:
		return 0
	case y < 0.75:
		return 0.5
	case y <= 1.25:
		return 1
	case y < 1.75:
		return 1.5
	case y <= 2.5:
		return 2
	case y < 3.5:
		return 3
	case y <= 5:
		return 4
	}
	return 6 // NaN too
}

// definition is the errors of one row under one scale.
func definition(x []float32, stored, multiplier float32, e *Error) (loss float32) {
	for _, x := range x {
		x = float32(math.Abs(float64(x)))
		v := float32(nearest(float32(x*multiplier)) * stored)
		v = float32(v*e.Amax) / e.Denominator
		d := float32(math.Abs(float64(v - float32(x*e.Unit))))
		switch e.Rule {
		case Absolute:
			loss += d
		case Square:
			loss += float32(d * d)
		case Largest:
			if d > loss || d != d {
				loss = d
			}
			if loss != loss {
				return loss
			}
		}
	}
	return loss
}

// alike tells numbers apart by their bits and no NaN from another.
func alike(x float32) uint32 {
	if x != x {
		return 0x7FC00000
	}
	return math.Float32bits(x)
}

var edges = []float32{
	0, math.SmallestNonzeroFloat32, 0x1p-126, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7, 448,
	math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()),
}

// value draws what lies about 1, at or beside a tie, or at the end of what there is.
func value(r *rand.Rand) float32 {
	x := float32(math.Exp2(6*r.Float64() - 3))
	switch r.IntN(40) {
	case 0:
		x = edges[r.IntN(len(edges))]
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		x = edges[3+r.IntN(7)]
		x = math.Float32frombits(math.Float32bits(x) + uint32(r.IntN(3)) - 1)
	}
	return x
}

func TestRows(t *testing.T) {
	kernelstest.At(t, cpu.Generic, testRows)
	kernelstest.Compare(t, "fouroversix.Rows", func(t *testing.T, _ cpu.Level) { testRows(t) })
}

func testRows(t *testing.T) {
	const stride = 19
	r := rand.New(rand.NewPCG(16, 46))
	for trial := range 600 {
		n, width := 1+r.IntN(40), Size
		if r.IntN(4) == 0 {
			width = r.IntN(Size + 1)
		}
		src, scales := make([]float32, n*stride), make([]Scales, n)
		for i := range src {
			src[i] = value(r) * float32(1-2*r.IntN(2))
		}
		e := Error{Rule: Rule(trial % 3), Amax: value(r), Denominator: 2688, Unit: 1}
		if r.IntN(3) == 0 {
			e.Amax, e.Denominator, e.Unit = 1, 1, value(r)
		}
		for i := range scales {
			scales[i] = Scales{[2]float32{value(r), value(r)}, [2]float32{1, value(r)}}
		}
		if r.IntN(4) == 0 {
			scales = scales[:1]
		}
		guarded := make([]Losses, n+2)
		Rows(guarded[1:n+1], src, stride, width, scales, &e)
		require.Zero(t, guarded[0])
		require.Zero(t, guarded[n+1])
		for i, got := range guarded[1 : n+1] {
			s := scales[min(i, len(scales)-1)]
			for k := range got {
				want := definition(src[i*stride:][:width], s.Stored[k], s.Multiplier[k], &e)
				require.Equal(t, alike(want), alike(got[k]),
					"row %d of %d, %d values, scale %d of %v, %+v", i, n, width, k, s, e)
			}
		}
	}
}

// TestNaNProducts: 0 times an infinity is a NaN, whose sign processors choose, and is rounded
// to 6.
func TestNaNProducts(t *testing.T) {
	kernelstest.AtLevels(t, "fouroversix.Rows", func(t *testing.T, _ cpu.Level) {
		inf := float32(math.Inf(1))
		src := make([]float32, Size)
		scales := []Scales{{[2]float32{0.5, 0.25}, [2]float32{inf, 1}}}
		for rule, want := range []Losses{{48, 0}, {144, 0}, {3, 0}} {
			var got [1]Losses
			Rows(got[:], src, Size, Size, scales, &Error{Rule(rule), 1, 1, 1})
			require.Equal(t, want, got[0])
		}
	})
}

func TestMisuse(t *testing.T) {
	x, s := make([]float32, 40), make([]Scales, 3)
	for i, f := range []func(){
		func() { Rows(make([]Losses, 3), x, 16, 16, s, &Error{}) },
		func() { Rows(make([]Losses, 2), x, -1, 16, s, &Error{}) },
		func() { Rows(make([]Losses, 2), x, 1, 17, s, &Error{}) },
		func() { Rows(make([]Losses, 2), x, 1, -1, s, &Error{}) },
		func() { Rows(make([]Losses, 3), x, 1, 1, s[:2], &Error{}) },
		func() { Rows(make([]Losses, 1), x, 1, 1, nil, &Error{}) },
	} {
		require.PanicsWithValue(t, short, f, fmt.Sprint(i))
	}
	Rows(nil, nil, 1, 1, nil, &Error{})
}
