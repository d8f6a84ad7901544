package operands

import "errors"

// Errors that a program can tell apart with [errors.Is]. Those of whole files are of
// package safetensors or of the system, those of shapes and scales of package tensor.
var (
	// ErrName is of a tensor that is not there.
	ErrName = errors.New("operands: no such tensor")

	// ErrCodes is of a tensor of numbers that are no codes, and ErrFloats of one of floats,
	// which are yet to be quantized.
	ErrCodes  = errors.New("operands: no codes")
	ErrFloats = errors.New("operands: floats for codes")

	// ErrFormat is of codes of which the file does not say the format, as it says
	// nothing of bytes, or says another than the operand.
	ErrFormat = errors.New("operands: the format is not known")

	// ErrBlock is of codes and scales that several blocks fit, or none that is usual.
	ErrBlock = errors.New("operands: the block is not known")

	// ErrScales is of codes of which it is not known where their scales are, and of
	// scales of a type that has none.
	ErrScales = errors.New("operands: no scales")

	// ErrScaleFormat is of scales that are bytes of which a safetensors file does not say the
	// format, and of scales whose type says another than the operand.
	ErrScaleFormat = errors.New("operands: the format of scales is not known")

	// ErrOuter is of codes of which it is not known where their outer scales are, of outer
	// scales of a type that has none, and of divisors that are not named.
	ErrOuter = errors.New("operands: no outer scales")

	// ErrResult is of a C, a bias or an old C of another type or shape than the
	// product's.
	ErrResult = errors.New("operands: not of the product")

	// ErrUint16 is of a C of 16-bit integers, such as NumPy has for bfloat16.
	ErrUint16 = errors.New("operands: integers for bfloat16")
)
