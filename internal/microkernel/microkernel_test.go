package microkernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "microkernel.")) }

// compareKernels runs a test for the kernels of every level that has some, of which it
// compares one.
func compareKernels(t *testing.T, name string, test func(t *testing.T, k *Kernels)) {
	kernelstest.Compare(t, "microkernel."+name, func(t *testing.T, l cpu.Level) { test(t, For(l)) })
}

// TestMembers checks that every function of Kernels is registered, and the sizes
// that the callers rely on.
func TestMembers(t *testing.T) {
	var names []string
	structure := reflect.TypeFor[Kernels]()
	for i := range structure.NumField() {
		if field := structure.Field(i); field.Type.Kind() == reflect.Func {
			names = append(names, field.Name)
		}
	}
	require.Len(t, members, len(names))
	for i, m := range members {
		require.Equal(t, names[i], m.name)
	}
	compareKernels(t, "Kernels", func(t *testing.T, k *Kernels) {
		require.Positive(t, k.MR)
		require.Zero(t, PanelWidth%k.NR)
		require.NotNil(t, k.Multiply)
		require.Equal(t, k.MultiplyCodes == nil, k.MultiplyCodesRow == nil)
		require.Equal(t, k.MultiplyFew == nil, k.FewRows == 0)
		require.Equal(t, k.MultiplyPairs == nil, k.DecodePairs == nil)
		require.Equal(t, k.MultiplyPairs == nil, k.PairUp == nil)
		require.True(t, k.MultiplyPairs == nil || k.NR == PanelWidth)
		require.Equal(t, k.Transpose == nil, k.TransposeCols == 0)
	})
	require.Nil(t, For(cpu.Generic))
}

// conversions are those of E5M2, which is the upper half of a float16, and of E4M3,
// whose exponent lacks a bit of that.
var conversions = []struct {
	multiplier, mask uint64
	value            func(code byte) float64
}{
	{0x0100_0100_0100_0100, 0xFFFF_FFFF_FFFF_FFFF, func(c byte) float64 { return value(c, 2, 15) }},
	{0x0080_0080_0080_0080, 0xBFFF_BFFF_BFFF_BFFF, func(c byte) float64 { return value(c, 3, 15) }},
}

// value is that of a code with so many bits of mantissa and such a bias.
func value(code byte, mantissa, bias int) float64 {
	exponent, fraction := int(code&0x7F)>>mantissa, int(code)&(1<<mantissa-1)
	switch {
	case exponent == 31 && fraction == 0:
		return math.Inf(1 - int(code>>6)&2)
	case exponent == 31:
		return math.NaN()
	case exponent == 0:
		exponent++
	default:
		fraction += 1 << mantissa
	}
	return math.Copysign(math.Ldexp(float64(fraction), exponent-bias-mantissa), float64(int8(code)))
}

func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

func TestDecodeFloat16(t *testing.T) {
	compareKernels(t, "DecodeFloat16", func(t *testing.T, k *Kernels) {
		codes, dst := guarded[byte](t, 512), guarded[float32](t, 512)
		for i := range codes {
			codes[i] = byte(i + i/256*13)
		}
		for _, c := range conversions {
			for n := PanelWidth; n <= 512; n += PanelWidth {
				part, to := codes[512-n:], dst[512-n:]
				clear(dst)
				k.DecodeFloat16(&to[0], &part[0], n, c.multiplier, c.mask, 64)
				for i := range part {
					require.True(t, same(to[i], float32(c.value(part[i]))), "%02x: %v", part[i], to[i])
				}
				for _, x := range dst[:512-n] {
					require.Zero(t, x)
				}
			}
		}
	})
}

