// Package evaluate says what quantizing the linear layers of a [nn.Llama] costs on a text,
// before anything is converted: perplexity, and how far the distribution of the next token
// is from that of FP32, for the whole model, for each layer alone and for each kind of
// linear layer alone.
//
//	fp8, err := evaluate.ParseRecipe("fp8")
//	o := evaluate.Options{Recipes: []evaluate.Recipe{fp8}}
//	evaluation, err := evaluate.Run(ctx, model, tokens, o)
//
// # What is quantized
//
// The seven projections of each block: q, k, v, o, gate, up and down; those of latent
// attention, and of every expert, in models that have them. Embedding, norms, attention
// scores, softmax, routers and head stay FP32, as in package nn. A [Mode] says which
// operands of y = x·Wᵀ are quantized, always from their values in the model:
//
//	weights      W becomes what its codes stand for, decoded to FP32; the product is FP32
//	activations  x likewise
//	both         the product of codes under their scales, in the canonical order of package
//	             gemm: what [nn.Options.FP8] computes in training
//
// A recipe that only rounds, such as bf16, multiplies what was rounded in FP32 in all modes,
// and in both modes together rounds results where it says so. What a recipe says of gradients,
// of layers that stay in BF16 and of layers whose scales are rounded plays no part: all layers
// are quantized, and alike.
//
// An activation's scale is chosen from the rows of one window, which are multiplied
// together: a scale for the whole tensor is one for the window. As package nn/hf says, the
// rows of q_proj and k_proj are in the order of interleaved pairs.
//
// # Windows
//
// The text is cut into windows of Options.Context tokens, each Options.Stride after the one
// before; of a window that overlaps the one before, only the targets that follow count. Each
// window is a sequence of its own. Options.Prefix is put before every window, such as a token
// that begins texts, and is no target. The token at place 0 is a target only behind a prefix.
//
// # Budgets
//
// A [Recipe] may have one for each linear layer in place of its own. [Mix] chooses them for a number
// of bits a weight by an evaluation of each layer and kind alone; what was chosen is then to be
// evaluated on another text. [Result.Against] is the difference of two results of it, paired. A
// [RecipeFile] has the recipes of modules for those who convert the model.
//
// # Figures
//
// Losses are in nats, and sums in float64. With s the sum of a window and n its targets, a
// mean is Σs/Σn, and its standard error that of a ratio of sums over windows,
// √(w/(w-1)·Σ(s-mean·n)²)/Σn with w windows: NaN if there is one. Windows of one text are not
// independent, so that it is too small rather than too large. A difference from FP32 is paired:
// its error is that of the differences, window by window, which is far below that of either
// perplexity. KL divergence is that of the quantized model's distribution from FP32's,
// Σp·ln(p/q) in nats a token, to within about 1e-7. Where logits of the quantized model
// are not finite, sums are NaN and the target counts as NonFinite.
//
// Results are the same bits for any number of workers.
package evaluate
