package vocabulary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/certify"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/plan"
	"github.com/octavo-fp8/octavo/scaling"
)

// The names of what is no quantization at all.
const (
	None = "none" // what is multiplied stays as it is
	BF16 = "bf16" // rounds, and has no codes
)

// withFormats are recipes of profiles with another format than their own. Any profile and
// any format that it is for can be written so; these are offered.
var withFormats = []string{"mx-rceil:e3m2", "mx-rceil:e2m3", "te-current:e5m2"}

// recipes returns the names of all recipes: those of training first, then the profiles.
func recipes() []string {
	return slices.Concat(evaluate.Names(), []string{string(scaling.TEDelayed)}, withFormats)
}

// Use is what a command does with a recipe. It says which recipes it cannot do that with,
// and why. Names are those that it takes beside recipes.
type Use struct {
	By    string // the command
	Also  []string
	rules []rule
}

// rule returns why a recipe cannot be used, "" if it can.
type rule func(name string) string

// The uses.
var (
	Evaluating   = Use{By: "evaluate", rules: []rule{noHistory}}
	Generating   = Use{By: "generate", Also: []string{None}, rules: []rule{noHistory, codes}}
	Head         = Use{By: "generate --head", Also: []string{None, BF16}, rules: []rule{noHistory, codes}}
	Quantizing   = Use{By: "quantize, inspect, audit, verify quantizer and Python", rules: []rule{noHistory, codes}}
	Training     = Use{By: "train", rules: []rule{trainable}}
	Planning     = Use{By: "plan", Also: precisions(), rules: []rule{planned}}
	Certifying   = Use{By: "certify", Also: certified(), rules: []rule{few}}
	Arithmetic   = Use{By: "convert", Also: libraries(), rules: []rule{noHistory, codes}}
	uses         = []*Use{&Evaluating, &Generating, &Quantizing, &Arithmetic, &Training, &Planning, &Certifying}
	notARecipe   = "none multiplies values as they are: leave the recipe out"
	withoutCodes = "bf16 rounds values and has no codes"
)

// Names returns the names that are taken, for lists and for completion.
func (u Use) Names() (taken []string) {
	for _, name := range recipes() {
		if u.refuses(name) == "" {
			taken = append(taken, name)
		}
	}
	for _, name := range u.Also {
		if !slices.Contains(taken, name) {
			taken = append(taken, name)
		}
	}
	return taken
}

// Check returns an [Error] unless a name is taken.
func (u Use) Check(name string) error {
	if slices.Contains(u.Also, name) {
		return nil
	}
	if name == None {
		return &Error{notARecipe}
	}
	if !isRecipe(name) {
		return Unknown("recipe", name, u.Names())
	}
	if why := u.refuses(name); why != "" {
		return &Error{why}
	}
	return nil
}

// Recipe returns the recipe of a name, or why there is none: an [Error].
func (u Use) Recipe(name string) (evaluate.Recipe, error) {
	if err := u.Check(name); err != nil {
		return evaluate.Recipe{}, err
	}
	return evaluate.ParseRecipe(name)
}

// Weights returns what a recipe makes of weights.
func (u Use) Weights(name string) (Weights, error) {
	r, err := u.Recipe(name)
	if err != nil {
		return Weights{}, err
	}
	w := Weights{name, *r.Weight.Recipe}
	w.Profile = cmp.Or(w.Profile, scaling.TEBlockPow2)
	return w, nil
}

// Weights is a recipe for one matrix of weights. The name of a profile alone leaves the format
// open.
type Weights struct {
	Name string
	scaling.Recipe
}

// Open reports whether another format than the recipe's can be asked for.
func (w Weights) Open() bool { return w.Name == string(w.Profile) }

// Fixed returns the format of a recipe that leaves none open; otherwise nil.
func (w Weights) Fixed() *fp8.Format {
	if w.Open() {
		return nil
	}
	return &w.Format
}

// InFormat returns w with another format, or an [Error] that says why it has none such.
func (w Weights) InFormat(f fp8.Format) (Weights, error) {
	switch {
	case w.Format == f:
	case !w.Open():
		return w, &Error{fmt.Sprintf("recipe %s encodes to %v, not to %v", w.Name, w.Format, f)}
	case !w.Profile.For(f):
		return w, &Error{fmt.Sprintf("recipe %s is not for %v: it encodes to %v", w.Name, f, w.Format)}
	}
	w.Format = f
	return w, nil
}

// Trained returns a name as a recipe of package nn or, where that is "", as a profile.
func Trained(name string) (recipe string, p scaling.Profile, err error) {
	if err := Training.Check(name); err != nil {
		return "", "", err
	}
	if slices.Contains(published(), name) {
		return name, "", nil
	}
	p, err = scaling.ParseProfile(name)
	return "", p, err
}

