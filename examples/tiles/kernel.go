package main

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// What a GPU kernel has as constants.
const (
	tileM, tileN = 32, 64 // elements of C that a thread block computes
	blockK       = 128    // products that share a pair of scales, and that are promoted together
)

// wgmma stands in for the tensor core: 32 products at a time, 13 fraction bits.
var wgmma = oracle.HopperWGMMA()

// product is what the kernel is launched with: C = A·Bᵀ, a scale for each 1x128 codes of
// A and each 128x128 of B.
type product struct {
	a, b             []byte    // [m, k] and [n, k]
	scalesA, scalesB []float32 // [m, blocks] and [n/128, blocks]
	c                []float32 // [m, n]
	m, n, k          int
	mended           bool // whether the kernel has the line that mends it
}

// launch runs the kernel over a grid that covers C.
func launch(a, b *tensor.Tensor, mended bool) []float32 {
	p := &product{a: a.Codes, b: b.Codes, scalesA: a.Scales, scalesB: b.Scales, m: a.Shape[0], n: b.Shape[0], k: a.Shape[1], mended: mended}
	p.c = make([]float32, p.m*p.n)
	for m0 := 0; m0 < p.m; m0 += tileM {
		for n0 := 0; n0 < p.n; n0 += tileN {
			p.block(m0, n0)
		}
	}
	return p.c
}

// block is a thread block: it computes the tile of C from row m0 and column n0 on.
func (p *product) block(m0, n0 int) {
	var acc [tileM][tileN]float32 // registers
	blocks := (p.k + blockK - 1) / blockK
	for q := range blocks {
		k0, k1 := q*blockK, min((q+1)*blockK, p.k)
		for i := range min(tileM, p.m-m0) {
			row := m0
			if p.mended {
				row = m0 + i
			}
			sa := p.scalesA[row*blocks+q] // the line with the fault: one scale for the tile's rows
			for j := range min(tileN, p.n-n0) {
				sb := p.scalesB[(n0+j)/blockK*blocks+q]
				sum := wgmma.Dot(p.a[(m0+i)*p.k+k0:(m0+i)*p.k+k1], p.b[(n0+j)*p.k+k0:(n0+j)*p.k+k1], fp8.E4M3, fp8.E4M3, 0)
				acc[i][j] = fma(float32(sa*sb), sum, acc[i][j]) // promotion
			}
		}
	}
	for i := range min(tileM, p.m-m0) {
		for j := range min(tileN, p.n-n0) {
			p.c[(m0+i)*p.n+n0+j] = acc[i][j]
		}
	}
}

// fma is x·y + z. The product is exact in float64; that the sum is rounded there first
// changes a bit about once in 2^29 times.
func fma(x, y, z float32) float32 { return float32(math.FMA(float64(x), float64(y), float64(z))) }
