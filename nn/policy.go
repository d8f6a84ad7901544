package nn

import (
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/enum"
)

// Keeping is how a class of activations comes from the forward to the backward pass.
type Keeping uint8

const (
	Keep      Keeping = iota // kept in FP32
	Recompute                // computed again in the backward pass, to the same bits
	KeepFP8                  // kept in FP8
)

var keepings = enum.Enum[Keeping]{
	Type: "Keeping", What: "way to keep activations", Names: []string{"keep", "recompute", "fp8"},
	Err: ErrConfig, Prefix: "nn",
}

// String returns the text of k, such as "recompute".
func (k Keeping) String() string                   { return keepings.String(k) }
func (k Keeping) MarshalText() ([]byte, error)     { return keepings.MarshalText(k) }
func (k *Keeping) UnmarshalText(text []byte) error { return keepings.UnmarshalText(k, text) }

// Policy says of each class of a block's activations how it comes from the forward to the
// backward pass. What a block is given, the residual stream, is always kept, and so are one
// number a row of each norm and of each sink, scales of Smooth-SwiGLU, scores, choices and weights
// of routers, and the result of an MLP or of experts that a norm follows. What a class is computed again from is computed again too unless it is kept in
// FP32. The zero value keeps all in FP32.
type Policy struct {
	// Norms are the results of norms, which linear layers read, and for experts those rows
	// sorted by expert.
	Norms Keeping `json:"norms"`

	// Latents are those of [MLA], before their norms.
	Latents Keeping `json:"latents"`

	Projections   Keeping `json:"projections"`   // queries, keys and values, with their positions; queries and keys before their norms too
	Probabilities Keeping `json:"probabilities"` // of attention
	Mixed         Keeping `json:"mixed"`         // values that attention has weighted
	Middle        Keeping `json:"middle"`        // the residual stream between attention and MLP; the result of attention that a norm follows too
	Branches      Keeping `json:"branches"`      // both inputs of SwiGLU: of gate and of up
	Product       Keeping `json:"product"`       // the result of SwiGLU
	Outputs       Keeping `json:"outputs"`       // results of routed experts
}

// Classes returns the classes of p, in the order of the forward pass, to be read or set.
func (p *Policy) Classes() []PolicyClass {
	return []PolicyClass{
		{"norms", &p.Norms}, {"latents", &p.Latents}, {"projections", &p.Projections},
		{"probabilities", &p.Probabilities}, {"mixed", &p.Mixed}, {"middle", &p.Middle},
		{"branches", &p.Branches}, {"product", &p.Product}, {"outputs", &p.Outputs},
	}
}

// PolicyClass is a class of activations in a [Policy].
type PolicyClass struct {
	Name string // as in "norms"
	Kept *Keeping
}

// String lists the classes that are not kept in FP32, such as "recompute norms, product; fp8
// mixed", and says "keep all" if there is none.
func (p Policy) String() string {
	var parts []string
	for _, k := range []Keeping{Recompute, KeepFP8} {
		var names []string
		for _, f := range p.Classes() {
			if *f.Kept == k {
				names = append(names, f.Name)
			}
		}
		if names != nil {
			parts = append(parts, k.String()+" "+strings.Join(names, ", "))
		}
	}
	if parts == nil {
		return "keep all"
	}
	return strings.Join(parts, "; ")
}

// ParsePolicy reads what [Policy.String] writes, such as "recompute norms, product; fp8
// mixed": of each way to keep activations the classes, or all. What comes later wins. A class
// that is not named is kept as otherwise says. The error is [ErrConfig].
func ParsePolicy(text string, otherwise Policy) (Policy, error) {
	p := otherwise
	for part := range strings.SplitSeq(text, ";") {
		way, classes, _ := strings.Cut(strings.TrimSpace(part), " ")
		k, err := keepings.Parse(way)
		if err != nil {
			return Policy{}, err
		}
		for name := range strings.SplitSeq(classes, ",") {
			if err := p.set(strings.TrimSpace(name), k); err != nil {
				return Policy{}, err
			}
		}
	}
	return p, nil
}

// set has a class, or all, kept in a way.
func (p *Policy) set(name string, k Keeping) error {
	var names []string
	found := false
	for _, c := range p.Classes() {
		if name == "all" || name == c.Name {
			*c.Kept, found = k, true
		}
		names = append(names, c.Name)
	}
	if !found {
		return configError("unknown class of activations %q: want all, or some of %s, with commas between",
			name, strings.Join(names, ", "))
	}
	return nil
}

