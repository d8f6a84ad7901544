// Package oracle judges kernels that multiply matrices of FP8 and narrower formats. It computes the exact
// product, predicts bit for bit what a given GPU's tensor cores return, bounds how far a
// correct kernel may be from the exact product, and says where a kernel first went wrong.
//
//   - [Exact] computes the exact product, under any scales, outer ones too, and in any
//     formats, rounded once.
//   - [Predict] computes what a tensor core returns, bit for bit, for a [Kernel]: the
//     [Model] of an instruction, after how many products its sum is promoted to
//     float32, and the order in which scales are applied. [Model.Dot] is one
//     instruction, or a chain of them, and [Model.DotScaled] one that applies scales.
//   - [ExactFloats], [PredictFloats] and [BoundFloats] do the same for operands in BF16,
//     FP16 or TF32, which are [Floats], with models such as [Hopper] of BF16.
//   - [Bound] bounds the error of a correct kernel whose order of additions is not
//     known. Predict gives a sharper bound for a kernel that is. Both are derived, not
//     guessed: a result outside its bound is an error of the kernel.
//   - [Compare] compares a result with the wanted one under such bounds, and returns a
//     [Comparison].
//   - [Checksums] find a wrong integer partial sum without computing all of them.
//   - A [Generator] makes operands of the kinds that kernels get wrong.
//
// A product is C = A·Bᵀ as in package gemm, with the same checks and errors. A test
// of a kernel reads
//
//	want := make([]float32, m*n)
//	bound := make([]float64, m*n)
//	err := oracle.Exact(ctx, want, a, b, oracle.Options{})
//	err = oracle.Bound[float32](ctx, bound, nil, a, b, oracle.Accumulation{}, oracle.Options{})
//	o := oracle.CompareOptions{Rows: m, Cols: n, A: a, B: b}
//	comparison, err := oracle.Compare(ctx, got, want, bound, o)
//
// and, where the instruction is known, demands the bits of Predict instead. All three
// take some nanoseconds for each of the M·N·K products; they stop when their context
// ends, and report progress. Package judge puts them together: it gives the verdict in
// words, with what explains a wrong result by package fault, and looks at a part of what
// is too large. In a test, package oracletest says it in a line.
//
// # What is verified
//
// The models of Hopper, wgmma and mma.sync in FP8, FP16, BF16 and TF32, give all 983,040
// results that an H200 returned for chains of instructions, c of both signs, mixed formats,
// infinities, NaN, zeros and subnormals, and the bits of whole products of cuBLAS there.
//
// The models of Ada, of Hopper and, for mma.sync, of datacenter Blackwell give every bit of
// published vectors (Khattak and Mikaitis,
// github.com/north-numerical-computing/MATLAB-tensor-core), as do the models of operands in
// BF16, FP16 and TF32 of Volta, Ampere, Ada, Hopper and Blackwell: 66,500 float32 and 24,500
// float16 results of seven GPUs. A neighbouring L, F, Keep or grouping fails some of them,
// with the exceptions that silicon.md lists: the vectors of Blackwell's mma.sync do not pin F
// in FP8, those of float16 results pin no F, and no vectors of GPUs but Hopper's pin in which
// order steps follow each other, or have infinities, NaN, zeros or negative c. There the
// models do as on Hopper.
//
// No vectors of block-scaled instructions are public: [BlackwellMXFP8], blackwell-mxfp4
// and [BlackwellNVFP4], as well as [BlackwellTCGen05] for E2M1, E2M3 and E3M2, are pinned
// by nothing. silicon.md says what would pin them.
//
// Of units to come nothing is verified. "ace-top4mx" (ACE v1, TOP4MX), "arm-fdot4"
// (FEAT_FP8DOT4, FDOT) and "amx-fp8" (TDPBF8PS and its kin) follow specifications,
// "nvfp4-k96" and "nvfp4-k128" are assumed to add as [BlackwellNVFP4] does. silicon.md says
// what is specified of each, what is assumed, and why CDNA4 and gfx1250 have no model.
//
// The other models follow published descriptions and code (MMA-Sim, arXiv 2511.10909) and are tested by cases
// computed by hand. [Model.Evidence] says which is which. In none is the sign of a
// result that underflows to zero known; it is +0.
//
// All functions are safe for concurrent use on distinct destinations, and no
// result depends on the number of workers or on the machine.
package oracle
