package microkernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// place is where the value of k is among the halves of a row of quads.
func place(k int) int { return k/4*4 + []int{1, 3, 0, 2}[k%4] }

// panelPlace is that of a column in a panel, whose quads have the pairs of even k first.
func panelPlace(k, column int) int {
	return k/4*4*PanelWidth + k%2*2*PanelWidth + 2*column + place(k)%2
}

// upper is the upper half of a float32, which must have no other.
func upper(t *testing.T, x float32) uint16 {
	require.Zero(t, math.Float32bits(x)&0xFFFF)
	return uint16(math.Float32bits(x) >> 16)
}

// quads is of how many quads a block is.
func (q *problem) quads() int { return (q.pairs + 1) / 2 }

// packDots packs the operands as a task with dot products takes them. What no column is in is NaN.
func (q *problem) packDots(t *testing.T) {
	depth := q.blocks * 4 * q.quads()
	stride := depth
	if q.exchanged {
		stride = 2 * FewStride
	}
	q.dotsA, q.dotsB = guarded[uint16](t, (q.rows-1)*stride+depth), guarded[uint16](t, depth*PanelWidth)
	for i := range q.dotsB {
		if i/2%PanelWidth >= q.width {
			q.dotsB[i] = 0x7FC0
		}
	}
	for block := range q.blocks {
		for k := range 2 * q.pairs {
			from, to := block*2*q.pairs+k, block*4*q.quads()+k
			for i := range q.rows {
				q.dotsA[i*stride+place(to)] = upper(t, q.a[i*q.strideA+from])
			}
			for j := range q.width {
				q.dotsB[panelPlace(to, j)] = upper(t, q.b[from*q.width+j])
			}
		}
	}
}

// takeDots has the task read those.
func (q *problem) takeDots() {
	t := &q.Task
	t.A, t.B = (*float32)(unsafe.Pointer(&q.dotsA[0])), (*float32)(unsafe.Pointer(&q.dotsB[0]))
	t.Pairs, t.StrideA = q.quads(), 2*q.blocks*4*q.quads()
	if q.exchanged {
		t.StrideA = 4 * FewStride
	}
}

func TestDots(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	kernelstest.Compare(t, "microkernel.Dots", func(t *testing.T, l cpu.Level) {
		d := DotsFor(l)
		require.True(t, agree())
		testMultiply(t, r, d, "Dots", d.Multiply, d.MR, d.NR, 3)
		testMultiply(t, r, d, "FewDots", d.MultiplyFew, d.FewRows, FewWidth, 3)
		testPackDots(t, r, d.Dots)
		testQuads(t, r, d.Dots)
	})
}

// tableValues are values of codes: as E5M2 has them, as E4M3FNUZ, whose code 0x80 is NaN, and of six
// bits, whose others do not count.
var tableValues = map[string]func(code byte) float32{
	"six bits":     func(code byte) float32 { return float32(value(code&0x1F|code&0x20<<2, 2, 3)) },
	"signed zeros": func(code byte) float32 { return float32(value(code, 2, 15)) },
	"one zero": func(code byte) float32 {
		if code == 0x80 {
			return float32(math.NaN())
		}
		return float32(value(code, 3, 8))
	},
}

func testPackDots(t *testing.T, r *rand.Rand, d *Dots) {
	for name, of := range tableValues {
		bits := 8
		if name == "six bits" {
			bits = 6
		}
		table, ok := NewBFloat16Table(bits, of)
		require.True(t, ok, name)
		same := func(got uint16, code byte) {
			t.Helper()
			x := math.Float32frombits(uint32(got) << 16)
			if want := of(code); math.Float32bits(x) != math.Float32bits(want) && (x == x || want == want) {
				t.Fatalf("%s: code %02x: %v, want %v", name, code, x, want)
			}
		}
		for _, n := range []int{4, 8, 28, 32, 36, 60, 64, 68, 100, 128, 132, 256} {
			for _, rows := range []int{1, 2, 5} {
				stride, dstStride := n+rows, n+2*rows
				codes, dst := guarded[byte](t, stride*(rows-1)+n), guarded[uint16](t, dstStride*(rows-1)+n)
				fill(r, codes, dst)
				before := slices.Clone(dst)
				d.PackRows(&dst[0], 2*dstStride, &codes[0], stride, rows, n, table)
				for i := range rows {
					for k := range n {
						same(dst[i*dstStride+place(k)], codes[i*stride+k])
						before[i*dstStride+place(k)] = dst[i*dstStride+place(k)]
					}
				}
				require.Equal(t, before, dst, "between rows")
			}
			codes, dst := guarded[byte](t, n*PanelWidth), guarded[uint16](t, n*PanelWidth)
			fill(r, codes, dst)
			d.PackPanel(&dst[0], &codes[0], n, table)
			for i, code := range codes {
				same(dst[panelPlace(i/PanelWidth, i%PanelWidth)], code)
			}
		}
	}
}

// testQuads has float32s whose upper halves are any.
func testQuads(t *testing.T, r *rand.Rand, d *Dots) {
	for depth := 4; depth <= 64; depth += 4 {
		n := depth * PanelWidth
		before, rows, panel := make([]uint16, n), guarded[float32](t, n), guarded[float32](t, n)
		fill(r, nil, before)
		for i, x := range before {
			rows[i] = math.Float32frombits(uint32(x) << 16)
			panel[i] = rows[i]
		}
		d.QuadRows(&rows[0], n)
		d.QuadPanel(&panel[0], n)
		half := func(of []float32, at int) uint16 { return uint16(math.Float32bits(of[at/2]) >> (at % 2 * 16)) }
		for i, x := range before {
			require.Equal(t, x, half(rows, place(i)), "rows: %d of %d", i, n)
			require.Equal(t, x, half(panel, panelPlace(i/PanelWidth, i%PanelWidth)), "panel: %d of %d", i, n)
		}
	}
}

func fill(r *rand.Rand, codes []byte, dst []uint16) {
	for i := range codes {
		codes[i] = byte(r.Uint32())
	}
	for i := range dst {
		dst[i] = uint16(r.Uint32())
	}
}

func TestBFloat16TableRefuses(t *testing.T) {
	twos := func(code byte) float32 { return float32(int8(code)) }
	_, ok := NewBFloat16Table(8, twos)
	require.False(t, ok, "two's complement")
	_, ok = NewBFloat16Table(8, func(code byte) float32 { return float32(code) * 1.01 })
	require.False(t, ok, "more bits than bfloat16 has")
	table, ok := NewBFloat16Table(8, tableValues["signed zeros"])
	require.True(t, ok)
	require.Equal(t, float32(math.Ldexp(1, -16)), table.Least)
}
