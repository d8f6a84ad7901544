package gemm

import (
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
	for _, l := range kernels.Levels("amx.Multiply") {
		list = append(list, kernels.At[backend](l, amxBackend{microkernel.For(l)}))
	}
	return list
}

// productLevel is [cpu.Product] but in tests.
var productLevel = cpu.Product

// choose returns the backend for a product, by the level in use and by its shape. Linux
// is asked for tiles when they pay for the first time.
func (p *product) choose() backend {
	level := cpu.Current()
	if level == cpu.AMX && (!p.suitsAMX() || productLevel() != cpu.AMX) {
		level = cpu.AVX512
	}
	b, _ := backends.For(level)
	return b
}

// suitsAMX reports whether tiles are faster than vectors of AVX-512.
func (p *product) suitsAMX() bool {
	return p.m >= amxFrom.rows && p.m*p.block >= amxFrom.rowsAndBlock && p.m*p.n*p.k >= amxFrom.products
}

// amxFrom is from where on tiles pay: from so many rows of A, so many times the
// length of a block of K, and so many products. Tests lower it; an empty product
// never uses tiles. It is an estimate, in cycles for 32 columns of B along 32 of K:
//
//   - Tiles take 64 for up to 32 rows of A, however few those are, and 180 to convert
//     the codes of B. To scale and add the sums of a block takes 200.
//   - Vectors take 130 to convert the codes and 140 for each 4 rows of A. For up to 4
//     rows they convert in the kernel, and the codes need not be rearranged; there
//     reading them is what takes time, and tiles gain nothing.
//
// So tiles win from 5 rows on where blocks are long, from about 8 where they are of
// 32 and from 16 where they are of 16. One square of results, along 64 of K, is the
// least that is worth preparing tiles for.
var amxFrom = thresholds{rows: 5, rowsAndBlock: 256, products: 32 * 32 * 64}

type thresholds struct{ rows, rowsAndBlock, products int }
