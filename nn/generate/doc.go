// Package generate runs a [nn.Llama] token by token: with its weights in FP8, and with the
// keys and values of the tokens so far in a cache in FP8.
//
//	r, err := nn.ParseRecipe("fp8")
//	g, err := generate.New(ctx, model, generate.Options{FP8: &r.FP8.Forward})
//	s, err := g.NewSequence(0)
//	logits, err := g.Prefill(ctx, []*generate.Sequence{s}, [][]int32{prompt})
//	for {
//		token, err := sampling.Choose(logits, s.Len())
//		logits, err = g.Step(ctx, []*generate.Sequence{s}, []int32{token})
//	}
//
// [Generator.Generate] is that loop, until a text ends or there is no more room, and
// [Generator.GenerateBatch] that of many requests, which are run together.
//
// # Definition
//
// Layers are those of package nn, with every feature of [nn.Config]. Weights are quantized once and
// packed; the product is that of package gemm, so that linear layers have the bits of
// [nn.Options.FP8]. Biases, norms, gates and routers are FP32, and so are embedding and head
// unless Options.Head or RoundHead say otherwise: values that bfloat16 has are kept in it, and
// multiplied in FP32. Of latent attention the keys and values of every head are kept, not the
// latents that they are made of. Attention is that of package attention, in its canonical order without splits, with P in
// bfloat16, or in float32 with such a cache, of
//
//	queries      with their positions, rounded to bfloat16, but for a float32 cache
//	E4M3 cache   keys with their positions and values, as code·scale: codes of x/scale, rounded
//	             once; the scale is max(amax/448, 1e-6) of the head and token, or given for
//	             the layer or the head
//	BF16 cache   keys and values rounded to bfloat16
//	F32 cache    keys and values as they are: logits are those of [nn.Llama] but for the order
//	             of sums
//
// A token sees the cache as it was when the token was added: the largest scale of the values,
// which decides the order of sums, is taken over the tokens up to it, those before its window too.
// LongRoPE chooses its factors by how long the sequence is when a token is added, or by the whole
// prompt of a [Request]. Where that takes others than the keys in the cache were rotated by, these
// are computed anew, as transformers does for Phi-3.
//
// # Bits
//
// Under a recipe that quantizes each token's inputs by themselves, [CheckBatchInvariant], the
// logits of a token are the same bits whether tokens come one by one or at once, whatever other
// sequences are run with them, for any number of workers and on every machine; with LongRoPE those
// of what follows the last one. [Options.BatchInvariant] refuses other recipes: under those, a scale is that of all tokens of
// one call.
//
// # Memory
//
// A sequence has room for all its tokens from the start: in E4M3, in an [attention.Cache],
// D+4 bytes for each key and value of D elements and head, D with scales that are given, rounded
// up to whole panels and pages; in BF16 2D and in float32 4D, in whole pages. In NVFP4 and MXFP8 a
// code takes a byte and a scale four, D+D/4 and D+D/8: these are for the numbers that such caches
// give, not for memory. A generator keeps what [Generator.WeightBytes] counts, and the embedding. With Options.Read there is never more than one matrix in FP32 besides.
package generate
