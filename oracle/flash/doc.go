// Package flash gives the right answer for attention, and the answer of a flash kernel
// bit for bit.
//
//   - [Exact] computes attention of the operands as they are (codes times scales), with
//     every output correctly rounded, and the row's maximum and log-sum-exp.
//   - [Predict] computes what a kernel returns that works tile by tile with an online
//     softmax. A [Kernel] says, as data, everything that decides its bits: tile and order
//     of keys, how scores are scaled, the exponential, the cast of P and its lift, lazy
//     rescaling, sums and products (exact, in the order of package gemm, or by a model of
//     a tensor core), splits and what divides in the end. [Kernels] is a table of some.
//   - [Bound] derives how far a correct kernel may be from exact attention, from what is
//     claimed of it; [Compare] compares a result under such bounds.
//   - [Inject] gives the bits of a kernel with a [Fault]; [Explain] says from a result alone
//     which fault gives it.
//   - [CheckKernel] gives the verdict on a kernel that is a Go function, from problems that
//     show faults best.
//
// Package attention's own order is a row of the table, and the model gives its bits. The
// other rows are described from published code; nobody has compared them with hardware, and
// what they leave out their Evidence says. Hardware's ex2.approx and lg2.approx have
// published bounds but no published bits: the correctly rounded functions take their places.
//
// All functions may be called by many goroutines at once, and no result depends on the
// number of workers or on the machine.
package flash