// Policy returns how a format keeps the activations of a block of FP8 products.
func (f ActivationFormat) Policy() Policy {
	p := Policy{Norms: KeepFP8, Mixed: KeepFP8, Product: KeepFP8, Probabilities: Recompute}
	switch f {
	case ActivationsFP32:
		return Policy{}
	case ActivationsFP8SwiGLU, ActivationsDeepSeekV3:
		p.Branches, p.Product = KeepFP8, Recompute
	}
	return p
}

// Ways returns, in the order of [Policy.Classes], the ways in which each class can be kept so
// that gradients have the bits that they have with f, for products in FP8 or others. Operands
// of weight gradients may be kept in FP8 where that is what products multiply. What f rounds
// and gradients are those of is kept in no other way; tiles of norms, which are rounded in the
// forward pass already, are made again as they were.
func (f ActivationFormat) Ways(inFP8 bool) [][]Keeping {
	var all [][]Keeping
	own := f.Policy()
	for _, field := range own.Classes() {
		ways := []Keeping{Keep, Recompute}
		operand := slices.Contains([]string{"norms", "mixed", "product"}, field.Name)
		ofRounded := slices.Contains([]string{"branches", "product", "outputs"}, field.Name)
		switch {
		case own.Branches == KeepFP8 && ofRounded, f.keepsTiles() && field.Name == "mixed":
			ways = []Keeping{*field.Kept}
		case f.keepsTiles() && operand:
			ways = []Keeping{KeepFP8, Recompute}
		case inFP8 && operand:
			ways = append(ways, KeepFP8)
		}
		all = append(all, ways)
	}
	return all
}

// EachPolicy calls do with every policy of given ways to keep each class, the last class
// changing first.
func EachPolicy(ways [][]Keeping, do func(Policy)) {
	var p Policy
	classes := p.Classes()
	var choose func(class int)
	choose = func(class int) {
		if class == len(classes) {
			do(p)
			return
		}
		for _, k := range ways[class] {
			*classes[class].Kept = k
			choose(class + 1)
		}
	}
	choose(0)
}

// Check returns an error, [ErrConfig], that names the first class which a layer with products
// in FP8, or others, cannot keep so with activations f.
func (p Policy) Check(f ActivationFormat, inFP8 bool) error { return p.check("", f, inFP8) }

// check is Check, with an error that begins with where.
func (p Policy) check(where string, f ActivationFormat, inFP8 bool) error {
	ways := f.Ways(inFP8)
	for i, class := range p.Classes() {
		if !slices.Contains(ways[i], *class.Kept) {
			products := map[bool]string{true: "FP8", false: "other"}[inFP8]
			return configError("%s%s cannot be %v with activations %v and %s products: want one of %v",
				where, class.Name, *class.Kept, f, products, ways[i])
		}
	}
	return nil
}

// withoutFP8 returns p for products that are not in FP8.
func (p Policy) withoutFP8() Policy {
	for _, f := range p.Classes() {
		if *f.Kept == KeepFP8 {
			*f.Kept = Recompute
		}
	}
	return p
}

// checkPolicies returns an error unless there is none or a possible one for each layer.
func (c Config) checkPolicies() error {
	switch {
	case c.Policies == nil:
		return nil
	case len(c.Policies) != c.Layers:
		return configError("Config.Policies has %d: want one for each of %d layers, or none",
			len(c.Policies), c.Layers)
	}
	for i, p := range c.Policies {
		o := c.layerOptions(i, nil)
		where := "Config.Policies[" + strconv.Itoa(i) + "]: "
		if err := p.check(where, o.Activations, o.FP8 != nil); err != nil {
			return err
		}
	}
	return nil
}

// keeping returns how a layer keeps activations.
func (o Options) keeping() Policy {
	if o.policy != nil {
		return *o.policy
	}
	return o.Activations.Policy()
}

// keepNorm has layers inside another keep their input, which a norm has given, as a policy
// says.
func (o Options) keepNorm(p Policy, layers ...*Linear) {
	for _, l := range layers {
		o.keepInput(l, p.Norms)
		if in8, ok := l.products.(*fp8Products); ok {
			in8.tilesAgain = in8.tiles && p.Norms == Recompute
		}
	}
}

// keepInput has a layer inside another keep its input as a policy says. Without one it keeps
// it as it does by itself.
func (o Options) keepInput(l *Linear, k Keeping) {
	if o.policy != nil {
		l.keepsFP8 = k == KeepFP8
	}
}
