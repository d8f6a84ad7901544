package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// PlanOptions say what of a model is quantized, and how. The zero value is the layout's
// defaults.
type PlanOptions struct {
	// Arithmetic, unless "", takes the place of the layout's. Weights that are in the scheme
	// already are quantized again then, and otherwise copied, codes and scales, unless Amax
	// has their inputs.
	Arithmetic Arithmetic

	// Only and Except, unless nil, choose among the weights that the layout quantizes, by
	// their names. Only may choose some that are left as they are by default, such as a
	// router.
	Only, Except func(weight string) bool

	// Recipes, unless nil, say by the names of modules how their weights are quantized, in place of
	// Arithmetic, Only and Except: nil for one that stays as it is. Each module that the layout
	// quantizes must be there. Weights are quantized again though they may be in such a scheme.
	Recipes map[string]*scaling.Recipe

	// Share gives weights that loaders fuse one scale where the layout does not ask for it.
	Share bool

	// Amax are the largest magnitudes of layers' inputs by the names of their modules, and
	// of cached keys and values by those of their scales, such as
	// "model.layers.0.self_attn.k_scale".
	Amax map[string]float32

	// Lossless allows no loss: it is an error, ErrLossy, to quantize values; [Convert] refuses,
	// before it writes anything, a claim that does not hold ([Plan.Claims]), and in the end
	// what has lost something nevertheless.
	Lossless bool

	// Smoothed says in words what was done to the weights before they became the source; it is
	// what the certificate says of it.
	Smoothed string
}

// Plan says what becomes of every tensor of a model in another layout, and in which file it
// will be: files have the tensors of the files of the source.
type Plan struct {
	Layout  *Layout
	Shards  []Shard
	Ignored []string // modules that stay as they are and that the configuration lists

	source    *Checkpoint
	states    []fileState       // of the source's files when it was planned
	documents map[string][]byte // see Documents
	digest    string            // see Digest

	static bool
	kv     bool
	listed bool // an ignored module is not among those that loaders leave alone

	lossless bool
	smoothed string
}

// Shard is a file that will be written.
type Shard struct {
	Name    string
	Targets []*Target
}

// Infos returns the tensors of the file, in their order.
func (s *Shard) Infos() (infos []safetensors.Info) {
	for _, t := range s.Targets {
		infos = append(infos, t.Parts...)
	}
	return infos
}

// Metadata returns the metadata of files of models: without it older versions of
// transformers refuse them.
func Metadata() map[string]string { return map[string]string{"format": "pt"} }

// NewPlan plans the conversion of a checkpoint. It reads no data, but notes the sizes and times
// of the source's files. It is an error, ErrLayout,
// if the layout cannot be written, if tensors of the checkpoint lack their scales or codes, if
// the layout cannot hold a weight, if it needs the maxima of inputs that are not there or if
// there is nothing that it quantizes, since a configuration that says otherwise is refused. It is
// ErrUnread if a method of quantization is not read: see [Checkpoint.Unread].
func NewPlan(c *Checkpoint, l *Layout, o PlanOptions) (*Plan, error) {
	if !l.Writable() {
		return nil, sentinel.Errorf(ErrLayout, "layout %s can be read, not written", l)
	}
	if problems := c.Problems(); len(problems) > 0 {
		return nil, problems[0]
	}
	if o.Lossless && len(c.unread) > 0 {
		e, _ := c.Entry(c.unread[0].Tensors[0])
		return nil, sentinel.Errorf(ErrLossy, "tensor %q: %s %v may hold codes of a method that is not known", e.Name, e.DType, e.Shape)
	}
	p := &Plan{Layout: l, source: c, lossless: o.Lossless, smoothed: o.Smoothed}
	files := c.Files()
	shards := map[string]*Shard{}
	p.Shards = make([]Shard, len(files))
	for i, file := range files {
		p.Shards[i].Name = shardName(i, len(files))
		shards[file] = &p.Shards[i]
	}
	groups := map[string]*group{}
	alike := alikes(c.weights)
	rules := make([]*Rule, len(c.weights))
	var err error
	for i, w := range c.weights {
		if rules[i], err = p.quantizes(w, o); err != nil {
			return nil, err
		}
	}
	if err := p.checkRecipes(rules, o); err != nil {
		return nil, err
	}
	p.static = l.Calibrated == Calibrated || l.Calibrated == Optional && (len(o.Amax) > 0 || p.keepsInputs(rules, o, alike))
	for i, w := range c.weights {
		t, err := p.target(w, rules[i], o, groups, alike)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		s := shards[w.Parts[Codes].File]
		s.Targets = append(s.Targets, t)
	}
	if err := p.addKV(o, shards); err != nil {
		return nil, err
	}
	p.shareInputs()
	slices.Sort(p.Ignored)
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.states, err = p.stat(); err != nil {
		return nil, err
	}
	if p.documents, err = p.makeDocuments(); err != nil {
		return nil, err
	}
	p.digest = p.sum()
	return p, nil
}

