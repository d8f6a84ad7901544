package agree

import (
	"errors"
	"slices"

	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Kind is what an engine did in place of what it claims. The zero Kind is what it claims.
type Kind string

var errKind = errors.New("agree: no such kind")

// candidate is what an engine may have done.
type candidate struct {
	kind          Kind
	input, weight Treatment
	noBias        bool
	recipe        string // where both operands are those of one
}

// row is a kind of candidates. propose returns those that differ from the claim.
type row struct {
	name, text string
	propose    func(s *source, claimed candidate, c *Claim, recipes []Recipe) []candidate
}

var table = explain.NewTable[Kind]("agree", errKind, []row{
	{"claimed", "what is claimed", nil},
	{"input-unquantized", "the input is not quantized", func(_ *source, c candidate, _ *Claim, _ []Recipe) []candidate {
		return []candidate{{weight: c.weight}}
	}},
	{"unquantized", "the layer is not quantized", func(s *source, _ candidate, _ *Claim, _ []Recipe) (all []candidate) {
		for _, w := range s.unquantized() {
			all = append(all, candidate{weight: w})
		}
		return all
	}},
	{"weight-unquantized", "the weight is not quantized", func(s *source, c candidate, _ *Claim, _ []Recipe) (all []candidate) {
		for _, w := range s.unquantized() {
			all = append(all, candidate{input: c.input, weight: w})
		}
		return all
	}},
	{"scales-rounded-up", "scales are rounded up to powers of two", func(s *source, c candidate, _ *Claim, _ []Recipe) []candidate {
		return changed(c, func(t Treatment, weight bool) (Treatment, bool) {
			if weight && !t.Quantized && s.Weight.Codes != nil {
				t = s.again() // what was stored is quantized again
			}
			t.Scales = RoundedUp
			return t, t.Quantized && !t.Recipe.Profile.Outer()
		})
	}},
	{"scales-read-up", "scales are rounded up to powers of two, of codes that were made under others", func(s *source, c candidate, _ *Claim, _ []Recipe) []candidate {
		return changed(c, func(t Treatment, weight bool) (Treatment, bool) {
			t.Scales = ReadUp
			return t, t.Quantized || weight && s.Weight.Codes != nil
		})
	}},
	{"recipe", "the layer is quantized by another recipe", func(s *source, c candidate, _ *Claim, recipes []Recipe) (all []candidate) {
		for _, r := range recipes {
			if r.Input != nil && r.Weight != nil {
				all = append(all, candidate{input: quantizedBy(r.Input), weight: s.weightBy(r), recipe: r.Name})
			}
		}
		return all
	}},
	{"input-recipe", "the input is quantized by another recipe", func(_ *source, c candidate, _ *Claim, recipes []Recipe) (all []candidate) {
		for _, r := range recipes {
			if r.Input != nil {
				all = append(all, candidate{input: quantizedBy(r.Input), weight: c.weight})
			}
		}
		return all
	}},
	{"weight-recipe", "the weight is quantized by another recipe", func(s *source, c candidate, _ *Claim, recipes []Recipe) (all []candidate) {
		for _, r := range recipes {
			if r.Weight != nil {
				all = append(all, candidate{input: c.input, weight: quantizedBy(r.Weight)})
			}
		}
		return all
	}},
	{"blocks", "scales are those of other blocks", func(s *source, c candidate, _ *Claim, _ []Recipe) (all []candidate) {
		if c.input.Quantized {
			for _, b := range inputBlocks {
				t := c.input
				t.Recipe.Block = b
				all = append(all, candidate{input: t, weight: c.weight})
			}
		}
		if t := c.weight; t.Quantized || s.Weight.Codes != nil {
			if !t.Quantized {
				t = s.again()
			}
			for _, b := range weightBlocks {
				t.Recipe.Block = b
				all = append(all, candidate{input: c.input, weight: t})
			}
		}
		return all
	}},
	{"input-scale", "the input is quantized under the checkpoint's input scale", func(s *source, c candidate, _ *Claim, _ []Recipe) []candidate {
		t := s.staticInput()
		return []candidate{{input: t, weight: c.weight}}
	}},
	{"transposed", "the grid of the weight's scales is read transposed", func(_ *source, c candidate, _ *Claim, _ []Recipe) []candidate {
		c.weight.Scales = Transposed
		return []candidate{c}
	}},
	{"rounded", "an operand is rounded to another type", func(s *source, c candidate, _ *Claim, _ []Recipe) []candidate {
		var all []candidate
		for _, to := range []Type{BF16, F16} {
			w, x, both := c, c, c
			w.weight.Rounded, x.input.Rounded, both.input.Rounded, both.weight.Rounded = to, to, to, to
			all = append(all, w, x, both)
		}
		return all
	}},
	{"no-bias", "the bias is not added", func(s *source, c candidate, _ *Claim, _ []Recipe) []candidate {
		if s.Bias == nil {
			return nil
		}
		c.noBias = true
		return []candidate{c}
	}},
}, func(r row) string { return r.name })

// Blocks that are tried of what is quantized.
var (
	inputBlocks = []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 16}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 64},
		{Rows: 1, Cols: 128}, {Rows: 1, Cols: 256}, {Rows: 1, Cols: 512}}
	weightBlocks = append([]tensor.Block{{Rows: 16, Cols: 16}, {Rows: 32, Cols: 32}, {Rows: 64, Cols: 64}, {Rows: 128, Cols: 128},
		{Rows: 128, Cols: 1}, {Rows: 64, Cols: 128}, {Rows: 128, Cols: 64}}, inputBlocks...)
)

