package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// vectors are what a GPU returned for dot products of 32 pairs.
type vectors struct {
	format fp8.Format
	a, b   []byte
	c, d32 []float32
	d16    []float16.Float16
}

func readVectors(t testing.TB, chip string, f fp8.Format) vectors {
	suffix := map[fp8.Format]string{fp8.E4M3: "_e4m3", fp8.E5M2: "_e5m2"}[f]
	file, err := safetensors.Open(testutil.Shared(t, "silicon", chip+suffix+".safetensors"))
	require.NoError(t, err)
	defer file.Close()
	v := vectors{format: f}
	v.a, err = file.Bytes("a")
	require.NoError(t, err)
	v.b, err = file.Bytes("b")
	require.NoError(t, err)
	v.c, err = file.Float32s("c")
	require.NoError(t, err)
	v.d32, err = file.Float32s("d_f32")
	require.NoError(t, err)
	half, err := file.Bytes("d_f16")
	require.NoError(t, err)
	for i := 0; i < len(half); i += 2 {
		v.d16 = append(v.d16, float16.Frombits(uint16(half[i])|uint16(half[i+1])<<8))
	}
	require.Len(t, v.d32, 3500)
	require.Len(t, v.d16, 3500)
	return v
}

// float32Misses counts rows on which m is not the hardware. zero says that the
// hardware ignored c.
func (v *vectors) float32Misses(m Model, zero bool) (misses int) {
	for i, want := range v.d32 {
		c := v.c[i]
		if zero {
			c = 0
		}
		if got := m.Dot(v.a[32*i:32*i+32], v.b[32*i:32*i+32], v.format, v.format, c); math.Float32bits(got) != math.Float32bits(want) {
			misses++
		}
	}
	return misses
}

func (v *vectors) float16Misses(m Model) (misses int) {
	for i, want := range v.d16 {
		c := float16.Fromfloat32(v.c[i])
		if got := m.DotFloat16(v.a[32*i:32*i+32], v.b[32*i:32*i+32], v.format, v.format, c); got != want {
			misses++
		}
	}
	return misses
}

// A control is a change of a model that silicon must reject, or cannot.
type control struct {
	name   string
	change func(*Model)
}

var (
	shorterF   = control{"F-1", func(m *Model) { m.F-- }}
	longerF    = control{"F+1", func(m *Model) { m.F++ }}
	halfL      = control{"L/2", func(m *Model) { m.L /= 2 }}
	twiceL     = control{"2L", func(m *Model) { m.L *= 2 }}
	exactSum   = control{"exact sum", func(m *Model) { m.F = 40 }}
	fullOutput = control{"RZ-FP32", func(m *Model) { m.Keep = 23 }}
	moreOutput = control{"RZ-E8M14", func(m *Model) { m.Keep = 14 }}
	lessOutput = control{"RZ-E8M12", func(m *Model) { m.Keep = 12 }}
	swapped    = control{"other group first", func(m *Model) { m.First = ^m.First }}
	lowHigh    = control{"halves", func(m *Model) { m.First = 0x0000FFFF }}
	evenOdd    = control{"even and odd", func(m *Model) { m.First = 0x55555555 }}
	modulo8    = control{"i mod 8 < 4", func(m *Model) { m.First = 0x0F0F0F0F }}
	fusedC     = control{"c in the sum", func(m *Model) { m.Unit = Fused }}
	fusedC32   = control{"c in one sum of 32", func(m *Model) { m.Unit, m.L = Fused, 32 }}
)

// TestSilicon demands every row of every GPU, and that a neighbouring model has
// misses: each control in pinned pins a parameter.
func TestSilicon(t *testing.T) {
	groups := []control{shorterF, swapped, lowHigh, evenOdd, modulo8, fusedC}
	for _, test := range []struct {
		chip  string
		model Model
		half  bool
		zero  bool
		pins  []control
		loose []control
	}{
		{"ada", AdaMMA(), false, false, []control{shorterF, longerF, halfL, twiceL, exactSum, fullOutput, moreOutput, lessOutput}, nil},
		{"ada", AdaMMA(), true, false, []control{shorterF, longerF, halfL, twiceL, exactSum}, nil},
		{"h100", HopperWGMMA(), false, true, []control{shorterF, longerF, halfL, exactSum, fullOutput, moreOutput, lessOutput}, nil},
		{"h100", HopperMMA(), true, false, groups[1:], []control{shorterF, longerF}},
		{"b200", BlackwellMMA(), false, false, []control{fusedC, fusedC32}, []control{shorterF, longerF, swapped, lowHigh, evenOdd}},
		{"b200", BlackwellMMA(), true, false, groups[1:], []control{shorterF, longerF}},
	} {
		for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
			v := readVectors(t, test.chip, f)
			misses := func(m Model) int {
				if test.half {
					return v.float16Misses(m)
				}
				return v.float32Misses(m, test.zero)
			}
			require.Zero(t, misses(test.model), "%s %v half=%v", test.chip, f, test.half)
			for _, c := range test.pins {
				m := test.model
				c.change(&m)
				n := misses(m)
				t.Logf("%s %v %v half=%v, %s: %d of 3500", test.chip, test.model, f, test.half, c.name, n)
				require.NotZero(t, n, "%s %v half=%v, %s is not pinned", test.chip, f, test.half, c.name)
			}
			for _, c := range test.loose {
				m := test.model
				c.change(&m)
				t.Logf("%s %v %v half=%v, not pinned %s: %d of 3500", test.chip, test.model, f, test.half, c.name, misses(m))
			}
		}
	}
	v := readVectors(t, "h100", fp8.E4M3)
	n := v.float32Misses(HopperWGMMA(), false)
	t.Logf("h100 hopper-wgmma, c not ignored: %d of 3500", n)
	require.NotZero(t, n)
}

// TestSiliconOrder pins what is no parameter: which half Ada adds first, and that
// float16 results are rounded to nearest.
func TestSiliconOrder(t *testing.T) {
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
		v := readVectors(t, "ada", f)
		m, coarse := AdaMMA(), AdaMMA()
		coarse.Keep = 10
		reversed, cut := 0, 0
		for i, want := range v.d32 {
			a, b := v.a[32*i:32*i+32], v.b[32*i:32*i+32]
			first := m.Dot(a[16:], b[16:], f, f, v.c[i])
			if got := m.Dot(a[:16], b[:16], f, f, first); math.Float32bits(got) != math.Float32bits(want) {
				reversed++
			}
			c := float16.Fromfloat32(v.c[i]).Float32()
			if got := float16.Fromfloat32(coarse.Dot(a, b, f, f, c)); got != v.d16[i] {
				cut++
			}
		}
		t.Logf("ada %v, high half first: %d of 3500; float16 toward zero: %d", f, reversed, cut)
		require.NotZero(t, reversed)
		require.NotZero(t, cut)
	}
}
