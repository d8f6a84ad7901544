package operands

import (
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// What is added to the name of a tensor of codes to name its dequantization scales, as in
// DeepSeek's checkpoints, and its outer scales, be they multipliers or divisors.
const (
	ScaleSuffix        = "_scale_inv"
	OuterSuffix        = "_outer_scale"
	OuterDivisorSuffix = "_outer_divisor"
)

// Keys of the metadata of a file that octavo quantize wrote. Their values are lists, with
// ", " between, where some of its codes were quantized before.
const (
	FormatKey = "octavo.format"
	OuterKey  = "octavo.outer" // what outer scales of UE4M3 scales are: see below
)

// FormatKeyOf is the key of the metadata that says the format of one tensor of bytes (U8).
// For that tensor it takes the place of [FormatKey].
func FormatKeyOf(name string) string { return FormatKey + "." + name }

// ScaleFormatKey is the key of the metadata that says of scales that are bytes (U8) what
// they are: E8M0 or UE4M3.
const ScaleFormatKey = "octavo.scale_format"

// Values of OuterKey.
const (
	NoOuter       = "none"
	OuterFactor   = "multiplier"
	OuterDivisors = "divisor"
)

// Operand says which tensors make up an operand. What is left out follows from the
// file.
type Operand struct {
	Codes  string        // name of a tensor
	Scales string        // the same; "": that of the codes and ScaleSuffix
	Block  *tensor.Block // that shares a scale; nil: the one that fits the shapes of both
	Format *fp8.Format   // of codes of type U8; nil: the type says it, or the metadata

	// ScaleFormat is of scales of type U8; nil: the metadata say it or, of a file of their
	// own, E8M0. Where the type says the format it has to be the same.
	ScaleFormat *tensor.ScaleFormat

	// Packed says that codes of type U8 lie side by side, the first in the lowest bits,
	// as checkpoints hold E2M1: the last dimension counts bytes.
	Packed bool

	// Outer names the outer scales, F32: one, one for each row, or one for each matrix of a
	// stack. "": that of the codes and OuterSuffix or OuterDivisorSuffix, or none.
	Outer        string
	OuterDivides bool // those that Outer names are divisors; an error without Outer
}

// Read returns the operand, whose scales are of the right number. Errors are [ErrName],
// [ErrCodes], [ErrFloats], [ErrFormat], [ErrBlock], [ErrScales], [ErrOuter] and those of
// [tensor.Tensor.CheckCodes]; [tensor.ErrScale] is of a byte that is no scale.
func (o *Operand) Read(s *Source) (*tensor.Tensor, error) {
	codes, err := s.Find(o.Codes)
	if err != nil {
		return nil, err
	}
	if _, err := o.format(codes); err != nil {
		return nil, err
	}
	scales, err := o.findScales(s)
	if err != nil {
		return nil, err
	}
	outer, err := o.readOuter(s, codes, scales)
	if err != nil {
		return nil, err
	}
	t, err := o.Join(codes, scales)
	if err != nil {
		return nil, err
	}
	t.Outer = outer
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("operands: %w", err)
	}
	return t, nil
}

// ReadCodes returns codes, one a byte, without scales.
func (o *Operand) ReadCodes(codes Tensor) (t *tensor.Tensor, err error) {
	t = &tensor.Tensor{Name: codes.Name}
	if t.Format, err = o.format(codes); err != nil {
		return nil, err
	}
	t.Codes, t.Shape, err = o.readCodes(codes, t.Format)
	return t, err
}

// Join returns the operand of the given codes and scales, of which bytes are E8M0 unless
// o says otherwise. The names in o do not count, and there is no outer scale.
func (o *Operand) Join(codes, scales Tensor) (*tensor.Tensor, error) {
	t, err := o.ReadCodes(codes)
	if err != nil {
		return nil, err
	}
	codes.Shape = t.Shape
	if t.Scales, t.ScaleFormat, err = o.ReadScales(scales); err != nil {
		return nil, err
	}
	if t.Block, err = o.block(codes.Info, scales.Info); err != nil {
		return nil, err
	}
	if err := t.CheckCodes(); err != nil {
		if errors.Is(err, tensor.ErrCode) {
			return nil, fmt.Errorf("operands: %w", err)
		}
		return nil, fmt.Errorf("operands: %w in tensor %q", err, scales.Name)
	}
	// The data of a file bounds the work, unless there is none.
	if rows, _ := t.Dims(); t.Len() == 0 && rows > maxEmptyRows {
		return nil, fmt.Errorf("operands: tensor %q of shape %v has no elements and more than %d rows", t.Name, t.Shape, maxEmptyRows)
	}
	return t, checkGrid(t, scales.Info)
}

