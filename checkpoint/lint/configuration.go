package lint

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
)

func checkConfigReadable(m *model, found func(Finding)) {
	for _, err := range m.problems {
		if errors.Is(err, checkpoint.ErrConfig) {
			found(m.problem(err))
		}
	}
}

// hasCodes reports whether there is anything quantized.
func (m *model) hasCodes() bool {
	return slices.ContainsFunc(m.weights, func(w *checkpoint.Weight) bool {
		e := w.Parts[checkpoint.Codes]
		return w.Scheme != nil || m.isCodes(e) || strings.HasSuffix(e.Name, ".weight") && !isValues(e.DType)
	})
}

func checkLeftover(m *model, found func(Finding)) {
	empty := func(u checkpoint.Unread) bool { return u.Contradicted && len(u.Tensors) == 0 }
	known := m.known || slices.ContainsFunc(m.unread, empty)
	if q := m.declaration(); q != nil && known && !m.hasCodes() && text(q, "format") != "dense" {
		found(Finding{File: checkpoint.ConfigName, What: fmt.Sprintf("the method is %q, and no tensor has codes", m.c.Config.Method())})
	}
}

func checkUndeclared(m *model, found func(Finding)) {
	if !m.hasConfig() || m.declaration() != nil {
		return
	}
	var names []string
	for _, w := range m.weights {
		if e := w.Parts[checkpoint.Codes]; w.Scheme != nil || m.isCodes(e) {
			names = append(names, e.Name)
		}
	}
	if len(names) > 0 {
		found(Finding{File: checkpoint.ConfigName, Tensors: names, What: counted(len(names), "1 tensor has codes", "%d tensors have codes")})
	}
	for _, u := range m.unread {
		if u.Method != "" && !u.Declared {
			found(Finding{File: checkpoint.ConfigName, Tensors: u.Tensors, What: counted(len(u.Tensors), "1 tensor is", "%d tensors are") + " quantized by " + u.String()})
		}
	}
}

// checkMethod has tensors of another method than the one that is declared, as far as either is
// known by the names and types of its tensors.
func checkMethod(m *model, found func(Finding)) {
	if m.declaration() == nil {
		return
	}
	for _, u := range m.unread {
		switch {
		case u.Contradicted && len(u.Tensors) > 0:
			found(Finding{File: checkpoint.ConfigName, Tensors: u.Tensors, What: fmt.Sprintf("the method is %q, and %s none of %s%s", m.c.Config.Method(), counted(len(u.Tensors), "1 tensor is", "%d tensors are"), u, m.as())})
		case u.Method != "" && u.Method != checkpoint.UnknownMethod && !u.Declared:
			found(Finding{File: checkpoint.ConfigName, Tensors: u.Tensors, What: fmt.Sprintf("the method is %q, and %s quantized by %s", m.c.Config.Method(), counted(len(u.Tensors), "1 tensor is", "%d tensors are"), u)})
		}
	}
}

