package gemm

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// atAMX makes AMX the level in use, to which Linux answers as given. Nothing here
// executes its instructions.
func atAMX(t *testing.T, answer cpu.Level) (asked *int) {
	t.Helper()
	if !slices.Contains(cpu.Levels(), cpu.Vectors) {
		t.Skipf("level amx not tested: this build and machine have %v", cpu.Levels())
	}
	stop := cpu.EmulateAMX()
	restore, err := cpu.Force(cpu.AMX)
	require.NoError(t, err)
	asked = new(int)
	before, dots := productLevel, useDots
	productLevel = func() cpu.Level { *asked++; return answer }
	useDots = func(bool) *microkernel.Kernels { return nil }
	t.Cleanup(func() {
		productLevel, useDots = before, dots
		restore()
		stop()
	})
	return asked
}

// shapes are products, with L, and whether tiles pay for them.
var shapes = []struct {
	m, n, k, block int
	tiles          bool
}{
	{4, 4096, 4096, 128, false}, {5, 4096, 4096, 128, true},
	{1, 4096, 4096, 4096, false}, {4, 4096, 4096, 4096, false}, {5, 4096, 4096, 4096, true},
	{7, 4096, 4096, 32, false}, {8, 4096, 4096, 32, true},
	{63, 4096, 4096, 16, false}, {64, 4096, 4096, 16, true},
	{33, 4096, 4096, 31, false}, {34, 4096, 4096, 31, true},
	{31, 4096, 4096, 33, false}, {32, 4096, 4096, 33, true}, {5, 4096, 4096, 64, true},
	{511, 4096, 4096, 2, false}, {512, 4096, 4096, 2, true},
	{32, 32, 31, 32, false}, {32, 32, 32, 32, true}, {32, 64, 32, 32, true},
	{5, 1, 13108, 128, true}, {1000, 1000, 0, 128, false},
}

func TestChoice(t *testing.T) {
	asked, want := atAMX(t, cpu.AMX), 0
	for _, s := range shapes {
		p := product{m: s.m, n: s.n, k: s.k, block: s.block}
		if s.tiles {
			want++
			require.Equal(t, amxBackend{}, p.choose(), "%v", s)
		} else {
			require.Equal(t, p.chooseVectors(vectorBackend{microkernel.For(cpu.Vectors)}), p.choose(), "%v", s)
		}
		require.Equal(t, want, *asked, "%v", s)
	}
}

// TestIntegerChoice has products at level AMX whose sums integers give.
func TestIntegerChoice(t *testing.T) {
	atAMX(t, cpu.AMX)
	vnni, tiles := integerBackend{integer.For(cpu.Vectors)}, integerBackend{integer.For(cpu.AMX)}
	for _, s := range []struct {
		m, block int
		a, b     fp8.Format
		want     backend
	}{
		{1024, 16, fp8.E2M1, fp8.E2M1, vnni}, {511, 32, fp8.E2M1, fp8.E2M3, vnni}, {512, 32, fp8.E2M1, fp8.E2M1, amxBackend{}},
		{31, 64, fp8.E2M1, fp8.E2M1, vnni}, {32, 64, fp8.E2M1, fp8.E2M1, tiles}, {1024, 128, fp8.MXINT8, fp8.MXINT8, tiles},
		{1024, 32, fp8.E4M3, fp8.E2M1, amxBackend{}}, {1024, 32, fp8.E3M2, fp8.E3M2, amxBackend{}}, {1024, 32, fp8.MXINT8, fp8.E2M1, vnni},
		{1024, 32, fp8.MXINT8, fp8.E4M3, vectorBackend{microkernel.For(cpu.Vectors)}},
	} {
		p := product{m: s.m, n: 1024, k: 1024, block: s.block}
		p.a.format, p.b.format = s.a, s.b
		require.Equal(t, s.want, p.choose(), "%v", s)
	}
}

// TestChoiceElsewhere has levels that tiles do not matter to.
func TestChoiceElsewhere(t *testing.T) {
	asked := 0
	before := productLevel
	productLevel = func() cpu.Level { asked++; return cpu.AMX }
	defer func() { productLevel = before }()
	for _, l := range cpu.Levels() {
		if l == cpu.AMX {
			continue
		}
		restore, err := cpu.Force(l)
		require.NoError(t, err)
		want, ok := backends.For(l)
		require.True(t, ok)
		for _, s := range shapes {
			p := product{m: s.m, n: s.n, k: s.k, block: s.block}
			got := p.choose()
			switch b := got.(type) {
			case fewBackend:
				got = vectorBackend(b)
			case skinnyBackend:
				got = b.vectorBackend
			}
			require.Equal(t, want, got)
		}
		restore()
	}
	require.Zero(t, asked)
}

