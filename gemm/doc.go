// Package gemm multiplies block-scaled matrices in FP8 and narrower formats, in any pair
// of them, with the same bits on every machine and for any number of workers.
//
// A product is C = A·Bᵀ, with A of shape [M, K], B of shape [N, K] and C of
// shape [M, N], all row-major. It is accumulated in float32 in the canonical
// order and no other:
//
//  1. K is cut into blocks of L, the smaller of the operands' scale extents
//     along K, or the whole of K where neither is cut. The larger extent must be
//     a multiple of the smaller; an operand whose extent is the whole of K, or
//     at least K, goes with any. For K = 0 the result is +0.
//  2. A block is cut into chunks of 32 from its start. In a chunk, products of
//     even offset are added in order into one sum, those of odd offset into
//     another, both from +0; the pair is added, and then added to the block's p.
//     Every product of two values is exact in float32.
//  3. After each block, in order, c = fma(p*sa, sb, c), where p*sa is rounded to
//     float32 and c starts at +0. After the last block, where an operand has outer
//     scales ([tensor.Outer]), c = c*alpha, with alpha = ga*gb rounded to float32; ga is 1
//     for an operand without, and the rounded reciprocal of a divisor.
//  4. The bias is added, then the old C where asked for, each one float32
//     addition, and the sum is rounded once to the type of C.
//
// A NaN result is always the canonical one, 7FC00000 in float32. The order is
// that of the TDPBF16PS instruction and, for step 3, of TransformerEngine's
// exact reference (blockwise_fp8_gemm_reference.py): p*(sa*sb) would underflow
// where the result does not. It is not symmetric in A and B.
//
// Scales that vary from element to element of the sum (an extent of 1 along
// K), or extents of which neither divides the other, cannot be factored out:
// that is an error that says which requantization would do. So is a scale that its
// format does not hold, such as one of float32 that is NaN, infinite or negative, and an
// alpha that is infinite, or 0 where neither factor is and no operand is empty. All checks
// come before the first write. A NaN in an encoded scale is data: it makes its products
// NaN, which a Reporter hears of. Bits of a code above its format's width do not count.
//
// Values of E2M1, E2M3 and MXINT8 are small multiples of a step, so that a block's sum is
// exact in every order while its length times the largest product is at most 2^24 steps: up
// to 116,508 for E2M1 pairs, 23,301 for E2M1 by E2M3, 4,660 for E2M3 pairs and 1,024 for
// MXINT8 pairs. Integer units compute such sums, those of VNNI, AVX2, AMX INT8 or SDOT, in
// blocks that are multiples of 8 or the whole of K, and give the bits of the order above.
//
// Micro-kernels for AMX, for AVX-512, for AVX2 with FMA and for NEON compute all products
// there, grouped ones and all types of C included; elsewhere, and under the build
// tag purego, plain Go does. The tiles of AMX serve products for which they pay, from
// about five rows of A on; Linux is asked for them at the first such product, and
// where it refuses, AVX-512 serves those too. A matrix of weights that is used again
// and again is best given as [Packed], above all where A has few rows. Memory to work
// in is kept from call to call: once warm, [Multiply] allocates nothing.
package gemm
