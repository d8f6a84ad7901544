package elementary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/internal/testutil"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "elementary.")) }

// results are what each loop makes of one argument, one factor being 1.
type results struct{ exp, exp2, silu, du, dg []float32 }

func newResults(n int) *results {
	of := func() []float32 { return make([]float32, n) }
	return &results{of(), of(), of(), of(), of()}
}

// check compares the loops with the functions, at every x.
func (r *results) check(x, ones []float32) error {
	n := len(x)
	ones = ones[:n]
	ExpTo(r.exp, x, 0, 1, 1)
	Exp2To(r.exp2, x, 0, 0)
	SwiGLU(r.silu, ones, x, ones)
	SwiGLUGrad(r.du, r.dg, ones, ones, x, ones[:1])
	for i, v := range x {
		silu := SiLU(v)
		for _, c := range []struct {
			name      string
			got, want float32
		}{{"Exp", r.exp[i], Exp(v)}, {"Exp2", r.exp2[i], Exp2(v)}, {"SiLU", r.silu[i], silu}, {"du", r.du[i], silu}, {"SiLUGrad", r.dg[i], SiLUGrad(v)}} {
			if math.Float32bits(c.got) != math.Float32bits(c.want) {
				return fmt.Errorf("%s(%v = %08x): %08x, want %08x", c.name, v, math.Float32bits(v), math.Float32bits(c.got), math.Float32bits(c.want))
			}
		}
	}
	return nil
}

// TestSweep has the float32 bit patterns at a distance of a prime, or all.
func TestSweep(t *testing.T) {
	const chunk = 1 << 12
	stride := uint64(2999)
	switch {
	case testutil.Full():
		stride = 1
	case testing.Short():
		stride = 29989
	}
	ones := slices.Repeat([]float32{1}, chunk)
	kernelstest.AtLevels(t, "elementary.", func(t *testing.T, _ cpu.Level) {
		var next atomic.Uint64
		var workers sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				r, x := newResults(chunk), make([]float32, chunk)
				for !t.Failed() {
					first := (next.Add(1) - 1) * chunk * stride
					if first >= 1<<32 {
						return
					}
					for i := range x {
						x[i] = math.Float32frombits(uint32(first + uint64(i)*stride))
					}
					if err := r.check(x, ones); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
	})
}

// TestEdges has every exponent with the first and the last mantissas, both signs,
// and hard.
func TestEdges(t *testing.T) {
	var x []float32
	for exponent := range uint32(256) {
		for _, mantissa := range []uint32{0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF} {
			for sign := range uint32(2) {
				x = append(x, math.Float32frombits(sign<<31|exponent<<23|mantissa))
			}
		}
	}
	for _, at := range []float32{
		88.72284, -88.72284, 87.33655, -87.33655, 103.97208, -103.97208, 104, -104, // of Exp's results
		128, -126, -149, -150, 0.5, -0.5, // of Exp2's
		expLimit, -expLimit, 16, -16, -1.2784645, math.Ln2 / 2, -math.Ln2 / 2,
	} {
		lo, hi := at, at
		for range 20 {
			x = append(x, lo, hi)
			lo, hi = math.Nextafter32(lo, -1e9), math.Nextafter32(hi, 1e9)
		}
	}
	for _, bits := range hard {
		x = append(x, math.Float32frombits(bits))
	}
	ones := slices.Repeat([]float32{1}, len(x))
	kernelstest.AtLevels(t, "elementary.", func(t *testing.T, _ cpu.Level) { require.NoError(t, newResults(len(x)).check(x, ones)) })
}

// operands returns n values, special ones among them.
func operands(r *rand.Rand, n int) []float32 {
	special := []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.Float32frombits(0xFF800001), math.Float32frombits(0x7FFFFFFF), math.SmallestNonzeroFloat32, -0x1p-126,
		math.MaxFloat32, -math.MaxFloat32, 1e-38, 90, -90, 800, -800,
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64() * 4)
		if r.IntN(4) == 0 {
			v[i] = special[r.IntN(len(special))]
		}
	}
	return v
}

// same reports whether x is y, or the canonical NaN where y is any.
func same(x, y float32) bool {
	if y != y {
		return math.Float32bits(x) == 0x7FC00000
	}
	return math.Float32bits(x) == math.Float32bits(y)
}

// guarded returns n canaries, and where in memory with canaries about them they
// are, the given number of elements into a cache line or so.
func guarded(n, at int) (memory, part []float32) {
	memory = slices.Repeat([]float32{canary}, n+at+64)
	return memory, memory[32+at : 32+at+n : 32+at+n]
}

const canary = float32(-12345.5)

// placed is guarded with the given values in it.
func placed(values []float32, at int) (memory, part []float32) {
	memory, part = guarded(len(values), at)
	copy(part, values)
	return memory, part
}

// requireGuards compares part of memory with want, and all about it with canaries.
func requireGuards(t *testing.T, memory []float32, at int, want []float32, note string) {
	t.Helper()
	for i, x := range memory {
		w := canary
		if j := i - 32 - at; j >= 0 && j < len(want) {
			w = want[j]
		}
		if !same(x, w) {
			t.Fatalf("%s: element %d of %d: %v (%08x), want %v (%08x)", note, i-32-at, len(want), x, math.Float32bits(x), w, math.Float32bits(w))
		}
	}
}

// lengths calls f with all lengths of interest, at places that change.
func lengths(f func(n, at int)) {
	for n := range 71 {
		for at := range 16 {
			f(n, at)
		}
	}
	for _, n := range []int{longest - 1, longest, longest + 1, 2*longest + 17} {
		f(n, n%16)
	}
}

