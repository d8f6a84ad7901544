// Package amxemu runs tests of code that uses AMX on machines without it: on
// Linux, with AVX-512 for the rest of the code.
//
// [Test] runs the same test in a process of its own and traces that. A processor
// without AMX refuses each of its instructions, which stops the thread; the tracer
// then does what the instruction does, to the thread's tiles and the process's
// memory, and lets the thread go on behind it. Everything else runs as ever: many
// threads, the collector, the signals by which Go preempts.
//
// Emulated are palette 1 and the instructions of package asmtable: their results
// bit for bit but for the sign and payload of a NaN, and their faults. Not
// emulated are a start row other than 0, with which tiles count as not configured,
// and time.
package amxemu
