// Package operand reads the operands of a product, FP8 codes and their scales, from
// safetensors and .npy files.
package operand

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Operand says which tensors make up an operand. What is left out follows from the
// file.
type Operand struct {
	Flag   string            // of its codes on the command line, such as "a", which errors name
	Codes  string            // name of a tensor, or of a .npy file
	Scales string            // the same; "": that of the codes and "_scale_inv"
	Block  *tensor.Block     // nil: the one that fits the shapes of both
	Bytes  safetensors.DType // what codes of type U8 are, if anything
}

// ReadPair returns both operands of a product: a of source sa and b of source sb.
func ReadPair(sa, sb *Source, a, b Operand) (x, y *tensor.Tensor, err error) {
	if x, err = a.Read(sa); err != nil {
		return nil, nil, err
	}
	if y, err = b.Read(sb); err != nil {
		return nil, nil, err
	}
	return x, y, checkEmpty(x, y)
}

const maxEmptyResults = 1 << 24

// checkEmpty bounds the results of operands without data, which bounds nothing.
func checkEmpty(a, b *tensor.Tensor) error {
	m, ka := a.Dims()
	n, kb := b.Dims()
	if results := int64(m) * int64(n); ka == 0 && kb == 0 && results > maxEmptyResults {
		return fmt.Errorf("tensor %q of shape %v and tensor %q of shape %v have no elements and %d results, all 0: want %d at most",
			a.Name, a.Shape, b.Name, b.Shape, results, maxEmptyResults)
	}
	return nil
}

// Read returns the operand, whose scales are of the right number.
func (o *Operand) Read(s *Source) (*tensor.Tensor, error) {
	codes, err := s.Find(o.Codes)
	if err != nil {
		return nil, err
	}
	format, err := o.format(codes.Info, s)
	if err != nil {
		return nil, err
	}
	scales, err := o.findScales(s)
	if err != nil {
		return nil, err
	}
	t := &tensor.Tensor{Name: codes.Name, Format: format, Shape: codes.Shape}
	if t.Block, err = o.block(codes.Info, scales.Info); err != nil {
		return nil, err
	}
	if t.Codes, err = codes.File.Bytes(codes.Name); err != nil {
		return nil, err
	}
	if t.Scales, err = tensorfile.ReadScales(scales.File, scales.Info); err != nil {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("%w in tensor %q", err, scales.Name)
	}
	// The data of a file bounds the work, unless there is none.
	if rows, _ := t.Dims(); t.Len() == 0 && rows > maxEmptyRows {
		return nil, fmt.Errorf("tensor %q of shape %v has no elements and more than %d rows", t.Name, t.Shape, maxEmptyRows)
	}
	return t, checkGrid(t, scales.Info)
}

// format returns the format of codes.
func (o *Operand) format(codes safetensors.Info, s *Source) (fp8.Format, error) {
	if codes.DType == safetensors.U8 && o.Bytes != "" {
		codes.DType = o.Bytes
	}
	format, ok := tensorfile.FormatOf(codes.DType)
	switch {
	case codes.DType == safetensors.U8 && !ok:
		return 0, fmt.Errorf("tensor %q is U8, which does not say an FP8 format: add --%s-format e4m3 or another", codes.Name, o.Flag)
	case !ok && tensorfile.IsFloat(codes.DType):
		return 0, fmt.Errorf("tensor %q is %s and no FP8 codes: octavo quantize makes them", codes.Name, codes.DType)
	case !ok:
		return 0, fmt.Errorf("tensor %q is %s, which does not say an FP8 format: want %s", codes.Name, codes.DType, codeTypes())
	case o.Bytes != "" && codes.DType != o.Bytes:
		return 0, fmt.Errorf("tensor %q is %s and not %s: leave --%s-format out", codes.Name, codes.DType, o.Bytes, o.Flag)
	}
	return format, nil
}

// codeTypes lists the types of codes: "F8_E4M3, F8_E5M2, F8_E4M3FNUZ or
// F8_E5M2FNUZ".
func codeTypes() string {
	var names []string
	for _, f := range fp8.Formats() {
		names = append(names, string(tensorfile.DTypeOf(f)))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// scales is the name of the operand's scales.
func (o *Operand) scales() string {
	if o.Scales != "" {
		return o.Scales
	}
	return o.Codes + tensorfile.ScaleSuffix
}

// findScales returns the description of the operand's scales. Bytes in a .npy file
// are E8M0: NumPy has no type for those.
func (o *Operand) findScales(s *Source) (Tensor, error) {
	if o.Scales == "" && IsNPY(o.Codes) {
		return Tensor{}, fmt.Errorf("name the scales of %s with --%s-scales", textout.Quoted(o.Codes), o.Flag)
	}
	scales, err := s.Find(o.scales())
	if err != nil {
		if o.Scales == "" {
			err = fmt.Errorf("%w; name the scales of %s with --%s-scales", err, textout.Quoted(o.Codes), o.Flag)
		}
		return scales, err
	}
	if scales.DType == safetensors.U8 && IsNPY(scales.Name) {
		scales.DType = safetensors.F8E8M0
	}
	if !slices.Contains([]safetensors.DType{safetensors.F32, safetensors.F8E8M0}, scales.DType) {
		return scales, fmt.Errorf("tensor %q is %s: scales are F32 or F8_E8M0", scales.Name, scales.DType)
	}
	return scales, nil
}

const maxEmptyRows = 1 << 20

// checkGrid refuses scales of the right number in another order, such as
// transposed ones. Where the grid is one row or column there is but one order.
func checkGrid(t *tensor.Tensor, info safetensors.Info) error {
	rows, cols := t.Grid()
	scaleRows, scaleCols := (&tensor.Tensor{Shape: info.Shape}).Dims()
	if rows > 1 && cols > 1 && (scaleRows != rows || scaleCols != cols) {
		return fmt.Errorf("tensor %q of shape %v does not hold the scales of tensor %q: in blocks of %v they are a grid of %dx%d",
			info.Name, info.Shape, t.Name, t.Block, rows, cols)
	}
	return nil
}
