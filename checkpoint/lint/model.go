package lint

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// model is what rules look at.
type model struct {
	path     string
	c        *checkpoint.Checkpoint // nil if no file can be read
	problems []error                // of opening
	parallel int                    // devices that share a weight

	entries []checkpoint.Entry
	weights []*checkpoint.Weight
	wanted  []*checkpoint.Scheme // of layouts that the configuration declares
	known   bool                 // whether the method of quantization is
	unread  []checkpoint.Unread
	ignore  []pattern       // modules that are not quantized, as the configuration has them
	names   map[string]bool // those of ignore that are names
	targets []pattern       // modules that are, if the configuration says it of some alone
	stats   map[*checkpoint.Weight]*stats
	err     error // of reading
}

func newModel(path string, c *checkpoint.Checkpoint, problems []error, o Options) *model {
	m := &model{path: path, c: c, problems: problems, parallel: max(o.TensorParallel, 1)}
	if c == nil {
		return m
	}
	m.entries, m.weights, m.unread = c.Entries(), c.Weights(), c.Unread()
	m.wanted = m.declared()
	m.known = m.declaration() == nil || len(m.wanted) > 0 || m.hasFloats()
	m.names = map[string]bool{}
	for _, name := range m.listed() {
		p := newPattern(name)
		m.ignore = append(m.ignore, p)
		m.names[name] = p.re == nil && !p.unknown
	}
	for _, group := range m.configGroups() {
		for _, target := range texts(group["targets"]) {
			m.targets = append(m.targets, newPattern(target))
		}
	}
	return m
}

// floatFormats are those of compressed-tensors whose codes are floats.
var floatFormats = []string{
	"dense", "naive-quantized", "float-quantized", "mxfp8-quantized", "mxfp4-pack-quantized",
	"nvfp4-pack-quantized",
}

// declared returns the schemes of the layout that the configuration declares: where it allows
// several, of those that most weights are in.
func (m *model) declared() (schemes []*checkpoint.Scheme) {
	most := 0
	for _, l := range checkpoint.Layouts() {
		if !l.Declared(m.c.Config) {
			continue
		}
		var own []*checkpoint.Scheme
		for _, rule := range l.Rules {
			own = append(own, rule.Scheme)
		}
		n := 0
		for _, w := range m.quantized() {
			if slices.Contains(own, w.Scheme) {
				n++
			}
		}
		if n > most {
			schemes, most = nil, n
		}
		if n == most {
			schemes = append(schemes, own...)
		}
	}
	return schemes
}

// hasFloats reports whether compressed-tensors' format, or each where they are mixed, has
// codes that are floats.
func (m *model) hasFloats() bool {
	format := text(m.declaration(), "format")
	if format != "mixed-precision" {
		return slices.Contains(floatFormats, format)
	}
	return !slices.ContainsFunc(m.configGroups(), func(group map[string]any) bool {
		return !slices.Contains(floatFormats, text(group, "format"))
	})
}

// configGroups returns compressed-tensors' groups of modules.
func (m *model) configGroups() (list []map[string]any) {
	groups, _ := m.declaration()["config_groups"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if group, ok := groups[key].(map[string]any); ok {
			list = append(list, group)
		}
	}
	return list
}

// hasConfig reports whether the model says what it is.
func (m *model) hasConfig() bool { return m.c.Config.Model != nil }

// declaration returns what the configuration says of quantization, nil if nothing.
func (m *model) declaration() map[string]any {
	if q := m.c.Config.Quantization; q != nil {
		return q
	}
	q, _ := m.c.Config.ModelOpt["quantization"].(map[string]any)
	return q
}

