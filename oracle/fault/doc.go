// Package fault knows what kernels get wrong. One table, with a row for each [Kind], says
// how the fault changes a product: the operands that are read, the scales, the products
// along K that count, the arithmetic, the place that a result goes to, what is done to it
// last. The table is used twice.
//
// [Inject] computes the whole result of a kernel that has one of these faults and is
// honest otherwise. [Explain] looks at a wrong result and says which faults give it:
// all are tried on a sample that is spread over the whole matrix, and compete by how
// much they explain. An element is explained if it is as near to what the faulty kernel
// should have computed as a correct kernel's must be to the right result, by a bound
// derived as that of [oracle.Bound]. Faults that give the same result on the sample
// are reported together, as one class. Where none explains the result, the explanation
// says so, and which were tried.
//
// An explanation is evidence and no proof. It is given only where a score says that a
// result that is wrong by chance would fit so well less than once in a million times.
// The score is heuristic: it takes elements for independent, and what right elements and
// fitted factors count against a fault was chosen, not derived. What is tested is that
// correct kernels are not accused, and that of 3,000 products that were disturbed at random
// none is explained, unless the disturbance does what a fault does. Faults are tried one
// at a time: of two at once, neither is found unless the other is in few elements.
// FAULTS.md has a table of all faults, what a bound sees of them and which are named.
//
// All functions are safe for concurrent use on distinct destinations, and no result
// depends on the number of workers or on the machine.
package fault
