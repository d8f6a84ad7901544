package microkernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// Dots is what kernels with dot products of bfloat16 need: an instruction adds two steps of the
// canonical order. Their Multiply and MultiplyFew take bfloat16 in place of float32: A and B are
// in quads of k, of which the third and first are a value of float32's size, and then the fourth
// and second, the earlier in the upper half. In a panel of B the first of these are of all
// columns, and then the second. A task's Pairs are quads. MultiplyFew takes 16 columns of such a
// panel, and rows of twice [FewDepth].
//
// Denormals count as zeros: see [BFloat16Table.Least].
type Dots struct {
	// PackRows packs rows of n codes, a multiple of 4, a stride apart, to rows of dst, which
	// are dstStride bytes apart. PackPanel packs n k of a panel's codes, K-major.
	PackRows  func(dst *uint16, dstStride int, codes *byte, stride, rows, n int, t *BFloat16Table)
	PackPanel func(dst *uint16, codes *byte, n int, t *BFloat16Table)

	// QuadRows makes rows of quads, in place, of rows of n float32 in all, and QuadPanel a panel
	// of quads of one of n float32, K-major. The values must be bfloat16s, and n whole quads of
	// all columns of a panel. The first half of the memory has the quads then.
	QuadRows, QuadPanel func(values *float32, n int)
}

// DotsFor returns the micro-kernels with dot products that a level has, or nil if there are none.
func DotsFor(l cpu.Level) *Kernels {
	for _, e := range kernels.Entries(dots.Name()) {
		if e.Level == l {
			d, _ := dots.For(l)
			return d
		}
	}
	return nil
}

// BFloat16Table has the values of codes in bfloat16: of those from 0 to 127, of 0x80, and of the
// others the value of the code without its highest bit, or its negative where that is the sign.
// The layout is known to the assembly.
type BFloat16Table struct {
	High, Low               [128]byte
	SpecialHigh, SpecialLow byte
	Sign                    byte // 0x80, or 0 where the highest bit does not count

	Least float32 // all values are multiples of it
}

// NewBFloat16Table returns the table of a format whose codes have so many bits, and false if
// bfloat16 does not have its values or such a table cannot say them.
func NewBFloat16Table(bits int, value func(code byte) float32) (*BFloat16Table, bool) {
	t := &BFloat16Table{}
	if bits == 8 {
		t.Sign = 0x80
	}
	for c := range 256 {
		code := byte(c)
		x := value(code)
		b := math.Float32bits(x)
		if x != x {
			b = 0x7FC00000
		}
		if b&0xFFFF != 0 {
			return nil, false
		}
		high, low := byte(b>>24), byte(b>>16)
		switch {
		case code < 0x80:
			t.High[code], t.Low[code] = high, low
		case code == 0x80:
			t.SpecialHigh, t.SpecialLow = high, low
		case t.Low[code&0x7F] != low || t.High[code&0x7F]|t.Sign != high && x == x || t.High[code&0x7F] != high && x != x:
			return nil, false
		}
		if m := float32(math.Abs(float64(x))); m > 0 && (t.Least == 0 || m < t.Least) {
			t.Least = m
		}
	}
	return t, true
}

// tables are indexed by format.
var tables = func() []*BFloat16Table {
	all := make([]*BFloat16Table, len(fp8.Formats()))
	for _, f := range fp8.Formats() {
		if t, ok := NewBFloat16Table(f.Bits(), f.Float32); ok {
			all[f] = t
		}
	}
	return all
}()

// BFloat16TableOf returns the table of a format, or nil if its codes are no sign and magnitude.
func BFloat16TableOf(f fp8.Format) *BFloat16Table { return tables[f] }

// UseDots returns the micro-kernels with dot products of bfloat16 where a level of the machine
// has them, they give the canonical order's bits, and they are faster than those of float32, or
// somebody named the level. Both are found out once, the first time.
func UseDots(named bool) *Kernels {
	if d := usable(); d != nil && (named || faster()) {
		return d
	}
	return nil
}

