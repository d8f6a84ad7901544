// Package claim reads what a kernel is claimed to compute from names and numbers, those of
// flags of the command line or of options of a request.
package claim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
)

// Model is what C has to be.
type Model struct {
	Want judge.Want
	GPU  oracle.Model // where Want is Predicted
}

// ParseModel reads "exact", "canonical" or the name of a GPU model.
func ParseModel(name string) (Model, error) {
	switch strings.ToLower(name) {
	case "exact":
		return Model{Want: judge.Exact}, nil
	case "canonical":
		return Model{Want: judge.Canonical}, nil
	}
	m, err := parseGPU(name, "exact", "canonical")
	return Model{judge.Predicted, m}, err
}

// ParseBound reads how a kernel adds: "float32", "float32-truncated", "dequantized" or the
// name of a GPU model.
func ParseBound(name string) (a oracle.Accumulation, err error) {
	switch strings.ToLower(name) {
	case "float32":
	case "float32-truncated":
		a.Truncated = true
	case "dequantized":
		a.Dequantized = true
	default:
		a.Kernel.Model, err = parseGPU(name, "float32", "float32-truncated", "dequantized")
	}
	return a, err
}

// GPUs returns the names of the models of FP8 and narrower operands.
func GPUs() (names []string) {
	for _, m := range oracle.Models() {
		if m.Float == oracle.NoFloat {
			names = append(names, m.Name)
		}
	}
	return names
}

// parseGPU returns a model of FP8 or narrower operands. others are names that are known besides.
func parseGPU(name string, others ...string) (oracle.Model, error) {
	m, err := oracle.ParseModel(name)
	if err != nil {
		return m, fmt.Errorf("unknown model %q: want one of %s", name, strings.Join(append(GPUs(), others...), ", "))
	}
	if m.Float != oracle.NoFloat {
		return m, fmt.Errorf("%s multiplies operands in %v, which are not read here", m, m.Float)
	}
	return m, nil
}

// Terms are a claim in parts, which go together or not.
type Terms struct {
	Model   Model
	Bound   oracle.Accumulation // of Exact
	Bounded bool                // Bound was named
	Promote int                 // products of a GPU model's sum
	Order   oracle.ScaleOrder
}

// Claim returns what a kernel is said to compute, or an error if its parts do not go
// together. name is how the user writes the option "model", "bound", "promote" or "scale
// order".
func (t *Terms) Claim(name func(option string) string) (judge.Claim, error) {
	c := judge.Claim{Want: t.Model.Want}
	gpu := t.Model.Want == judge.Predicted
	switch {
	case t.Bounded && t.Model.Want != judge.Exact:
		return c, errors.New(name("bound") + " is for " + name("model") + " exact: leave it out where bits are demanded")
	case t.Promote > 0 && !gpu && t.Bound.Kernel.Model.Name == "":
		return c, errors.New(name("promote") + " is for GPU models: name one with " + name("model") + " or " + name("bound"))
	case t.Order != oracle.AnyOrder && t.Model.Want == judge.Canonical:
		return c, errors.New(name("scale order") + " is not for " + name("model") + " canonical, whose order is a-then-b")
	}
	if gpu {
		c.Kernel = oracle.Kernel{Model: t.Model.GPU, Promote: t.Promote, Scales: t.Order}
		return c, nil
	}
	c.Accumulation = t.Bound
	c.Accumulation.Scales = t.Order
	c.Accumulation.Kernel.Promote, c.Accumulation.Kernel.Scales = t.Promote, t.Order
	return c, nil
}
