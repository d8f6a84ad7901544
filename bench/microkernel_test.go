package bench

import (
	"fmt"
	"testing"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// panelDepth is the K of what micro-kernels are measured on, a block of scales: panel, A
// and C then fit 32 KiB, the smallest of nearest caches.
const panelDepth = 128

// BenchmarkMicrokernel is the micro-kernels alone, on operands in the nearest cache: what
// a product could reach if nothing were to be fetched, decoded or packed.
func BenchmarkMicrokernel(b *testing.B) {
	for _, l := range cpu.Levels() {
		k := microkernel.For(l)
		if k == nil || l == cpu.AMX { // which has the micro-kernels of AVX-512
			continue
		}
		products := []panelProduct{
			{"Multiply", k.Multiply, k.MR, k.NR, 4},
			{"MultiplyRounded", k.MultiplyRounded, k.MR, k.NR, 4},
			{"MultiplyPairs", k.MultiplyPairs, k.MR, k.NR, 4},
			{"MultiplyCodes", k.MultiplyCodes, k.MR, k.NR, 1},
			{"MultiplyCodeBlocks", k.MultiplyCodeBlocks, microkernel.CodeRows, microkernel.PanelWidth / 2, 4},
			{"MultiplyCodesRow", k.MultiplyCodesRow, 1, microkernel.PanelWidth, 1},
		}
		if d := microkernel.DotsFor(l); d != nil { // the others are those of AVX-512
			products = []panelProduct{{"MultiplyDots", d.Multiply, d.MR, d.NR, 4}}
		}
		for _, m := range products {
			if m.multiply == nil {
				continue
			}
			name := fmt.Sprintf("kernel=%s/level=%v/m=%d,n=%d,k=%d", m.kernel, l, m.rows*m.rowBlocks, microkernel.PanelWidth, panelDepth)
			b.Run(name, func(b *testing.B) { m.measure(b, l) })
		}
	}
}

// panelProduct is the product of register blocks, one below the other, with a panel, some
// columns at a time.
type panelProduct struct {
	kernel                   string
	multiply                 func(*microkernel.Task)
	rows, columns, rowBlocks int
}

// measure reports the part of the level's multiply-adds that it reached, too.
func (m panelProduct) measure(b *testing.B, l cpu.Level) {
	s := Shape{M: m.rows * m.rowBlocks, N: microkernel.PanelWidth, K: panelDepth, Experts: 1}
	a, panel, c := normals(s.M*s.K), normals(s.K*s.N), make([]float32, s.M*s.N)
	codes := make([]byte, s.K*s.N)
	scales := normals(s.M + s.N)
	t := &microkernel.Task{
		P:          &c[0],
		Multiplier: 0x0080_0080_0080_0080, Mask: 0xBFFF_BFFF_BFFF_BFFF, // E4M3 as float16
		Ahead: microkernel.Ahead, Whole: 1,
		ScaleA: &scales[0], StrideA: 4 * s.K, StrideC: 4 * s.N, StrideScaleA: 4,
		RowBlocks: m.rowBlocks, Blocks: 1, Pairs: s.K / 2,
		Flags: microkernel.First | microkernel.Last | microkernel.Canonical,
	}
	if m.kernel == "MultiplyDots" { // normals are other bfloat16s in pairs
		t.StrideA, t.Pairs = 2*s.K, s.K/4
	}
	for b.Loop() {
		for j := 0; j < s.N; j += m.columns {
			t.A, t.B, t.C, t.Codes, t.ScaleB = &a[0], &panel[j], &c[j], &codes[j], &scales[s.M+j]
			m.multiply(t)
		}
	}
	b.ReportMetric(s.rate(b), "GFLOP/s")
	if peak := PeakMultiply(l, 1); peak > 0 {
		b.ReportMetric(100*s.rate(b)/peak, "%roof")
	}
}

// BenchmarkPackPanel transposes codes of B into a panel: whole, as weights are packed, and
// a piece of sizes that kernels do not divide, as at the edges of a product.
func BenchmarkPackPanel(b *testing.B) {
	const stride = 4096
	src, dst := make([]byte, microkernel.PanelWidth*stride), make([]byte, microkernel.PanelWidth*stride)
	for _, s := range []struct{ rows, depth int }{{microkernel.PanelWidth, stride}, {29, 250}} {
		for _, l := range cpu.Levels() {
			if l == cpu.AMX {
				continue
			}
			b.Run(fmt.Sprintf("level=%v/rows=%d,k=%d", l, s.rows, s.depth), func(b *testing.B) {
				b.SetBytes(int64(s.rows * s.depth))
				for b.Loop() {
					microkernel.For(l).PackPanel(dst, src, stride, s.rows, s.depth)
				}
			})
		}
	}
}

// BenchmarkRagged is a product of few rows with a tensor of sizes that kernels do not
// divide, and packing that.
func BenchmarkRagged(b *testing.B) {
	s := Shape{M: 16, N: 1000, K: 1000, Experts: 1}
	o, err := NewOperands(s)
	if err != nil {
		b.Fatal(err)
	}
	memory := written(4 * mebi)
	for _, l := range Levels() {
		c := o.Cases(l, 1)[0]
		b.Run(fmt.Sprintf("task=multiply/level=%v/%v/workers=1", l, key(s)), func(b *testing.B) {
			s.report(b, c)
			s.reportRoof(b, c, memory)
		})
		c.Run = func() error {
			_, err := gemm.Pack(o.b[0])
			return err
		}
		b.Run(fmt.Sprintf("task=pack/level=%v/n=%d,k=%d", l, s.N, s.K), func(b *testing.B) {
			b.SetBytes(int64(s.N * s.K))
			c.measure(b)
		})
	}
}