// keepsInputs reports whether the source has scales of inputs, which stay where those of all
// weights do: where none would need one that it does not have.
func (p *Plan) keepsInputs(rules []*Rule, o PlanOptions, alike map[string]*Scheme) bool {
	static := *p
	static.static = true
	has := false
	for i, w := range p.source.weights {
		has = has || w.Has(Input)
		if rule := rules[i]; rule != nil && !rule.Scheme.Parts[Input].None() && static.keep(w, rule, o, alike) == nil {
			return false
		}
	}
	return has
}

// alikes returns the scheme that weights are in, by the names of what loaders fuse; those of
// which some are in another, or none, are absent.
func alikes(weights []*Weight) map[string]*Scheme {
	alike := map[string]*Scheme{}
	for _, w := range weights {
		if len(w.Shape) < 2 {
			continue
		}
		module, _ := stem(w.Name)
		name := FusedName(module)
		if s, ok := alike[name]; ok && s != w.Scheme {
			alike[name] = nil
		} else {
			alike[name] = w.Scheme
		}
	}
	return alike
}

// keep returns the target of a weight that is in the scheme of a rule already, as all are that
// loaders fuse with it: codes and scales are copied. It returns nil if it has to be quantized.
func (p *Plan) keep(w *Weight, rule *Rule, o PlanOptions, alike map[string]*Scheme) *Target {
	module, _ := stem(w.Name)
	s := rule.Scheme
	_, calibrated := o.Amax[module]
	switch {
	case w.Scheme != s || w.Block != s.Block || alike[FusedName(module)] != s:
		return nil
	case o.Arithmetic != "" || o.Recipes != nil || calibrated || p.static && !s.Parts[Input].None() && !w.Has(Input):
		return nil
	case p.Layout.PowersOfTwo && !p.Layout.Declared(p.source.Config):
		return nil // its scales may be others
	}
	t := &Target{Weight: w, Scheme: s, kept: true}
	for r, part := range w.Parts {
		role := Role(r)
		if part.Name == "" || role == Input && !p.static && s.Parts[Input].Optional {
			continue
		}
		if want := s.Parts[r].DTypes[0]; want != "" && want != part.DType {
			return nil
		}
		t.Parts, t.Roles = append(t.Parts, part.Info), append(t.Roles, role)
	}
	return t
}

func shardName(i, n int) string {
	if n == 1 {
		return "model" + suffix
	}
	return fmt.Sprintf("model-%05d-of-%05d%s", i+1, n, suffix)
}