func TestDecodeRows(t *testing.T) {
	const eight = 0x0101_0101_0101_0101
	compareKernels(t, "DecodeRows", func(t *testing.T, k *Kernels) {
		for _, special := range [][2]uint64{{0, eight}, {0x7F * eight, 0x7F * eight}, {0xFF * eight, 0x80 * eight}} {
			for _, c := range conversions {
				for n := PanelWidth; n <= 4*PanelWidth; n += PanelWidth {
					for rows := 1; rows <= 5; rows += 2 {
						v := &Float16View{c.multiplier, c.mask, special[0], special[1], 1 / float32(rows%4)}
						stride, dstStride := n+rows, n+2*rows
						codes, dst := guarded[byte](t, stride*(rows-1)+n), guarded[float32](t, dstStride*(rows-1)+n)
						for i := range codes {
							codes[i] = byte(i*5 + n + i/256)
						}
						k.DecodeRows(&dst[0], 4*dstStride, &codes[0], stride, rows, n, v)
						for i, got := range dst {
							want := float32(0)
							if row, column := i/dstStride, i%dstStride; column < n {
								code := codes[row*stride+column]
								want = v.Unit * float32(c.value(code))
								if code&byte(special[0]) == byte(special[1]) {
									want = float32(math.NaN())
								}
							}
							require.True(t, same(got, want), "%d: %v, want %v", i, got, want)
						}
					}
				}
			}
		}
	})
}

func TestContains(t *testing.T) {
	const eight = 0x0101_0101_0101_0101
	compareKernels(t, "Contains", func(t *testing.T, k *Kernels) {
		codes := guarded[byte](t, 256)
		for n := PanelWidth; n <= 256; n += PanelWidth {
			part := codes[256-n:]
			for i := range codes {
				codes[i] = 0x7E ^ byte(i&1)<<7
			}
			require.False(t, k.Contains(&part[0], n, 0x7F*eight, 0x7F*eight))
			for i := range part {
				before := part[i]
				part[i] = before | 1
				require.True(t, k.Contains(&part[0], n, 0x7F*eight, 0x7F*eight), "%d of %d", i, n)
				require.False(t, k.Contains(&part[0], n, 0xFF*eight, 0x80*eight))
				part[i] = 0x80
				require.True(t, k.Contains(&part[0], n, 0xFF*eight, 0x80*eight), "%d of %d", i, n)
				part[i] = before
			}
		}
	})
}

func TestPackPanel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	check := func(t *testing.T, k *Kernels) {
		for _, n := range []int{1, 7, 8, 9, 15, 31, 32, 33, 63, 64, 65, 100, 127, 128, 200, 256} {
			for _, rows := range []int{1, 2, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32} {
				stride := n + r.IntN(3)
				src := guarded[byte](t, (rows-1)*stride+n)
				dst := guarded[byte](t, n*PanelWidth)
				for i := range src {
					src[i] = byte(r.Uint32())
				}
				k.PackPanel(dst, src, stride, rows, n)
				for i, got := range dst {
					want := byte(0)
					if j := i % PanelWidth; j < rows {
						want = src[j*stride+i/PanelWidth]
					}
					if got != want {
						t.Fatalf("%d rows of %d, k %d, column %d: %02x, want %02x", rows, n, i/PanelWidth, i%PanelWidth, got, want)
					}
				}
			}
		}
	}
	t.Run("generic", func(t *testing.T) { check(t, nil) })
	compareKernels(t, "Transpose", check)
}

// problem is operands of a task, between guards, and its results by definition.
type problem struct {
	Task
	rows, blocks, pairs int
	width               int  // of the panel
	strideA             int  // between rows of a
	exchanged           bool // rows are of B, and the panel's columns of A
	view                int  // of codes, in conversions
	a, b, c, p          []float32
	codes               []byte
	ofPairs             []float32 // b as a panel of pairs, if the task has one
	dotsA, dotsB        []uint16  // a and b in quads of bfloat16, if the task has them
	scaleA, scaleB      []float32
	out                 []float32 // where results go, if not to c
	outStride           int
}

