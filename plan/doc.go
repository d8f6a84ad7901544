// Package plan says what a training will lose by being done in few bits, before it
// starts: two published scaling laws of precision give the loss of a language model
// of N parameters trained on D tokens in so many bits, and the precision that is best
// for a budget. What a layout takes in memory and in time will be here too.
//
//   - [Kumar] (Kumar et al., "Scaling Laws for Precision", arXiv 2411.04330): fewer
//     bits are fewer effective parameters. [Kumar2024] has its constants.
//   - [Sun] (Sun et al., "Scaling Laws for Floating-Point Quantization Training",
//     arXiv 2501.02423, the Capybara law): a penalty by exponent bits, mantissa
//     bits and block size that grows with D. [Sun2025] has its constants.
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
// 7.0 bits with them and 3.5 without. It was fitted on 465 trainings of
// Transformer++ models on Dolma, N from 30M to 220M and D from 1.5B to 26B, with the
// forward pass quantized to integers: weights to 3-12 bits, activations and KV
// cache to 4-12, against baselines in BF16. It was checked up to 1.7B parameters, in
// floating point from FP4 to FP32 too. Appendix N fits weights in floating point
// alone: Gamma 2.8111 and Offset 0.1240.
//
// N, D and P free at a fixed cost, the best P depends on nothing but γ_x and n_x:
// it is the P with most effective parameters for its bits. With N given it grows
// like log C.
//
// At few bits a factor of N_eff reaches 0 (activations: 3.11 bits), and below it two
// negative factors would even give a positive N_eff. There the law has no answer
// and Loss returns an error.
//
// Not included, because not published: C_x, by which models trained in few bits
// suffer less from quantization after training. δ is therefore given for models
// trained in 16 bits or more and is an error for others. Table 2 also lists
// b = 1.1277 without saying where it stands. If it is the offset of the exponent of
// δ, as n_x are of theirs, δ is 3.1 times as large: [Degradation] has a field for
// it, 0 in Kumar2024.
//
// # Sun
//
//	L = n/N^α + d/D^β + ε + D^β/N^α·log2(B) / (γ·(E+0.5)^δ·(M+0.5)^ν)
//
// for E exponent bits, M mantissa bits and blocks of B elements that share a scale
// (Table 2). It was fitted on 358 trainings of Llama models on Dolma, N from 41M to
// 679M and D from 10B to 100B, E from 0 to 6 and M from 1 to 7 in formats of 3 to 10
// bits, B from 32 to 512 and whole channels ([ChannelBlock]). Weights in both passes
// and inputs in the backward pass were quantized, the inputs of the forward pass and
// the gradients were not. All codes were finite numbers, and a scale was amax over
// the largest. It was checked on models of 1.2B, 7B and 70B parameters, on no more
// than 100B tokens and, beyond 1.2B, in E4M3 with B = 64 only.
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
// Results are deterministic, but they are estimates computed with package math:
// unlike the rest of octavo, the last bits may differ between architectures.
// Everything here is a plain value and safe for concurrent use.
package plan
