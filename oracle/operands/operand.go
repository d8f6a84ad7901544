package operands

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// ScaleSuffix is what is added to the name of a tensor of codes to name its
// dequantization scales, as in DeepSeek's checkpoints.
const ScaleSuffix = "_scale_inv"

// Operand says which tensors make up an operand. What is left out follows from the
// file.
type Operand struct {
	Codes  string        // name of a tensor
	Scales string        // the same; "": that of the codes and ScaleSuffix
	Block  *tensor.Block // that shares a scale; nil: the one that fits the shapes of both
	Format *fp8.Format   // of codes of type U8; nil: the type says it
}

// Read returns the operand, whose scales are of the right number. Errors are [ErrName],
// [ErrCodes], [ErrFloats], [ErrFormat], [ErrBlock], [ErrScales] and those of
// [tensor.Tensor.Check].
func (o *Operand) Read(s *Source) (*tensor.Tensor, error) {
	codes, err := s.Find(o.Codes)
	if err != nil {
		return nil, err
	}
	if _, err := o.format(codes.Info); err != nil {
		return nil, err
	}
	scales, err := o.findScales(s)
	if err != nil {
		return nil, err
	}
	return o.Join(codes, scales)
}

// Join returns the operand of the given codes and scales, of which bytes are E8M0. The
// names in o do not count.
func (o *Operand) Join(codes, scales Tensor) (*tensor.Tensor, error) {
	format, err := o.format(codes.Info)
	if err != nil {
		return nil, err
	}
	if scales.DType != safetensors.F32 && scales.DType != safetensors.F8E8M0 && scales.DType != safetensors.U8 {
		return nil, noScales(scales)
	}
	t := &tensor.Tensor{Name: codes.Name, Format: format, Shape: codes.Shape}
	if t.Block, err = o.block(codes.Info, scales.Info); err != nil {
		return nil, err
	}
	if t.Codes, err = codes.File.Bytes(codes.Name); err != nil {
		return nil, fmt.Errorf("operands: %w", err)
	}
	if t.Scales, err = readScales(scales); err != nil {
		return nil, fmt.Errorf("operands: %w", err)
	}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("operands: %w in tensor %q", err, scales.Name)
	}
	// The data of a file bounds the work, unless there is none.
	if rows, _ := t.Dims(); t.Len() == 0 && rows > maxEmptyRows {
		return nil, fmt.Errorf("operands: tensor %q of shape %v has no elements and more than %d rows", t.Name, t.Shape, maxEmptyRows)
	}
	return t, checkGrid(t, scales.Info)
}

// format returns the format of codes.
func (o *Operand) format(codes safetensors.Info) (fp8.Format, error) {
	format, ok := FormatOf(codes.DType)
	switch {
	case codes.DType == safetensors.U8 && o.Format != nil:
		return *o.Format, nil
	case codes.DType == safetensors.U8:
		return 0, sentinel.Errorf(ErrFormat, "operands: tensor %q is U8, which does not say an FP8 format", codes.Name)
	case !ok && isFloat(codes.DType):
		return 0, sentinel.Errorf(ErrFloats, "operands: tensor %q is %s and no FP8 codes", codes.Name, codes.DType)
	case !ok:
		return 0, sentinel.Errorf(ErrCodes, "operands: tensor %q is %s, which does not say an FP8 format: want %s", codes.Name, codes.DType, codeTypes())
	case o.Format != nil && *o.Format != format:
		return 0, sentinel.Errorf(ErrFormat, "operands: tensor %q is %s and not %s", codes.Name, codes.DType, DTypeOf(*o.Format))
	}
	return format, nil
}

func isFloat(d safetensors.DType) bool {
	switch d {
	case safetensors.F64, safetensors.F32, safetensors.F16, safetensors.BF16:
		return true
	}
	return false
}

// findScales returns the description of the operand's scales. Bytes in a file of their
// own are E8M0: NumPy has no type for those.
func (o *Operand) findScales(s *Source) (Tensor, error) {
	name := o.Scales
	_, file := Path(o.Codes)
	switch {
	case name == "" && file:
		return Tensor{}, sentinel.Errorf(ErrScales, "operands: name the scales of %s", textout.Quoted(o.Codes))
	case name == "":
		name = o.Codes + ScaleSuffix
	}
	scales, err := s.Find(name)
	switch _, file := Path(name); {
	case err != nil && o.Scales == "":
		return scales, sentinel.Errorf(ErrScales, "%w; name the scales of %s", err, textout.Quoted(o.Codes))
	case err == nil && scales.DType == safetensors.U8 && !file:
		return scales, noScales(scales)
	}
	return scales, err
}

func noScales(t Tensor) error {
	return sentinel.Errorf(ErrScales, "operands: tensor %q is %s: scales are F32 or F8_E8M0", t.Name, t.DType)
}

// readScales reads a tensor of scales.
func readScales(t Tensor) ([]float32, error) {
	if t.DType == safetensors.F32 {
		return t.File.Float32s(t.Name)
	}
	data, err := t.File.Bytes(t.Name)
	scales := make([]float32, len(data))
	for i, b := range data {
		scales[i] = fp8.E8M0(b).Float32()
	}
	return scales, err
}

const maxEmptyRows = 1 << 20

// checkGrid refuses scales of the right number in another order, such as
// transposed ones. Where the grid is one row or column there is but one order.
func checkGrid(t *tensor.Tensor, info safetensors.Info) error {
	rows, cols := t.Grid()
	scaleRows, scaleCols := (&tensor.Tensor{Shape: info.Shape}).Dims()
	if rows > 1 && cols > 1 && (scaleRows != rows || scaleCols != cols) {
		return sentinel.Errorf(tensor.ErrShape, "operands: tensor %q of shape %v does not hold the scales of tensor %q: in blocks of %v they are a grid of %dx%d",
			info.Name, info.Shape, t.Name, t.Block, rows, cols)
	}
	return nil
}
