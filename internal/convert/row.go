package convert

import "math"

// Lengths of rows of blocks that are encoded in one go, each block under its scale.
const (
	// LongBlock is the length from which blocks are encoded one by one.
	LongBlock = 1024

	// MaxFactors is the number of scale factors that a row has room for.
	MaxFactors = 1024

	// StepLength is the number of values that share a factor under PerStep.
	StepLength = 16
)

// RowLength returns the number of values, in blocks of the given number, up to
// which the factors of a row fit.
func RowLength(block int) int {
	switch {
	case block >= LongBlock:
		return math.MaxInt
	case block%StepLength == 0:
		return MaxFactors * StepLength
	}
	return MaxFactors
}
