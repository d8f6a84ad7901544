// Package comparison is the work of octavo train: it trains the same model in FP32 and
// in FP8, from the same seed on the same batches, step by step side by side, and reports
// how far they differ. A run may be kept in checkpoints and go on from there to the same
// bits.
package comparison
