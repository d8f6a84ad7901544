// Package nn has the layers of a transformer, each with a forward and a backward pass,
// and a [Llama] made of them. Linear layers multiply in FP32, in FP8 and narrower formats,
// or operands that were rounded to a narrow format.
//
// # Layers
//
//	NewLinear     y = x·Wᵀ, or with a bias              [rows, in] to [rows, out]
//	NewRMSNorm    root mean square normalization        [rows, dim]
//	NewLayerNorm  layer normalization                   [rows, dim]
//	NewPointwise  ReLU, GELU                            [rows, any]
//	NewRotary     rotary positions, for attention
//	NewAttention  causal, rotary, grouped queries       [batch·seq, dim]
//	NewMLA        multi-head latent attention           [batch·seq, dim]
//	NewMLP        SwiGLU or other gated feed-forward    [rows, dim]
//	NewExperts    a mixture of such feed-forwards       [batch·seq, dim]
//	NewRouter     chooses experts, with weights         [batch·seq, dim] to [.., TopK]
//	NewBlock      attention and MLP with their norms    [batch·seq, dim]
//	NewEmbedding  rows of a table                       tokens to [rows, dim]
//	CrossEntropy  mean loss, masked targets             [rows, vocab] to a number
//
// Tensors are row-major float32 slices, and rows of activations are positions: sequence
// after sequence, and in each the tokens in order. All layers have the same manners:
//
//   - Forward writes its result to memory of the caller, the first slice, which must
//     not overlap the input. It keeps the input until Backward, and does not copy it
//     unless it says so.
//   - Backward takes the gradient of the result, writes that of the input, and adds
//     those of the parameters to their [Param.Grad].
//   - A wrong length is an error, [ErrInput], before anything is written. When the
//     context has ended the error is the context's; results are then unspecified.
//
// A model puts layers together, gives all of them the same [Options] with one [Shared],
// and calls [Scaling.BeginBackward] before its first Backward of a pass; the example of
// this package is such a model. Package optim moves its parameters, and package train
// saves it, evaluates it, and trains it on several workers.
//
// # Llama
//
// [Llama] is the decoder of Touvron et al. (arXiv 2302.13971). The seven projections of
// a block are linear layers with the options of its [Config]; embedding, norms,
// attention scores, softmax and output head are FP32, unless Config.Operators rounds what
// they compute. Parameters have the names of a Hugging Face Llama checkpoint, which package
// nn/hf loads; here the rows of q_proj and k_proj are in the order of interleaved pairs, as
// Meta's and llama2.c's are, and not in that of rotated halves.
//
//	loss, err := model.Loss(ctx, tokens, targets, batch, seq)
//	err = model.Backward(ctx)
//
// A batch that does not fit in memory is done in parts: Loss and
// [Llama.BackwardScaled] for each, then one step of the optimizer and one EndStep. Each
// history of a delayed scale then gets the largest amax of all parts, as from the whole
// batch; a forward pass that is run again, to have its activations back, records
// nothing new. [Llama.Forward] and [Llama.BackwardLogits] are for other losses, of
// which the caller computes the gradient; targets of [IgnoreIndex] do not count.
//
// # Mixture of experts
//
// With [Config].Experts a Llama has [Experts] in place of MLPs, shared ones and those that a
// [Router] chooses, and with Config.MLA the attention of DeepSeek-V3 ([MLA]). Recipes hold for
// all their linear layers but the router's, which is FP32 unless RouterConfig.Rounding says
// otherwise. In the words of that paper's configuration:
//
//	nn.Config{..., Dense: 3,
//		MLA: &nn.MLAConfig{QueryRank: 1536, KVRank: 512, NoPE: 128, RoPE: 64, Value: 128},
//		Experts: &nn.ExpertsConfig{Hidden: 2048, Shared: 1, Router: nn.RouterConfig{
//			Experts: 256, TopK: 8, Scale: 2.5, Groups: 8, TopGroups: 4,
//			BiasRate: 0.001, BalanceLoss: 0.0001,
//		}}}
//
// Operands of experts have names, such as "model.layers.3.mlp.experts.17.up_proj.input", so
// that a Reporter hears of each expert's amax and of what saturated, and by the number of
// elements of its load, which [Router.Load] has too. Biases of routers are part of
// [ScalingState], and [Scaling.EndStep] moves them. Each token of experts that are trained
// has of FP32, beyond what an MLP keeps: the router's scores, and for each expert that was
// chosen its result; with FP8 activations also the input of the router.
//
// # Other families
//
// Fields of [Config] make other families of a Llama; package nn/hf knows those of published
// models. All work in both passes and with all recipes, but for Smooth-SwiGLU, which needs the gate
// of SwiGLU and a down projection without bias.
//
//	HeadDim, RotaryDim, RopeScaling, WindowRopeTheta   heads and their positions
//	Windows, Sinks, ScoreScale, ScoreCap               scores of attention
//	Norms, Biases, Gate                                what norms, linear layers and MLPs compute
//	EmbeddingScale, LogitCap                           both ends
//	DenseLayers                                        layers without experts between others
//
// Biases, gains and sinks are FP32 in every recipe and have no weight decay. Where a norm
// follows attention or an MLP, post_self_attn_layernorm or post_mlp_layernorm, the one before the
// MLP keeps its name post_attention_layernorm, as in GLM-4. The builder of a model of its own asks
// [Config.Scores], [Config.HeadDims] and [Config.Rotaries] what its layers are made of.
//
// # FP8
//
// With [Options.FP8] each of a linear layer's three products, forward, input gradient
// and weight gradient, multiplies in FP8 under recipes of its own for both operands,
// accumulates in FP32 and gives FP32. Master weights and gradients stay FP32.
// [DefaultFP8] has the formats and blocks of DeepSeek-V3, [ProfileFP8] those of a named
// profile. FP8.Stochastic rounds gradients without bias, by random numbers that are new in
// each backward pass. [Options.Smoothing] makes an MLP's activation Smooth-SwiGLU.
//
// The recipes need not have eight bits. [Recipes] lists published ones that have names,
// those with four bits among them, whose parts can be left out one by one:
//
//	r, err := nn.ParseRecipe("nvfp4")
//	r.Without(nn.PartHadamard).Apply(&cfg, seed)
//
// FP8.Hadamard transforms the operands of the weight gradient, and Config.BF16Last leaves
// the last layers of a [Llama] in BF16.
//
// # DeepSeek-V3
//
// The recipe deepseek-v3 is that of arXiv 2412.19437, section 3.3, as far as the paper says
// it. All operands are E4M3. s is a scale max/amax of float32 (te-block), p a power of two
// (te-block-pow2); a block of 1x128 lies along the sum of the product: along channels in
// both first products, along tokens in the third.
//
//	y = x·Wᵀ     x of 1x128; W of 128x128, s
//	dx = dy·W    dy of 1x128; W of 128x128, s
//	dW = dyᵀ·x   dy of 1x128; x, as it was kept, of 1x128
//
//	                           x in y   kept of x for dW           x in dW   dy
//	q_proj, k_proj, v_proj     s        its codes and s            s         s
//	o_proj                     p        E5M6 of FP32 x, p          p         s
//	gate_proj, up_proj         p        its codes and p            p         s
//	down_proj                  s        both inputs of SwiGLU,     s         p
//	                                    E4M3, s
//
// The gradient dy is quantized from FP32 for both of its products, and so is the input of
// down_proj, which is computed from what was kept. The backward pass of attention reads the
// kept input of o_proj. Powers of two are where the paper has them: where a tile is kept in
// E5M6, and in what its experts are sent, which here is the input of every MLP and the
// gradient of its output. Moments are BF16 (optim.MomentsBF16), master weights and their
// gradients FP32, as there; embedding, head, norms and attention, which are BF16 or FP32
// there, are FP32.
//
// The default, fp8, has the same formats and blocks, p everywhere, x of dW quantized from
// FP32, attention whose backward pass reads nothing that was rounded, and moments in FP32.
// What the paper does not say is: where E5M6 has its bits; how a scale is rounded that is
// no power of two, and whether an amax has a floor; whether dy of dW was quantized before;
// and the accumulation is FP32 here, in the order of package gemm, where the tensor cores
// keep 14 bits for 128 products.
//
// # Rounding
//
// With [Options.Rounding] operands are rounded to a narrow format ([NarrowFormat]) and
// multiplied in FP32: training in BF16, as a baseline, and what floats of 6 and 4 bits
// would do, for scaling laws. [DefaultRounding] is the usual one for each format:
//
//	six := nn.DefaultRounding(nn.NarrowE3M2)
//	model, err := nn.NewLlama(nn.Config{..., Rounding: &six}, seed)
//
// [Options.Operators] rounds what other classes of operators compute, one by one: sums along
// rows, norms, softmax, embedding, output head and residual stream, to see which of them
// needs how much. [OperatorClass.Round] is for going through the classes:
//
//	for _, class := range nn.OperatorClasses() {
//		cfg := cfg
//		class.Round(&cfg, nn.NarrowE4M3)
//		...
//
// Narrowing.Recipe rounds under a recipe of package scaling instead, one operand where only
// one is to be: what weights alone cost, or activations alone.
//
// # Training and inference
//
// Delayed scales follow from what training saw: [Scaling] holds their histories, and
// [Scaling.EndStep] ends a step. In [Scaling.Inference], which [Llama.Logits] and
// [Llama.Evaluate] use, layers take the scales that there are, record nothing, report
// nothing and keep nothing for Backward, so that an evaluation leaves no trace.
//
// Data-parallel workers exchange a [StepAmax] in each step, a few bytes for each
// quantized operand, and have the same scales then. [Scaling.State] is for checkpoints.
//
// # Taps
//
// [Shared.Tap] sees every activation, in training and in inference. Names begin with
// the layer's, which is that of its weight without ".weight", or its prefix:
//
//	model.embed_tokens.output                    the embedding
//	model.layers.0.input_layernorm.output        likewise post_attention_layernorm, model.norm,
//	                                             post_self_attn_layernorm and post_mlp_layernorm
//	model.layers.0.self_attn.q_proj.input        of each linear layer, lm_head too;
//	model.layers.0.self_attn.q_proj.output       lm_head.output are the logits, before a cap
//	model.layers.0.self_attn.q_norm.output       likewise k_norm, with a row for each head
//	model.layers.0.self_attn.query, .key, .value queries and keys with their positions
//	model.layers.0.self_attn.mixed               values that attention has weighted
//	model.layers.0.middle                        residual stream between attention and MLP
//	model.layers.0.mlp.swiglu.gate, .up          what SwiGLU multiplies
//	model.layers.0.mlp.swiglu.product            its result, smoothed if it is
//	model.layers.0.mlp.experts.0.swiglu.gate     likewise of each expert that has tokens
//	model.layers.0.output                        residual stream after the block
//
// and in the backward pass the gradient of the loss in them:
//
//	model.layers.0.self_attn.q_proj.gradient        of the output of a linear layer
//	model.layers.0.self_attn.q_proj.input_gradient
//	model.layers.0.self_attn.query_gradient         likewise key_gradient, value_gradient
//	model.layers.0.gradient                         of the output of a block
//	model.layers.0.middle_gradient
//	model.embed_tokens.gradient
//
// # Reproducibility
//
// The same seed gives the same bits on every machine and for every number of
// workers. Each sum has a fixed order and belongs to one worker; products are
// rounded before they are added, so that no compiler fuses them; elementary
// functions are octavo's own; random numbers are hashes of a seed and a position.
//
// # Memory
//
// Buffers are sized by the first call with a batch shape and reused after that, but for
// the squares of scores that attention makes anew for each goroutine of a call. What a
// layer needs within a call only, gradients of activations, transposes and operands of
// products, all layers with the same [Shared] have in common. What grows with the
// number of layers are parameters, their gradients, moments, and the activations that
// are kept from the forward to the backward pass, which [Llama.ActivationBytes] counts.
// With dim D, keys and values of width K, hidden width H, h heads, and T tokens in a
// sequence, [Options.Activations] has a block keep for each token, in values of FP32
// and of FP8:
//
//	                           fp32          fp8                 fp8-swiglu, deepseek-v3
//	residual stream            2D FP32       2D FP32             2D FP32
//	inputs of linear layers    3D+H FP32     3D+H FP8            3D FP8
//	queries, keys, values      D+2K FP32     D+2K FP32           D+2K FP32
//	attention probabilities    hT FP32       computed again      computed again
//	inputs of SwiGLU           2H FP32       2H FP32             2H FP8
//
// of which deepseek-v3 keeps D, the input of the layer after attention, in 12 bits instead
// of 8. Norms of queries and keys add D+K, norms behind attention and MLP 2D.
//
// [Config].Policies compute again in the backward pass what a block does not keep, class by
// class: results of norms, latents of MLA, queries, keys and values, probabilities, what
// attention gives, the residual stream after it, the inputs and the result of SwiGLU, and
// results of routed experts. Gradients, scales and what a Reporter hears of are the same to
// the bit: products have the same operands under the same scales, and nothing is recorded
// twice. Blocks take turns in the memory of what is not kept. [Config.SearchPolicies] finds
// the policies with the fewest operations for a budget of bytes, exactly, and
// [Config.PlanActivations] says what any take:
//
//	plan, err := cfg.SearchPolicies(batch, seq, budget)
//	cfg.Policies = plan.Policies
//
// Where gradients are those of what was rounded, as with deepseek-v3, what is rounded stays
// kept: inputs of SwiGLU, and what attention gives in E5M6. Norms are then computed again and
// rounded to the same tiles; nothing else of a block can be in FP8.
//
// In inference nothing of this is kept: blocks take turns in the memory of one.
//
// FP8 values also have their scales. Layers of a block that read the same input share
// what is kept of it; with delayed scales, whose history is each layer's own, and with
// stochastic rounding each keeps its own.
//
// The inputs of linear layers are kept as the operands that the weight gradients
// multiply anyway, quantized earlier, so that fp8 gives the bits of fp32, delayed
// scales included. In fp8-swiglu gradients differ: as in DeepSeek-V3 (arXiv 2412.19437,
// section 3.3.3) the inputs of SwiGLU are kept in blocks of 1x128, and its result is
// computed from them in the backward pass. In deepseek-v3 so do all that come of an input
// that was kept: as the operand of the forward product, along channels, to be quantized
// anew along tokens.
//
// # Concurrency
//
// A layer uses several goroutines inside a call. Layers with the same Shared, and so a
// model, must not be called concurrently; models of their own may be.
package nn
