// Package layers runs training on the ranks of package collective: data parallel with ZeRO,
// and tensor, pipeline, expert and sequence parallel layers and models. It is for numerics, not
// for speed: what a large run would compute, to the bit, whatever the scheduling.
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
// [Experts.Send] sends tokens to experts that ranks share out, and the results back, each
// in a format of its own. [collective.Rank.Group] puts these together, as tensor times data parallel.
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
//	layout := layers.Layout{Data: 2, Expert: 2, Tensor: 2, Zero: 2, Exchanges: map[string]collective.Exchange{
//		"dispatch": {Wire: e4m3}, "gradient": {Order: collective.OrderRing, Wire: bf16},
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
// ZeRO: Rajbhandari et al., arXiv 1910.02054. Tokens of experts: DeepEP, and DeepSeek-V3,
// arXiv 2412.19437. Tensor parallel layers: Megatron-LM, arXiv 1909.08053; sequence parallel
// norms: arXiv 2205.05198.
package layers