// as says in which schemes weights are.
func (m *model) as() string {
	var names []string
	for _, w := range m.quantized() {
		if !slices.Contains(names, w.Scheme.Name) {
			names = append(names, w.Scheme.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " but in " + strings.Join(names, ", ")
}

const compressedTensors = "compressed-tensors"

func checkStatus(m *model, found func(Finding)) {
	q := m.declaration()
	if m.c.Config.Method() != compressedTensors {
		return
	}
	if status, ok := q["quantization_status"].(string); ok && status != "compressed" {
		found(Finding{File: checkpoint.ConfigName, What: fmt.Sprintf("quantization_status is %q", status)})
	}
}

// checkFormat compares a format of compressed-tensors, and the type of codes that methods
// imply, with the tensors.
func checkFormat(m *model, found func(Finding)) {
	format := text(m.declaration(), "format")
	if m.c.Config.Method() == compressedTensors && slices.Contains(floatFormats, format) {
		packed := strings.HasSuffix(format, "pack-quantized")
		var wrong []string
		for _, e := range m.entries {
			if m.isCodes(e) && (strings.HasSuffix(e.Name, ".weight_packed") != packed || format == "dense") {
				wrong = append(wrong, e.Name)
			}
		}
		if len(wrong) > 0 {
			found(Finding{File: checkpoint.ConfigName, Tensors: wrong, What: fmt.Sprintf("format is %q, and %s of another", format, counted(len(wrong), "1 tensor is", "%d tensors are"))})
			return
		}
	}
	if len(m.wanted) == 0 {
		return
	}
	var wrong []string
	for _, w := range m.quantized() {
		if !slices.Contains(m.wanted, w.Scheme) && m.wantsName(w) {
			wrong = append(wrong, w.Parts[checkpoint.Codes].Name)
		}
	}
	if len(wrong) > 0 {
		found(Finding{File: checkpoint.ConfigName, Tensors: wrong, What: counted(len(wrong), "1 weight is stored as no layout of that configuration has it", "%d weights are stored as no layout of that configuration has them")})
	}
}

// wantsName reports whether scales of a weight have the name that the configuration implies,
// whatever their type and shape.
func (m *model) wantsName(w *checkpoint.Weight) bool {
	return slices.ContainsFunc(m.wanted, func(s *checkpoint.Scheme) bool {
		return s.PartName(w.Name, checkpoint.Scales) == w.Parts[checkpoint.Scales].Name
	})
}

// checkConfigs compares ModelOpt's two files.
func checkConfigs(m *model, found func(Finding)) {
	q := m.c.Config.Quantization
	other, _ := m.c.Config.ModelOpt["quantization"].(map[string]any)
	if q == nil || other == nil {
		return
	}
	differ := func(what string, a, b any) {
		found(Finding{File: checkpoint.ModelOptName, What: fmt.Sprintf("%s: %v in config.json, %v in hf_quant_config.json", what, a, b)})
	}
	if a, b := text(q, "quant_algo"), text(other, "quant_algo"); a != "" && a != b {
		differ("quant_algo", a, b)
	}
	a, b := texts(q["ignore"]), texts(other["exclude_modules"])
	if a, b := without(a, b), without(b, a); len(a)+len(b) > 0 {
		differ("modules that are not quantized, but for those in both", few(a), few(b))
	}
	if a, b := q["kv_cache_scheme"], other["kv_cache_quant_algo"]; (a == nil) != (b == nil) {
		differ("scheme of cached keys and values", a, b)
	}
}

// without returns the names in a that are not in b, in order.
func without(a, b []string) []string {
	in := map[string]bool{}
	for _, name := range b {
		in[name] = true
	}
	a = slices.DeleteFunc(slices.Clone(a), func(name string) bool { return in[name] })
	slices.Sort(a)
	return slices.Compact(a)
}

// few says the first of some names.
func few(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > 4:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n-3)
	}
	return strings.Join(names, ", ")
}

// Names of modules that are no Linear: those of tables are of vectors, if not of tokens, and of
// nothing that is multiplied. Heads may be tied.
var (
	head  = regexp.MustCompile(`(^|\.)(lm_head|embed_out)$`)
	conv  = regexp.MustCompile(`(^|[._])conv[0-9a-z]*$`)
	table = regexp.MustCompile(`(?i)embed[a-z0-9_]*$|(^|\.)(relative_attention_bias|shared|codebook|lut)$`)
)

// linear returns the module of a weight that a loader takes for a Linear layer of values.
func linear(w *checkpoint.Weight) (module string, ok bool) {
	e := w.Parts[checkpoint.Codes]
	module, ok = strings.CutSuffix(w.Name, ".weight")
	part := checkpoint.Kept(w.Name)
	return module, ok && w.Scheme == nil && len(w.Shape) == 2 && isValues(e.DType) && (part == nil || part.Listed) &&
		(!table.MatchString(module) || head.MatchString(module)) && !conv.MatchString(module)
}

// checkIgnoreMissing has modules of values that the configuration does not list. Those of
// method fp8 may be what its loaders never quantize: heads, routers and the like.
func checkIgnoreMissing(m *model, found func(Finding)) {
	if len(m.wanted) == 0 || !m.hasCodes() {
		return
	}
	for _, w := range m.weights {
		module, ok := linear(w)
		if !ok || m.targetsExperts() || m.untargeted(module) {
			continue
		}
		if listed, unknown := m.ignored(module); listed || unknown {
			continue
		}
		if m.c.Config.Method() == "fp8" && checkpoint.Kept(w.Name) != nil {
			continue
		}
		found(Finding{File: w.Parts[checkpoint.Codes].File, Tensors: []string{w.Name}, What: fmt.Sprintf("%s is %s and not listed", module, w.Parts[checkpoint.Codes].DType)})
	}
}

// targetsExperts reports whether the method quantizes stacks of experts alone.
func (m *model) targetsExperts() bool {
	method := m.c.Config.Method()
	return method == "mxfp4" || method == "torchao"
}

// untargeted reports whether compressed-tensors' targets leave a module out.
func (m *model) untargeted(module string) bool {
	return len(m.targets) > 0 && !slices.ContainsFunc(m.targets, func(p pattern) bool {
		return p.name == "Linear" || p.matches(module)
	})
}

// modules returns the names of all modules that have tensors, and of what they are in.
func (m *model) modules() map[string]bool {
	all := map[string]bool{}
	for _, e := range m.entries {
		name := moduleOf(e.Name)
		if module, _, ok := scaleOf(e.Name); ok {
			name = module
		}
		for name != "" && !all[name] {
			all[name] = true
			name = name[:max(strings.LastIndexByte(name, '.'), 0)]
		}
	}
	return all
}

// checkIgnoreUnmatched leaves out heads, which need no tensor where they are tied. Patterns may
// be of a recipe for several models.
func checkIgnoreUnmatched(m *model, found func(Finding)) {
	if !m.known {
		return
	}
	all := m.modules()
	names := slices.Collect(maps.Keys(all))
	for _, p := range m.ignore {
		if p.unknown || all[p.name] || head.MatchString(p.name) || p.matches("lm_head") || slices.ContainsFunc(names, p.matches) {
			continue
		}
		f := Finding{File: checkpoint.ConfigName, What: fmt.Sprintf("%q matches no module", p.name)}
		if p.re != nil {
			f.Severity = Info
		}
		found(f)
	}
}

func checkIgnoreQuantized(m *model, found func(Finding)) {
	for _, w := range m.quantized() {
		module := moduleOf(w.Name)
		if listed, _ := m.ignored(module); listed && !m.targetsExperts() {
			found(Finding{File: w.Parts[checkpoint.Codes].File, Tensors: []string{w.Parts[checkpoint.Codes].Name}, What: module + " is listed and quantized"})
		}
	}
}

func checkFusedMixed(m *model, found func(Finding)) {
	for _, group := range m.groups() {
		var codes, values []string
		for _, w := range group {
			if w.Scheme != nil || m.isCodes(w.Parts[checkpoint.Codes]) {
				codes = append(codes, w.Name)
			} else if isValues(w.Parts[checkpoint.Codes].DType) {
				values = append(values, w.Name)
			}
		}
		if len(codes) > 0 && len(values) > 0 {
			found(Finding{Tensors: append(codes, values...), What: fmt.Sprintf("%s: quantized; %s: not", strings.Join(codes, ", "), strings.Join(values, ", "))})
		}
	}
}

// quantizedParts has the quantized modules that are one of the named parts of models.
func (m *model) quantizedParts(found func(Finding), parts ...string) {
	for _, w := range m.weights {
		e := w.Parts[checkpoint.Codes]
		module := moduleOf(w.Name)
		part := checkpoint.Kept(module + ".weight")
		if module == w.Name || w.Scheme == nil && !m.isCodes(e) || part == nil || !slices.Contains(parts, part.Name) {
			continue
		}
		found(Finding{File: e.File, Tensors: []string{e.Name}, What: fmt.Sprintf("%s is %s", module, e.DType)})
	}
}

func checkQuantizedEmbedding(m *model, found func(Finding)) { m.quantizedParts(found, "embedding") }

func checkQuantizedRouter(m *model, found func(Finding)) { m.quantizedParts(found, "router", "norm") }

// ends returns the weights of the embedding and of the head, nil where they are absent.
func (m *model) ends() (embed, out *checkpoint.Weight) {
	for _, w := range m.weights {
		switch module := moduleOf(w.Name); {
		case embed == nil && (module == "embed_tokens" || strings.HasSuffix(module, ".embed_tokens")):
			embed = w
		case module == "lm_head" || module == "model.lm_head" || module == "language_model.lm_head":
			out = w
		}
	}
	return embed, out
}

func checkTiedHead(m *model, found func(Finding)) {
	embed, out := m.ends()
	if !m.c.Config.TiedHead() || out == nil {
		return
	}
	what := "tie_word_embeddings is true"
	if embed != nil {
		a, b := embed.Parts[checkpoint.Codes], out.Parts[checkpoint.Codes]
		switch same, compared := m.same(a, b); {
		case (embed.Scheme != nil || m.isCodes(a)) != (out.Scheme != nil || m.isCodes(b)):
			what += "; only one of head and embedding is quantized"
		case !compared:
		case same:
			what += "; the head has the bytes of the embedding"
		default:
			what += "; the head has other bytes than the embedding"
		}
	}
	found(Finding{File: out.Parts[checkpoint.Codes].File, Tensors: []string{out.Name}, What: what})
}

// same compares the data of two tensors, unless it is not to be read.
func (m *model) same(a, b checkpoint.Entry) (equal, compared bool) {
	if m.stats == nil || m.err != nil {
		return false, false
	}
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return false, true
	}
	x, y := make([]byte, strip), make([]byte, strip)
	for at := int64(0); at < a.Bytes(); at += strip {
		n := min(strip, a.Bytes()-at)
		if m.err = errors.Join(m.c.ReadBytes(a, at, x[:n]), m.c.ReadBytes(b, at, y[:n])); m.err != nil {
			return false, false
		}
		if !bytes.Equal(x[:n], y[:n]) {
			return false, true
		}
	}
	return true, true
}

