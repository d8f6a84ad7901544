package agree

import (
	"cmp"
	"errors"

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
}

// row is a kind of candidates: what may be done with the input and with the weight, each
// alone, or the first of one with the first of the other and so on, or both.
type row struct {
	name, text string
	how        uint8
	operands   func(p *proposer) (inputs, weights []Treatment)
}

const (
	alone uint8 = 1 << iota
	together
)

// proposer is what candidates follow from.
type proposer struct {
	candidate // that is claimed
	layer     *Layer
	recipes   []Recipe
}

var table = explain.NewTable[Kind]("agree", errKind, []row{
	{"claimed", "what is claimed", 0, nil},
	{"input-unquantized", "the input is not quantized", alone, func(*proposer) (x, w []Treatment) { return []Treatment{{}}, nil }},
	{"unquantized", "the layer is not quantized", together, func(p *proposer) (x, w []Treatment) { return []Treatment{{}}, p.unquantized() }},
	{"weight-unquantized", "the weight is not quantized", alone, func(p *proposer) (x, w []Treatment) { return nil, p.unquantized() }},
	{"scales-rounded-up", "scales are rounded up to powers of two", alone | together, func(p *proposer) (x, w []Treatment) {
		input, weight := p.input, p.again() // what was stored is quantized again
		input.Scales, weight.Scales = RoundedUp, RoundedUp
		return []Treatment{input}, []Treatment{weight}
	}},
	{"scales-read-up", "scales are rounded up to powers of two, of codes that were made under others", alone | together, func(p *proposer) (x, w []Treatment) {
		input, weight := p.input, p.weight
		input.Scales, weight.Scales = ReadUp, ReadUp
		return []Treatment{input}, []Treatment{weight}
	}},
	{"recipe", "the layer is quantized by another recipe", together, func(p *proposer) (x, w []Treatment) {
		for _, r := range p.recipes {
			if r.Input != nil && r.Weight != nil {
				x, w = append(x, quantizedBy(r.Input)), append(w, p.layer.weightBy(r))
			}
		}
		return x, w
	}},
	{"input-recipe", "the input is quantized by another recipe", alone, func(p *proposer) (x, w []Treatment) {
		for _, r := range p.recipes {
			if r.Input != nil {
				x = append(x, quantizedBy(r.Input))
			}
		}
		return x, nil
	}},
	{"weight-recipe", "the weight is quantized by another recipe", alone, func(p *proposer) (x, w []Treatment) {
		for _, r := range p.recipes {
			if r.Weight != nil {
				w = append(w, quantizedBy(r.Weight))
			}
		}
		return nil, w
	}},
	{"blocks", "scales are those of other blocks", alone, func(p *proposer) (x, w []Treatment) {
		return inBlocks(p.input, blocks), inBlocks(p.again(), append(weightBlocks, blocks...))
	}},
	{"input-scale", "the input is quantized under the checkpoint's input scale", alone, func(p *proposer) (x, w []Treatment) {
		return []Treatment{p.layer.staticInput()}, nil
	}},
	{"transposed", "the grid of the weight's scales is read transposed", alone, func(p *proposer) (x, w []Treatment) {
		p.weight.Scales = Transposed
		return nil, []Treatment{p.weight}
	}},
	{"rounded", "an operand is rounded to another type", alone | together, func(p *proposer) (x, w []Treatment) {
		for _, to := range []Type{BF16, F16} {
			p.input.Rounded, p.weight.Rounded = to, to
			x, w = append(x, p.input), append(w, p.weight)
		}
		return x, w
	}},
	{"no-bias", "the bias is not added", 0, nil},
}, func(r row) string { return r.name })

// Blocks that are tried of what is quantized.
var (
	blocks = []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 16}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 64}, {Rows: 1, Cols: 128},
		{Rows: 1, Cols: 256}, {Rows: 1, Cols: 512}, {Rows: 16, Cols: 16}, {Rows: 32, Cols: 32}, {Rows: 64, Cols: 64}, {Rows: 128, Cols: 128}}
	weightBlocks = []tensor.Block{{Rows: 128, Cols: 1}, {Rows: 64, Cols: 128}, {Rows: 128, Cols: 64}}
)

func inBlocks(t Treatment, all []tensor.Block) (other []Treatment) {
	for _, b := range all {
		if t.Recipe.Block = b; t.Quantized {
			other = append(other, t)
		}
	}
	return other
}

func (k Kind) text() string { return cmp.Or(table.Of(k).text, string(k)) }

