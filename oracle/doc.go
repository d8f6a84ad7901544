// Package oracle says what the product of two FP8 matrices is, what a given GPU
// will say it is, how far a kernel may stray from it, and where one first did.
//
//   - [Exact] is the right answer: any scales, any formats, one rounding.
//   - [Predict] is what a tensor core will say, bit for bit, under a [Kernel]: a
//     [Model] of its instruction, an interval of promotion to float32 and an order
//     of scales. [Model.Dot] is one instruction, or a chain of them.
//   - [Bound] is how far is too far for a kernel whose order of additions is not
//     known; Predict has a sharper bound for one that is. Both are derived, never
//     guessed: exceeding one is an error of the kernel.
//   - [Compare] turns a result, a wanted one and bounds into a [Report].
//   - [Checksums] find a wrong integer partial sum without computing all of them.
//   - A [Generator] makes what kernels get wrong.
//
// A product is C = A·Bᵀ as in package gemm, with the same checks and errors. A test
// of a kernel reads
//
//	want := make([]float32, m*n)
//	bound := make([]float64, m*n)
//	err := oracle.Exact(want, a, b, oracle.Options{})
//	err = oracle.Bound[float32](bound, nil, a, b, oracle.Accumulation{}, oracle.Options{})
//	report, err := oracle.Compare(got, want, bound, oracle.Comparison{Rows: m, Cols: n, A: a, B: b})
//
// and, where the instruction is known, demands the bits of Predict instead.
//
// # What is verified
//
// The models of Ada and of Hopper's wgmma, and float16 results of mma.sync on
// Hopper and on datacenter Blackwell, give every bit of published vectors (Khattak
// and Mikaitis, github.com/north-numerical-computing/MATLAB-tensor-core), and
// their parameters are pinned: with a neighbouring L, F, Keep or grouping some
// vectors fail. The vectors of mma.sync do not pin F; those of its float32 results
// pin only that c is added last, to nearest. The other models follow published
// descriptions and code (MMA-Sim, arXiv 2511.10909) and are tested by cases
// computed by hand. [Model.Evidence] says which is which. In none is the sign of a
// result that underflows to zero known; it is +0.
//
// All functions are safe for concurrent use on distinct destinations, and no
// result depends on the number of workers or on the machine.
package oracle
