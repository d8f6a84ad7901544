package integer

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "integer.")) }

// compareKernels runs a test for the kernels of every level that has some, of which it
// compares one.
func compareKernels(t *testing.T, name string, test func(t *testing.T, k *Kernels)) {
	kernelstest.Compare(t, "integer."+name, func(t *testing.T, l cpu.Level) {
		if l == cpu.AMX && !cpu.AMXPermitted() {
			t.Skip("Linux permits no AMX")
		}
		test(t, For(l))
	})
}

// TestMembers checks that every function of Kernels is registered.
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
		require.Positive(t, k.Largest)
		require.NotNil(t, k.Multiply)
	})
}

// steps are those of E2M1, E2M3 and MXINT8: the largest value of each, in steps of
// 2^exponent.
var steps = []struct{ largest, exponent int }{{12, -1}, {60, -3}, {128, -6}}

// problem is operands of a task, between guards.
type problem struct {
	Task
	rows, blocks, quads int
	values              [16]int // of nibbles
	a                   []int8
	b                   []int // by k, of all columns
	panel, nibbles      []byte
	table               [16]byte
	start               []int32
	scaleA, scaleB      []float32
	c, p                []float32
	out                 []float32
	outStride, strideA  int
	stride              int // of start and scaleA
	exponent            int
	quadsIn16Bits       int
}

// pair is the formats that values are of.
type pair struct{ a, b int }

func newProblem(t *testing.T, r *rand.Rand, k *Kernels, f pair, rows, blocks, quads int, nibbles bool) *problem {
	fa, fb := steps[f.a], steps[f.b]
	bias := 0
	if k.Unsigned {
		bias = fb.largest
	}
	depth := blocks * quads * Quad
	q := &problem{rows: rows, blocks: blocks, quads: quads, strideA: depth + r.IntN(3), stride: rows + r.IntN(3), outStride: PanelWidth + r.IntN(5)}
	q.quadsIn16Bits = math.MaxInt16 / (2 * fa.largest * (fb.largest + bias))
	q.exponent = fa.exponent + fb.exponent
	q.a = guarded[int8](t, (rows-1)*q.strideA+depth)
	for i := range q.a {
		q.a[i] = int8(max(-128, min(127, r.IntN(2*fa.largest+1)-fa.largest)))
		if r.IntN(3) == 0 {
			q.a[i] = int8(max(-128, min(127, fa.largest*(1-2*r.IntN(2)))))
		}
	}
	for i := range q.values {
		q.values[i] = max(-128, min(127, r.IntN(2*fb.largest+1)-fb.largest))
		q.table[i] = byte(q.values[i] + bias)
	}
	q.panel, q.b = guarded[byte](t, depth*PanelWidth), make([]int, depth*PanelWidth)
	if nibbles {
		q.nibbles = guardedBefore[byte](t, depth/2*PanelWidth)
		if r.IntN(2) == 0 {
			q.nibbles = guarded[byte](t, depth/2*PanelWidth)
		}
	}
	for at := range q.b {
		kk, j := at/PanelWidth, at%PanelWidth
		code := r.IntN(16)
		q.b[at] = max(-128, min(127, r.IntN(2*fb.largest+1)-fb.largest))
		if r.IntN(3) == 0 {
			q.b[at] = -min(128, fb.largest)
		}
		if nibbles {
			q.b[at] = q.values[code]
			q.nibbles[kk/Octet*Quad*PanelWidth+Quad*j+kk%Quad] |= byte(code) << (kk % Octet / Quad * 4)
		}
		q.panel[kk/Quad*Quad*PanelWidth+Quad*j+kk%Quad] = byte(q.b[at] + bias)
	}
	q.start = guarded[int32](t, (blocks-1)*q.stride+rows)
	q.scaleA, q.scaleB = guarded[float32](t, len(q.start)), guarded[float32](t, blocks*PanelWidth)
	for block := range blocks {
		for i := range rows {
			start := int32(math.Float32bits(Magic(q.exponent)))
			for _, a := range q.a[i*q.strideA+block*quads*Quad:][:quads*Quad] {
				start -= int32(a) * int32(bias)
			}
			q.start[block*q.stride+i] = start
		}
	}
	q.c, q.p = guarded[float32](t, rows*PanelWidth), guarded[float32](t, rows*PanelWidth)
	for _, s := range [][]float32{q.scaleA, q.scaleB, q.c} {
		for i := range s {
			s[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(20)-10))
			switch r.IntN(100) {
			case 0:
				s[i] = math.Float32frombits(0x7FC00001 | r.Uint32()&(1<<31)) // not the canonical one
			case 1:
				s[i] = 0
			case 2:
				s[i] = math.MaxFloat32 / float32(1+r.IntN(100))
			case 3:
				s[i] = math.Float32frombits(1 + r.Uint32N(100))
			}
		}
	}
	for i := range q.p {
		q.p[i] = float32(math.Ldexp(float64(r.IntN(1<<20)-1<<19), q.exponent))
	}
	return q
}

// expect returns c and p as the task leaves them.
func (q *problem) expect(flags uint64) (c, p []float32) {
	c, p = slices.Clone(q.c), slices.Clone(q.p)
	for i := range q.rows {
		for j := range PanelWidth {
			at := i*PanelWidth + j
			if flags&Zero != 0 {
				c[at] = 0
			}
			for block := range q.blocks {
				sum := 0
				for k := block * q.quads * Quad; k < (block+1)*q.quads*Quad; k++ {
					sum += int(q.a[i*q.strideA+k]) * q.b[k*PanelWidth+j]
				}
				s := float32(math.Ldexp(float64(sum), q.exponent))
				if flags&First == 0 {
					s += p[at]
				}
				if flags&Last == 0 {
					p[at] = s
					continue
				}
				c[at] = fma(float32(s*q.scaleA[block*q.stride+i]), q.scaleB[block*PanelWidth+j], c[at])
			}
			if flags&Canonical != 0 && c[at] != c[at] {
				c[at] = math.Float32frombits(0x7FC00000)
			}
		}
	}
	return c, p
}