// kinds returns the kinds of all rows but the first.
func (k Kind) text() string {
	r, err := table.Row(k)
	if err != nil {
		return string(k)
	}
	return r.text
}

// changed returns a candidate with one operand changed, the other, and both.
func changed(c candidate, change func(t Treatment, weight bool) (Treatment, bool)) (all []candidate) {
	input, x := change(c.input, false)
	weight, w := change(c.weight, true)
	if x {
		all = append(all, candidate{input: input, weight: c.weight})
	}
	if w {
		all = append(all, candidate{input: c.input, weight: weight})
	}
	if x && w {
		all = append(all, candidate{input: input, weight: weight})
	}
	return all
}

// unquantized returns what engines make of a weight that they do not quantize.
func (s *source) unquantized() []Treatment {
	if s.Weight.Codes == nil {
		return []Treatment{{}}
	}
	return []Treatment{{}, {Rounded: BF16}, {Rounded: F16}}
}

// again returns what quantizes the values of stored codes once more as they were stored.
func (s *source) again() Treatment {
	var t Treatment
	if c := s.Weight.Codes; c != nil {
		t.Quantized = true
		t.Recipe.Format, t.Recipe.Block, t.Recipe.Profile = c.Format, c.Block, storedProfile(c)
	}
	return t
}

// staticInput returns what quantizes the input under the scale of the checkpoint.
func (s *source) staticInput() Treatment {
	t := Treatment{Quantized: true, Static: true}
	if c := s.Weight.Codes; c != nil {
		t.Recipe.Format = c.Format
	}
	return t
}

// weightBy returns what a recipe does with the weight: nothing where it is stored in the
// recipe's format and blocks.
func (s *source) weightBy(r Recipe) Treatment {
	t := quantizedBy(r.Weight)
	c := s.Weight.Codes
	if c == nil || r.Weight == nil {
		return t
	}
	h, v := c.Block.Extents(s.Weight.Rows, s.Weight.Cols)
	rh, rv := r.Weight.Block.Extents(s.Weight.Rows, s.Weight.Cols)
	if c.Format == r.Weight.Format && h == rh && v == rv {
		return Treatment{}
	}
	return t
}

// claimed returns what the claim says.
func (s *source) claimed(c *Claim) candidate {
	all := candidate{input: quantizedBy(c.Recipe.Input), weight: s.weightBy(c.Recipe), recipe: c.Recipe.Name}
	if c.Static {
		all.input = s.staticInput()
	}
	if c.Recipe.Input == nil && !c.Static && s.InputOf == F32 {
		all.input.Rounded = c.Recipe.Rounded
	}
	if c.Recipe.Weight == nil && s.Weight.Codes == nil && s.Weight.Of == F32 {
		all.weight.Rounded = c.Recipe.Rounded
	}
	if s.Weight.Codes != nil && c.Recipe.Weight == nil {
		all.weight.Rounded = c.Recipe.Rounded // codes become values of the input's type
		if s.InputOf != F32 {
			all.weight.Rounded = s.InputOf
		}
	}
	return all
}

// candidates returns what is tried in place of the claim, in the order of the table.
func (s *source) candidates(c *Claim, recipes []Recipe) (all []candidate) {
	claimed := s.claimed(c)
	seen := map[candidate]bool{{input: claimed.input, weight: claimed.weight}: true}
	for _, k := range table.Kinds() {
		r, err := table.Row(k)
		if err != nil {
			continue
		}
		for _, one := range r.propose(s, claimed, c, recipes) {
			key := candidate{input: one.input, weight: one.weight, noBias: one.noBias}
			if seen[key] || one.input.Static && !(s.Weight.InputScale > 0) || !s.makesInput(one.input) || !s.makesWeight(one.weight) {
				continue
			}
			seen[key] = true
			one.kind = k
			all = append(all, one)
		}
	}
	return slices.Clip(all)
}

// storedProfile returns a profile that makes scales as codes have them. That their values were
// quantized by it is not known; values of codes have an amax that all of a kind agree on.
func storedProfile(t *tensor.Tensor) scaling.Profile {
	switch t.ScaleFormat {
	case tensor.E8M0Scales:
		return scaling.MXRCeil
	case tensor.UE4M3Scales:
		return scaling.NVFP4ModelOpt
	}
	return scaling.DeepGEMM
}
