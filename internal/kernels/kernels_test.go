package kernels

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// alone gives a test a registry of its own.
func alone(t *testing.T) {
	before := registry
	registry = nil
	t.Cleanup(func() { registry = before })
}

func TestServes(t *testing.T) {
	alone(t)
	f := func(name string) func() string { return func() string { return name } }
	o := New("x.Add", At(cpu.AVX512, f("avx512")), At(cpu.AVX2, f("avx2")))
	require.Equal(t, "x.Add", o.Name())
	want := map[cpu.Level]string{cpu.AVX2: "avx2", cpu.AVX512: "avx512", cpu.AVX512BF16: "avx512", cpu.AMX: "avx512"}
	for l := cpu.Generic; l < cpu.NumLevels; l++ {
		got, ok := o.For(l)
		require.Equal(t, want[l] != "", ok, "%v", l)
		if ok {
			require.Equal(t, want[l], got())
		}
	}
	none := New[func()]("x.Subtract")
	_, ok := none.For(cpu.AMX)
	require.False(t, ok)
}

func TestEntries(t *testing.T) {
	alone(t)
	New("x.Add", At(cpu.AVX512, 1), At(cpu.Generic, 2))
	New("x.Sub", At(cpu.AVX2, 1), At(cpu.AVX512, 2))
	New("y.Add", At(cpu.AMX, 1))
	require.Equal(t, []Entry{{"x.Add", cpu.Generic, 0}, {"x.Add", cpu.AVX512, 0}, {"x.Sub", cpu.AVX2, 0}, {"x.Sub", cpu.AVX512, 0}}, Entries("x."))
	require.Equal(t, []cpu.Level{cpu.Generic, cpu.AVX2, cpu.AVX512, cpu.AMX}, Levels(""))
	require.Empty(t, Entries("z."))
	require.Equal(t, "y.Add at level amx", Entries("y.")[0].String())
}

// TestFeatures has what serves with a feature and, at the same level, without.
func TestFeatures(t *testing.T) {
	alone(t)
	o := New("x.Dot", At(cpu.AVX512, "avx512"), At(cpu.AVX512, "vnni").With(cpu.VNNI), At(cpu.AVX2, "avx2"), At(cpu.AMX, "int8").With(cpu.AMXInt8))
	require.Equal(t, []Entry{{"x.Dot", cpu.AVX2, 0}, {"x.Dot", cpu.AVX512, 0}, {"x.Dot", cpu.AVX512, cpu.VNNI}, {"x.Dot", cpu.AMX, cpu.AMXInt8}}, Entries("x."))
	require.Equal(t, []string{"avx2", "avx512", "avx512+avx512vnni", "amx+amx-int8"},
		[]string{Entries("x.")[0].Place(), Entries("x.")[1].Place(), Entries("x.")[2].Place(), Entries("x.")[3].Place()})
	serves := func(l cpu.Level, want string) {
		t.Helper()
		got, ok := o.For(l)
		require.Equal(t, want != "", ok)
		require.Equal(t, want, got)
	}
	with := "avx512"
	if cpu.Has(cpu.VNNI) {
		with = "vnni"
	}
	serves(cpu.Generic, "")
	serves(cpu.AVX2, "avx2")
	serves(cpu.AVX512, with)
	defer cpu.EmulateAMX()()
	serves(cpu.AMX, "int8")
	restore := cpu.Without(cpu.AMXInt8)
	serves(cpu.AMX, with)
	defer cpu.Without(cpu.VNNI)()
	serves(cpu.AVX512, "avx512")
	serves(cpu.AMX, "avx512")
	restore()
	serves(cpu.AMX, "int8")
}

func TestTwice(t *testing.T) {
	alone(t)
	New("x.Add", At(cpu.AVX2, 1))
	require.PanicsWithValue(t, "kernels: x.Add is registered twice", func() { New("x.Add", At(cpu.AVX512, 1)) })
	require.PanicsWithValue(t, "kernels: x.Sub has two implementations for level avx2", func() { New("x.Sub", At(cpu.AVX2, 1), At(cpu.AVX2, 1)) })
}

//go:noinline
func sum(p *[4]int, s []int) int { return p[0] + len(s) }

func TestNoEscape(t *testing.T) {
	o := New("kernels.test", At(cpu.Generic, sum))
	defer func() {
		registry = slices.DeleteFunc(registry, func(e Entry) bool { return e.Operation == "kernels.test" })
	}()
	f, _ := o.For(cpu.Generic)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var p, s [4]int
		p[0] = 3
		if f(NoEscape(&p), NoEscapeSlice(s[:])) != 7 {
			t.Error("other memory")
		}
	}))
	require.Nil(t, NoEscapeSlice([]int(nil)))
}
