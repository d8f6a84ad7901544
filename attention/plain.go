package attention

import (
	"github.com/octavo-fp8/octavo/internal/canonical"
)

// scores writes the scores of row i and the keys of a tile that it sees, those from k0 on.
func (s *scratch) scores(a *computation, kvHead, i, k0 int) {
	r, dim, to := &s.row[i], a.sizes.Dim, s.p[i*tile:][:tile]
	blockQ, blockK := a.q.block(), a.k.block()
	q, scalesQ := s.q[i*dim:][:dim], s.scalesQ[i*ceilDiv(dim, blockQ):]
	for j := r.from; j < r.to; j++ {
		k, scalesK := s.k[j*dim:][:dim], s.scalesK[j*ceilDiv(dim, blockK):]
		c := float32(0)
		for lo := 0; lo < dim; lo += a.block {
			hi := min(lo+a.block, dim)
			c = canonical.FMA(dot(q[lo:hi], k[lo:hi], &a.products)*scalesQ[lo/blockQ],
				scalesK[lo/blockK], c)
		}
		to[j] = a.alpha(c, kvHead, s.firstRow+i, k0+j)
	}
}

// dot returns the sum of products in the order of gemm's step 2. Products that are not
// float32s are not rounded. Those of bfloat16s are exact in float64, and what is rounded there
// of a sum with a float32 is never near the middle of two float32s.
func dot(a, b []float32, of *products) (p float32) {
	if of.exactQK {
		return canonical.Dot(a, b)
	}
	for lo := 0; lo < len(a); lo += canonical.Chunk {
		var sums [2]float32
		for i := lo; i < min(lo+canonical.Chunk, len(a)); i++ {
			if of.wideQK {
				sums[i%2] = canonical.FMA(a[i], b[i], sums[i%2])
			} else {
				sums[i%2] = fma(a[i], b[i], sums[i%2])
			}
		}
		p += sums[0] + sums[1]
	}
	return p
}

// fma returns x·y+z rounded once, for x and y of 8 bits of precision at most.
func fma(x, y, z float32) float32 { return float32(float64(z) + float64(x)*float64(y)) }

// weigh adds the tile's values times P to O of row i: step 6.
func (s *scratch) weigh(a *computation, i int) {
	r, width := &s.row[i], a.sizes.ValueDim
	o, p := s.o[i*s.width:][:width], s.p[i*tile:][:tile]
	s.even, s.odd = grow(s.even, 2*width), grow(s.odd, width)
	even, odd, sums := s.even[:width], s.odd, s.even[width:2*width]
	clear(sums)
	for lo := 0; lo < tile; lo += canonical.Chunk {
		clear(even)
		clear(odd)
		for j := max(lo, r.from); j < min(lo+canonical.Chunk, r.to); j++ {
			to := even
			if j%2 != 0 {
				to = odd
			}
			values := s.values[j*s.stride:][:width]
			if a.wideV {
				for d, v := range values {
					to[d] = canonical.FMA(p[j], v, to[d])
				}
				continue
			}
			addProducts(to, p[j], values, a.exactPV)
		}
		for d := range sums {
			sums[d] += even[d] + odd[d]
		}
	}
	alpha := s.state[i].Alpha
	for d := range o {
		o[d] = float32(o[d]*alpha) + sums[d]
	}
}

// addProducts adds x times row to sums.
func addProducts(sums []float32, x float32, row []float32, exact bool) {
	row = row[:len(sums)]
	if exact {
		for d, v := range row {
			sums[d] += float32(x * v)
		}
		return
	}
	for d, v := range row {
		sums[d] = fma(x, v, sums[d])
	}
}
