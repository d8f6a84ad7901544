// Package audit gives the verdict on a test: which faults of a kernel it would let pass.
//
// A [Test] compares a kernel's C with a reference by some criteria: rtol and atol for
// each element as torch.allclose has them, a cosine, a relative norm. Run puts every fault
// of package fault into the product, one at a time, and says of each what the test would
// say of that C, beside what is true of it: that it is outside of the bound that
// [oracle.Bound] derives, so that no correct kernel computes it, or that honest rounding
// could give it too, or that it is the same to the last bit.
//
//	r, err := audit.Run[float32](ctx, fault.Product{A: a, B: b}, audit.Test{
//		Criteria: []audit.Criterion{{Rtol: 1e-2, Atol: 1e-1}},
//	}, audit.Options{})
//	...
//	err = r.WriteText(os.Stdout)
//
// The report says as well whether correct kernels would fail the test, and what is wrong
// with its reference: a test that compares with a wrong product, or with one that has the
// same fault, is no test. And it proposes another: operands with which every fault that
// changes a bit shows, and tolerances for them that are derived. What is proposed was
// tried: each fault was put into it.
//
// Differences are exact here. A test in PyTorch rounds them to the type of its tensors,
// so that an element at the very limit may be judged otherwise.
//
// Cases are tests that were found in public to let a fault pass.
package audit
