// Package world runs parallel training in one process: ranks, each a goroutine, and
// collectives that say what is sent in which format, in which order it is added, and
// where it is rounded. It is for numerics, not for speed: what a large run would compute,
// to the bit, whatever the scheduling.
//
// # Collectives
//
// An [Exchange] says how: its [Wire] is the format, FP32, BF16 or codes under a recipe of
// package scaling, its [Order] who adds what, its [Rounding] where sums are rounded, and
// its [AmaxRule] whose amaxes scales follow from.
//
//	x := world.Exchange{Name: "grad", Order: world.OrderRing, Wire: bf16, Result: bf16}
//	sum, traffic, err := x.AllReduce(ctx, operands)  // without ranks: a pure function
//
//	traffic, err := world.Run(ctx, 8, func(r *world.Rank) error {
//		return r.AllReduce(x, sum, mine)         // the same bits
//	})
//
// All-reduce, reduce-scatter, all-gather, broadcast and all-to-all are both functions of
// all operands and methods of a [Rank], which send messages through channels; both give
// the same bits, and the same [Traffic] in bytes, by rank and by format. A message is a
// tensor of its own. What encoding and adding lose is told to a Reporter, such as a
// telemetry.Recorder, where it happens.
//
// Additions are FP32. An order is a tree of them; it is the same for each number of a
// part. Orders differ in the last bits even in FP32.
//
// A [Simulation] is the sum alone, over many thousand ranks, and its error.
//
// # Sources
//
// Rings: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms (2009), and NCCL.
// Halving: Thakur, Rabenseifner & Gropp, Optimization of collective communication
// operations in MPICH (2005). Sums in E4M3 under a scale that ranks share: FP8-LM, arXiv
// 2310.18313.
package world
