// Package optim moves the parameters of package nn against their gradients: [AdamW],
// with its moments in FP32, BF16 or FP8 ([Moments]), gradients clipped by their norm,
// and a [Schedule] of learning rates.
//
//	optimizer := optim.AdamW{WeightDecay: 0.1, Clip: 1}
//	norm, err := optimizer.Step(ctx, model.Params(), schedule.At(step))
//
// [AdamW.StepOrSkip] skips a step whose gradients are not finite, and says which tensor
// was the first that was not. [AdamW.State] and [AdamW.Tensors] are what a checkpoint
// keeps; package train has one.
//
// The same gradients give the same bits on every machine and for every number of
// workers. An optimizer must not be used concurrently; a Schedule may be.
package optim