// target says what becomes of a weight that is quantized by a rule, or not if that is nil: nil
// for nothing.
func (p *Plan) target(
	w *Weight, rule *Rule, o PlanOptions, groups map[string]*group, alike map[string]*Scheme,
) (*Target, error) {
	if w.Scheme == nil && kvScale.MatchString(w.Name) {
		module := w.Name[:strings.LastIndexByte(w.Name, '.')]
		if p.Layout.KV == ([2]string{}) || strings.HasSuffix(module, "_proj") != strings.Contains(p.Layout.KV[0], ".") {
			return nil, nil // no loader would find it
		}
		p.kv = true
	}
	if rule == nil {
		return p.plain(w), nil
	}
	if isDouble(w) {
		return nil, sentinel.Errorf(ErrLayout, "tensor %q is F64: layouts of codes are for F32, F16 or BF16: convert it to one of them first, or leave it out",
			w.Name)
	}
	if kept := p.keep(w, rule, o, alike); kept != nil {
		return kept, nil
	}
	t := &Target{Weight: w, Scheme: rule.Scheme, Arithmetic: rule.Arithmetic}
	if o.Arithmetic != "" && o.Recipes == nil {
		t.Arithmetic = o.Arithmetic
	}
	if err := t.Arithmetic.Check(t.Scheme); err != nil {
		return nil, err
	}
	if o.Lossless && w.Scheme == nil {
		return nil, sentinel.Errorf(ErrLossy, "tensor %q: values of %s lose something in %s",
			w.Name, w.Parts[Codes].DType, t.Scheme.Name)
	}
	var with []Role
	module, _ := stem(w.Name)
	if p.static && !t.Scheme.Parts[Input].None() {
		amax, ok := o.Amax[module]
		if !ok {
			return nil, sentinel.Errorf(ErrUncalibrated, "tensor %q: layout %s needs the largest magnitude of its input, "+
				"which is not known: calibrate it first", w.Name, p.Layout)
		}
		if !(amax > 0) || math.IsInf(float64(amax), 1) {
			return nil, sentinel.Errorf(ErrLayout, "tensor %q: layout %s needs the largest magnitude of its input, "+
				"which is %v: calibrate it with other inputs, or leave it out", w.Name, p.Layout, amax)
		}
		t.InputAmax = amax
		with = append(with, Input)
	}
	if t.crosses() && w.Scheme != nil {
		return nil, sentinel.Errorf(ErrLayout, "tensor %q: %s and %s have it transposed: convert it to values first",
			w.Name, w.Scheme.Name, t.Scheme.Name)
	}
	shape := w.Shape
	if t.crosses() {
		shape = swapped(shape)
	}
	var err error
	if t.Parts, t.Roles, err = t.Scheme.Infos(w.Name, shape, valuesOf(w), with...); err != nil {
		return nil, err
	}
	if d := t.Parts[slices.Index(t.Roles, Scales)].DType; !t.Arithmetic.fits(t.Scheme, d) {
		return nil, sentinel.Errorf(ErrLayout, "tensor %q: scales by %q are float32, and those of scheme %s have the type of the weight, %s: "+
			"take an arithmetic of powers of two", w.Name, string(t.Arithmetic), t.Scheme.Name, d)
	}
	if e := (encoder{scheme: t.Scheme, block: t.Scheme.Block}); e.needsAmax() {
		name := module
		if p.Layout.Share || o.Share {
			name = FusedName(module)
		}
		if groups[name] == nil {
			groups[name] = new(group)
		}
		t.group = groups[name]
		t.group.weights = append(t.group.weights, w)
	}
	return t, nil
}

// plain is the target of a weight that is not quantized: what is quantized becomes values of
// the layout's type, or BF16, and what has values keeps their type but where the layout is one
// of values of a type, which all matrices then have.
func (p *Plan) plain(w *Weight) *Target {
	t := &Target{Weight: w, Roles: []Role{Codes}}
	e := w.Parts[Codes]
	d := e.DType
	switch {
	case w.Scheme != nil && p.Layout.Plain != "":
		d = p.Layout.Plain
	case w.Scheme != nil:
		d = safetensors.BF16
	case p.Layout.Plain != "" && (isFloat(d) || d == safetensors.F64) && len(w.Shape) > 1:
		d = p.Layout.Plain
	}
	shape := w.Shape
	if t.crosses() {
		shape = swapped(shape)
	}
	t.Parts = []safetensors.Info{{Name: w.Name, DType: d, Shape: shape}}
	return t
}

// swapped returns a shape with its last two dimensions exchanged.
func swapped(shape []int) []int {
	shape = slices.Clone(shape)
	n := len(shape)
	shape[n-1], shape[n-2] = shape[n-2], shape[n-1]
	return shape
}