func newProblem(t *testing.T, r *rand.Rand, rows, blocks, pairs, view int, rounded, exchanged bool) *problem {
	depth := blocks * 2 * pairs
	q := &problem{rows: rows, blocks: blocks, pairs: pairs, width: PanelWidth, strideA: depth, exchanged: exchanged, view: view}
	if exchanged {
		q.width, q.strideA = FewWidth, FewStride
	}
	q.a, q.b = guarded[float32](t, (rows-1)*q.strideA+depth), guarded[float32](t, depth*q.width)
	q.c, q.p = guarded[float32](t, rows*q.width), guarded[float32](t, rows*q.width)
	q.codes = guarded[byte](t, depth*q.width)
	q.scaleA, q.scaleB = guarded[float32](t, rows*blocks), guarded[float32](t, blocks*PanelWidth)
	for i := range q.a {
		q.a[i] = float32(value(byte(r.Uint32()), 3, 7))
		if rounded {
			q.a[i] += float32(r.NormFloat64())
		}
	}
	for i := range q.codes {
		for q.codes[i] = byte(r.Uint32()); view == 0 && q.codes[i]&0x7F >= 0x7C; { // of E5M2, that would be NaN
			q.codes[i] = byte(r.Uint32())
		}
		q.b[i] = float32(conversions[view].value(q.codes[i]))
		if rounded {
			q.b[i] += float32(r.NormFloat64())
		}
	}
	for _, s := range [][]float32{q.scaleA, q.scaleB, q.c, q.p} {
		for i := range s {
			s[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(20)-10))
		}
	}
	return q
}

// expect returns c and p as the task leaves them.
func (q *problem) expect(flags uint64) (c, p []float32) {
	c, p = slices.Clone(q.c), slices.Clone(q.p)
	if flags&Zero != 0 {
		clear(c)
	}
	depth := q.blocks * 2 * q.pairs
	for i := range q.rows {
		for j := range q.width {
			at := i*q.width + j
			for block := range q.blocks {
				x, y := make([]float32, 0, depth), make([]float32, 0, depth)
				for k := block * 2 * q.pairs; k < (block+1)*2*q.pairs; k++ {
					x, y = append(x, q.a[i*q.strideA+k]), append(y, q.b[k*q.width+j])
				}
				sum := float32(0)
				if flags&First == 0 {
					sum = p[at]
				}
				for lo := 0; lo < len(x); lo += 32 {
					var parts [2]float32
					for k := lo; k < min(lo+32, len(x)); k++ {
						parts[k%2] += float32(x[k] * y[k])
					}
					sum += parts[0] + parts[1]
				}
				if flags&Last == 0 {
					p[at] = sum
					continue
				}
				first, second := q.scaleA[i*q.blocks+block], q.scaleB[block*PanelWidth+j]
				if q.exchanged {
					first, second = second, first
				}
				c[at] = float32(math.FMA(float64(float32(sum*first)), float64(second), float64(c[at])))
				if flags&Canonical != 0 && c[at] != c[at] {
					c[at] = math.Float32frombits(0x7FC00000)
				}
			}
		}
	}
	return c, p
}

// decodePairs has the task read B as a panel of pairs.
func (q *problem) decodePairs(t *testing.T, k *Kernels) {
	q.ofPairs = guarded[float32](t, len(q.b))
	c := conversions[q.view]
	k.DecodePairs(&q.ofPairs[0], &q.codes[0], len(q.codes), c.multiplier, c.mask, 64)
}

// run has a kernel, which takes so many columns at once, do the task for all.
func (q *problem) run(multiply func(*Task), columns, rowBlocks int, flags uint64) {
	for column := 0; column < q.width; column += columns {
		t := &q.Task
		t.A, t.B, t.C, t.P, t.Codes = &q.a[0], &q.b[column], &q.c[column], &q.p[column], &q.codes[column]
		t.Multiplier, t.Mask = conversions[q.view].multiplier, conversions[q.view].mask
		t.ScaleA, t.ScaleB = &q.scaleA[0], &q.scaleB[column]
		t.StrideA, t.StrideC, t.StrideScaleA = 4*q.strideA, 4*q.width, 4*q.blocks
		t.RowBlocks, t.Blocks, t.Pairs, t.Flags = rowBlocks, q.blocks, q.pairs, flags
		t.Out, t.StrideOut = nil, 0
		if q.ofPairs != nil {
			t.B = &q.ofPairs[0]
		}
		if q.dotsA != nil {
			q.takeDots()
		}
		if q.out != nil {
			t.Out, t.StrideOut = &q.out[column], 4*q.outStride
		}
		multiply(t)
	}
}