// readCodes returns codes, one a byte, and their shape.
func (o *Operand) readCodes(codes Tensor, f fp8.Format) ([]byte, []int, error) {
	data, err := codes.File.Bytes(codes.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("operands: %w", err)
	}
	bits, shape := codes.DType.Bits(), codes.Shape
	switch {
	case !o.Packed:
	case codes.DType != safetensors.U8:
		return nil, nil, sentinel.Errorf(ErrFormat, "operands: tensor %q is %s, which says whether codes lie side by side: only those of U8 may", codes.Name, codes.DType)
	case len(shape) == 0 || shape[len(shape)-1]*8%f.Bits() != 0:
		return nil, nil, sentinel.Errorf(tensor.ErrShape, "operands: tensor %q of shape %v: its rows hold no whole number of codes of %d bits", codes.Name, shape, f.Bits())
	default:
		bits, shape = f.Bits(), slices.Clone(shape)
		shape[len(shape)-1] = shape[len(shape)-1] * 8 / bits
	}
	if bits == 8 {
		return data, shape, nil
	}
	n := int64(len(data)) * 8 / int64(bits)
	if err := memory.Check(n, 1, fmt.Sprintf("tensor %q, one code to a byte,", codes.Name), "take smaller operands"); err != nil {
		return nil, nil, fmt.Errorf("operands: %w", err)
	}
	all := make([]byte, n)
	if err := tensor.UnpackCodes(all, data, bits, tensor.LowFirst); err != nil {
		return nil, nil, fmt.Errorf("operands: tensor %q: %w", codes.Name, err)
	}
	return all, shape, nil
}

// format returns the format of codes.
func (o *Operand) format(codes Tensor) (fp8.Format, error) {
	format, ok := FormatIn(codes.File, codes.Info)
	switch {
	case codes.DType == safetensors.U8 && o.Format != nil:
		return *o.Format, nil
	case codes.DType == safetensors.U8 && ok:
		return format, nil
	case codes.DType == safetensors.U8:
		return 0, sentinel.Errorf(ErrFormat, "operands: tensor %q is U8, which does not say a format", codes.Name)
	case !ok && IsFloat(codes.DType):
		return 0, sentinel.Errorf(ErrFloats, "operands: tensor %q is %s and no codes", codes.Name, codes.DType)
	case !ok:
		return 0, sentinel.Errorf(ErrCodes, "operands: tensor %q is %s, which does not say a format: want %s", codes.Name, codes.DType, codeTypes())
	case o.Format != nil && *o.Format != format:
		return 0, sentinel.Errorf(ErrFormat, "operands: tensor %q is %s and not %s", codes.Name, codes.DType, DTypeOf(*o.Format))
	}
	return format, nil
}

// IsFloat reports whether tensors of type d can be quantized.
func IsFloat(d safetensors.DType) bool {
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
	_, _, named := InFile(o.Codes) // the file has other tensors
	switch {
	case name == "" && file && !named:
		return Tensor{}, sentinel.Errorf(ErrScales, "operands: name the scales of %s", textout.Quoted(o.Codes))
	case name == "":
		name = o.Codes + ScaleSuffix
	}
	scales, err := s.Find(name)
	_, file = Path(name)
	_, _, named = InFile(name)
	switch {
	case err != nil && o.Scales == "":
		return scales, sentinel.Errorf(ErrScales, "%w; name the scales of %s", err, textout.Quoted(o.Codes))
	case err == nil && scales.DType == safetensors.U8 && (!file || named) && o.ScaleFormat == nil:
		if _, ok := ScaleFormatIn(scales.File, scales.Info); !ok {
			return scales, sentinel.Errorf(ErrScaleFormat, "operands: tensor %q is U8, which does not say a format of scales", scales.Name)
		}
	}
	return scales, err
}

func noScales(t Tensor) error {
	return sentinel.Errorf(ErrScales, "operands: tensor %q is %s: scales are F32, F8_E8M0 or F8_E4M3", t.Name, t.DType)
}

// ReadScales reads a tensor of scales.
func (o *Operand) ReadScales(t Tensor) (scales []float32, f tensor.ScaleFormat, err error) {
	defer func() {
		if err == nil && o.ScaleFormat != nil && *o.ScaleFormat != f {
			err = sentinel.Errorf(ErrScaleFormat, "operands: tensor %q is %s: its scales are in %v and not in %v", t.Name, t.DType, f, *o.ScaleFormat)
		}
	}()
	f, ok := ScaleFormatIn(t.File, t.Info)
	switch {
	case t.DType == safetensors.F32:
		scales, err = t.File.Float32s(t.Name)
		if err != nil {
			err = fmt.Errorf("operands: %w", err)
		}
		return scales, f, err
	case !ok && t.DType != safetensors.U8:
		return nil, f, noScales(t)
	case t.DType != safetensors.U8 || ok && o.ScaleFormat == nil:
	case o.ScaleFormat == nil:
		f = tensor.E8M0Scales
	case !o.ScaleFormat.Encoded():
		return nil, f, sentinel.Errorf(ErrScales, "operands: tensor %q is %s: it holds no scales in %v", t.Name, t.DType, *o.ScaleFormat)
	default:
		f = *o.ScaleFormat
	}
	data, err := t.File.Bytes(t.Name)
	if err != nil {
		return nil, f, fmt.Errorf("operands: %w", err)
	}
	scales = make([]float32, len(data))
	for i, b := range data {
		if f == tensor.E8M0Scales {
			scales[i] = fp8.E8M0(b).Float32()
			continue
		}
		if !fp8.UE4M3(b).Valid() {
			return nil, f, sentinel.Errorf(tensor.ErrScale, "operands: tensor %q: scale %d is the byte %#02x, which is no UE4M3: its top bit is set", t.Name, i, b)
		}
		scales[i] = fp8.UE4M3(b).Float32()
	}
	return scales, f, nil
}