func TestExpTo(t *testing.T) {
	kernelstest.Compare(t, expTo.Name(), func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(1, 1))
		lengths(func(n, at int) {
			x, f := operands(r, n), operands(r, 3)
			if n%2 == 0 { // a softmax
				f = []float32{2.5, 0.125, 0.7}
			}
			want := make([]float32, n)
			for i, v := range x {
				want[i] = Exp(float32(float32(v-f[0])*f[1])) * f[2]
			}
			note := fmt.Sprintf("at %d, %v", at, f)
			memory, dst := guarded(n, at)
			_, src := placed(x, at/3)
			ExpTo(dst, src, f[0], f[1], f[2])
			requireGuards(t, memory, at, want, note)
			memory, dst = placed(x, at)
			ExpTo(dst, dst, f[0], f[1], f[2])
			requireGuards(t, memory, at, want, note+", in place")
		})
	})
}

func TestExp2To(t *testing.T) {
	kernelstest.Compare(t, exp2To.Name(), func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(4, 4))
		lengths(func(n, at int) {
			x, f := operands(r, n), operands(r, 2)
			if n%2 == 0 { // a softmax
				f = []float32{2.5, 8}
			}
			want := make([]float32, n)
			for i, v := range x {
				shifted := v - f[0]
				want[i] = Exp2(shifted + f[1])
			}
			note := fmt.Sprintf("at %d, %v", at, f)
			memory, dst := guarded(n, at)
			_, src := placed(x, at/3)
			Exp2To(dst, src, f[0], f[1])
			requireGuards(t, memory, at, want, note)
			memory, dst = placed(x, at)
			Exp2To(dst, dst, f[0], f[1])
			requireGuards(t, memory, at, want, note+", in place")
		})
	})
}

// gateOperands returns operands of a SwiGLU, with a factor for each element or
// one for all, and what the definition makes of them.
func gateOperands(r *rand.Rand, n int) (dz, u, g, s, z, du, dg []float32) {
	dz, u, g, s = operands(r, n), operands(r, n), operands(r, n), operands(r, n)
	if r.IntN(2) == 0 {
		s = operands(r, 1)
	}
	z, du, dg = make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range n {
		scale := s[i%len(s)]
		z[i] = float32(float32(scale*u[i]) * SiLU(g[i]))
		du[i] = float32(float32(scale*dz[i]) * SiLU(g[i]))
		dg[i] = float32(float32(float32(scale*u[i])*SiLUGrad(g[i])) * dz[i])
	}
	return dz, u, g, s, z, du, dg
}

func TestSwiGLU(t *testing.T) {
	kernelstest.Compare(t, swiglu.Name(), func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(2, 2))
		lengths(func(n, at int) {
			_, u, g, s, want, _, _ := gateOperands(r, n)
			note := fmt.Sprintf("at %d, %d factors", at, len(s))
			memory, dst := guarded(n, at)
			_, uAt := placed(u, at/2)
			_, gAt := placed(g, at/3)
			_, sAt := placed(s, at/5)
			SwiGLU(dst, uAt, gAt, sAt)
			requireGuards(t, memory, at, want, note)
			memory, dst = placed(u, at)
			SwiGLU(dst, dst, gAt, sAt)
			requireGuards(t, memory, at, want, note+", over u")
			memory, dst = placed(g, at)
			SwiGLU(dst, uAt, dst, sAt)
			requireGuards(t, memory, at, want, note+", over g")
		})
	})
}

func TestSwiGLUGrad(t *testing.T) {
	kernelstest.Compare(t, swigluGrad.Name(), func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(3, 3))
		lengths(func(n, at int) {
			dz, u, g, s, _, wantU, wantG := gateOperands(r, n)
			// Where du and dg are: at an operand, or at memory of their own.
			for over := range 16 {
				overU, overG := over%4, over/4
				if overU == overG && overU != 3 || n > 100 && over != 4 && over != 15 {
					continue
				}
				note := fmt.Sprintf("at %d, %d factors, over operands %d and %d", at, len(s), overU, overG)
				var memories [4][]float32
				var in [4][]float32
				for i, v := range [][]float32{dz, u, g, slices.Repeat([]float32{canary}, n)} {
					memories[i], in[i] = placed(v, at)
				}
				memoryG, du, dg := memories[overG], in[overU], in[overG]
				if overG == 3 {
					memoryG, dg = guarded(n, at)
				}
				SwiGLUGrad(du, dg, in[0], in[1], in[2], s)
				requireGuards(t, memories[overU], at, wantU, note+", du")
				requireGuards(t, memoryG, at, wantG, note+", dg")
			}
		})
	})
}

// TestShort checks that nothing is written where an operand is too short.
func TestShort(t *testing.T) {
	const n = longest + 20
	x := slices.Repeat([]float32{1.5}, n)
	short := x[: n-1 : n-1]
	kernelstest.AtLevels(t, "elementary.", func(t *testing.T, _ cpu.Level) {
		dst := slices.Repeat([]float32{canary}, n)
		for _, f := range []func(){
			func() { ExpTo(short, x, 0, 1, 1) },
			func() { Exp2To(short, x, 0, 0) },
			func() { SwiGLU(short, x, x, x) }, func() { SwiGLU(dst, x, short, x) }, func() { SwiGLU(dst, x, x, short) },
			func() { SwiGLUGrad(short, dst, x, x, x, x) }, func() { SwiGLUGrad(dst, short, x, x, x, x) },
			func() { SwiGLUGrad(dst, dst, x, short, x, x) }, func() { SwiGLUGrad(dst, dst, x, x, short, x) },
			func() { SwiGLUGrad(dst, dst, x, x, x, short) },
		} {
			require.Panics(t, f)
			requireGuards(t, dst, -32, nil, "after a panic")
		}
		require.Equal(t, slices.Repeat([]float32{1.5}, n), x)
	})
}