// fma is x*y + z in exact arithmetic, rounded once.
func fma(x, y, z float32) float32 {
	product := float64(x) * float64(y) // exact
	if s := product + float64(z); s != s || math.IsInf(s, 0) {
		return float32(s)
	} else if s == 0 {
		return float32(s)
	}
	const enough = 700 // bits
	p := new(big.Float).SetPrec(enough).SetFloat64(product)
	sum, _ := p.Add(p, new(big.Float).SetFloat64(float64(z))).Float32()
	return sum
}

func (q *problem) run(k *Kernels, nibbles, elsewhere bool, flags uint64) {
	t := &q.Task
	*t = Task{
		A: &q.a[0], B: &q.panel[0], Start: &q.start[0], ScaleA: &q.scaleA[0], ScaleB: &q.scaleB[0], C: &q.c[0],
		StrideA: q.strideA, StrideScaleA: 4 * q.stride, RowBlocks: q.rows / k.MR, Blocks: q.blocks, Quads: q.quads,
		Magic: Magic(q.exponent), Flags: flags, Table: &q.table, Run: q.quadsIn16Bits,
	}
	if flags&(First|Last) != First|Last {
		t.P = &q.p[0]
	}
	if elsewhere {
		t.Out, t.StrideOut = &q.out[0], 4*q.outStride
	}
	if nibbles {
		t.B, t.Nibbles, t.RowBlocks = nil, &q.nibbles[0], 1
		k.MultiplyNibbles(t)
		return
	}
	k.Multiply(t)
}

// TestMultiply compares all kernels with the definition.
func TestMultiply(t *testing.T) {
	for _, name := range []string{"Multiply", "MultiplyNibbles"} {
		t.Run(name, func(t *testing.T) {
			compareKernels(t, name, func(t *testing.T, k *Kernels) { testMultiply(t, k, name == "MultiplyNibbles") })
		})
	}
}

func testMultiply(t *testing.T, k *Kernels, nibbles bool) {
	r := rand.New(rand.NewPCG(1, 16))
	for _, quads := range []int{1, 2, 3, 4, 5, 8, 16, 18, 24} {
		if nibbles {
			quads = (quads + 1) / 2 * 2
		}
		for a := range steps {
			for b := range steps {
				bias := 0
				if k.Unsigned {
					bias = steps[b].largest
				}
				if steps[a].largest*(steps[b].largest+bias) > k.Largest {
					continue
				}
				for _, flags := range []uint64{First | Last, First | Last | Canonical, First | Last | Canonical | Zero, First, 0, Last | Canonical} {
					blocks, rows := 1, k.MR*(1+r.IntN(3))
					if nibbles {
						rows = 1
					}
					if flags&(First|Last) == First|Last {
						blocks += r.IntN(3)
					}
					q := newProblem(t, r, k, pair{a, b}, rows, blocks, quads, nibbles)
					q.check(t, k, nibbles, flags, fmt.Sprintf("%v times %v, %d rows, %d blocks of %d quads, flags %d", steps[a], steps[b], rows, blocks, quads, flags))
				}
			}
		}
	}
}

func (q *problem) check(t *testing.T, k *Kernels, nibbles bool, flags uint64, name string) {
	t.Helper()
	wantC, wantP := q.expect(flags)
	before := slices.Clone(q.c)
	q.run(k, nibbles, false, flags)
	compare(t, name+": c", q.c, wantC, flags&Canonical != 0)
	compare(t, name+": p", q.p, wantP, true)
	if flags&Canonical == 0 || flags&First == 0 {
		return
	}
	copy(q.c, before)
	q.out = guarded[float32](t, (q.rows-1)*q.outStride+PanelWidth)
	q.run(k, nibbles, true, flags)
	for i, got := range q.out {
		want := float32(0)
		if j := i % q.outStride; j < PanelWidth {
			want = wantC[i/q.outStride*PanelWidth+j]
		}
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%s, elsewhere: element %d: %v, want %v", name, i, got, want)
		}
	}
}

// compare compares bits; those of a NaN matter only once it is canonical.
func compare(t *testing.T, name string, got, want []float32, canonical bool) {
	t.Helper()
	for i := range want {
		if !canonical && got[i] != got[i] && want[i] != want[i] {
			continue
		}
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d: %v (%08x), want %v", name, i, got[i], math.Float32bits(got[i]), want[i])
		}
	}
}

// TestLimit has sums as large as a call may have, of either sign.
func TestLimit(t *testing.T) {
	compareKernels(t, "Multiply", func(t *testing.T, k *Kernels) {
		const largest = 60
		quads := Limit / (largest * largest) / Quad
		r := rand.New(rand.NewPCG(2, 16))
		if bias := largest; k.Unsigned && largest*(largest+bias) > k.Largest {
			t.Skip("too large for the kernels")
		}
		for _, sign := range []int{-1, 1} {
			q := newProblem(t, r, k, pair{1, 1}, k.MR, 1, quads, false)
			bias := 0
			if k.Unsigned {
				bias = largest
			}
			for i := range q.a {
				q.a[i] = largest
			}
			for i := range q.b {
				q.b[i] = sign * largest
				q.panel[i] = byte(sign*largest + bias)
			}
			for i := range q.start {
				q.start[i] = int32(math.Float32bits(Magic(q.exponent))) - int32(bias*largest*quads*Quad)
			}
			q.check(t, k, false, First|Last|Canonical, "limit")
		}
	})
}