// readOuter returns the operand's outer scales, of which there may be none.
func (o *Operand) readOuter(s *Source, codes, scales Tensor) (tensor.Outer, error) {
	if o.Outer != "" {
		outer, err := s.Find(o.Outer)
		if err != nil {
			return tensor.Outer{}, err
		}
		return outerOf(codes.Info, outer, o.OuterDivides)
	}
	if o.OuterDivides {
		return tensor.Outer{}, sentinel.Errorf(ErrOuter, "operands: the outer scales of %s that are said to be divisors have no name", textout.Quoted(o.Codes))
	}
	if _, file := Path(o.Codes); file || s.File == nil {
		return tensor.Outer{}, nil
	}
	return findOuter(s.File, codes.Info, scales.Info)
}

// ReadOuter returns the outer scales of codes whose blocks have the given scales: those
// that [Operand.Read] finds where an Operand names none, and of which
// [tensor.Tensor.CheckScales] has nothing to say. There may be none. Errors are [ErrOuter],
// [tensor.ErrShape] and [tensor.ErrScale].
func ReadOuter(f *safetensors.File, codes, scales safetensors.Info) (tensor.Outer, error) {
	outer, err := findOuter(f, codes, scales)
	if err != nil || outer.None() {
		return tensor.Outer{}, err
	}
	shape := slices.Clone(codes.Shape)
	shape[len(shape)-1] = 0 // rows without codes
	return outer, (&tensor.Tensor{Name: codes.Name, Shape: shape, Outer: outer}).CheckScales()
}

// findOuter reads the outer scales whose names follow from that of the codes.
func findOuter(f *safetensors.File, codes, scales safetensors.Info) (tensor.Outer, error) {
	factor, divisor := codes.Name+OuterSuffix, codes.Name+OuterDivisorSuffix
	factors, multiplies := f.Info(factor)
	divisors, divides := f.Info(divisor)
	switch {
	case multiplies && divides:
		return tensor.Outer{}, sentinel.Errorf(ErrOuter, "operands: the file has outer scales %q and %q: it is not known which are those of tensor %q",
			factor, divisor, codes.Name)
	case multiplies:
		return outerOf(codes, Tensor{factors, f}, false)
	case divides:
		return outerOf(codes, Tensor{divisors, f}, true)
	}
	if format, _ := ScaleFormatIn(f, scales); format != tensor.UE4M3Scales {
		return tensor.Outer{}, nil
	}
	switch f.Metadata()[OuterKey] {
	case OuterFactor:
		return tensor.Outer{}, noOuter(codes, factor)
	case OuterDivisors:
		return tensor.Outer{}, noOuter(codes, divisor)
	}
	return tensor.Outer{}, nil
}

func noOuter(codes safetensors.Info, name string) error {
	return sentinel.Errorf(ErrOuter, "operands: the file has no tensor %q, though its metadata say in %s that tensor %q has an outer scale", name, OuterKey, codes.Name)
}

// outerOf reads the outer scales of codes: one, one for each row, or one for each matrix of
// a stack.
func outerOf(codes safetensors.Info, outer Tensor, divides bool) (o tensor.Outer, err error) {
	if outer.DType != safetensors.F32 {
		return o, sentinel.Errorf(ErrOuter, "operands: tensor %q is %s: outer scales are F32", outer.Name, outer.DType)
	}
	values, err := outer.File.Float32s(outer.Name)
	if err != nil {
		return o, fmt.Errorf("operands: %w", err)
	}
	rows, _ := (&tensor.Tensor{Shape: codes.Shape}).Dims()
	o = tensor.Outer{Scales: values, Divide: divides}
	matrices := 1
	for _, n := range codes.Shape[:max(len(codes.Shape)-2, 0)] {
		matrices *= n
	}
	switch len(values) {
	case 1:
	case rows:
		o.Rows = 1
	case matrices:
		o.Rows = rows / matrices
	default:
		return tensor.Outer{}, sentinel.Errorf(tensor.ErrShape, "operands: tensor %q of shape %v does not hold the outer scales of tensor %q of shape %v: want one, or one for each of %d rows",
			outer.Name, outer.Shape, codes.Name, codes.Shape, rows)
	}
	return o, nil
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
