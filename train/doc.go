// Package train runs the training of a model: the text it learns from, workers that
// share a batch, checkpoints, and what to do when something goes wrong. The model is any
// [Model], such as [nn.Llama]; package optim has the optimizer.
//
// # A step
//
// [Corpus.Batch] picks windows of bytes, the model computes the loss and its gradients,
// [optim.AdamW.Step] moves the parameters by them:
//
//	tokens, targets, err := corpus.Batch(step, batch, seq)
//	model.ZeroGrad()
//	loss, err := model.Loss(ctx, tokens, targets, batch, seq)
//	err = model.Backward(ctx)
//	norm, err := optimizer.Step(ctx, model.Params(), schedule.At(step))
//	model.EndStep() // delayed scales, if there are any
//
// [DataParallel] cuts a batch into shards, which replicas of the model do side by side,
// and reduces their gradients as workers would, in FP32 or FP8 ([collective.Reducer]).
// [Evaluate] judges a model between steps and leaves no trace in it.
//
// # When something goes wrong
//
// [optim.AdamW.StepOrSkip] skips a step whose gradients are not finite.
// [SpikeDetector] watches the loss and the gradient norm, and [Suspects] what a spike
// may come from. [StepWatch] tells from step times which ranks are slow and which hang.
// A [Watch] applies [Rule]s in flight, each with an action: to skip the step, to go back to
// before it with a [Rewinder], to widen formats with [nn.Llama.Widen], or to stop.
// [SaveCheckpoint] keeps a run in one file that is whole at every
// moment, and [LoadCheckpoint] goes on to the same bits. Errors can be told apart by
// [ErrCheckpoint], [ErrVersion], [ErrMismatch] and [ErrInput].
//
// # Checkpoints that do not stop the run
//
// A [Snapshot] is a copy of the run at the end of a step. A [Saver] has it written while
// the run goes on, and a [Directory] keeps the newest and finds the newest whole one:
//
//	saved, err := saver.Save(ctx, func() error {
//		return snapshot.Take(model, optimizer, position)
//	}, func(ctx context.Context) error {
//		return directory.Save(ctx, &snapshot)
//	})
//
// Where the run calls Save after each step that is [Saver.Due], a kill at any moment loses
// at most Saver.Interval steps. With [Snapshot.Beside] not even copying stops the run:
// parameters and moments, which only an optimizer's step changes, are copied while the next
// gradients are computed.
//
// What it keeps is a directory with a file for each rank that has a [Partition] of every
// parameter and its moments, and manifest.json, which is written last and makes them a
// checkpoint. Ranks of a run that cut parameters have a [Piece] of each parameter of a
// [Whole]: [Snapshot.TakePieces], [Snapshot.SavePart] and [Snapshot.Commit] write their
// checkpoint, and whoever reads it, as a whole or by [Checkpoint.RestorePieces], may be of
// another number.
//
// # Concurrency
//
// A [Corpus] may be shared. All else must not be used concurrently, but where it says
// that it may.
package train
