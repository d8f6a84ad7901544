package hf

import (
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn"
)

// layout is where tensors of a family are.
type layout struct {
	names      *strings.Replacer // of parameters of package nn; nil: they are those
	either     bool              // tensors may be under either name
	fusedHeads bool              // q_proj, k_proj and v_proj are one qkv_proj
	fusedMLP   bool              // gate_proj and up_proj are one gate_up_proj
	inTurn     bool              // rows of gate and up of experts alternate, and values are transposed (gpt-oss)
}

// place is where a parameter of package nn is: at rows and columns of a matrix of a tensor.
type place struct {
	tensor string
	shape  []int // of the tensor

	matrix           int // of a stack
	row, col         int // of the first element
	rowStep, colStep int
	transposed       bool // rows of the parameter go along the columns of the matrix
}

// at returns where element [i, j] is.
func (p place) at(i, j int) (row, col int) {
	if p.transposed {
		i, j = j, i
	}
	return p.row + i*p.rowStep, p.col + j*p.colStep
}

// isVector reports whether a parameter of one row is a vector in files.
func isVector(name string) bool {
	return strings.HasSuffix(name, "norm.weight") || strings.HasSuffix(name, ".bias") || strings.HasSuffix(name, ".sinks")
}

// shapeOf returns the shape in files of a tensor that a parameter is.
func shapeOf(s nn.Shape) []int {
	if isVector(s.Name) {
		return []int{s.Cols}
	}
	return []int{s.Rows, s.Cols}
}

// places returns where a parameter may be, by itself or in a tensor with others: where the family
// has it, before other places.
func (d *described) places(s nn.Shape) []place {
	own := place{tensor: d.rename(s.Name), shape: shapeOf(s), rowStep: 1, colStep: 1}
	fused := d.fusions(s)
	for i := range fused {
		fused[i].tensor = d.prefixed(fused[i].tensor)
	}
	all := append([]place{own}, fused...)
	if d.family.fusedHeads || d.family.fusedMLP || d.family.inTurn {
		all = append(fused, own)
	}
	if d.family.either {
		own.tensor = d.prefixed(s.Name)
		all = append(all, own)
	}
	return all
}

// rename returns the name of a tensor that is one of package nn's parameters.
func (d *described) rename(name string) string {
	if d.family.names != nil {
		name = d.family.names.Replace(name)
	}
	return d.prefixed(name)
}

// prefixed returns the name of a tensor of text, in a model of more.
func (d *described) prefixed(name string) string {
	if name == headName {
		return d.headTensor()
	}
	if rest, ok := strings.CutPrefix(name, "model."); ok && d.within != "" {
		return d.within + rest
	}
	return name
}

// headTensor returns the name of the head.
func (d *described) headTensor() string {
	before, _ := strings.CutSuffix(d.within, "model.")
	if before == d.within {
		before = ""
	}
	return before + headName
}

// ofMore reports whether a tensor is of what a model has beside text.
func (d *described) ofMore(name string) bool {
	return d.within != "" && !strings.HasPrefix(name, d.within) && name != d.headTensor()
}

// biasName takes the place of "weight" in the names of routers' weights, in those of the biases for
// choosing.
const biasName = "e_score_correction_bias"

// biasOf returns where the biases for choosing are by the weight of a router; nil if there are none.
func (d *described) biasOf(s nn.Shape) []place {
	router, ok := strings.CutSuffix(s.Name, ".mlp.gate.weight")
	if !d.scored || !ok {
		return nil
	}
	name := d.rename(router + ".mlp.gate." + biasName)
	return []place{{tensor: name, shape: []int{s.Rows}, rowStep: 1, colStep: 1}}
}

// isPredicted reports whether a tensor is of the layers behind the last one, which predict
// tokens further on and take no part in what package nn computes.
func (d *described) isPredicted(name string) bool {
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, _, _ := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	return ok && err == nil && layer >= d.Layers && layer-d.Layers < d.predicted
}

// fusions returns where a parameter is among others, the usual place first.
func (d *described) fusions(s nn.Shape) []place {
	before, part, ok := cutProjection(s.Name)
	kind := s.Name[strings.LastIndexByte(s.Name, '.'):] // .weight or .bias
	p := place{rowStep: 1, colStep: 1}
	switch {
	case !ok:
		return nil
	case strings.HasSuffix(before, ".self_attn.") && d.family.fusedHeads:
		q, kv := d.Heads*headDim(d.Config), d.KVHeads*headDim(d.Config)
		first, ok := map[string]int{"q": 0, "k": q, "v": q + kv}[part]
		if !ok {
			return nil
		}
		p.tensor, p.shape, p.row = before+"qkv_proj"+kind, []int{q + 2*kv, s.Cols}, first
		return []place{p}
	case strings.HasSuffix(before, ".mlp.") && d.family.fusedMLP && part != "down":
		p.tensor, p.shape = before+"gate_up_proj"+kind, []int{2 * s.Rows, s.Cols}
		if part == "up" {
			p.row = s.Rows
		}
		return []place{p}
	case !strings.Contains(before, ".mlp.experts."):
		return nil
	}
	return d.stacked(s, before, part, kind == ".bias")
}

// stacked returns where a parameter of an expert is in a tensor of all experts.
func (d *described) stacked(s nn.Shape, before, part string, bias bool) []place {
	before, number, _ := strings.Cut(strings.TrimSuffix(before, "."), "experts.")
	expert, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	experts, rows, cols := d.Experts.Router.Experts, s.Rows, s.Cols
	if bias {
		rows, cols = cols, 1
	}
	p := place{tensor: before + "experts." + part + "_proj", matrix: expert, rowStep: 1, colStep: 1}
	if part != "down" {
		p.tensor = before + "experts.gate_up_proj"
		second := part == "up"
		first := rows
		if d.family.inTurn {
			p.rowStep, first = 2, 1
		}
		if second {
			p.row = first
		}
		rows *= 2
	}
	if bias {
		p.tensor += "_bias"
		p.shape, p.matrix = []int{experts, rows}, 0
		p.row, p.col, p.rowStep, p.colStep = expert, p.row, 1, p.rowStep
		return []place{p}
	}
	p.shape = []int{experts, rows, cols}
	if !d.family.inTurn {
		return []place{p}
	}
	values := p // which gpt-oss has transposed where they are not in MXFP4
	values.shape, values.transposed = []int{experts, cols, rows}, true
	values.row, values.col, values.rowStep, values.colStep = 0, p.row, 1, p.rowStep
	return []place{values, p}
}

// cutProjection returns what is before the name of a projection, and which it is, such as "gate".
func cutProjection(name string) (before, part string, ok bool) {
	name, _, ok = strings.Cut(name, "_proj.")
	if !ok {
		return "", "", false
	}
	dot := strings.LastIndexByte(name, '.') + 1
	return name[:dot], name[dot:], true
}

// find returns the first place of several at which there is a tensor.
func find(c *checkpoint.Checkpoint, places []place) (p place, w *checkpoint.Weight) {
	for _, p := range places {
		w := c.Weight(p.tensor)
		if w == nil || w.Name != p.tensor {
			continue
		}
		// The shape of what has its transpose stored is that of the transpose.
		turned := w.Scheme != nil && w.Scheme.Transposed
		if other := slices.ContainsFunc(places, func(q place) bool { return q.tensor == p.tensor && q.transposed }); !other && turned || other && p.transposed == turned {
			continue
		}
		return p, w
	}
	return places[0], nil
}
