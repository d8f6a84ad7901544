package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Weight is a tensor of the model, whatever it is made of in files: values, or codes with
// the scales that give them meaning. It must not be changed.
type Weight struct {
	// Name is that of the model without quantization, such as
	// "model.layers.0.mlp.up_proj.weight", and Shape the one that it has there, but for
	// schemes that are Transposed: there it is that of the transpose, which is stored.
	Name  string
	Shape []int

	// Scheme is how it is stored; nil for a tensor that is stored as it is.
	Scheme *Scheme

	// Block is the block that shares a scale: the scheme's, or the configuration's.
	Block tensor.Block

	// Parts are the stored tensors by their roles; those without a name are absent. Values
	// are in Parts[Codes].
	Parts [roles]Entry

	from *Checkpoint
}

// Has reports whether the weight has a part of a role.
func (w *Weight) Has(r Role) bool { return w.Parts[r].Name != "" }

// Bytes returns the size of all parts.
func (w *Weight) Bytes() (n int64) {
	for r := range roles {
		if w.Has(r) {
			n += w.Parts[r].Bytes()
		}
	}
	return n
}

// Len returns the number of elements.
func (w *Weight) Len() int64 {
	m, r, c := w.Dims()
	return int64(m) * int64(r) * int64(c)
}

// Dims returns the size of the stack of matrices that the weight is seen as: two dimensions
// are one matrix, fewer one row, and those before the last two are counted together.
func (w *Weight) Dims() (matrices, rows, cols int) {
	matrices, rows, cols = 1, 1, 1
	for i, n := range w.Shape {
		switch len(w.Shape) - i {
		case 1:
			cols = n
		case 2:
			rows = n
		default:
			matrices *= n
		}
	}
	return matrices, rows, cols
}

// Grid returns the number of scales along the rows and columns of each matrix.
func (w *Weight) Grid() (rows, cols int) {
	_, r, c := w.Dims()
	return w.Block.Grid(r, c)
}

// Weights returns the tensors of the model, in the order in which their codes or values are
// stored. Scales are no weights of their own, but those that lack their codes are: see
// [Checkpoint.Problems].
func (c *Checkpoint) Weights() []*Weight { return slices.Clone(c.weights) }

// Weight returns the weight of a name, or that of which a stored tensor of that name is a
// part; nil if there is none.
func (c *Checkpoint) Weight(name string) *Weight { return c.whose[name] }

// join finds what the stored tensors are to each other.
func (c *Checkpoint) join() {
	c.whose = map[string]*Weight{}
	order := c.likelySchemes()
	quantized := map[string]*Weight{} // by the name of the codes
	for _, e := range c.entries {
		for _, s := range order {
			w, _ := c.assemble(e, s)
			if w == nil {
				continue
			}
			quantized[e.Name] = w
			for _, part := range w.Parts {
				if part.Name != "" {
					c.whose[part.Name] = w
				}
			}
			break
		}
	}
	for _, e := range c.entries {
		w := quantized[e.Name]
		if w == nil && c.whose[e.Name] != nil {
			continue // a part of another
		}
		if w == nil {
			w = &Weight{Name: e.Name, Shape: e.Shape, from: c}
			w.Parts[Codes] = e
		}
		c.whose[w.Name] = w
		c.weights = append(c.weights, w)
	}
}

// likelySchemes returns all schemes, those of layouts that the configuration fits first:
// some tensors may be of one scheme or another.
func (c *Checkpoint) likelySchemes() (order []*Scheme) {
	for _, l := range layouts {
		if l.Declared(c.Config) {
			for _, rule := range l.Rules {
				order = append(order, rule.Scheme)
			}
		}
	}
	for _, s := range schemes {
		if !slices.Contains(order, s) {
			order = append(order, s)
		}
	}
	return order
}

// misfit is why codes and scales are no weight of a scheme.
type misfit struct {
	error
	near int // how much of it fits
}

