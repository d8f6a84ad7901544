// Package collective runs ranks in one process, each a goroutine, and says what they send in
// which format, in which order it is added, and where it is rounded. It is for numerics, not
// for speed: what a large run would compute, to the bit, whatever the scheduling.
//
// # Collectives
//
// An [Exchange] says how: its [Wire] is the format, FP32, BF16 or codes under a recipe of
// package scaling, its [Order] who adds what, its [Rounding] where sums are rounded, and
// its [AmaxRule] whose amaxes scales follow from.
//
//	x := collective.Exchange{Name: "grad", Order: collective.OrderRing, Wire: bf16, Result: bf16}
//	traffic, err := collective.Run(ctx, 8, func(r *collective.Rank) error {
//		return r.AllReduce(x, sum, mine)
//	})
//
// All-reduce, reduce-scatter, all-gather and all-to-all are methods of a [Rank], which sends
// messages through channels and counts them: [Traffic], in bytes, by rank and by format. A
// message is a tensor of its own. What encoding and adding lose is told to a Reporter, such as
// a telemetry.Recorder, where it happens.
//
// Additions are FP32. An order is a tree of them; it is the same for each number of a
// part. Orders differ in the last bits even in FP32.
//
// A [Simulation] is the sum alone, over many thousand ranks, and its error. A [Reducer] is the
// mean alone, fast, in FP32 or E4M3, with factors that keep sums in range.
//
// # Sums over slices
//
// [Slices] are a fixed number of places at which the terms of a sum arise, whatever the
// number of ranks: products whose K is cut in slices are then equal to the bit on 1, 2, 4
// and 8 ranks ([Rank.Multiply]).
//
// # Sources
//
// Rings: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms (2009), and NCCL.
// Halving: Thakur, Rabenseifner & Gropp, Optimization of collective communication
// operations in MPICH (2005). Sums in E4M3 under a scale that ranks share: FP8-LM, arXiv
// 2310.18313. Fixed trees over slices: arXiv 2511.17826.
package collective
