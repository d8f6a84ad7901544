// Package plan says what a training will cost, before it starts: what fewer bits
// cost in loss, and what a model under a parallel layout takes in memory and in time.
//
// # Memory
//
// [TrainJob.Memory] and [ServeJob.Memory] count what a rank of each pipeline stage
// needs of every kind for a [Model] (known ones by [Named], others by [ReadModel]),
// a [Layout] and a [Precision]. Parameters, weights, gradients, states and the KV cache
// are exact. Activations are those of Megatron-LM with TransformerEngine; beside peaks
// measured on 8 B200 ([Measurements]), in GiB, with BF16 and ZeRO-1 (SimuMax 1.2,
// docs/b200/b200_release_v1.2_summary.md; models are cut to few layers):
//
//	model, layers    sequence   layout     measured   counted
//	Llama 70B, 12        4096   pp2           66.55     66.44   -0.2%
//	Llama 70B, 12        4096   tp4           39.07     38.94   -0.3%
//	DeepSeek-V2, 4       4096   ep8           45.63     45.29   -0.7%
//	DeepSeek-V3, 4       4096   ep8          104.30    103.36   -0.9%
//	Llama 405B, 4        4096   pp2           87.08     86.89   -0.2%
//	Llama 405B, 4        4096   tp4           52.89     52.68   -0.4%
//	Llama 70B, 12       32768   tp2, cp4      68.43     68.17   -0.4%
//	Llama 405B, 4       32768   tp2, cp4      87.03     86.56   -0.5%
//	Llama 70B, 12      131072   tp2, cp4     112.67    111.83   -0.8%
//	Llama 405B, 4      131072   tp2, cp4     118.13    116.52   -1.4%
//
// What an allocator reserved was 3 to 8% above what was measured, and 3 to 10% above what is
// counted ([Headroom]). Nobody has published measured peaks of
// FP8 recipes, of recomputation or of interleaved pipelines: those are counted by the
// same rules, and only that.
//
// # Policies
//
// With library octavo activations are those that package nn of octavo keeps of a layer, class
// by class, in the numbers of the precision ([TrainJob].Policies): with FP32 for what is not
// narrow they are the bytes and operations of [nn.Config.PlanActivations].
// [TrainJob.SearchPolicies] finds, for each stage, the policies with the fewest operations
// done again with which a card holds what is reserved. Sinks, biases and normalised queries are not of nn, and
// add nothing; a window keeps that much of probabilities. The count assumes that shared buffers and the
// temporary memory of operations have their peak size throughout the step.
//
// # Time
//
// FLOPs are exact ([Model.TrainingFLOPs]); how fast they are done is not predicted:
// [TrainJob.Step] and [Pace.Days] take an efficiency that is stated, and [ImpliedMFU]
// says which one a stated time implies. [Quotes] has days that practice quotes.
//
// # Loss
//
// Two published scaling laws of precision give the loss of a language model
// of N parameters trained on D tokens in so many bits, and the precision that is best
// for a budget.
//
//   - [Kumar] (Kumar et al., "Scaling Laws for Precision", arXiv 2411.04330): fewer
//     bits are fewer effective parameters. [Kumar2024] has its constants.
//   - [Sun] (Sun et al., "Scaling Laws for Floating-Point Quantization Training",
//     arXiv 2501.02423, the Capybara law): a penalty by exponent bits, mantissa
//     bits and block size that grows with D. [Sun2025] has its constants.
//
// N counts parameters without embeddings in both. Sun's counts are those of the linear
// layers of the blocks alone, without norms and head: 4·dim² + 3·dim·hidden for each,
// which gives all of Table 3 from Table 1 but the 7B model, whose count belongs to a
// hidden size of 11008. Kumar et al. say "non-embedding" (section 2.3).
//
// Method Loss of a law gives the terms of the loss one by one in a [Loss]; the methods
// that look for an optimum give a [Training]. A training costs 6/16·N·D·P FLOPs
// ([FLOPs]).
//
// # Kumar
//
//	L = A·N_eff^-α + B·D^-β + E + δ
//	N_eff = N·Π(1 - exp(-P_x/γ_x + n_x)),  x one of weights, activations, KV cache
//	δ = C_T·D^γ_D/N^γ_N·exp(-P_post/γ_post), if weights are quantized after training
//
// The main text leaves the offsets n_x out; the constants of its Table 2
// (Appendix K) are fitted with them and mean nothing without: the joint optimum is
// 7.0 bits with them and 3.5 without. Table 2 has one exponent for α and β, which
// were tied, and calls the activations i.
//
// It was fitted on 465 trainings of Transformer++ models on Dolma (section 2.3): N of
// 30, 60, 110 and 220 million, D of 1.5, 3, 6, 13 and 26 billion, the last for two N
// only. The forward pass was quantized to integers, weights with a scale for each
// channel and activations with one for the tensor (Appendix D): weights to 3-12 bits,
// activations and KV cache to 4-12 (Appendix L), against baselines in BF16. The
// abstract speaks of checks up to 1.7B parameters; section 4.3.2 has models of 220M to
// 1.6B, of equal cost, in floating point from FP4 to FP32. Appendix N fits weights in
// floating point alone: Gamma 2.8111 and Offset 0.1240.
//
// N, D and P free at a fixed cost, the best P depends on nothing but γ_x and n_x:
// it is the P with most effective parameters for its bits. With N given it grows
// like log C.
//
// At few bits a factor of N_eff reaches 0 (activations: 3.11 bits), and below it two
// negative factors would even give a positive N_eff. There the law has no answer
// and Loss returns an error.
//
// Not included, because not published: C_x of equation 9, by which models trained in
// few bits suffer less from quantization after training. δ is therefore given for
// models trained in 16 bits or more and is an error for others; to as many bits as
// weights have already it is 0 (section 5). Table 2 also lists b = 1.1277, next to
// γ_post, without saying where it stands. Appendix N calls b the offset of an
// exponent, and Appendix K says that all exponents were fitted with one; if that is
// what it is here, δ is 3.1 times as large. [Degradation] has a field for it, 0 in
// Kumar2024: that is not verified.
//
// # Sun
//
//	L = n/N^α + d/D^β + ε + D^β/N^α·log2(B) / (γ·(E+0.5)^δ·(M+0.5)^ν)
//
// for E exponent bits, M mantissa bits and blocks of B elements that share a scale
// (equation 18 and Table 2). It was fitted on 358 trainings of Llama models on Dolma
// (section 4.1; Table 3 marks 359): N of 41, 85, 154 and 679 million, D of 10.5, 21,
// 52 and 105 billion. E from 0 to 6 and M from 1 to 7, in formats of 3 to 10 bits, had
// a scale for each channel ([ChannelBlock]); blocks of 32 to 512 were fitted in E1M1
// only. In the linear layers weights were quantized in both passes and inputs in the
// backward pass, but neither the inputs of the forward pass nor the gradients. All
// codes were finite numbers, and a scale was amax over the largest. It was checked on
// models of 1.2B (E1M2 and E4M3, B = 512), 7B and 70B (E4M3, B = 64) parameters and on
// no more than 105B tokens.
//
// The penalty grows with D while the data term shrinks, so more than a critical
// amount of data makes a model worse ([Sun.CriticalData]). A block size for one scale
// per tensor is not included: its constants are not published.
//
// # Where they disagree
//
// The penalty of Kumar does not depend on D, that of Sun grows as D^β and is small
// for few tokens. For models of N·P = 220M·32 bits trained on 26B tokens (B = 128),
// which all cost the same:
//
//	bits    32      16      8       6       5       4
//	Kumar   3.197   3.107   3.058   3.059   3.075   3.138    best at 7
//	Sun             2.818   2.724   2.690   2.672   2.659    best at 4
//
// The losses themselves differ because the data and models do; neither may be
// compared with the other's. There is no reason to average them: ask both.
//
// # Warnings and errors
//
// Where a law is used outside the data it was fitted on or checked with, the result
// carries a warning and is an extrapolation. What it cannot say is an error: inputs
// that are not positive or not finite, no effective parameters, an optimum that does
// not exist. No result is ever infinite or NaN. The authors of the first law call
// its trends, not its constants, their result: constants depend on architecture and
// data, and a law fitted elsewhere is a [Kumar] or [Sun] with other fields.
//
// Losses are deterministic, but they are estimates computed with package math:
// unlike the rest of octavo, the last bits may differ between architectures.
// Everything here is a plain value and safe for concurrent use.
package plan
