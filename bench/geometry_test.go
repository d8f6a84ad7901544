package bench

import (
	"fmt"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/geometry"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// BenchmarkGeometry is one product, cut in many ways and as it is by default, in parts of
// what the arithmetic could do meanwhile. Package geometry says why it is cut as it is.
func BenchmarkGeometry(b *testing.B) {
	s := Shape{M: 1024, N: 1024, K: 1024, Experts: 1}
	o, err := NewOperands(s)
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range []cpu.Level{cpu.NEON, cpu.AVX2, cpu.AVX512, cpu.AVX512BF16} {
		if !slices.Contains(cpu.Levels(), l) {
			continue
		}
		all := []geometry.Geometry{geometry.For(microkernel.For(l), 4)}
		if k := microkernel.DotsFor(l); k != nil {
			all[0] = geometry.For(k, 2)
		}
		for _, depth := range []int{64, 128, 256} {
			for _, rows := range []int{96, 192, 384, 768} {
				for _, cols := range []int{128, 256, 512, 768} {
					all = append(all, geometry.Geometry{Depth: depth, Rows: rows, Cols: cols})
				}
			}
		}
		for _, workers := range []int{1, 2} {
			for i, g := range all {
				for _, c := range o.Cases(l, workers) {
					name := fmt.Sprintf("level=%v/packed=%t/workers=%d/depth=%d/rows=%d/cols=%d/default=%t", l, c.Packed, workers, g.Depth, g.Rows, g.Cols, i == 0)
					b.Run(name, func(b *testing.B) {
						defer geometry.Force(g)()
						s.report(b, c)
						if peak := PeakMultiply(l, workers); peak > 0 {
							b.ReportMetric(100*s.rate(b)/peak, "%peak")
						}
					})
				}
			}
		}
	}
}
