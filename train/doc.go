// Package train runs the training of a model: the text it learns, workers that share a
// batch, checkpoints, and what to do when something goes wrong. Package nn has the
// model, package optim the optimizer.
//
// # A step
//
// [Corpus.Batch] picks windows of bytes, [nn.Llama.Loss] runs them forward,
// [nn.Llama.Backward] adds gradients to the parameters, [optim.AdamW.Step] moves them:
//
//	tokens, targets, err := corpus.Batch(step, batch, seq)
//	model.ZeroGrad()
//	loss, err := model.Loss(tokens, targets, batch, seq)
//	err = model.Backward()
//	norm, err := optimizer.Step(model.Params(), schedule.At(step))
//	model.EndStep() // delayed scales, if there are any
//
// A batch that does not fit in memory is done in parts: Loss and [nn.Llama.BackwardScaled]
// for each, then one Step and one EndStep. Each history of a delayed scale then gets
// the largest amax of all parts, as from the whole batch; a forward pass that is run
// again, to have its activations back, records nothing new. [DataParallel] does the
// parts side by side and reduces their gradients as workers would, in FP32 or FP8.
//
// # When something goes wrong
//
// [optim.AdamW.StepOrSkip] skips a step whose gradients are not finite and says which tensor
// was the first that was not. [SpikeDetector] watches the loss and the gradient norm,
// and [Suspects] what a spike may come from. [SaveCheckpoint] keeps a run in one file
// that is whole at every moment, and [LoadCheckpoint] goes on to the same bits.
//
// # Concurrency
//
// A [Corpus] may be shared.
package train