// multiplications are the kernels that multiply, with the sizes of a register block and
// how many of those one call takes at most, in this test.
var multiplications = []struct {
	name string
	of   func(k *Kernels) (multiply func(*Task), rows, columns, rowBlocks int)
}{
	{"Multiply", func(k *Kernels) (func(*Task), int, int, int) { return k.Multiply, k.MR, k.NR, 3 }},
	{"MultiplyRounded", func(k *Kernels) (func(*Task), int, int, int) { return k.MultiplyRounded, k.MR, k.NR, 3 }},
	{"MultiplyCodes", func(k *Kernels) (func(*Task), int, int, int) { return k.MultiplyCodes, k.MR, k.NR, 1 }},
	{"MultiplyCodesRow", func(k *Kernels) (func(*Task), int, int, int) { return k.MultiplyCodesRow, 1, PanelWidth, 1 }},
	{"MultiplyPairs", func(k *Kernels) (func(*Task), int, int, int) { return k.MultiplyPairs, k.MR, PanelWidth, 3 }},
	{"MultiplyFew", func(k *Kernels) (func(*Task), int, int, int) { return k.MultiplyFew, k.FewRows, FewWidth, 3 }},
}

// TestMultiplyCodeBlocks compares with the definition, results that are added and not.
func TestMultiplyCodeBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	compareKernels(t, "MultiplyCodeBlocks", func(t *testing.T, k *Kernels) {
		for _, pairs := range []int{1, 2, 15, 16, 17, 31, 32, 33, 50, 64} {
			for rowBlocks := 1; rowBlocks <= 3; rowBlocks++ {
				for i := range 2 * len(conversions) {
					q := newProblem(t, r, rowBlocks*CodeRows, 1, pairs, i/2, false, false)
					flags := uint64(First | Last)
					if i%2 == 1 {
						flags |= Zero
					}
					want, _ := q.expect(flags)
					q.Whole = []float32{1, 1 << 16}[(i+pairs)%2]
					for i := range q.a {
						q.a[i] *= 0x1p112 / q.Whole
					}
					q.run(k.MultiplyCodeBlocks, 16, rowBlocks, flags)
					compare(t, fmt.Sprint(rowBlocks, " register blocks, ", pairs, " pairs, flags ", flags), q.c, want)
				}
			}
		}
	})
}

// TestMultiply compares all kernels with the definition. That rounds a fused
// multiply-add twice, to float64 first, which shows in none of these numbers.
func TestMultiply(t *testing.T) {
	for _, kernel := range multiplications {
		t.Run(kernel.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(2, 2))
			compareKernels(t, kernel.name, func(t *testing.T, k *Kernels) {
				multiply, rows, columns, rowBlocks := kernel.of(k)
				testMultiply(t, r, k, kernel.name, multiply, rows, columns, rowBlocks)
			})
		})
	}
}

