package agree

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// fusedParts are the last names of modules that engines make of several, and of which.
var fusedParts = map[string][]string{
	"qkv_proj":                  {"q_proj", "k_proj", "v_proj"},
	"gate_up_proj":              {"gate_proj", "up_proj"},
	"fused_qkv_a_proj_with_mqa": {"q_a_proj", "kv_a_proj_with_mqa"},
	"w13":                       {"w1", "w3"},
}

// part is where a module of the checkpoint is in a module of a dump.
type part struct {
	module string // of the dump
	first  int    // column of its output
	fused  bool
}

// linear is a linear layer of the model.
type linear struct {
	name   string // of its module in the checkpoint
	weight *checkpoint.Weight
	bias   *checkpoint.Weight
}

// linears returns the linear layers of a model, in its order, and the names of modules whose
// weights are not matrices that a dump could be of, with why.
func linears(c *checkpoint.Checkpoint) (all []linear, others []NotJudged) {
	for _, w := range c.Weights() {
		name, ok := strings.CutSuffix(w.Name, ".weight")
		matrices, rows, _ := w.Dims()
		switch {
		case !ok && matrices > 1:
			others = append(others, NotJudged{w.Name, "a stack of matrices: dumps have linear modules"})
		case !ok || len(w.Shape) < 2:
			if ok && rows == 1 && strings.Contains(name, "norm") {
				others = append(others, NotJudged{name, "a norm: not a linear layer"})
			}
		case strings.Contains(name, "embed"):
			others = append(others, NotJudged{name, "an embedding: not a linear layer"})
		case matrices > 1:
			others = append(others, NotJudged{name, "a stack of matrices: dumps have linear modules"})
		default:
			all = append(all, linear{name, w, c.Weight(name + ".bias")})
		}
	}
	slices.SortStableFunc(all, compareModules)
	return all, others
}

// find returns where in a dump a module is.
func find(d *dump, l linear, all map[string]linear) (part, bool) {
	if d.has(l.name+inputEnd) && d.has(l.name+outputEnd) {
		return part{module: l.name}, true
	}
	at := strings.LastIndexByte(l.name, '.') + 1
	parent, last := l.name[:at], l.name[at:]
	names := make([]string, 0, len(fusedParts))
	for name := range fusedParts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts := fusedParts[name]
		i := slices.Index(parts, last)
		if i < 0 || !d.has(parent+name+inputEnd) || !d.has(parent+name+outputEnd) {
			continue
		}
		p := part{module: parent + name, fused: true}
		for _, before := range parts[:i] {
			other, ok := all[parent+before]
			if !ok {
				return part{}, false
			}
			_, rows, _ := other.weight.Dims()
			p.first += rows
		}
		return p, true
	}
	return part{}, false
}

// weights returns the weight of a layer as the judge takes it. Others are those that the
// engine quantizes together with it.
func weights(l linear, others []linear) (w agree.Weight, err error) {
	w, err = oneWeight(l)
	if err != nil || len(others) < 2 {
		return w, err
	}
	own := w.Amax
	w.Amax = func() (float32, error) {
		largest, err := own()
		for _, o := range others {
			if o.name == l.name || err != nil {
				continue
			}
			var of agree.Weight
			if of, err = oneWeight(o); err == nil {
				var a float32
				a, err = of.Amax()
				largest = max(largest, a)
			}
		}
		return largest, err
	}
	return w, nil
}

func oneWeight(l linear) (w agree.Weight, err error) {
	_, w.Rows, w.Cols = l.weight.Dims()
	if l.weight.Scheme != nil {
		if w.Codes, err = l.weight.Matrix(0); err != nil {
			return w, err
		}
		if scale, ok, err := l.weight.InputScale(); err == nil && ok {
			w.InputScale = scale
			if l.weight.Scheme.Format == fp8.E2M1 {
				w.InputScale = 0 // an outer scale of NVFP4, which is another thing
			}
		}
	} else {
		w.Of = agree.Type(l.weight.Parts[checkpoint.Codes].DType)
		switch safetensors.DType(w.Of) {
		case safetensors.BF16, safetensors.F16, safetensors.F32:
		default:
			return w, fmt.Errorf("its weight is %s, which is not multiplied", w.Of)
		}
	}
	w.Values = func(dst []float32, lo int) error {
		return checkpoint.ReadValues(new(checkpoint.Reader), l.weight, 0, lo, dst)
	}
	w.Amax = sync.OnceValues(func() (largest float32, err error) {
		const strip = 512
		values := make([]float32, min(strip, w.Rows)*w.Cols)
		for lo := 0; lo < w.Rows; lo += strip {
			rows := min(strip, w.Rows-lo)
			part := values[:rows*w.Cols]
			if w.Codes != nil {
				tensor.DequantizeRows(part, w.Codes, lo)
			} else if err = w.Values(part, lo); err != nil {
				return 0, err
			}
			amax, _ := fp8.Amax(part)
			largest = max(largest, amax)
		}
		return largest, nil
	})
	return w, nil
}

// stored returns the claim of a checkpoint: what its layout's loaders do of inputs.
func stored(w *agree.Weight) agree.Claim {
	c := w.Codes
	if c == nil {
		return agree.Claim{Recipe: agree.Recipe{Name: "bf16"}}
	}
	p := scaling.DeepGEMM
	switch {
	case c.ScaleFormat == tensor.E8M0Scales && c.Block.Rows == 1:
		p = scaling.MXRCeil
	case c.ScaleFormat == tensor.E8M0Scales:
		p = scaling.DeepGEMMUE8M0
	case c.ScaleFormat == tensor.UE4M3Scales && c.Outer.Divide:
		p = scaling.NVFP4CompressedTensors
	case c.ScaleFormat == tensor.UE4M3Scales:
		p = scaling.NVFP4ModelOpt
	case c.Block == tensor.Block{Rows: 1}:
		p = scaling.TorchAORowwise
	case c.Block == tensor.Block{}:
		p = scaling.TECurrent
	}
	x, weight := p.Recipe(scaling.Input), p.Recipe(scaling.Weight)
	if c.ScaleFormat == tensor.E8M0Scales && c.Block.Rows == 1 {
		x.Format = c.Format
	}
	weight.Format, weight.Block = c.Format, c.Block
	return agree.Claim{
		Recipe: agree.Recipe{Name: string(p), Input: &x, Weight: &weight},
		Static: w.InputScale > 0,
	}
}

// excluded reports whether a pattern names a module: the whole of it, its last names, or by
// * and ? as in file names; with re: before it, as compressed-tensors has it, a regular
// expression that its name begins with.
func excluded(module, pattern string) bool {
	if rest, ok := strings.CutPrefix(pattern, "re:"); ok {
		r, err := regexp.Compile("^(?:" + rest + ")")
		return err == nil && r.MatchString(module)
	}
	if module == pattern || strings.HasSuffix(module, "."+pattern) || strings.HasPrefix(module, pattern+".") {
		return true
	}
	ok, err := path.Match(pattern, module)
	return ok && err == nil
}

// swallowed returns the pattern that names no module of these names but is in one of them, as
// "gate" is in "gate_up_proj".
func swallowed(names, patterns []string) (pattern, name string) {
	for _, p := range patterns {
		last := p[strings.LastIndexByte(p, '.')+1:]
		last = strings.Trim(last, "*^$")
		for _, n := range names {
			if last != "" && !excluded(n, p) && strings.Contains(n[strings.LastIndexByte(n, '.')+1:], last) {
				return p, n
			}
		}
	}
	return "", ""
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