// quantizes returns the rule by which a weight is quantized, nil if it is not, and notes the
// modules of which configurations have to say so.
func (p *Plan) quantizes(w *Weight, o PlanOptions) (*Rule, error) {
	module, isModule := stem(w.Name)
	if p.Layout.Plain != "" || w.Scheme == nil && !isFloat(w.Parts[Codes].DType) && !isDouble(w) || w.Len() == 0 {
		return nil, nil
	}
	rule := p.Layout.rule(w.Name)
	stack := len(w.Shape) == 3 && !isModule && stackedExpert.MatchString(w.Name)
	if len(w.Shape) != 2 && !stack || len(w.Shape) == 2 && !isModule {
		return nil, nil
	}
	part := Kept(w.Name)
	chosen := part == nil
	if o.Only != nil {
		chosen = o.Only(w.Name)
	}
	if o.Except != nil && o.Except(w.Name) {
		chosen = false
	}
	if o.Recipes != nil {
		recipe, named := o.Recipes[module]
		if chosen && rule != nil && !named {
			return nil, sentinel.Errorf(ErrLayout, "tensor %q: there is no recipe for it among those of modules: they are of another model, "+
				"or it is to be named as one that stays as it is", w.Name)
		}
		if chosen = recipe != nil; chosen {
			var err error
			if rule, err = p.Layout.ruleFor(w.Name, *recipe); err != nil {
				return nil, err
			}
		}
	}
	if chosen && rule != nil && (!stack || rule.Scheme.Stacks) {
		return rule, nil
	}
	if part == nil || part.Listed {
		p.Ignored = append(p.Ignored, module)
		p.listed = p.listed || part == nil
	}
	return nil, nil
}

// addKV adds scales of cached keys and values that calibration has found.
func (p *Plan) addKV(o PlanOptions, shards map[string]*Shard) error {
	if p.Layout.KV == ([2]string{}) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(o.Amax)) {
		which := slices.Index([]string{".k_scale", ".v_scale"}, name[max(strings.LastIndexByte(name, '.'), 0):])
		if which < 0 {
			continue
		}
		module := name[:strings.LastIndexByte(name, '.')]
		beside := p.source.Weight(module + ".k_proj.weight")
		if beside == nil {
			beside = p.source.Weight(module + ".qkv_proj.weight")
		}
		if beside == nil {
			return sentinel.Errorf(ErrLayout, "%q: there is no module %q of whose keys this could be the scale",
				name, module+".k_proj")
		}
		shard := shards[beside.Parts[Codes].File]
		shard.Targets = append(shard.Targets, &Target{
			Roles: []Role{Input}, extra: o.Amax[name] / 448,
			Parts: []safetensors.Info{{Name: module + "." + p.Layout.KV[which], DType: safetensors.F32, Shape: []int{}}},
		})
		p.kv = true
	}
	return nil
}

// shareInputs gives the inputs of weights that share a scale one maximum: they are the same
// input.
func (p *Plan) shareInputs() {
	amax := map[*group]float32{}
	for _, s := range p.Shards {
		for _, t := range s.Targets {
			if t.group != nil {
				amax[t.group] = max(amax[t.group], t.InputAmax)
			}
		}
	}
	for _, s := range p.Shards {
		for _, t := range s.Targets {
			if t.group != nil {
				t.InputAmax = amax[t.group]
			}
		}
	}
}

// check makes sure that no two tensors have one name, and that something is quantized in a
// layout whose configuration says so.
func (p *Plan) check() error {
	names := map[string]string{}
	quantized := p.Layout.Plain != ""
	for _, s := range p.Shards {
		quantized = quantized || slices.ContainsFunc(s.Targets, func(t *Target) bool { return t.Scheme != nil })
		for _, info := range s.Infos() {
			if other, twice := names[info.Name]; twice {
				return sentinel.Errorf(ErrLayout, "tensor %q would be in %s and in %s",
					info.Name, other, s.Name)
			}
			names[info.Name] = s.Name
		}
	}
	if !quantized {
		return sentinel.Errorf(ErrLayout, "layout %s finds no weight to quantize among those chosen: it is for %s",
			p.Layout, p.Layout.About)
	}
	return nil
}

// leftOut returns the stored tensors of the source of which there will be nothing.
func (p *Plan) leftOut() (names []string) {
	targets := map[*Weight]*Target{}
	for _, s := range p.Shards {
		for _, t := range s.Targets {
			targets[t.Weight] = t
		}
	}
	for _, w := range p.source.weights {
		switch t := targets[w]; {
		case t == nil:
			names = append(names, w.Parts[Codes].Name)
		case w.Has(Input) && !slices.Contains(t.Roles, Input):
			names = append(names, w.Parts[Input].Name)
		}
	}
	return names
}

// Index returns the index of the files; nil if there is only one, which needs none.
func (p *Plan) Index() *Index {
	if len(p.Shards) == 1 {
		return nil
	}
	x := &Index{Files: map[string]string{}}
	for _, s := range p.Shards {
		for _, info := range s.Infos() {
			x.Files[info.Name] = s.Name
			x.TotalSize += info.Bytes()
		}
	}
	return x
}

