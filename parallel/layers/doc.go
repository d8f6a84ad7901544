// Package layers runs parallel training in one process: ranks, each a goroutine, and
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
//	x := layers.Exchange{Name: "grad", Order: layers.OrderRing, Wire: bf16, Result: bf16}
//	sum, traffic, err := x.AllReduce(ctx, operands)  // without ranks: a pure function
//
//	traffic, err := layers.Run(ctx, 8, func(r *layers.Rank) error {
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
// # Tensor parallel sums
//
// [Slices] are a fixed number of places at which the terms of a sum arise, whatever the
// number of ranks: products whose K is cut in slices are then equal to the bit on 1, 2, 4
// and 8 ranks ([Rank.Multiply]).
//
// # Data parallel and ZeRO
//
// [Zero] trains any [train.Model] with gradients, moments and weights sharded, each sent
// in a format of its own. In FP32 its bits are those of one rank. Its checkpoints are in
// parts, and read by any number of ranks.
//
// # Layers
//
// A tensor-parallel layer, such as [MLP], is cut in slices of channels, heads or the
// vocabulary. Each slice is a layer of package nn with its own scales and histories, and
// what crosses ranks is summed over slices. With Sequence sums are reduce-scattered, so
// that each rank normalizes its own rows and gathers them.
//
// [Rank.Experts] sends tokens to experts that ranks share out, and the results back, each
// in a format of its own. [Rank.Group] puts these together, as tensor times data parallel.
//
// Each is judged by its twin of one rank, which has the same slices, micro-batches and
// shards, and so the same bits where what is sent is FP32. With one slice that is the layer
// of package nn.
//
// # Whole models
//
// [Llama] runs an nn.Llama, dense or with experts, under a [Layout]: data, tensor, pipeline
// and expert parallel, ZeRO, and an Exchange for everything that is sent.
//
//	layout := layers.Layout{Data: 2, Expert: 2, Tensor: 2, Zero: 2, Exchanges: map[string]layers.Exchange{
//		"dispatch": {Wire: e4m3}, "gradient": {Order: layers.OrderRing, Wire: bf16},
//	}}
//	m, err := layers.NewLlama(model, layout, optimizer)
//	loss, norm, err := m.Step(ctx, tokens, targets, batch, seq, lr)
//	twin, err := layers.NewLlama(model, layout.Twin(), optimizer)  // the same on one rank
//
// [Llama.Take] makes a snapshot of each rank, which is written while the run goes on, and
// [Llama.Restore] reads the checkpoint under another layout:
//
//	saved, err := saver.Save(ctx, func() error {
//		return m.Take(position, snapshots...)
//	}, func(ctx context.Context) error {
//		return directory.Save(ctx, snapshots...)
//	})
//
// [Llama.Evaluate] is the loss of a batch alone. A Layout may interleave stages, share a table
// between the first and the last of them, and in stage 3 of ZeRO a rank has the weights of
// one layer at a time. Two things are missing. A Layout refuses Operators.Reductions. And the
// routed experts of a Llama multiply the rows of each source rank separately, not in one batch.
//
// # Sources
//
// Rings: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms (2009), and NCCL.
// Halving: Thakur, Rabenseifner & Gropp, Optimization of collective communication
// operations in MPICH (2005). Sums in E4M3 under a scale that ranks share: FP8-LM, arXiv
// 2310.18313. Fixed trees over slices: arXiv 2511.17826. ZeRO: Rajbhandari et al., arXiv
// 1910.02054. Tokens of experts: DeepEP, and DeepSeek-V3, arXiv 2412.19437. Tensor
// parallel layers: Megatron-LM, arXiv 1909.08053; sequence parallel norms: arXiv 2205.05198.
package layers
