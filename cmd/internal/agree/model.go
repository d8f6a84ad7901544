package agree

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/tensor"
)

// fusedNames are what engines call modules that they make of several, by
// [checkpoint.FusedName] of the parts.
var fusedNames = map[string]string{
	"q_proj+k_proj+v_proj":        "qkv_proj",
	"gate_proj+up_proj":           "gate_up_proj",
	"q_a_proj+kv_a_proj_with_mqa": "fused_qkv_a_proj_with_mqa",
	"w1+w3":                       "w13",
}

// part is where a module of the checkpoint is in a module of a dump.
type part struct {
	module string // of the dump
	first  int    // column of its output
	group  []linear
}

func (p *part) fused() bool { return len(p.group) > 1 }

// linear is a linear layer of the model.
type linear struct {
	name   string // of its module in the checkpoint
	weight *checkpoint.Weight
	bias   *checkpoint.Weight
	matrix int // of the weight
	stack  bool
}

// cut returns the parent of a module, with a dot behind, and its last name.
func cut(module string) (parent, last string) {
	at := strings.LastIndexByte(module, '.') + 1
	return module[:at], module[at:]
}

// linears returns the linear layers of a model, in its order, those of experts that are stored
// together too, and what else is a matrix or a norm, with why it is not judged.
func linears(c *checkpoint.Checkpoint) (all []linear, others []NotJudged) {
	for _, w := range c.Weights() {
		name, named := strings.CutSuffix(w.Name, ".weight")
		matrices, rows, _ := w.Dims()
		switch parent, last := cut(name); {
		case named && rows == 1 && len(w.Shape) < 2 && strings.Contains(name, "norm"):
			others = append(others, NotJudged{name, "a norm: not a linear layer"})
		case len(w.Shape) == 3 && strings.HasSuffix(parent, "experts."):
			bias := c.Weight(name + "_bias")
			for n := range matrices {
				all = append(all, linear{fmt.Sprint(parent, n, ".", last), w, bias, n, true})
			}
		case matrices > 1:
			others = append(others, NotJudged{name, "a stack of matrices that are none of experts"})
		case !named || len(w.Shape) < 2:
		case strings.Contains(name, "embed"):
			others = append(others, NotJudged{name, "an embedding: not a linear layer"})
			if last == "embed_tokens" && c.Config.TiedHead() && c.Weight(head+".weight") == nil {
				all = append(all, linear{name: head, weight: w})
			}
		default:
			all = append(all, linear{name: name, weight: w, bias: c.Weight(name + ".bias")})
		}
	}
	slices.SortStableFunc(all, compareModules)
	return all, others
}

// stackOr says that a module of a dump is a stack of experts of the model, or else another thing.
func stackOr(all []linear, module, other string) string {
	parent, last := cut(module)
	if slices.ContainsFunc(all, func(l linear) bool { return l.stack && l.name == parent+"0."+last }) {
		return "a stack of experts together: want each as " + parent + "0." + last + " and so on"
	}
	return other
}

// head is the name of the module that makes logits.
const head = "lm_head"

// find returns where in a dump a module is.
func find(d *dump, l linear, all map[string]linear) (part, bool) {
	if d.records(l.name) {
		return part{module: l.name, group: []linear{l}}, true
	}
	parent, last := cut(l.name)
	_, together := cut(checkpoint.FusedName(l.name))
	p := part{module: parent + fusedNames[together]}
	if fusedNames[together] == "" || !d.records(p.module) {
		return part{}, false
	}
	before := true
	for _, name := range strings.Split(together, "+") {
		other, ok := all[parent+name]
		if !ok {
			return part{}, false
		}
		if before = before && name != last; before {
			_, rows, _ := other.weight.Dims()
			p.first += rows
		}
		p.group = append(p.group, other)
	}
	return p, true
}

