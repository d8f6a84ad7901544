package quantize

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// outputTensor is a tensor of the output.
type outputTensor struct {
	safetensors.Info
	source  safetensors.Info // what it is made from
	content content
	ofCodes bool             // whether source is
	stays   *checkpoint.Part // of a model, which is why a matrix is copied; nil: no reason
	align   int              // what its offset and that of the next tensor are a multiple of
}

type content int

const (
	copied content = iota
	codes
	scales
)

// planOutputs lists the tensors of the output by falling alignment, so that each
// lies at a multiple of its element size, as the reference implementation has it.
func (o Options) planOutputs(file *safetensors.File) ([]outputTensor, error) {
	var outputs []outputTensor
	selected := false
	dropped := map[string]bool{} // scales of codes that get others
	for _, info := range file.Tensors() {
		stays := o.stays(file, info)
		quantizes, err := false, error(nil)
		if stays == nil {
			quantizes, err = o.quantizes(file, info)
		}
		if err != nil {
			return nil, err
		}
		if !quantizes {
			outputs = append(outputs, outputTensor{info, info, copied, isCodes(file, info), stays, max(info.DType.Size(), 1)})
			continue
		}
		ofCodes := isCodes(file, info)
		if m := newMatrix(info, ofCodes, o.Recipe, stripBytes); info.Bytes() > math.MaxInt {
			return nil, fmt.Errorf("tensor %q: this machine cannot count the bytes of %s %v", info.Name, info.DType, info.Shape)
		} else if err := memory.Check(int64(m.height)*int64(m.cols), int64(unitOf(info.DType, ofCodes)),
			fmt.Sprintf("tensor %q: a row of blocks of %s %v", info.Name, info.DType, info.Shape), "leave it out with --only"); err != nil {
			return nil, err
		}
		for _, suffix := range tensorfile.ScaleSuffixes() {
			switch name := info.Name + suffix; {
			case ofCodes:
				dropped[name] = true
			case tensorfile.Has(file, name):
				return nil, fmt.Errorf("tensor %q cannot be quantized, since the file already has a tensor %q: leave it out with --only",
					info.Name, name)
			}
		}
		selected = true
		made, err := quantizedOutputs(info, o.Recipe)
		if err != nil {
			return nil, err
		}
		for i := range made {
			made[i].ofCodes = ofCodes
		}
		outputs = append(outputs, made...)
	}
	if !selected && !o.AllowNone {
		return nil, o.nothing(outputs)
	}
	outputs = slices.DeleteFunc(outputs, func(p outputTensor) bool { return p.content == copied && dropped[p.Name] })
	slices.SortStableFunc(outputs, func(a, b outputTensor) int { return cmp.Compare(b.align, a.align) })
	return outputs, nil
}

// nothing is the error where there is nothing to quantize.
func (o Options) nothing(outputs []outputTensor) error {
	if i := slices.IndexFunc(outputs, func(p outputTensor) bool { return p.stays != nil }); i >= 0 {
		return fmt.Errorf("there is nothing to quantize but what --keep leaves as it is, such as %v", outputs[i].kept())
	}
	if o.Only != nil {
		return fmt.Errorf("no float matrix has a name that matches --only %q: octavo inspect lists the tensors", o.Only)
	}
	return errors.New("there is no float matrix to quantize, which is a tensor of two or more dimensions, F64, F32, F16 or BF16: octavo inspect lists the tensors")
}

func (p outputTensor) kept() KeptTensor { return KeptTensor{p.Name, p.stays.Name, p.stays.Why} }

// stays returns the part of a model as which a matrix is copied, nil if it is not.
func (o Options) stays(file *safetensors.File, info safetensors.Info) *checkpoint.Part {
	if !o.Keep || !tensorfile.Selects(o.Only, info.Name) || tensorfile.IsScale(file, info.Name) || !isCodes(file, info) && !tensorfile.IsMatrix(file, info) {
		return nil
	}
	return checkpoint.Kept(info.Name)
}

// quantizes reports whether a tensor is to be quantized. One of codes must be meant to be.
func (o Options) quantizes(file *safetensors.File, info safetensors.Info) (bool, error) {
	if !tensorfile.Selects(o.Only, info.Name) {
		return false, nil
	}
	if !isCodes(file, info) || tensorfile.IsScale(file, info.Name) {
		return tensorfile.IsMatrix(file, info), nil
	}
	if !o.Requantize {
		format, _ := tensorfile.FormatIn(file, info)
		return false, fmt.Errorf("tensor %q is %v already: --requantize decodes such tensors and encodes them anew; with --only, those that it does not match are copied",
			info.Name, format)
	}
	_, _, err := blockOf(file, info)
	return true, err
}