// unquantized returns what engines make of a weight that they do not quantize.
func (p *proposer) unquantized() []Treatment {
	if p.layer.Weight.Codes == nil {
		return []Treatment{{}}
	}
	return []Treatment{{}, {Rounded: BF16}, {Rounded: F16}}
}

// again returns what quantizes the weight: codes once more as they were stored. Whether their
// values were quantized by this profile is not known; an amax of such values is the same in
// all of a kind.
func (p *proposer) again() Treatment {
	t := p.weight
	if c := p.layer.Weight.Codes; c != nil && !t.Quantized {
		t = Treatment{Quantized: true}
		t.Recipe.Format, t.Recipe.Block, t.Recipe.Profile = c.Format, c.Block, scaling.DeepGEMM
		switch c.ScaleFormat {
		case tensor.E8M0Scales:
			t.Recipe.Profile = scaling.MXRCeil
		case tensor.UE4M3Scales:
			t.Recipe.Profile = nvfp4Of(c)
		}
	}
	return t
}

// nvfp4Of returns the profile of codes under UE4M3 scales.
func nvfp4Of(t *tensor.Tensor) scaling.Profile {
	if t.Outer.Divide {
		return scaling.NVFP4CompressedTensors
	}
	return scaling.NVFP4ModelOpt
}

// staticInput returns what quantizes the input under the scale of the checkpoint, of NVFP4 the
// outer one.
func (l *Layer) staticInput() Treatment {
	t := Treatment{Quantized: true, Static: true}
	if c := l.Weight.Codes; c != nil && c.ScaleFormat == tensor.UE4M3Scales {
		t.Recipe = nvfp4Of(c).Recipe(scaling.Input)
	} else if c != nil {
		t.Recipe.Format = c.Format
	}
	return t
}

// weightBy returns what a recipe does with the weight: nothing where it is stored in the
// recipe's format and blocks.
func (l *Layer) weightBy(r Recipe) Treatment {
	t, c := quantizedBy(r.Weight), l.Weight.Codes
	if c == nil || r.Weight == nil {
		return t
	}
	h, v := c.Block.Extents(l.Weight.Rows, l.Weight.Cols)
	rh, rv := r.Weight.Block.Extents(l.Weight.Rows, l.Weight.Cols)
	if c.Format == r.Weight.Format && h == rh && v == rv {
		return Treatment{}
	}
	return t
}

// claimed returns what the claim says.
func (l *Layer) claimed(c *Claim) candidate {
	all := candidate{input: quantizedBy(c.Recipe.Input), weight: l.weightBy(c.Recipe)}
	if c.Static {
		all.input = l.staticInput()
	} else if c.Recipe.Input == nil && l.InputOf == F32 {
		all.input.Rounded = c.Recipe.Rounded
	}
	switch {
	case c.Recipe.Weight != nil:
	case l.Weight.Codes == nil && l.Weight.Of == F32:
		all.weight.Rounded = c.Recipe.Rounded
	case l.Weight.Codes != nil: // codes become values of the input's type
		all.weight.Rounded = c.Recipe.Rounded
		if l.InputOf != F32 {
			all.weight.Rounded = l.InputOf
		}
	}
	return all
}

// propose returns the candidates of a row.
func (r *row) propose(p proposer) (all []candidate) {
	if r.name == "no-bias" && p.layer.Bias != nil {
		return []candidate{{input: p.input, weight: p.weight, noBias: true}}
	}
	if r.operands == nil {
		return nil
	}
	claimed := p.candidate
	inputs, weights := r.operands(&p)
	for n := range max(len(inputs), len(weights)) {
		if r.how&alone != 0 && n < len(inputs) {
			all = append(all, candidate{input: inputs[n], weight: claimed.weight})
		}
		if r.how&alone != 0 && n < len(weights) {
			all = append(all, candidate{input: claimed.input, weight: weights[n]})
		}
		if r.how&together != 0 {
			all = append(all, candidate{input: inputs[n%len(inputs)], weight: weights[n]})
		}
	}
	return all
}

// candidates returns what is tried in place of the claim, in the order of the table.
func (j *judge) candidates(recipes []Recipe) (all []candidate) {
	seen := map[candidate]bool{j.claimed: true}
	for _, k := range table.Kinds() {
		r, err := table.Row(k)
		if err != nil {
			continue
		}
		for _, one := range r.propose(proposer{j.claimed, j.Layer, recipes}) {
			if !seen[one] && j.x.makes(one.input) && j.w.makes(one.weight) {
				seen[one] = true
				one.kind = k
				all = append(all, one)
			}
		}
	}
	return all
}
