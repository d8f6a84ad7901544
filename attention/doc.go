// Package attention computes attention over operands in FP8 and bfloat16, with the same
// bits on every machine and for any number of workers.
//
// A [Problem] is one attention: softmax(scale·Q·Kᵀ)·V of every query head, under a mask.
package attention