// isCodes reports whether a tensor is a matrix of codes.
func isCodes(file *safetensors.File, info safetensors.Info) bool {
	_, ok := tensorfile.FormatIn(file, info)
	return ok && len(info.Shape) >= 2 && info.Len() > 0
}

// unitOf returns the bytes that a value of a matrix has in memory: that of a code is a
// float64.
func unitOf(d safetensors.DType, isCodes bool) int {
	if isCodes {
		return 8
	}
	return d.Size()
}

// quantizedOutputs returns the outer scales, if there are any, the scales and the codes of a
// tensor. They stay side by side, unless the size of the codes would misalign the scales of
// the next tensor.
func quantizedOutputs(info safetensors.Info, r scaling.Recipe) ([]outputTensor, error) {
	s := safetensors.Info{Name: info.Name + operands.ScaleSuffix, DType: tensorfile.ScaleTypeOf(r.Profile.ScaleFormat()), Shape: grid(info.Shape, r.Block)}
	c := safetensors.Info{Name: info.Name, DType: typeOf(r.Format), Shape: info.Shape}
	if c.Bytes() < 0 {
		return nil, fmt.Errorf("tensor %q of shape %v has %d elements, which do not fill whole bytes in %v: leave it out with --only", info.Name, info.Shape, info.Len(), r.Format)
	}
	align := s.DType.Size()
	outputs := []outputTensor{{s, info, scales, false, nil, align}, {c, info, codes, false, nil, align}}
	if c.Bytes()%int64(align) != 0 {
		outputs[1].align = 1
	}
	outer, err := newOuterScales(r)
	if outer == nil || err != nil {
		return outputs, err
	}
	rows, _ := (&tensor.Tensor{Shape: info.Shape}).Dims()
	o := safetensors.Info{Name: info.Name + outer.suffix(), DType: safetensors.F32, Shape: []int{outer.count(rows)}}
	return append([]outputTensor{{o, info, scales, false, nil, o.DType.Size()}}, outputs...), nil
}

// typeOf returns the type that codes are written in: bytes where there is none of theirs.
func typeOf(f fp8.Format) safetensors.DType {
	if d := operands.DTypeOf(f); d != "" {
		return d
	}
	return safetensors.U8
}

func grid(shape []int, b tensor.Block) []int {
	rows, cols := (&tensor.Tensor{Shape: shape, Block: b}).Grid()
	return []int{rows, cols}
}

const blockKey = "octavo.block"

// namedBlocks returns the blocks that a file's metadata name.
func namedBlocks(file *safetensors.File) (blocks []tensor.Block) {
	for name := range strings.SplitSeq(file.Metadata()[blockKey], ", ") {
		if b, err := tensor.ParseBlock(name); err == nil {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// withRecipe adds the recipe to a file's metadata. Where some codes of the file were
// quantized before, the keys list both recipes. Where safetensors has no type for a format,
// a key names each tensor in it: other tensors of bytes may be another program's.
func withRecipe(metadata map[string]string, r scaling.Recipe, outputs []outputTensor) map[string]string {
	if !slices.ContainsFunc(outputs, func(p outputTensor) bool { return p.content == codes }) {
		return metadata
	}
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]string{}
	}
	hasOther := slices.ContainsFunc(outputs, func(p outputTensor) bool { return p.content == copied && p.ofCodes })
	if !hasOther {
		for _, key := range []string{"octavo.profile", operands.FormatKey, blockKey, operands.OuterKey, operands.ScaleFormatKey} {
			delete(all, key)
		}
	} else if all[operands.OuterKey] == "" {
		all[operands.OuterKey] = operands.NoOuter
	}
	setFormats(all, r.Format, outputs)
	for key, value := range map[string]string{
		"octavo.profile":  string(r.Profile),
		blockKey:          r.Block.String(),
		operands.OuterKey: outerName(r),
	} {
		all[key] = listed(all[key], value)
	}
	if all[operands.OuterKey] == operands.NoOuter {
		delete(all, operands.OuterKey) // as in files that know of none
	}
	return all
}

// setFormats says in a file's metadata what its codes are in.
func setFormats(all map[string]string, f fp8.Format, outputs []outputTensor) {
	for _, p := range outputs {
		if p.content != codes {
			continue
		}
		key := operands.FormatKeyOf(p.Name)
		if delete(all, key); p.DType == safetensors.U8 {
			all[key] = f.String()
		} else {
			all[operands.FormatKey] = listed(all[operands.FormatKey], f.String())
		}
	}
}

// listed adds a value to a list in metadata, unless it is there.
func listed(before, value string) string {
	switch {
	case before == "":
		return value
	case slices.Contains(strings.Split(before, ", "), value):
		return before
	}
	return before + ", " + value
}