// weightOf returns the weight of a layer as the judge takes it, whose input has a number of
// columns. Those of the group are quantized together.
func weightOf(l linear, group []linear, in, out int) (w agree.Weight, err error) {
	_, w.Rows, w.Cols = l.weight.Dims()
	read := func(dst []float32, lo int) error {
		return checkpoint.ReadValues(new(checkpoint.Reader), l.weight, l.matrix, lo, dst)
	}
	w.Values = read
	if l.weight.Scheme != nil {
		if w.Codes, err = l.weight.Matrix(l.matrix); err != nil {
			return w, err
		}
		codes := w.Codes
		w.Values = func(dst []float32, lo int) error { tensor.DequantizeRows(dst, codes, lo); return nil }
		if scale, ok, err := l.weight.InputScale(); err == nil && ok {
			w.InputScale = scale
		}
	} else {
		w.Of = agree.Type(l.weight.Parts[checkpoint.Codes].DType)
		switch {
		case w.Of != agree.BF16 && w.Of != agree.F16 && w.Of != agree.F32:
			return w, sentinel.Errorf(agree.ErrLayer, "its weight is %s, which is not multiplied", w.Of)
		case l.stack && w.Rows == w.Cols:
			return w, sentinel.Errorf(agree.ErrLayer, "the matrices of its stack are square: it is not known which way they lie")
		case l.stack && w.Rows == in && w.Cols == out:
			transpose(&w, read)
		}
	}
	w.Amax = sync.OnceValues(func() (largest float32, err error) {
		for _, o := range group {
			own := w
			if o.name != l.name {
				if own, err = weightOf(o, nil, 0, 0); err != nil {
					return 0, err
				}
			}
			amax, err := amaxOf(&own)
			if err != nil {
				return 0, err
			}
			largest = max(largest, amax)
		}
		return largest, nil
	})
	return w, nil
}

// transpose has w be the transpose of what read reads.
func transpose(w *agree.Weight, read func(dst []float32, lo int) error) {
	rows, cols := w.Cols, w.Rows
	all := sync.OnceValues(func() ([]float32, error) {
		from, to := make([]float32, rows*cols), make([]float32, rows*cols)
		err := read(from, 0)
		for i, x := range from {
			to[i%rows*cols+i/rows] = x
		}
		return to, err
	})
	w.Rows, w.Cols = rows, cols
	w.Values = func(dst []float32, lo int) error {
		values, err := all()
		copy(dst, values[lo*cols:])
		return err
	}
}

// amaxOf returns the largest magnitude of a weight.
func amaxOf(w *agree.Weight) (largest float32, err error) {
	const strip = 512
	values := make([]float32, min(strip, w.Rows)*w.Cols)
	for lo := 0; lo < w.Rows; lo += strip {
		part := values[:min(strip, w.Rows-lo)*w.Cols]
		if err := w.Values(part, lo); err != nil {
			return 0, err
		}
		amax, _ := fp8.Amax(part)
		largest = max(largest, amax)
	}
	return largest, nil
}

// order are names in the order in which a model runs what has them; others come before.
var order = []string{
	"model", "self_attn", "attn", "attention", "mlp", "block_sparse_moe", "feed_forward", "lm_head",
	"q_a_proj", "q_b_proj", "q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "k_proj", "v_proj", "qkv_proj", "o_proj",
	"gate", "shared_experts", "experts", "gate_proj", "w1", "up_proj", "w3", "gate_up_proj", "down_proj", "w2",
}

// compareModules orders modules as they are run.
func compareModules(a, b linear) int {
	x, y := strings.Split(a.name, "."), strings.Split(b.name, ".")
	for i := range min(len(x), len(y)) {
		n, one := strconv.Atoi(x[i])
		m, other := strconv.Atoi(y[i])
		c := cmp.Compare(slices.Index(order, x[i]), slices.Index(order, y[i]))
		if one == nil && other == nil {
			c = cmp.Compare(n, m)
		}
		if c = cmp.Or(c, cmp.Compare(x[i], y[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}
