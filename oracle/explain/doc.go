// Package explain finds the fault that explains a wrong result. It is the engine of the
// rooms that know what kernels get wrong: oracle/fault of products, oracle/flash of
// attention.
//
// Such a room has a [Table], with one row for each kind of fault: its name, its words, with
// which parameters it is worth trying and what it changes. To explain a result, the room
// computes for each fault what a kernel with it would give for a sample of the elements
// ([Places]), and a [Tally] counts how many of them are as near to that as a correct
// kernel's are to the right result, and how unlikely that is by chance ([Evidence]).
// [Compete] weighs all faults that way, each on a part of the sample first, and keeps those
// that convince, in the order of the table: the likelier ones come first there.
//
// Faults are tried one at a time. All functions are safe for concurrent use on distinct
// destinations.
package explain