// listed returns all modules that configurations leave out.
func (m *model) listed() (all []string) {
	other, _ := m.c.Config.ModelOpt["quantization"].(map[string]any)
	for _, q := range []map[string]any{m.c.Config.Quantization, other} {
		for _, key := range []string{"ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"} {
			for _, name := range texts(q[key]) {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	return all
}

func text(object map[string]any, key string) string {
	s, _ := object[key].(string)
	return s
}

func texts(value any) (list []string) {
	items, _ := value.([]any)
	for _, item := range items {
		if s, ok := item.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

// member returns a member of config.json, if it is a T.
func member[T any](m *model, key string) (value T, ok bool) {
	raw, ok := m.c.Config.Model[key]
	return value, ok && json.Unmarshal(raw, &value) == nil
}

// pattern is an entry of a list of modules. Loaders read it in their own ways: as the whole
// name (vLLM), as the beginning or the end of one (transformers), as a regular expression
// after "re:" (compressed-tensors) or with wildcards (ModelOpt). One that any of them would
// read as the name of a module matches it.
type pattern struct {
	name    string
	re      *regexp.Regexp
	unknown bool // an expression that Python may understand and Go does not
}

func newPattern(name string) pattern {
	p := pattern{name: name}
	expression, isRE := strings.CutPrefix(name, "re:")
	switch {
	case isRE:
		var err error
		p.re, err = regexp.Compile("^(?:" + expression + ")")
		p.unknown = err != nil
	case strings.ContainsAny(name, "*?["):
		p.re = regexp.MustCompile(`^(?:model\.)?(?:` + wildcards(name) + `)(\.|$)`)
	}
	return p
}

// wildcards returns the regular expression of a pattern as Python's fnmatch has it. A bracket
// that is never closed is itself.
func wildcards(name string) string {
	wild := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(name))
	set := strings.NewReplacer(`\[!`, "[^", `\[`, "[", `\]`, "]").Replace(wild)
	if _, err := regexp.Compile(set); err != nil {
		return wild
	}
	return set
}

func (p pattern) matches(module string) bool {
	switch {
	case p.unknown:
		return false
	case p.re != nil:
		return p.re.MatchString(module)
	}
	return slices.Contains(runs(module), p.name)
}

// runs returns the parts of a name that begin and end with components of it, the whole first.
func runs(name string) (list []string) {
	for from := 0; ; {
		rest := name[from:]
		for to := len(rest); to >= 0; to = strings.LastIndexByte(rest[:to], '.') {
			list = append(list, rest[:to])
		}
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return list
		}
		from += dot + 1
	}
}

// ignored reports whether a module is listed as not quantized, or may be for all that can be
// read.
func (m *model) ignored(module string) (listed, unknown bool) {
	for _, name := range runs(module) {
		if m.names[name] {
			return true, false
		}
	}
	for _, p := range m.ignore {
		if p.re != nil && p.matches(module) {
			return true, false
		}
		unknown = unknown || p.unknown
	}
	return false, unknown
}

// scaleSuffixes are what follows the name of a module in names of scales, the longer ones
// first.
var scaleSuffixes = []string{
	".weight_global_scale", ".input_global_scale", ".weight_scale_inv", ".activation_scale",
	".weight_scale_2", ".weight_scales", ".weight_scale", ".scale_weight", ".input_scale",
	".scale_input", "._weight_scale", "_scale_inv", "_scales", ".scale",
}

// scaleOf returns the module that a name of a scale begins with.
func scaleOf(name string) (module, suffix string, ok bool) {
	for _, s := range scaleSuffixes {
		if module, ok := strings.CutSuffix(name, s); ok {
			return module, s, true
		}
	}
	return "", "", false
}

// codeSuffixes are what follows the name of a module in names that only codes have.
var codeSuffixes = []string{".weight_packed", "._weight_qdata", "_blocks"}

var nameSuffixes = append([]string{".weight"}, codeSuffixes...)

// moduleOf returns the module of a tensor of codes or values.
func moduleOf(name string) string {
	for _, s := range nameSuffixes {
		if module, ok := strings.CutSuffix(name, s); ok {
			return module
		}
	}
	return name
}

// isCodes reports whether a tensor can only be codes.
func (m *model) isCodes(e checkpoint.Entry) bool {
	switch e.DType {
	case safetensors.F8E4M3, safetensors.F8E5M2, safetensors.F8E4M3FNUZ, safetensors.F8E5M2FNUZ, safetensors.F4:
		_, _, scale := scaleOf(e.Name)
		return len(e.Shape) > 0 && !scale && !isKV(e.Name)
	case safetensors.U8, safetensors.I8:
		return len(e.Shape) > 0 && (hasSuffix(e.Name, codeSuffixes) || strings.HasSuffix(e.Name, ".weight") && m.isPacked(e))
	}
	return false
}

func hasSuffix(name string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// isPacked reports whether bytes that have the name of a weight are packed codes: as the
// configuration says, or where there is none, since scales are beside them. Integers have
// scales, too, but none in E8M0.
func (m *model) isPacked(e checkpoint.Entry) bool {
	if m.declaration() != nil {
		return slices.ContainsFunc(m.wanted, func(s *checkpoint.Scheme) bool {
			return s.Parts[checkpoint.Codes].Suffix == ".weight" && slices.Contains(s.Parts[checkpoint.Codes].DTypes, e.DType)
		})
	}
	return slices.ContainsFunc(m.otherScales(e.Name, nil), func(name string) bool {
		scale, _ := m.c.Entry(name)
		return e.DType == safetensors.U8 || scale.DType == safetensors.F8E8M0
	})
}

// isValues reports whether a tensor is numbers that are not quantized.
func isValues(d safetensors.DType) bool {
	return d == safetensors.BF16 || d == safetensors.F16 || d == safetensors.F32
}

// quantized returns the weights that have codes and scales.
func (m *model) quantized() (list []*checkpoint.Weight) {
	for _, w := range m.weights {
		if w.Scheme != nil {
			list = append(list, w)
		}
	}
	return list
}

// unscaled returns the codes that no scheme finds scales for.
func (m *model) unscaled() (list []checkpoint.Entry) {
	for _, w := range m.weights {
		if w.Scheme == nil && m.isCodes(w.Parts[checkpoint.Codes]) {
			list = append(list, w.Parts[checkpoint.Codes])
		}
	}
	return list
}

// groups returns the weights that loaders fuse, by the name that they have together: those
// of two or more.
func (m *model) groups() (list [][]*checkpoint.Weight) {
	at := map[string]int{}
	for _, w := range m.weights {
		module, ok := strings.CutSuffix(w.Name, ".weight")
		if !ok || len(w.Shape) != 2 {
			continue
		}
		name := checkpoint.FusedName(module)
		if name == module {
			continue
		}
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], w)
	}
	return slices.DeleteFunc(list, func(g []*checkpoint.Weight) bool { return len(g) < 2 })
}

// isGrid reports whether a weight has scales for blocks of several rows.
func isGrid(b tensor.Block) bool { return b.Rows > 1 }
