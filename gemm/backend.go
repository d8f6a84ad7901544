package gemm

import (
	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// backend is one of the algorithms that compute results. All give the same bits.
type backend interface {
	blocking() blocking

	// compute computes an area and hands it to out.
	compute(s *scratch, p *part, r area, out *result)
}

// backends are all of them, by level.
var backends = kernels.New("gemm.Multiply", listBackends()...)

func listBackends() []kernels.Implementation[backend] {
	list := []kernels.Implementation[backend]{kernels.At[backend](cpu.Generic, genericBackend{})}
	for _, l := range kernels.Levels("microkernel.Kernels") {
		list = append(list, kernels.At[backend](l, vectorBackend{microkernel.For(l)}))
	}
	for _, l := range kernels.Levels("microkernel.Dots") {
		list = append(list, kernels.At[backend](l, vectorBackend{microkernel.DotsFor(l)}))
	}
	for _, l := range kernels.Levels("amx.Multiply") {
		list = append(list, kernels.At[backend](l, amxBackend{}))
	}
	return list
}

// productLevel is [cpu.Product] but in tests.
var productLevel = cpu.Product

// choose returns the backend for a product, by the level in use and by its shape. Linux
// is asked for tiles when they pay for the first time.
func (p *product) choose() backend {
	level := cpu.Current()
	if p.integers(level) != nil && !p.prefersFloats(level) {
		if k := p.integers(p.integerLevel(level)); k != nil {
			return integerBackend{k}
		}
	}
	if level != cpu.AMX || !p.suitsAMX() || productLevel() != cpu.AMX {
		if d := p.dots(level, cpu.Named()); d != nil {
			return p.chooseVectors(vectorBackend{d})
		}
		level = min(level, cpu.Vectors)
	}
	b, _ := backends.For(level)
	if v, ok := b.(vectorBackend); ok {
		return p.chooseVectors(v)
	}
	return b
}

// chooseVectors returns the backend for as few rows of A as there are that has the
// micro-kernels of v, or v.
func (p *product) chooseVectors(v vectorBackend) backend {
	switch {
	case v.Dots != nil && p.block%quadDepth != 0 && p.block < p.k,
		v.Dots == nil && (float16Views[p.b.format].factor == 0 || p.block%pairDepth != 0 && p.block < p.k):
		return v // the kernels for few rows see no padding within blocks, and without dots read float16s
	}
	idle := roundUp(p.m, microkernel.FewWidth) - p.m
	switch {
	case v.MultiplyFew != nil && !p.b.packed && p.m <= fewRows && p.n >= fewLeastCols && idle <= mostIdle:
		return fewBackend(v)
	case v.MultiplyCodes != nil && p.m <= v.MR:
		return skinnyBackend{v}
	}
	return v
}

// prefersFloats reports whether tiles of bfloat16 are faster than integers.
func (p *product) prefersFloats(level cpu.Level) bool {
	from := &floatsFrom
	return level == cpu.AMX && p.m >= from.rows && p.block%amx.Chunk == 0 && p.block < from.block && p.suitsAMX() && productLevel() == cpu.AMX
}

// integerLevel returns the level whose integer kernels pay: at level AMX those of tiles, or
// of vectors.
func (p *product) integerLevel(level cpu.Level) cpu.Level {
	from := &amxIntegersFrom
	if level == cpu.AMX && (p.m < from.rows || min(p.block, p.k) < from.block || p.m*p.n*p.k < from.products || productLevel() != cpu.AMX) {
		return cpu.Vectors
	}
	return level
}

// amxIntegersFrom is from where on tiles of integers pay. Tests lower it. Measured on a
// Sapphire Rapids, 1024 columns and K of 1024, E2M1 with one worker, the rate of tiles in
// that of VNNI: in blocks of 32 0.85 to 1.1, but 1.2 to 1.6 for 128 rows; of 64 0.75 to 1.3
// for 16 rows, 1.15 to 1.3 for 32, 1.3 to 1.4 for 64, 1.4 to 1.7 for 128, 1.3 to 1.4 for 512; of
// 128 and more 1.2 to 2 for 1024. In blocks of 16 they have 1 at most.
var amxIntegersFrom = integerThresholds{rows: 32, block: 64, products: 32 * 32 * 32}

// floatsFrom is from how many rows on, and for blocks shorter than which, tiles of bfloat16
// are faster than integers. Measured likewise, in blocks of 32, in the rate of VNNI: 0.85 to
// 1.2 for 256 rows, 1.1 to 1.6 for 512 and for 1024. In blocks of 64 tiles of integers are
// faster, for 1024 rows by a fifth. Tests change it.
var floatsFrom = integerThresholds{rows: 512, block: 64}

type integerThresholds struct{ rows, block, products int }

// suitsAMX reports whether tiles read both formats and are faster than vectors of AVX-512.
func (p *product) suitsAMX() bool {
	if bfloat16Codes[p.a.format].decoder == nil || bfloat16Codes[p.b.format].decoder == nil {
		return false
	}
	from := amxFrom.rowsTimesBlock
	if p.block%amx.Chunk != 0 && p.block < 2*amx.Chunk {
		from = amxFrom.rowsTimesPadded
	}
	return p.m >= amxFrom.rows && p.m*p.block >= from && p.m*p.n*p.k >= amxFrom.products
}

// amxFrom is from where on tiles pay: from so many rows of A, so many times the
// length of a block of K, which are more where much of a block's chunks is padding, and so
// many products. Tests lower it; an empty product never uses tiles. Measured on a Sapphire
// Rapids, the best of many runs with one worker, the rate of tiles in that of vectors with
// B packed and not:
//
//   - 512 columns, K of 1024: 0.6 and 0.75 for 4 rows and 1.06 and 1.3 for 5 in blocks of
//     128, as in one block; for 4 rows or fewer vectors convert B in the kernel. 16 rows
//     have 1.4 to 2.4, 32 rows 2.8 to 3.
//   - In blocks of 32: 1 for 5 to 8 rows, 1.1 and 1.2 for 12, 1.4 for 16, 2.3 for 32.
//   - In shorter ones each block is padded to a chunk, scaled and packed by itself, 256
//     columns and K of 512: in blocks of 16 0.9 and 0.6 for 16 rows, 1.3 and 0.9 for 32,
//     1.6 and 1.2 for 64; of 8 1.3 and 1.0 for 128 rows; of 4 0.9 and 0.7 for 128. Blocks
//     of 33 to 63 were not measured, and are taken for such: they are padded likewise.
//   - One square along 32 of K has 1.1, along 64 1.4, along 512 2.5; 256 cubed has 5.
var amxFrom = thresholds{rows: 5, rowsTimesBlock: 256, rowsTimesPadded: 1024, products: 32 * 32 * 32}

type thresholds struct{ rows, rowsTimesBlock, rowsTimesPadded, products int }
