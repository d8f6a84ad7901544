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
func (k Keeping) String() string { return keepings.String(k) }

// MarshalText implements [encoding.TextMarshaler].
func (k Keeping) MarshalText() ([]byte, error) { return keepings.MarshalText(k) }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *Keeping) UnmarshalText(text []byte) error { return keepings.UnmarshalText(k, text) }

// Policy says of each class of a block's activations how it comes from the forward to the
// backward pass. What a block is given, the residual stream, is always kept, and so are one
// number a row of each norm, scales of Smooth-SwiGLU, and scores, choices and weights of
// routers. What a class is computed again from is computed again too unless it is kept in
// FP32. The zero value keeps all in FP32.
type Policy struct {
	// Norms are the results of norms, which linear layers read, and for experts those rows
	// sorted by expert.
	Norms Keeping `json:"norms"`

	// Latents are those of [MLA], before their norms.
	Latents Keeping `json:"latents"`

	Projections   Keeping `json:"projections"`   // queries, keys and values, with their positions
	Probabilities Keeping `json:"probabilities"` // of attention
	Mixed         Keeping `json:"mixed"`         // values that attention has weighted
	Middle        Keeping `json:"middle"`        // the residual stream between attention and MLP
	Branches      Keeping `json:"branches"`      // both inputs of SwiGLU: of gate and of up
	Product       Keeping `json:"product"`       // the result of SwiGLU
	Outputs       Keeping `json:"outputs"`       // results of routed experts
}

// fields returns the classes by name, in the order of the forward pass.
func (p *Policy) fields() []policyField {
	return []policyField{
		{"norms", &p.Norms}, {"latents", &p.Latents}, {"projections", &p.Projections},
		{"probabilities", &p.Probabilities}, {"mixed", &p.Mixed}, {"middle", &p.Middle},
		{"branches", &p.Branches}, {"product", &p.Product}, {"outputs", &p.Outputs},
	}
}

type policyField struct {
	name string
	kept *Keeping
}

// String lists the classes that are not kept in FP32, such as "recompute norms, product; fp8
// mixed", and says "keep all" if there is none.
func (p Policy) String() string {
	var parts []string
	for _, k := range []Keeping{Recompute, KeepFP8} {
		var names []string
		for _, f := range p.fields() {
			if *f.kept == k {
				names = append(names, f.name)
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

// policy returns how a format keeps the activations of a block.
func (f ActivationFormat) policy() Policy {
	p := Policy{Norms: KeepFP8, Mixed: KeepFP8, Product: KeepFP8, Probabilities: Recompute}
	switch f {
	case ActivationsFP32:
		return Policy{}
	case ActivationsFP8SwiGLU, ActivationsDeepSeekV3:
		p.Branches, p.Product = KeepFP8, Recompute
	}
	return p
}

// allowed returns, in the order of fields, the ways in which each class can be kept so that
// gradients have the bits that they have with f. Operands of weight gradients may be kept in
// FP8 where that is what products multiply. What f rounds and gradients are those of is kept
// in no other way; tiles of norms, which are rounded in the forward pass already, are made
// again as they were.
func (f ActivationFormat) allowed(inFP8 bool) [][]Keeping {
	var all [][]Keeping
	own := f.policy()
	for _, field := range own.fields() {
		ways := []Keeping{Keep, Recompute}
		operand := slices.Contains([]string{"norms", "mixed", "product"}, field.name)
		ofRounded := slices.Contains([]string{"branches", "product", "outputs"}, field.name)
		switch {
		case own.Branches == KeepFP8 && ofRounded, f.keepsTiles() && field.name == "mixed":
			ways = []Keeping{*field.kept}
		case f.keepsTiles() && operand:
			ways = []Keeping{KeepFP8, Recompute}
		case inFP8 && operand:
			ways = append(ways, KeepFP8)
		}
		all = append(all, ways)
	}
	return all
}

// check returns an error if a layer whose products are in FP8, or are not, cannot keep
// activations so.
func (p Policy) check(what string, f ActivationFormat, inFP8 bool) error {
	allowed := f.allowed(inFP8)
	for i, field := range p.fields() {
		if !slices.Contains(allowed[i], *field.kept) {
			products := map[bool]string{true: "FP8", false: "other"}[inFP8]
			return configError("%s: %s cannot be %v with activations %v and %s products: want one of %v",
				what, field.name, *field.kept, f, products, allowed[i])
		}
	}
	return nil
}

// withoutFP8 returns p for products that are not in FP8.
func (p Policy) withoutFP8() Policy {
	for _, f := range p.fields() {
		if *f.kept == KeepFP8 {
			*f.kept = Recompute
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
		o, what := c.layerOptions(i, nil), "Config.Policies["+strconv.Itoa(i)+"]"
		if err := p.check(what, o.Activations, o.FP8 != nil); err != nil {
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
	return o.Activations.policy()
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
