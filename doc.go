// Package octavo is the root of a library of FP8 mixed-precision numerics in pure
// Go: the same bits on every machine, as fast as the machine, and nothing hidden.
//
//   - [github.com/octavo-fp8/octavo/fp8]: formats, encode, decode, rounding, and
//     what happened while encoding
//   - [github.com/octavo-fp8/octavo/tensor]: codes, a shape, and the grid of scales
//     that gives them meaning
//   - [github.com/octavo-fp8/octavo/scaling]: how a scale is chosen
//   - [github.com/octavo-fp8/octavo/gemm]: block-scaled matrix products
//   - [github.com/octavo-fp8/octavo/swiglu]: SwiGLU and Smooth-SwiGLU
//   - [github.com/octavo-fp8/octavo/telemetry]: who saturated, underflowed or went
//     non-finite first
//   - [github.com/octavo-fp8/octavo/nn]: layers with forward and backward, linear in
//     FP8, and a small Llama
//   - [github.com/octavo-fp8/octavo/nn/hf]: a Llama of Hugging Face, loaded and saved
//   - [github.com/octavo-fp8/octavo/optim]: AdamW with moments in FP8, schedules
//   - [github.com/octavo-fp8/octavo/train]: a run: data, parallel workers, checkpoints
//   - [github.com/octavo-fp8/octavo/oracle]: the right answer, what a GPU's tensor
//     cores will say, and how far a kernel may stray
//   - [github.com/octavo-fp8/octavo/plan]: before a run, what fewer bits cost in
//     loss, and what a layout takes in memory and time
//   - [github.com/octavo-fp8/octavo/safetensors]: one file of tensors
//   - [github.com/octavo-fp8/octavo/checkpoint]: a model's files, in the layouts of
//     others
//   - [github.com/octavo-fp8/octavo/progress]: how long operations say how far they are
//
// Imports point one way: fp8, then tensor, then scaling, then gemm and swiglu,
// then nn, optim and train, and oracle. Programs to start from are in the folder
// examples. This package itself says which instructions
// the library uses here: see [Level].
package octavo