// InLayout returns the arithmetic of a name for the weights of a layout. A profile gives scales to
// the blocks that the layout has; a recipe of training must have the same.
func InLayout(name string, l *checkpoint.Layout) (checkpoint.Arithmetic, error) {
	if slices.Contains(libraries(), name) || name == "" {
		return checkpoint.Arithmetic(name), nil
	}
	w, err := Arithmetic.Weights(name)
	if err != nil {
		return "", err
	}
	for _, r := range l.Rules {
		if s := r.Scheme; !w.Open() && s.Format != w.Format {
			return "", &Error{fmt.Sprintf("recipe %s encodes to %v, layout %s to %v", name, w.Format, l.Name, s.Format)}
		} else if slices.Contains(published(), name) && s.Block != w.Block {
			return "", &Error{fmt.Sprintf("recipe %s has a scale for %v of a weight, layout %s for %v: %s is the same arithmetic for the blocks of the layout",
				name, w.Block, l.Name, s.Block, w.Profile)}
		}
	}
	return checkpoint.Arithmetic(w.Profile), nil
}

func (u Use) refuses(name string) string {
	if slices.Contains(u.Also, name) {
		return ""
	}
	for _, r := range u.rules {
		if why := r(name); why != "" {
			return why
		}
	}
	return ""
}

func noHistory(name string) string {
	if p, _, _ := strings.Cut(name, ":"); p != "" && scaling.Profile(p).Delayed() {
		return fmt.Sprintf("%s takes its scale from the amax of earlier steps, which are those of training alone: use %s", p, scaling.TECurrent)
	}
	return ""
}

func codes(name string) string {
	if name == BF16 {
		return withoutCodes
	}
	return ""
}

func trainable(name string) string {
	profile, format, other := strings.Cut(name, ":")
	switch p := scaling.Profile(profile); {
	case slices.Contains(published(), name):
	case name == BF16:
		return withoutCodes + ": train compares FP32 with what has some"
	case !p.For(fp8.E4M3):
		return fmt.Sprintf("%s is not for E4M3: training in four bits takes the parts of mxfp4, nvfp4 or nvfp4-4over6", profile)
	case other:
		return fmt.Sprintf("train encodes to E4M3 by a profile, and gradients to --gradient-format, not all to %s: give %s", format, profile)
	}
	return ""
}

func planned(name string) string {
	return fmt.Sprintf("%s says how scales are computed, and plan counts bytes: give one of %s", name, strings.Join(precisions(), ", "))
}

func few(name string) string {
	return fmt.Sprintf("certify runs %s, one of each kind of scales, and not %s", strings.Join(certified(), ", "), name)
}

// published are the recipes of training.
func published() (list []string) {
	for _, r := range nn.Recipes() {
		list = append(list, r.Name)
	}
	return list
}

func precisions() (list []string) {
	for _, p := range plan.Precisions() {
		list = append(list, p.Name)
	}
	return list
}

func certified() (list []string) {
	for _, r := range certify.Recipes() {
		list = append(list, r.String())
	}
	return list
}

func libraries() []string {
	return []string{string(checkpoint.CompressedTensors), string(checkpoint.AutoFP8), string(checkpoint.ModelOpt)}
}

func isRecipe(name string) bool {
	if slices.Contains(recipes(), name) {
		return true
	}
	_, err := evaluate.ParseRecipe(name)
	return err == nil
}

// Table lists the recipes, a line for each, and who takes which.
func Table() string {
	var b strings.Builder
	for _, name := range recipes() {
		fmt.Fprintf(&b, "  %-28s %s\n", name, about(name))
	}
	for _, u := range uses {
		taken := u.Names()
		refused := slices.DeleteFunc(recipes(), func(name string) bool { return slices.Contains(taken, name) })
		text := u.By + ": all but " + strings.Join(refused, " and ")
		if len(taken) < len(refused) {
			text = u.By + ": " + strings.Join(taken, ", ")
		} else if more := slices.DeleteFunc(slices.Clone(u.Also), isRecipe); len(more) > 0 {
			text += "; also " + strings.Join(more, ", ")
		}
		b.WriteString("\n" + textout.Wrap(text+".", 80, "") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// about says which formats and blocks a recipe has.
func about(name string) string {
	if name == BF16 {
		return "BF16 without scales"
	}
	x, w := operands(name)
	text := fmt.Sprintf("%v %v", x.Format, x.Block)
	if w.Block != x.Block {
		text += fmt.Sprintf(", weights %v", w.Block)
	}
	if p := cmp.Or(x.Profile, scaling.TEBlockPow2); !strings.HasPrefix(name, string(p)) {
		text += " by " + string(p)
	}
	return text
}

// operands returns what a recipe makes of inputs and of weights.
func operands(name string) (x, w scaling.Recipe) {
	if r, err := evaluate.ParseRecipe(name); err == nil {
		return *r.Input.Recipe, *r.Weight.Recipe
	}
	p := scaling.Profile(name) // with a history
	return p.Recipe(scaling.Input), p.Recipe(scaling.Weight)
}
