package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Role is what a stored tensor is to a quantized weight.
type Role uint8

const (
	Codes  Role = iota // the weight's elements
	Scales             // one for each block
	Outer              // the scale above them, of NVFP4
	Input              // the scale of the layer's input, which calibration found
	roles              // how many there are
)

var roleNames = [roles]string{"codes", "scales", "outer scale", "input scale"}

// String returns the role in words, such as "outer scale".
func (r Role) String() string {
	if r >= roles {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return roleNames[r]
}

// Shape is how the shape of a stored tensor follows from that of the weight.
type Shape uint8

const (
	elements Shape = iota // that of the weight
	Nibbles               // that of the weight, with half of its columns: two codes a byte
	Chunks                // [..., columns/32, 16]: the nibbles of each block of 32 apart
	grid                  // [..., rows, columns] of blocks
	one                   // [1]
	scalar                // []
)

// Of returns the shape of the stored tensor for a weight of the given shape, whose matrices
// each have a grid of blocks of their own. It is an error if a weight of that shape cannot
// be stored so.
func (s Shape) Of(shape []int, b tensor.Block) ([]int, error) {
	if len(shape) == 0 {
		return nil, fmt.Errorf("it is a scalar: want a matrix")
	}
	own := slices.Clone(shape)
	cols := &own[len(own)-1]
	switch s {
	case one:
		return []int{1}, nil
	case scalar:
		return []int{}, nil
	case Nibbles:
		if *cols%2 != 0 {
			return nil, fmt.Errorf("%d columns are odd: two codes share a byte", *cols)
		}
		*cols /= 2
	case Chunks:
		if *cols%32 != 0 {
			return nil, fmt.Errorf("%d columns are no multiple of 32", *cols)
		}
		*cols /= 32
		own = append(own, 16)
	case grid:
		rows := 1
		if len(own) > 1 {
			rows = own[len(own)-2]
		}
		r, c := b.Grid(rows, *cols)
		*cols = c
		if len(own) > 1 {
			own[len(own)-2] = r
		}
	}
	return own, nil
}

// fits reports whether a stored tensor of such a shape is what want says. One scale may be
// written as [], [1] or [1, 1].
func (s Shape) fits(got, want []int) bool {
	if s == one || s == scalar {
		return len(got) <= 2 && !slices.ContainsFunc(got, func(n int) bool { return n != 1 })
	}
	return slices.Equal(got, want)
}

// StoredTensor says how one of the stored tensors of a weight is named, typed and shaped.
// The zero StoredTensor is none.
type StoredTensor struct {
	// Suffix follows the name of the module. A parameter that is no module's weight, such
	// as experts' gate_up_proj, has it without ".weight".
	Suffix string

	// DTypes are the types that are read; the first is written. "" stands for the type of
	// the weight that was quantized.
	DTypes []safetensors.DType

	Shape    Shape
	Optional bool
}

// None reports whether there is no such tensor.
func (p StoredTensor) None() bool { return p.Suffix == "" }

// reads reports whether a tensor of type d can be this one.
func (p StoredTensor) reads(d safetensors.DType) bool {
	return slices.ContainsFunc(p.DTypes, func(known safetensors.DType) bool {
		return known == d || known == "" && isFloat(d)
	})
}

// Scheme is how a quantized weight lies in files: which tensors, of which names, types and
// shapes, and what scales mean. Schemes are data; see [Schemes].
type Scheme struct {
	Name        string
	Format      fp8.Format
	Block       tensor.Block
	ScaleFormat tensor.ScaleFormat // of scales that are bytes
	Parts       [roles]StoredTensor

	// Resize says that a configuration may name another block.
	Resize bool

	// Divide says that outer scales are divisors.
	Divide bool

	// Whole says that blocks must fill the columns.
	Whole bool

	// Stacks says that a weight may have more than two dimensions, such as the experts of a
	// layer; each matrix has a grid of its own.
	Stacks bool

	// Transposed says that matrices are stored as the transposes of what they are in a model
	// of values.
	Transposed bool
}

// Packed reports whether two codes share a byte.
func (s *Scheme) Packed() bool { return s.Format.Bits() == 4 }

// stem returns what the names of a weight's parts begin with, and whether it is a module's
// weight.
func stem(weight string) (string, bool) { return strings.CutSuffix(weight, ".weight") }

// PartName returns the name of a part of the named weight, "" if it has no such part: the
// scales of experts in a module of their own have names that a parameter cannot have.
func (s *Scheme) PartName(weight string, r Role) string {
	suffix := s.Parts[r].Suffix
	name, module := stem(weight)
	if !module && suffix != "" {
		cut, ok := strings.CutPrefix(suffix, ".weight")
		if !ok {
			return ""
		}
		suffix = cut
		if suffix == "" {
			return name
		}
	}
	if suffix == "" {
		return ""
	}
	return name + suffix
}

// weightName returns the name of the weight whose codes are in the named tensor.
func (s *Scheme) weightName(codes string) (name string, ok bool) {
	suffix := s.Parts[Codes].Suffix
	if name, ok := strings.CutSuffix(codes, suffix); ok {
		return name + ".weight", true
	}
	cut, ok := strings.CutPrefix(suffix, ".weight")
	if !ok || !s.Stacks || !strings.HasSuffix(codes, cut) {
		return "", false
	}
	return strings.TrimSuffix(codes, cut), true
}

// weightShape returns the shape of the weight whose codes have the given shape.
func (s *Scheme) weightShape(codes []int) (shape []int, ok bool) {
	if len(codes) == 0 {
		return nil, false
	}
	shape = slices.Clone(codes)
	last := len(shape) - 1
	switch s.Parts[Codes].Shape {
	case Nibbles:
		if shape[last] > 1<<30 {
			return nil, false
		}
		shape[last] *= 2
	case Chunks:
		if len(shape) < 3 || shape[last] != 16 || shape[last-1] > 1<<26 {
			return nil, false
		}
		shape[last-1] *= 32
		shape = shape[:last]
	}
	return shape, len(shape) == 2 || s.Stacks && len(shape) > 2
}

// Infos returns the names, types and shapes of the tensors that a weight of the given name
// and shape becomes, and which roles they have. from is the type that it was quantized from.
// Parts that are optional are left out but for those in with. It is an error, ErrLayout, if
// the scheme cannot hold such a weight.
func (s *Scheme) Infos(
	weight string, shape []int, from safetensors.DType, with ...Role,
) (infos []safetensors.Info, which []Role, err error) {
	fail := func(err error) error {
		return sentinel.Errorf(ErrLayout, "tensor %q: shape %v in %s: %w",
			weight, shape, s.Name, err)
	}
	if len(shape) < 2 || len(shape) > 2 && !s.Stacks {
		return nil, nil, fail(fmt.Errorf("want a matrix%s", map[bool]string{true: " or a stack of them"}[s.Stacks]))
	}
	if cols := shape[len(shape)-1]; s.Whole && cols%s.Block.Cols != 0 {
		return nil, nil, fail(fmt.Errorf("%d columns are no multiple of %d: leave it out", cols, s.Block.Cols))
	}
	for r := range roles {
		part := s.Parts[r]
		if part.None() || part.Optional && !slices.Contains(with, r) {
			continue
		}
		name := s.PartName(weight, r)
		if name == "" {
			return nil, nil, fail(fmt.Errorf("there is no name for its %v: want a name that ends with .weight", r))
		}
		own, err := part.Shape.Of(shape, s.Block)
		if err != nil {
			return nil, nil, fail(err)
		}
		d := part.DTypes[0]
		if d == "" {
			d = from
		}
		infos = append(infos, safetensors.Info{Name: name, DType: d, Shape: own})
		which = append(which, r)
	}
	return infos, which, nil
}

// isFloat reports whether a type is one that layouts have values and scales in.
func isFloat(d safetensors.DType) bool {
	switch d {
	case safetensors.F32, safetensors.F16, safetensors.BF16:
		return true
	}
	return false
}
