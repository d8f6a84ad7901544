// Package tensor holds arrays of codes of at most eight bits together with what gives
// them meaning: a format, a shape, a grid of scales and, where there is one, a scale above
// them.
//
// A tensor of any rank is seen as a matrix whose columns are its last
// dimension and whose rows are all others together; a vector is one row, a
// scalar one element. One scale covers a [Block] of rows x columns of that
// matrix, and
//
//	value = decode(code) * scale
//
// so stored scales are dequantization multipliers, what DeepSeek's checkpoints
// call weight_scale_inv. Per tensor, per row, 1x128, 128x128, 128x1 and 1x32
// are all just block sizes. Blocks at the right and lower edge may be ragged,
// tensors may be empty, and nothing has to be a multiple of anything.
//
// NVFP4 has scales on two levels. Above the grid there may be an [Outer] scale, for the
// tensor, each row or each matrix of a stack, a multiplier or a divisor:
//
//	value = decode(code) * scale * outer     rounded once
//
// MX formats and NVFP4 keep their scales as one byte each. [Tensor.Scales] holds what the
// bytes stand for, and [Tensor.ScaleFormat] says which: in an encoded scale NaN is data,
// that of a block whose values are NaN.
//
// # Codes
//
// A code is one byte in memory whatever its width, in its lowest bits. What is above them
// counts for nothing; [Tensor.CheckCodes] finds it. Files and packed operands have
// codes side by side: see [PackCodes].
//
// # Scales
//
// Package scaling chooses scales by recipe; [Quantize] of this package asks a
// [ScaleFunc], of the caller's making, for the scale of each block.
//
// Rows of codes and of scales may lie further apart than they are long, as in a
// view of some columns: [Tensor.Stride] and [Tensor.ScaleStride] say how far.
//
// A tensor that comes from a file or from other code should pass [Tensor.Check] and
// [Tensor.CheckScales] first. Functions that return no error panic with a constant
// message where it does not.
package tensor