// assemble makes a weight of a tensor of codes as a scheme has it. It returns nil if it
// cannot, and why, unless these are no codes of the scheme at all.
func (c *Checkpoint) assemble(codes Entry, s *Scheme) (*Weight, *misfit) {
	name, ok := s.weightName(codes.Name)
	if !ok || !s.Parts[Codes].reads(codes.DType) {
		return nil, nil
	}
	shape, ok := s.weightShape(codes.Shape)
	if !ok {
		return nil, nil
	}
	w := &Weight{Name: name, Shape: shape, Scheme: s, Block: s.Block, from: c}
	if b, ok := c.Config.Block(); ok && s.Resize {
		w.Block = b
	}
	w.Parts[Codes] = codes
	for r := Scales; r < roles; r++ {
		part := s.Parts[r]
		own := s.PartName(name, r)
		if own == "" {
			continue
		}
		e, ok := c.Entry(own)
		if !ok && part.Optional {
			continue
		}
		near := 3 * int(r)
		if !ok {
			return nil, &misfit{fmt.Errorf("there is no %q", own), near}
		}
		want, err := part.Shape.Of(shape, w.Block)
		switch {
		case !part.reads(e.DType):
			return nil, &misfit{fmt.Errorf("%q is %s", own, e.DType), near + 1}
		case err == nil && !part.Shape.fits(e.Shape, want):
			err = fmt.Errorf("%q has shape %v: want %v for blocks of %v", own, e.Shape, want, w.Block)
		}
		if err != nil {
			return nil, &misfit{err, near + 2}
		}
		w.Parts[r] = e
	}
	return w, nil
}

// Problems returns what is wrong with the tensors as parts of weights: a method of quantization
// that is not read, which is ErrUnread, codes of which no scheme finds the scales, and scales
// without codes, which are ErrLayout.
func (c *Checkpoint) Problems() (problems []error) {
	if err := c.refuseUnread(); err != nil {
		problems = append(problems, err)
	}
	for _, w := range c.weights {
		if method, _ := w.unreadOf(); w.Scheme != nil || method != "" {
			continue
		}
		if err := w.unscaled(); err != nil {
			problems = append(problems, err)
		}
		if err := c.orphan(w.Parts[Codes]); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// unscaled returns an error if a weight that is stored as it is has codes.
func (w *Weight) unscaled() error {
	e := w.Parts[Codes]
	if !hasCodesName(e) {
		return nil
	}
	why := error(errors.New("no layout has codes of this name, type and shape"))
	near := -1
	for _, s := range w.from.likelySchemes() {
		if _, m := w.from.assemble(e, s); m != nil && m.near > near {
			why, near = fmt.Errorf("as %s: %w", s.Name, m.error), m.near
		}
	}
	return sentinel.Errorf(ErrLayout, "%s: tensor %q, %s %v, has codes without scales: %w",
		e.File, e.Name, e.DType, e.Shape, why)
}

// hasCodesName reports whether a tensor can only be codes: its name is one that nothing else
// has, or it has their type and is not named as scales are.
func hasCodesName(e Entry) bool {
	own := false
	for _, s := range schemes {
		codes := s.Parts[Codes].Suffix
		own = own || codes != ".weight" && s.Parts[Codes].reads(e.DType) &&
			strings.HasSuffix(e.Name, strings.TrimPrefix(codes, ".weight"))
		if scales := s.Parts[Scales].Suffix; strings.HasSuffix(e.Name, strings.TrimPrefix(scales, ".weight")) {
			return false
		}
	}
	switch e.DType {
	case safetensors.F8E4M3, safetensors.F8E5M2, safetensors.F8E4M3FNUZ, safetensors.F8E5M2FNUZ,
		safetensors.F4, safetensors.F6E2M3, safetensors.F6E3M2:
		return true
	}
	return own
}

// orphan returns an error if a tensor is the scales of codes that are not there, or not
// where its name says.
func (c *Checkpoint) orphan(e Entry) error {
	var err error
	for _, s := range schemes {
		for r := Scales; r < roles; r++ {
			part := s.Parts[r]
			suffix := part.Suffix
			grid := part.Shape == grid
			if suffix == "" || !strings.HasSuffix(e.Name, suffix) || !part.reads(e.DType) ||
				grid && len(e.Shape) < 2 && !strings.HasPrefix(suffix, ".weight") || !grid && e.Len() != 1 {
				continue // such as a norm's .scale
			}
			name := strings.TrimSuffix(e.Name, suffix) + ".weight"
			if w := c.whose[s.PartName(name, Codes)]; w != nil && w.Scheme == nil && w.unscaled() != nil {
				return nil // which is said of the codes
			}
			if err == nil {
				err = sentinel.Errorf(ErrLayout, "%s: tensor %q looks like the %v of a weight %q, which has none in any layout that is known",
					e.File, e.Name, r, name)
			}
		}
	}
	return err
}