// TestChoiceOfVectors has products of few rows, whose micro-kernels are all there.
func TestChoiceOfVectors(t *testing.T) {
	v := vectorBackend{&microkernel.Kernels{MR: 3, MultiplyCodes: func(*microkernel.Task) {}, MultiplyFew: func(*microkernel.Task) {}}}
	few, skinny := fewBackend(v), skinnyBackend{v}
	for _, s := range []struct {
		m, n, block int
		format      fp8.Format // of B
		packed      bool
		want        backend
	}{
		{m: 1, n: 512, block: 128, want: skinny}, {m: 3, n: 512, block: 128, packed: true, want: skinny},
		{m: 4, n: 512, block: 128, want: v}, {m: 3, n: 512, block: 127, want: v}, {m: 3, n: 512, block: 1025, want: skinny},
		{m: 3, n: 512, block: 128, format: fp8.MXINT8, want: v},
		{m: 12, n: 512, block: 128, want: v}, {m: 13, n: 512, block: 128, want: few}, {m: 16, n: 128, block: 128, want: few},
		{m: 16, n: 127, block: 128, want: v}, {m: 16, n: 512, block: 128, packed: true, want: v}, {m: 16, n: 512, block: 127, want: v},
		{m: 17, n: 512, block: 128, want: v}, {m: 29, n: 512, block: 128, want: few}, {m: 32, n: 512, block: 128, want: few},
		{m: 33, n: 512, block: 128, want: v}, {m: 16, n: 512, block: 128, format: fp8.MXINT8, want: v},
	} {
		p := product{m: s.m, n: s.n, k: 1024, block: s.block}
		p.b.format, p.b.packed = s.format, s.packed
		require.Equal(t, reflect.TypeOf(s.want), reflect.TypeOf(p.chooseVectors(v)), "%+v", s)
	}
}

// TestChoiceOfDots has products that dot products of bfloat16 are faster for, or could be asked
// for, by whom they are computed; nothing executes them.
func TestChoiceOfDots(t *testing.T) {
	before, kernels := useDots, &microkernel.Kernels{}
	defer func() { useDots = before }()
	useDots = func(bool) *microkernel.Kernels { return kernels }
	for _, s := range []struct {
		level    cpu.Level
		named    bool
		m, block int
		a, b     fp8.Format
		dots     bool
	}{
		{cpu.AVX512BF16, false, 1024, 128, fp8.E4M3, fp8.E5M2, true}, {cpu.AVX512BF16, false, 5, 16, fp8.E4M3FNUZ, fp8.E2M1, true},
		{cpu.AMX, false, 5, 16, fp8.E4M3, fp8.E4M3, true}, {cpu.AMX, true, 4, 16, fp8.E4M3, fp8.E4M3, false},
		{cpu.AVX512BF16, false, 4, 128, fp8.E4M3, fp8.E4M3, false}, {cpu.AVX512BF16, false, 64, 15, fp8.E4M3, fp8.E4M3, false},
		{cpu.AVX512BF16, true, 1, 1, fp8.E4M3, fp8.E4M3, true}, {cpu.AVX512BF16, true, 64, 128, fp8.MXINT8, fp8.E4M3, false},
		{cpu.AVX512BF16, true, 64, 128, fp8.E4M3, fp8.MXINT8, false}, {cpu.AVX512, true, 64, 128, fp8.E4M3, fp8.E4M3, false},
		{cpu.AVX2, false, 64, 128, fp8.E4M3, fp8.E4M3, false},
	} {
		p := product{m: s.m, n: 512, k: 1024, block: s.block}
		p.a.format, p.b.format = s.a, s.b
		require.Equal(t, s.dots, p.dots(s.level, s.named) != nil, "%+v", s)
	}
	useDots = func(bool) *microkernel.Kernels { return nil }
	p := product{m: 64, n: 64, k: 64, block: 64}
	require.Nil(t, p.dots(cpu.AVX512BF16, true))
}

