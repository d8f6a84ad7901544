package tensor

import "github.com/octavo-fp8/octavo/fp8"

// Reporter receives what happens to each block of a tensor. op names the operation,
// such as "quantize". Its methods are called by several goroutines at once unless
// Options.Workers is 1. Package telemetry has one that records.
type Reporter interface {
	// Block reports the encoding of the block at (row, col) of a tensor's grid
	// of scales. st must not be kept after the call.
	Block(op, tensor string, row, col int, scale float32, st *fp8.Stats)

	// NonFinite reports the first value of a tensor, in row-major order, that
	// is NaN or infinite: its index in the array and its value.
	NonFinite(op, tensor string, index int, value float64)
}

// BlocksReporter is a Reporter that can hear of many blocks at a time, which is
// faster. Quantize then calls Blocks in place of Block, but for small blocks of fewer
// than 16 columns and more than one row, and where Stats have a Detail. So a type that
// embeds one, such as a telemetry.Recorder, and has a Block of its own needs a Blocks of
// its own, too.
type BlocksReporter interface {
	Reporter

	// Blocks is Block of len(stats) consecutive blocks of a grid of gridCols columns,
	// row-major from the given one on, whose scales are those in scales. Neither slice
	// may be kept or changed.
	Blocks(op, tensor string, first, gridCols int, scales []float32, stats []fp8.Stats)
}
