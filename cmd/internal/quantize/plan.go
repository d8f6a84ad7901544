package quantize

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// part is a tensor of the output.
type part struct {
	safetensors.Info
	source  safetensors.Info // what it is made from
	content content
	align   int // what its offset and that of the next part are a multiple of
}

type content int

const (
	copied content = iota
	codes
	scales
)

// planParts lists the tensors of the output by falling alignment, so that each
// lies at a multiple of its element size, as the reference implementation has it.
func planParts(file *safetensors.File, r scaling.Recipe, only *regexp.Regexp) ([]part, error) {
	var parts []part
	selected := false
	for _, info := range file.Tensors() {
		if !tensorfile.IsMatrix(file, info) || !tensorfile.Selects(only, info.Name) {
			parts = append(parts, part{info, info, copied, info.DType.Size()})
			continue
		}
		if m := newMatrix(info, r, stripBytes); info.Bytes() > math.MaxInt || !memory.Fits(int64(m.height)*int64(m.cols), int64(info.DType.Size())) {
			return nil, fmt.Errorf("tensor %q: a row of blocks of %s %v does not fit in memory", info.Name, info.DType, info.Shape)
		}
		if name := info.Name + tensorfile.ScaleSuffix; tensorfile.Has(file, name) {
			return nil, fmt.Errorf("tensor %q cannot be quantized, since the file already has a tensor %q: leave it out with --only",
				info.Name, name)
		}
		selected = true
		parts = append(parts, quantizedParts(info, r)...)
	}
	if only != nil && !selected {
		return nil, fmt.Errorf("no float matrix has a name that matches --only %q: octavo inspect lists the tensors", only)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.align, a.align) })
	return parts, nil
}

// quantizedParts returns the scales and the codes of a tensor. They stay side by
// side, unless the size of the codes would misalign the scales of the next tensor.
func quantizedParts(info safetensors.Info, r scaling.Recipe) []part {
	s := safetensors.Info{Name: info.Name + tensorfile.ScaleSuffix, DType: scaleType(r), Shape: grid(info.Shape, r.Block)}
	c := safetensors.Info{Name: info.Name, DType: tensorfile.DTypeOf(r.Format), Shape: info.Shape}
	align := s.DType.Size()
	if c.Bytes()%int64(align) != 0 {
		return []part{{s, info, scales, align}, {c, info, codes, c.DType.Size()}}
	}
	return []part{{s, info, scales, align}, {c, info, codes, align}}
}

// scaleType returns the type that scales are written in.
func scaleType(r scaling.Recipe) safetensors.DType {
	if r.Profile.E8M0() {
		return safetensors.F8E8M0
	}
	return safetensors.F32
}

func grid(shape []int, b tensor.Block) []int {
	rows, cols := (&tensor.Tensor{Shape: shape, Block: b}).Grid()
	return []int{rows, cols}
}

// withRecipe adds the recipe to a file's metadata. Where the file has been
// quantized before, in part, the keys list both recipes.
func withRecipe(metadata map[string]string, r scaling.Recipe) map[string]string {
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range map[string]string{
		"octavo.profile": string(r.Profile),
		"octavo.format":  r.Format.String(),
		"octavo.block":   r.Block.String(),
	} {
		switch before := all[key]; {
		case before == "":
			all[key] = value
		case !slices.Contains(strings.Split(before, ", "), value):
			all[key] = before + ", " + value
		}
	}
	return all
}