// TestLeast checks that all values that tables have are multiples of the least, and which formats
// have none.
func TestLeast(t *testing.T) {
	for _, f := range fp8.Formats() {
		table := microkernel.BFloat16TableOf(f)
		require.Equal(t, f == fp8.MXINT8, table == nil, "%v", f)
		for code := 0; code < 256 && table != nil; code++ {
			if x := float64(f.Float32(byte(code))); !math.IsNaN(x) && !math.IsInf(x, 0) {
				require.Zero(t, math.Mod(x, float64(table.Least)), "%v: %v", f, x)
			}
		}
	}
}

// TestRefused multiplies where Linux refuses AMX: on a machine without it its
// instructions would end this process. Grouped products choose each for itself.
func TestRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	operand := func(rows int) *tensor.Tensor {
		x := &tensor.Tensor{Shape: []int{rows, 100}, Codes: make([]byte, rows*100), Scales: []float32{1.5}}
		for i := range x.Codes {
			x.Codes[i] = byte(r.IntN(0x7F))
		}
		return x
	}
	a, b := operand(80), operand(40)
	want := make([]float32, 80*40)
	require.NoError(t, Multiply(t.Context(), want, a, b, Options{}))
	asked := atAMX(t, cpu.Vectors)
	got := make([]float32, len(want))
	require.NoError(t, Multiply(t.Context(), got, a, b, Options{}))
	require.Equal(t, want, got)
	require.Equal(t, 1, *asked)
	clear(got)
	require.NoError(t, GroupedRows(t.Context(), got, a, []*tensor.Tensor{b, b, b}, []int{1, 75, 4}, Options{}))
	require.Equal(t, want, got)
	require.Equal(t, 2, *asked) // of the three groups for one
}

// TestBFloat16Codes has the value of every code in bfloat16.
func TestBFloat16Codes(t *testing.T) {
	if !slices.Contains(cpu.Levels(), cpu.Vectors) {
		t.Skipf("level amx not tested: this build and machine have %v", cpu.Levels())
	}
	for _, f := range fp8.Formats() {
		if bfloat16Codes[f].decoder == nil {
			require.GreaterOrEqual(t, f, fp8.E4M3IEEE)
			continue
		}
		codes, packed := make([]byte, 256), make([]uint16, 8*amx.Pack)
		for i := range codes {
			codes[i] = byte(i)
		}
		read := codes
		if table := bfloat16Codes[f].table; table != nil {
			read = make([]byte, len(codes))
			table.Lookup(read, codes)
		}
		amx.PackRows(packed, read, 256, 1, 256, bfloat16Codes[f].decoder)
		for i, code := range codes {
			require.Equal(t, math.Float32bits(f.Float32(code)), uint32(packed[i/32*amx.Pack+i%32])<<16, "%v %02x", f, code)
		}
	}
}

// TestAlignment checks what the rows of tiles rely on to be fast: that the
// allocator aligns them to cache lines.
func TestAlignment(t *testing.T) {
	for n := range 40 {
		packs, sums, c := grow([]uint16(nil), (n+1)*amx.Pack), grow([]amx.Sums(nil), n+1), grow([]float32(nil), (n+1)*square)
		for _, p := range []unsafe.Pointer{unsafe.Pointer(&packs[0]), unsafe.Pointer(&sums[0]), unsafe.Pointer(&c[0])} {
			require.Zero(t, uintptr(p)%64, "%d", n)
		}
	}
}

// TestScales compares the two orders in which scales are listed with the grid.
func TestScales(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		g := grid{rows: 1 + r.IntN(40), cols: 1 + r.IntN(6)}
		block := 1
		for g.cols%block == 0 && r.IntN(2) == 0 {
			block++
		}
		if g.cols%block != 0 {
			block = g.cols
		}
		rows, blocks := 1+r.IntN(100), 1+r.IntN(12)
		columns := ceilDiv(blocks*block+g.cols, g.cols)
		g.stride = columns + r.IntN(3)
		g.scales = make([]float32, ceilDiv(rows, g.rows)*g.stride)
		for i := range g.scales {
			g.scales[i] = r.Float32()
		}
		i0 := r.IntN(rows)
		i1, k := min(rows, i0+1+r.IntN(32)), r.IntN(1+g.cols/block)*block
		got := slices.Repeat([]float32{-1}, blocks*32)
		g.across(got, 32, i0, i1, k, block)
		for at, scale := range got {
			want := float32(0)
			if i := i0 + at%32; i < i1 {
				want = g.at(i, k+at/32*block)
			}
			require.Equal(t, want, scale)
		}
		row := make([]float32, blocks)
		g.along(row, i0, k, block)
		for b, scale := range row {
			require.Equal(t, g.at(i0, k+b*block), scale)
		}
	}
}