func testMultiply(t *testing.T, r *rand.Rand, k *Kernels, name string, multiply func(*Task), rows, columns, maxRowBlocks int) {
	rounded, exchanged, direct := name == "MultiplyRounded", strings.Contains(name, "Few"), k.Direct && maxRowBlocks > 1
	for _, pairs := range []int{1, 2, 15, 16, 17, 31, 32, 33, 50} {
		for rowBlocks := 1; rowBlocks <= maxRowBlocks; rowBlocks++ {
			for _, flags := range []uint64{First | Last, First | Last | Canonical, First, 0, Last} {
				blocks, view := 1, (pairs+rowBlocks)%len(conversions)
				if flags&(First|Last) == First|Last {
					blocks += r.IntN(3)
				}
				if exchanged {
					blocks = min(blocks, FewDepth/(2*pairs))
				}
				q := newProblem(t, r, rowBlocks*rows, blocks, pairs, view, rounded, exchanged)
				switch name {
				case "MultiplyPairs":
					q.decodePairs(t, k)
				case "Dots", "FewDots":
					q.packDots(t)
				}
				wantC, wantP := q.expect(flags)
				q.run(multiply, columns, rowBlocks, flags)
				name := fmt.Sprintf("%d register blocks, %d blocks of %d pairs, flags %d", rowBlocks, blocks, pairs, flags)
				compare(t, name+": c", q.c, wantC)
				compare(t, name+": p", q.p, wantP)
				if direct && flags&Last != 0 {
					q.testDirect(t, name, multiply, columns, rowBlocks, flags)
				}
			}
		}
	}
}

// testDirect does a task with results that start from zeros, and that go elsewhere.
func (q *problem) testDirect(t *testing.T, name string, multiply func(*Task), columns, rowBlocks int, flags uint64) {
	nan := float32(math.NaN())
	for i := range q.c {
		q.c[i] = 0
	}
	want, _ := q.expect(flags)
	for i := range q.c {
		q.c[i] = nan
	}
	q.run(multiply, columns, rowBlocks, flags|Zero)
	compare(t, name+", from zeros", q.c, want)

	const gap = 3
	q.outStride = q.width + gap
	q.out = guarded[float32](t, (q.rows-1)*q.outStride+q.width)
	q.run(multiply, columns, rowBlocks, flags|Zero)
	for i, got := range q.out {
		x := float32(0)
		if j := i % q.outStride; j < q.width && flags&Canonical != 0 {
			x = want[i/q.outStride*q.width+j]
		}
		if math.Float32bits(got) != math.Float32bits(x) {
			t.Fatalf("%s, elsewhere: element %d: %v, want %v", name, i, got, x)
		}
	}
	q.out = nil
}

func compare(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d: %v, want %v", name, i, got[i], want[i])
		}
	}
}

// TestPairs checks that DecodePairs and PairUp make the same panel, which has every value of
// a pair of k once: what their order is, TestMultiply shows.
func TestPairs(t *testing.T) {
	for _, name := range []string{"DecodePairs", "PairUp"} {
		compareKernels(t, name, func(t *testing.T, k *Kernels) {
			q := newProblem(t, rand.New(rand.NewPCG(3, 3)), k.MR, 1, 5, 1, false, false)
			q.decodePairs(t, k)
			for lo := 0; lo < len(q.b); lo += 2 * PanelWidth {
				require.ElementsMatch(t, q.b[lo:][:2*PanelWidth], q.ofPairs[lo:][:2*PanelWidth])
			}
			k.PairUp(&q.b[0], len(q.b))
			require.Equal(t, q.b, q.ofPairs)
		})
	}
}

// TestPrefetch checks how many prefetches there are: one for each chunk of each register
// block, but no more than are wanted. The addresses need not exist.
func TestPrefetch(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("kernels of arm64 do not fetch")
	}
	compareKernels(t, "Multiply", func(t *testing.T, k *Kernels) {
		const rowBlocks, blocks, chunks = 2, 3, 3
		q := newProblem(t, rand.New(rand.NewPCG(4, 4)), rowBlocks*k.MR, blocks, 16*(chunks-1)+1, 1, false, false)
		for _, n := range []int{0, 1, rowBlocks*blocks*chunks - 1, rowBlocks * blocks * chunks, 100} {
			q.Prefetch, q.PrefetchStep, q.Prefetches = 1<<12, 300, n
			q.run(k.Multiply, PanelWidth, rowBlocks, First|Last)
			require.EqualValues(t, 1<<12+300*min(n, rowBlocks*blocks*chunks), q.Prefetch)
		}
	})
}