// Documents returns the files of the configuration, by their names: the index, config.json
// and, for ModelOpt, hf_quant_config.json. Of a model without config.json there is no such
// file, but for what is the whole of one. They must not be changed.
func (p *Plan) Documents() map[string][]byte { return p.documents }

func (p *Plan) makeDocuments() (map[string][]byte, error) {
	files := map[string]any{}
	if x := p.Index(); x != nil {
		files[IndexName] = x
	}
	model := maps.Clone(p.source.Config.Model)
	if model != nil {
		forgetQuantization(model)
		p.setType(model)
		if text := textOf(model); text != nil {
			before := maps.Clone(text)
			forgetQuantization(text)
			p.setType(text)
			if !maps.EqualFunc(text, before, slices.Equal) {
				model[textKey], _ = json.Marshal(text)
			}
		}
		files[ConfigName] = model
	}
	for key, value := range p.Layout.Top {
		if model != nil {
			model[key], _ = json.Marshal(value)
		}
	}
	for _, d := range p.Layout.Documents {
		content, err := p.fill(d)
		if err != nil {
			return nil, err
		}
		switch {
		case d.Key == "":
			files[d.File] = content
		case model != nil:
			if model[d.Key], err = json.Marshal(content); err != nil {
				return nil, err
			}
		}
	}
	texts := map[string][]byte{}
	for name, content := range files {
		text, err := encodeJSON(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		texts[name] = text
	}
	return texts, nil
}

// setType says which type values have where the layout changes it.
func (p *Plan) setType(model map[string]json.RawMessage) {
	name := map[safetensors.DType]string{
		safetensors.BF16: "bfloat16", safetensors.F16: "float16", safetensors.F32: "float32",
	}[p.Layout.Plain]
	for _, key := range []string{"torch_dtype", "dtype"} {
		if _, ok := model[key]; ok && name != "" {
			model[key], _ = json.Marshal(name)
		}
	}
}

// fill returns the content of a document.
func (p *Plan) fill(d Document) (map[string]any, error) {
	text := d.JSON
	if p.static && d.Static != "" {
		text = d.Static
	}
	var content map[string]any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		return nil, fmt.Errorf("layout %s: %s: %w", p.Layout, d.File, err)
	}
	ignored := p.Ignored
	if d.Ignored != nil {
		ignored = d.Ignored
	}
	if d.Groups {
		if err := p.setGroups(content); err != nil {
			return nil, err
		}
	}
	if d.Ignore != "" && (!d.Unlisted || p.listed) {
		if ignored == nil {
			ignored = []string{}
		}
		set(content, d.Ignore, ignored)
	}
	if d.KV != "" && p.kv {
		set(content, d.KV, json.RawMessage(d.KVJSON))
	}
	return content, nil
}

// setGroups gives each scheme that weights are in a group of its modules, as the layout says that
// has this scheme alone.
func (p *Plan) setGroups(content map[string]any) error {
	modules := map[*Scheme][]string{}
	for _, s := range p.Shards {
		for _, t := range s.Targets {
			if t.Scheme != nil {
				module, _ := stem(t.Weight.Name)
				modules[t.Scheme] = append(modules[t.Scheme], module)
			}
		}
	}
	for _, rule := range p.Layout.Rules {
		of := modules[rule.Scheme]
		if len(of) == 0 {
			continue
		}
		alone := layouts[slices.IndexFunc(layouts, func(l *Layout) bool { return len(l.Rules) == 1 && l.Rules[0].Scheme == rule.Scheme })]
		var one map[string]any
		if err := json.Unmarshal([]byte(alone.Documents[0].JSON), &one); err != nil {
			return err
		}
		group := lookUp(one, "config_groups", "group_0").(map[string]any)
		slices.Sort(of)
		group["targets"] = of
		groups := content["config_groups"].(map[string]any)
		groups[fmt.Sprintf("group_%d", len(groups))] = group
	}
	return nil
}

// set sets the value at a path of keys with dots between them.
func set(object map[string]any, path string, value any) {
	for {
		key, rest, deeper := strings.Cut(path, ".")
		if !deeper {
			object[key] = value
			return
		}
		inner, _ := object[key].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			object[key] = inner
		}
		object, path = inner, rest
	}
}
