package nn

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// Widening is a change of recipes to a wider range.
type Widening struct {
	What     string // what of all layers is widened: "input", "weight", "gradient", or "products"
	From, To string // formats, such as "E4M3" and "E5M2"
}

// String returns such as "gradient from E4M3 to E5M2".
func (w Widening) String() string { return fmt.Sprintf("%s from %s to %s", w.What, w.From, w.To) }

// Widen returns c with operands of a wider range. Tensor is the name of one, as a Reporter
// hears it: inputs, weights or gradients, whichever it is, of all layers become E5M2, which
// reaches 128 times as far as E4M3 and has one bit less. Where they are E5M2 already, or their
// profile is not for it, all products become those of operands in BF16, which has no scales,
// with activations in FP32; what policies keep in FP8 is computed again then. A config without FP8 has nothing wider: that is [ErrConfig].
func (c Config) Widen(tensor string) (Config, Widening, error) {
	if c.FP8 == nil {
		return c, Widening{}, configError(
			"%q: no layer multiplies in FP8: there is nothing to widen", tensor)
	}
	c = c.clone()
	what := tensor[strings.LastIndexByte(tensor, '.')+1:]
	widened := *c.FP8
	from := fp8.E5M2
	for i, o := range c.FP8.operands() {
		if o.tensor == what && o.recipe.Format != fp8.E5M2 {
			from = o.recipe.Format
			widened.recipe(i).Format = fp8.E5M2
		}
	}
	if from != fp8.E5M2 && widened.check() == nil {
		c.FP8 = &widened
		return c, Widening{what, from.String(), fp8.E5M2.String()}, nil
	}
	format := c.FP8.Forward.A.Format
	ClassProducts.Round(&c, NarrowBF16)
	c.Activations, c.BF16First, c.BF16Last = ActivationsFP32, 0, 0
	for i, p := range c.Policies {
		c.Policies[i] = p.withoutFP8()
	}
	return c, Widening{ClassProducts.String(), format.String(), "BF16"}, nil
}

// recipe returns the recipe that operands lists at index i.
func (f *FP8) recipe(i int) *scaling.Recipe {
	return [...]*scaling.Recipe{
		&f.Forward.A, &f.Forward.B,
		&f.InputGradient.A, &f.InputGradient.B,
		&f.WeightGradient.A, &f.WeightGradient.B,
	}[i]
}

// Widen returns a model with the configuration that [Config.Widen] gives, the values of m's
// parameters and its scaling state: the amaxes that histories know stay, and scales that were
// of another format are scaled along. Its Tap and Reporter are not set. An optimizer may go on
// with its parameters, which are of the same names, sizes and order.
func (m *Llama) Widen(tensor string) (*Llama, Widening, error) {
	cfg, what, err := m.cfg.Widen(tensor)
	if err != nil {
		return nil, what, err
	}
	wide, err := NewZeroLlama(cfg)
	if err != nil {
		return nil, what, err
	}
	for i, p := range m.params {
		copy(wide.params[i].Value, p.Value)
	}
	return wide, what, wide.shared.scaling.take(&m.shared.scaling)
}

// take gives s what old knows of the same layers.
func (s *Scaling) take(old *Scaling) error {
	state, known := s.State(), old.State()
	state.Smoothers, state.Routers = known.Smoothers, known.Routers
	if s.stochastic {
		state.Backwards = old.passes
	}
	state.Histories.Step = known.Histories.Step
	for name, empty := range state.Histories.Histories {
		h := known.Histories.Histories[name]
		ratio := scaling.Float(empty.Format.Max() / h.Format.Max())
		for i := range h.Blocks {
			h.Blocks[i].Scale *= ratio
		}
		h.Format = empty.Format
		state.Histories.Histories[name] = h
	}
	return s.Restore(state)
}
