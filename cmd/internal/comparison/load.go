package comparison

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
)

// Load is how many tokens came to each expert of a layer in all steps that were computed.
type Load struct {
	Layer  int     `json:"layer"`
	Tokens []int64 `json:"tokens"`
}

// loads are those of the layers that have experts, in their order.
type loads []Load

// newLoads returns the loads of a model that has seen no tokens.
func newLoads(m *nn.Llama) (all loads) {
	for layer, b := range m.Blocks() {
		if b.Experts != nil {
			all = append(all, Load{layer, make([]int64, len(b.Experts.Router.Load()))})
		}
	}
	return all
}

// count adds those of a model's last pass.
func (l loads) count(m *nn.Llama) {
	for _, of := range l {
		for expert, tokens := range m.Blocks()[of.Layer].Experts.Router.Load() {
			of.Tokens[expert] += int64(tokens)
		}
	}
}

func (l loads) clone() loads {
	all := slices.Clone(l)
	for i := range all {
		all[i].Tokens = slices.Clone(all[i].Tokens)
	}
	return all
}

// restore makes l what was saved of a model with the same experts. Nothing was saved by a
// version that did not count; the steps before are then missing.
func (l loads) restore(model string, saved loads) error {
	if saved == nil {
		return nil
	}
	same := func(a, b Load) bool { return a.Layer == b.Layer && len(a.Tokens) == len(b.Tokens) }
	if !slices.EqualFunc(l, saved, same) {
		return fmt.Errorf("%s: loads of %s are not of its layers and experts", runFile, model)
	}
	for _, of := range saved {
		for expert, tokens := range of.Tokens {
			if tokens < 0 {
				return fmt.Errorf("%s: %s, layer %d: expert %d has %d tokens",
					runFile, model, of.Layer, expert, tokens)
			}
		}
	}
	for i, of := range saved {
		copy(l[i].Tokens, of.Tokens)
	}
	return nil
}

// shares returns what part of the tokens of a layer each expert had, 0 where there are none.
func (l Load) shares() []float64 {
	var sum int64
	for _, n := range l.Tokens {
		sum += n
	}
	all := make([]float64, len(l.Tokens))
	for i, n := range l.Tokens {
		all[i] = float64(n) / float64(max(sum, 1))
	}
	return all
}