// usable returns those that the machine has, if they give the canonical order's bits.
var usable = sync.OnceValue(func() *Kernels {
	if !slices.Contains(cpu.Levels(), cpu.AVX512BF16) || !agree() {
		return nil
	}
	return DotsFor(cpu.AVX512BF16)
})

// trial is a product of register blocks of 4 rows and a panel of B, along a block of K.
type trial struct {
	a, b, c []float32
	task    Task
}

const trialDepth = 256

// newTrial returns one of operands of so many k to a value of float32's size.
func newTrial(rowBlocks, together int) *trial {
	one := float32(1)
	x := &trial{
		a: make([]float32, 4*rowBlocks*trialDepth/together), b: make([]float32, PanelWidth*trialDepth/together),
		c: make([]float32, 4*rowBlocks*PanelWidth),
	}
	scales := slices.Repeat([]float32{one}, max(4*rowBlocks, PanelWidth))
	x.task = Task{
		A: &x.a[0], B: &x.b[0], C: &x.c[0], ScaleA: &scales[0], ScaleB: &scales[0],
		StrideA: 4 * trialDepth / together, StrideC: 4 * PanelWidth, StrideScaleA: 4,
		RowBlocks: rowBlocks, Blocks: 1, Pairs: trialDepth / 2 / together, Flags: First | Last | Canonical | Zero,
	}
	return x
}

// agree reports whether the instruction rounds as the canonical order does, on random operands
// whose sums are rounded in nearly every step.
func agree() bool {
	x, r := newTrial(1, 2), rand.New(rand.NewPCG(1, 2))
	var a, b [trialDepth][PanelWidth]float32
	fill := func(all *[trialDepth][PanelWidth]float32, width int, put func(k, i int, x uint16)) {
		for k := range all {
			for i := range width {
				bits := uint16(r.Uint32())&0x807F | uint16(120+r.IntN(16))<<7
				all[k][i] = math.Float32frombits(uint32(bits) << 16)
				put(k, i, bits)
			}
		}
	}
	rows := unsafe.Slice((*uint16)(unsafe.Pointer(&x.a[0])), 2*len(x.a))
	panel := unsafe.Slice((*uint16)(unsafe.Pointer(&x.b[0])), 2*len(x.b))
	places := [4]int{1, 3, 0, 2} // of the k of a quad
	fill(&a, 4, func(k, i int, x uint16) { rows[i*trialDepth+k&^3+places[k&3]] = x })
	fill(&b, PanelWidth, func(k, j int, x uint16) {
		place := places[k&3]
		panel[(k&^3)*PanelWidth+place/2*2*PanelWidth+2*j+place&1] = x
	})
	DotsFor(cpu.AVX512BF16).Multiply(&x.task)
	for i := range 4 {
		for j := range PanelWidth {
			var sum float32
			for k := 0; k < trialDepth; k += 32 {
				var chains [2]float32
				for at := range 32 {
					chains[at&1] += float32(a[k+at][i] * b[k+at][j])
				}
				sum += chains[0] + chains[1]
			}
			if math.Float32bits(sum) != math.Float32bits(x.c[i*PanelWidth+j]) {
				return false
			}
		}
	}
	return true
}

// faster reports whether the same product takes less time with them, by more than a
// measurement of so few microseconds errs.
var faster = sync.OnceValue(func() bool {
	const rowBlocks, times, least = 16, 7, 1.2
	floats, pairs := newTrial(rowBlocks, 1), newTrial(rowBlocks, 2)
	shortest := func(multiply func(*Task), x *trial, before time.Duration) time.Duration {
		start := time.Now()
		multiply(&x.task)
		return min(before, time.Since(start))
	}
	float, dot := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range times {
		float = shortest(For(cpu.AVX512).Multiply, floats, float)
		dot = shortest(DotsFor(cpu.AVX512BF16).Multiply, pairs, dot)
	}
	return float64(float) > least*float64(dot)
})
