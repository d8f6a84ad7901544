package main

import (
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
)

// modelFlags say what a result has to be.
type modelFlags struct {
	want    wantedModel
	bound   oracle.Accumulation
	bounded bool // by --bound
	promote int
	order   oracle.ScaleOrder
}

// wantedModel is a value of --model.
type wantedModel struct {
	want  judge.Want
	model oracle.Model
}

func (m *modelFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(oneOf{&parsed[wantedModel]{&m.want, "exact", "NAME", parseModel}, append(gpuNames(), "exact", "canonical")}, "model", "what C has to be: exact, canonical or a GPU model")
	f.Var(oneOf{&parsed[oracle.Accumulation]{&m.bound, "", "NAME", m.parseBound}, append(gpuNames(), "float32", "float32-truncated", "dequantized")}, "bound", "how the kernel adds, for the bound of exact (default float32)")
	wholeFlag(cmd, &m.promote, 0, math.MaxInt32, "promote", "products of a GPU model's sum that is added in float32; 0 is a whole block")
	f.Var(oneOf{&parsed[oracle.ScaleOrder]{&m.order, "any", "NAME", oracle.ParseScaleOrder}, []string{"product-then-fma", "a-then-b", "b-then-a", "any"}}, "scale-order",
		"how scales are applied: product-then-fma, a-then-b, b-then-a or any,\nwhich is a-then-b where bits are demanded")
}

func parseModel(name string) (wantedModel, error) {
	switch strings.ToLower(name) {
	case "exact":
		return wantedModel{want: judge.Exact}, nil
	case "canonical":
		return wantedModel{want: judge.Canonical}, nil
	}
	m, err := parseGPU(name)
	return wantedModel{judge.Predicted, m}, err
}

// gpuNames returns the names of the models of FP8 operands.
func gpuNames() (names []string) {
	for _, m := range oracle.Models() {
		if m.Unit != oracle.Grouped && m.Float == oracle.NoFloat {
			names = append(names, m.Name)
		}
	}
	return names
}

// parseGPU returns a model of FP8 operands.
func parseGPU(name string) (oracle.Model, error) {
	m, err := oracle.ParseModel(name)
	if err == nil && m.Unit == oracle.Grouped {
		return m, usagef("%s multiplies NVFP4 operands, which verify does not read", m)
	}
	if err == nil && m.Float != oracle.NoFloat {
		return m, usagef("%s multiplies operands in %v, which verify does not read", m, m.Float)
	}
	return m, err
}

func (m *modelFlags) parseBound(name string) (a oracle.Accumulation, err error) {
	m.bounded = true
	switch strings.ToLower(name) {
	case "float32":
	case "float32-truncated":
		a.Truncated = true
	case "dequantized":
		a.Dequantized = true
	default:
		a.Kernel.Model, err = parseGPU(name)
	}
	return a, err
}

// claim returns what a kernel is said to compute, if the flags go together.
func (m *modelFlags) claim() (judge.Claim, error) {
	claim := judge.Claim{Want: m.want.want}
	gpu := m.want.want == judge.Predicted
	switch {
	case m.bounded && m.want.want != judge.Exact:
		return claim, usagef("--bound is for --model exact: leave it out where bits are demanded")
	case m.promote > 0 && !gpu && m.bound.Kernel.Model.Name == "":
		return claim, usagef("--promote is for GPU models: name one with --model or --bound")
	case m.order != oracle.AnyOrder && m.want.want == judge.Canonical:
		return claim, usagef("--scale-order is not for --model canonical, whose order is a-then-b")
	}
	if gpu {
		claim.Kernel = oracle.Kernel{Model: m.want.model, Promote: m.promote, Scales: m.order}
		return claim, nil
	}
	claim.Accumulation = m.bound
	claim.Accumulation.Scales = m.order
	claim.Accumulation.Kernel.Promote, claim.Accumulation.Kernel.Scales = m.promote, m.order
	return claim, nil
}
