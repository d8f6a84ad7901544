package checkpoint

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/scaling"
)

// OneScheme returns one name for all modules that loaders want in one scheme: those that they fuse,
// and all experts of a layer.
func OneScheme(module string) string {
	if before, _, ok := strings.Cut(module, ".experts."); ok {
		return before + ".experts"
	}
	return FusedName(module)
}

// ruleFor returns the rule by which the layout stores a weight that is quantized by a recipe.
func (l *Layout) ruleFor(weight string, r scaling.Recipe) (*Rule, error) {
	rules := l.Rules
	if !l.Mixed {
		rules = nil
		if own := l.rule(weight); own != nil {
			rules = []Rule{*own}
		}
	}
	a := Arithmetic(cmp.Or(r.Profile, scaling.TEBlockPow2))
	var why error
	for _, rule := range rules {
		if rule.Scheme.Format != r.Format || rule.Scheme.Block != r.Block {
			continue
		}
		if why = a.Check(rule.Scheme); why == nil {
			return &Rule{Scheme: rule.Scheme, Arithmetic: a}, nil
		}
	}
	return nil, sentinel.Errorf(ErrLayout, "tensor %q: layout %s does not have %v in blocks of %v by %s%s",
		weight, l, r.Format, r.Block, a, map[bool]string{true: ": " + message(why)}[why != nil])
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// checkRecipes returns an error unless each recipe is of a weight that there is and that is
// quantized by it, and modules that loaders want in one scheme are.
func (p *Plan) checkRecipes(rules []*Rule, o PlanOptions) error {
	if o.Recipes == nil {
		return nil
	}
	if p.Layout.Plain != "" {
		return sentinel.Errorf(ErrLayout, "layout %s has no codes, which recipes of modules are for", p.Layout)
	}
	known := map[string]bool{}
	first := map[string]int{}
	scheme := func(i int) *Scheme {
		if rules[i] == nil {
			return nil
		}
		return rules[i].Scheme
	}
	for i, w := range p.source.weights {
		module, _ := stem(w.Name)
		known[module] = true
		recipe, named := o.Recipes[module]
		switch {
		case !named:
			continue
		case recipe != nil && rules[i] == nil:
			return sentinel.Errorf(ErrLayout, "tensor %q of %s and shape %v has a recipe, and layout %s can only leave it as it is",
				w.Name, w.Parts[Codes].DType, w.Shape, p.Layout)
		}
		name := OneScheme(module)
		if k, ok := first[name]; !ok {
			first[name] = i
		} else if scheme(k) != scheme(i) {
			return sentinel.Errorf(ErrLayout, "tensor %q has another recipe than %q, and loaders want both in one scheme",
				w.Name, p.source.weights[k].Name)
		}
	}
	for _, module := range slices.Sorted(maps.Keys(o.Recipes)) {
		if !known[module] {
			return sentinel.Errorf(ErrLayout, "there is no tensor %q, for which there is a recipe: it is of another model", module+".weight")
		}
	}
	return nil
}
