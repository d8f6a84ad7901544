package lint

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/tensor"
)

var (
	// kvName matches names of scales of cached keys or values.
	kvName = regexp.MustCompile(`(^|[._])(k|v|kv|key|value)(_cache)?(_output|\.output)?_scale(_inv)?$|[kv]_proj\.output_scale$`)

	// kvKnown matches those that loaders map.
	kvKnown = regexp.MustCompile(`\.(self_attn|attn|attention)\.((attn\.)?[kv]_scale|[kv]_proj\.([kv]|output)_scale|qkv_proj\.[kv]_scale|kv_scale)$`)
)

// isKV reports whether a name can only be that of a scale of cached keys or values.
func isKV(name string) bool {
	return strings.Contains(name[max(len(name)-len("_scale_inv"), 0):], "_scale") && kvName.MatchString(name)
}

// kvDeclared reports whether the configuration promises scales of cached keys and values.
func (m *model) kvDeclared() bool {
	q := m.c.Config.Quantization
	other, _ := m.c.Config.ModelOpt["quantization"].(map[string]any)
	switch scheme := q["kv_cache_scheme"].(type) {
	case string:
		return scheme == "static"
	case map[string]any:
		return scheme["dynamic"] != true
	}
	return q["kv_cache_quant_algo"] != nil || other["kv_cache_quant_algo"] != nil
}

// kvScales returns the tensors that are scales of cached keys or values.
func (m *model) kvScales() (list []checkpoint.Entry) {
	for _, e := range m.entries {
		if isKV(e.Name) {
			list = append(list, e)
		}
	}
	return list
}

// attentions returns the modules of attention whose keys are cached: all but those of towers,
// which loaders never quantize.
func (m *model) attentions() []string {
	all := map[string]bool{}
	for _, w := range m.weights {
		if module, ok := strings.CutSuffix(moduleOf(w.Name), ".k_proj"); ok && checkpoint.Kept(module+".k_proj.weight") == nil {
			all[module] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// checkKVMissing has layers that lack one of the pair, or both where the configuration
// promises them.
func checkKVMissing(m *model, found func(Finding)) {
	for _, module := range m.attentions() {
		has := func(which string) bool {
			for _, name := range []string{"." + which + "_scale", ".attn." + which + "_scale", "." + which + "_proj." + which + "_scale", "." + which + "_proj.output_scale", ".qkv_proj." + which + "_scale", ".kv_scale"} {
				if _, ok := m.c.Entry(module + name); ok {
					return true
				}
			}
			return false
		}
		k, v := has("k"), has("v")
		if k && v || !k && !v && !m.kvDeclared() {
			continue
		}
		var absent []string
		for _, which := range []string{"k", "v"} {
			if !has(which) {
				absent = append(absent, which+"_scale")
			}
		}
		found(Finding{Tensors: []string{module}, What: "there is no " + strings.Join(absent, " and no ")})
	}
}

func checkKVNames(m *model, found func(Finding)) {
	for _, e := range m.kvScales() {
		if !kvKnown.MatchString(e.Name) {
			found(Finding{File: e.File, Tensors: []string{e.Name}, What: "no loader maps this name"})
		}
	}
}

func checkKVUndeclared(m *model, found func(Finding)) {
	var names []string
	for _, e := range m.kvScales() {
		names = append(names, e.Name)
	}
	if len(names) > 0 && m.hasConfig() && !m.kvDeclared() {
		found(Finding{File: checkpoint.ConfigName, Tensors: names, What: counted(len(names), "there is 1", "there are %d") + ", and kv_cache_scheme is absent"})
	}
}

func checkKVInvalid(m *model, found func(Finding)) {
	for _, e := range m.kvScales() {
		what := ""
		if e.Len() != 1 || !isValues(e.DType) {
			what = fmt.Sprintf("it is %s %v: want one number", e.DType, e.Shape)
		} else {
			x, err := m.number(e)
			if err != nil {
				m.err = err
				return
			}
			if x > 0 && !math.IsInf(x, 0) {
				continue
			}
			what = fmt.Sprintf("it is %v", x)
		}
		found(Finding{File: e.File, Tensors: []string{e.Name}, What: what})
	}
}

// number reads the only element of a tensor.
func (m *model) number(e checkpoint.Entry) (float64, error) {
	data := make([]byte, e.DType.Size())
	if err := m.c.ReadBytes(e, 0, data); err != nil {
		return 0, err
	}
	var x [1]float64
	decode(x[:], data, e.DType, tensor.E8M0Scales)
	return x[0], nil
}