func checkHeadAbsent(m *model, found func(Finding)) {
	tied, said := member[bool](m, "tie_word_embeddings")
	architectures, _ := member[[]string](m, "architectures")
	embed, out := m.ends()
	if !said || tied || embed == nil || out != nil || len(architectures) != 1 || !strings.HasSuffix(architectures[0], "ForCausalLM") {
		return
	}
	found(Finding{File: checkpoint.ConfigName, Tensors: []string{"lm_head.weight"}, What: "tie_word_embeddings is false, and there is no lm_head"})
}

// rareTypes are those that many readers lack.
var rareTypes = []safetensors.DType{
	safetensors.F4, safetensors.F6E2M3, safetensors.F6E3M2, safetensors.F8E8M0,
	safetensors.F8E4M3FNUZ, safetensors.F8E5M2FNUZ,
}

// checkRareTypes leaves out scales in F8_E8M0 of layouts that have them so.
func checkRareTypes(m *model, found func(Finding)) {
	for _, e := range m.entries {
		w := m.c.Weight(e.Name)
		expected := e.DType == safetensors.F8E8M0 && w != nil && w.Scheme != nil &&
			w.Scheme.Parts[checkpoint.Scales].DTypes[0] == safetensors.F8E8M0
		if slices.Contains(rareTypes, e.DType) && !expected {
			found(Finding{File: e.File, Tensors: []string{e.Name}, What: fmt.Sprintf("it is %s", e.DType)})
		}
	}
}
