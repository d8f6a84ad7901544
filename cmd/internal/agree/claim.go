package agree

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// side is an engine under way.
type side struct {
	*dump
	claims  Claims
	recipe  *agree.Recipe // nil: what the checkpoint says
	exclude []string
	used    map[string]bool
}

// recipeOf returns a recipe by its name.
func recipeOf(name string) (agree.Recipe, error) {
	r, err := evaluate.ParseRecipe(name)
	recipe := agree.Recipe{Name: name, Input: r.Input.Recipe, Weight: r.Weight.Recipe}
	if r.Input.Format == nn.NarrowBF16 {
		recipe.Rounded = agree.BF16
	}
	return recipe, err
}

// candidates are the recipes that compete.
func candidates() (all []agree.Recipe, err error) {
	for _, name := range append(evaluate.Names(), "mx-rceil:e5m2", "mx-rceil:e2m3", "mx-rceil:e3m2", "mx-rceil:e2m1", "mx-floor:e2m1") {
		r, err := recipeOf(name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func openSide(path string, c Claims) (s *side, err error) {
	s = &side{claims: c, used: map[string]bool{}, exclude: slices.Clone(c.Exclude)}
	if s.dump, err = openDump(path); err != nil {
		return nil, err
	}
	if name := cmp.Or(c.Recipe, s.meta[recipeKey]); name != "" {
		r, err := recipeOf(name)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("%s: the recipe that is claimed: %w", textout.Name(path), err)
		}
		s.recipe = &r
	}
	for _, p := range strings.Split(s.meta[excludeKey], ",") {
		if p = strings.TrimSpace(p); p != "" {
			s.exclude = append(s.exclude, p)
		}
	}
	return s, nil
}

// claim returns what is claimed of a module, each of which is right, and why it is excluded if
// it is.
func (s *side) claim(names []string, w *agree.Weight, m *model) (all []agree.Claim, why string) {
	for _, name := range names {
		for _, p := range s.exclude {
			if excluded(name, p) {
				why = "excluded by " + p
			}
		}
		if why == "" && checkpoint.Kept(name+".weight") != nil {
			why = "not quantized by default"
		}
	}
	if why == "" && m.quantized && w.Codes == nil {
		why = "not quantized in the checkpoint"
	}
	switch {
	case why != "":
		all = []agree.Claim{{Recipe: agree.Recipe{Name: "bf16"}}}
	case s.recipe != nil:
		all = []agree.Claim{{Recipe: *s.recipe}}
	default:
		all = stored(w, m.weightsAlone)
	}
	for i := range all {
		all[i].Kernel = s.claims.Kernel
	}
	return all, why
}

// note adds what names and patterns say of a layer that is wrong.
func (d *Judged) note(names, patterns []string) {
	if d.Outcome != verdict.Fail {
		return
	}
	is := func(kind agree.Kind) bool {
		return slices.ContainsFunc(d.Explained, func(e agree.Explanation) bool { return e.Kind == kind })
	}
	if p, n := swallowed(names, patterns); d.Excluded == "" && p != "" && is("unquantized") {
		d.Note = fmt.Sprintf("%q, which is excluded, is in the name %q: the engine may match names by parts", p, n)
	}
	if d.Excluded != "" && is("recipe") {
		d.Note = "it is quantized although it is " + d.Excluded
	}
}

// weightsAlone reports whether a checkpoint says that inputs are not quantized, as
// compressed-tensors does, or nothing of them, as gpt-oss.
func weightsAlone(c checkpoint.Config) bool {
	groups, _ := c.Quantization["config_groups"].(map[string]any)
	for _, g := range groups {
		if group, ok := g.(map[string]any); !ok || group["input_activations"] != nil {
			return false
		}
	}
	return len(groups) > 0 || c.Quantization["quant_method"] == "mxfp4"
}

// stored returns the claims of a checkpoint: what its layout's loaders do of inputs, which may be
// one of two. Weights alone are multiplied as values of the input's type, or with their scales
// behind.
func stored(w *agree.Weight, alone bool) []agree.Claim {
	c := w.Codes
	if c == nil {
		return []agree.Claim{{Recipe: agree.Recipe{Name: "bf16"}}}
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
	if alone {
		const name = "weights alone"
		return []agree.Claim{{Recipe: agree.Recipe{Name: name}}, {Recipe: agree.Recipe{Name: name, Weight: &weight}}}
	}
	all := []agree.Claim{{
		Recipe: agree.Recipe{Name: string(p), Input: &x, Weight: &weight},
		Static: w.InputScale > 0,
	}}
	if x.Block == (tensor.Block{}) && w.InputScale == 0 { // "dynamic" is of a tensor or of each token
		token := scaling.TorchAORowwise.Recipe(scaling.Input)
		all = append(all, agree.Claim{Recipe: agree.Recipe{Name: string(token.Profile), Input: &token, Weight: &weight}})
	}
	return all
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
		_, part := cut(p)
		part = strings.Trim(part, "*^$")
		for _, n := range names {
			if _, last := cut(n); part != "" && !excluded(n, p) && strings.Contains(last, part) {
				return p, n
			}
		}
	}
	return "", ""
}
