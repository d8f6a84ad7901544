package main

import (
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/claim"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
)

// modelFlags say what a result has to be.
type modelFlags struct{ claim.Terms }

func (m *modelFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(oneOf{&parsed[claim.Model]{&m.Model, "exact", "NAME", claim.ParseModel},
		append(claim.GPUs(), "exact",
			"canonical")}, "model", "what C must be: exact, canonical or a GPU model")
	f.Var(oneOf{&parsed[oracle.Accumulation]{&m.Bound, "", "NAME", m.parseBound},
		append(claim.GPUs(), "float32", "float32-truncated",
			"dequantized")}, "bound", "how the kernel adds, for the bound of exact (default float32)")
	wholeFlag(cmd, &m.Promote, 0, math.MaxInt32, "promote",
		"products that a GPU model sums before it adds the sum in float32; 0 is a whole block")
	f.Var(oneOf{&parsed[oracle.ScaleOrder]{&m.Order, "any", "NAME", oracle.ParseScaleOrder},
		[]string{"product-then-fma", "a-then-b", "b-then-a", "any"}}, "scale-order",
		"how scales are applied: product-then-fma, a-then-b, b-then-a or any, "+
			"which is a-then-b where bits are compared")
}

func (m *modelFlags) parseBound(name string) (oracle.Accumulation, error) {
	m.Bounded = true
	return claim.ParseBound(name)
}

// claim returns what a kernel is said to compute, if the flags go together.
func (m *modelFlags) claim() (judge.Claim, error) {
	c, err := m.Claim(func(option string) string {
		return "--" +
			strings.ReplaceAll(option, " ", "-")
	})
	if err != nil {
		return c, usageError{err}
	}
	return c, nil
}
