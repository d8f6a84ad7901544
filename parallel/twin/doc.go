// Package twin proves that two ways to do a run have the same bits, or says where they
// first differ: the step, the tensor, the rank and the element, with both values.
//
// A [Run] does a run and tells a [Recorder] what there is in each step. What is told is
// hashed and forgotten, so that memory does not grow with the model:
//
//	run := func(ctx context.Context, r *twin.Recorder) error {
//		...
//		for step := range steps {
//			_, _, err := twin.StepZero(ctx, twin.Watch{Recorder: r}, zero, do, rate)
//			...
//			if err := r.EndStep(ctx); err != nil {
//				return err
//			}
//		}
//		return nil
//	}
//	trail, err := twin.Record(ctx, run)
//	result, err := trail.Compare(ctx, other)
//
// Compare stops at the first step of which a hash differs, and does that part of both runs
// again to find the element: runs must be repeatable, and it is an error if they are not.
//
// # What is compared
//
// Values have a [Place]: the name of a tensor, the part of the batch or of the model that
// it belongs to, which must not depend on the layout, and the rank that has it. Ranks that
// have the same tensor and part have copies, which must be equal: those of the other run
// must equal that of most ranks. So runs of different numbers of ranks can be compared,
// and [Trail.Apart] says without any twin which rank has drifted from the others.
//
// Bits are compared: -0 is not 0, and NaNs with other payloads differ.
//
// # Checks that need no twin
//
// [Trail.Apart] is one, of scales and of weights. [Sums] is another: it compares a mean
// gradient with what ranks had before it was sent, by a sum with signs of all elements, and
// says what was divided by.
//
// # Faults
//
// An [Injector] does to one rank in one step what faulty hardware or software does, to show
// that it is found. It acts on the models that it is given and on nothing else.
package twin
