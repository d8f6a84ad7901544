package main

import (
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/oracle"
)

// demandFlags say what a result has to be.
type demandFlags struct {
	model   wantedModel
	bound   oracle.Accumulation
	bounded bool // by --bound
	promote int
	order   oracle.ScaleOrder
}

// wantedModel is a value of --model.
type wantedModel struct {
	want  verify.Want
	model oracle.Model
}

func (d *demandFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&parsed[wantedModel]{&d.model, "exact", "NAME", parseModel}, "model", "what C has to be: exact, canonical or a GPU model")
	f.Var(&parsed[oracle.Accumulation]{&d.bound, "", "NAME", d.parseBound}, "bound", "how the kernel adds, for the bound of exact (default float32)")
	wholeFlag(cmd, &d.promote, 0, math.MaxInt32, "promote", "products of a GPU model's sum that is added in float32; 0 is a whole block")
	f.Var(&parsed[oracle.ScaleOrder]{&d.order, "any", "NAME", oracle.ParseScaleOrder}, "scale-order",
		"how scales are applied: product-then-fma, a-then-b, b-then-a or any,\nwhich is a-then-b where bits are demanded")
}

func parseModel(name string) (wantedModel, error) {
	switch strings.ToLower(name) {
	case "exact":
		return wantedModel{want: verify.Exact}, nil
	case "canonical":
		return wantedModel{want: verify.Canonical}, nil
	}
	m, err := parseGPU(name)
	return wantedModel{verify.Predicted, m}, err
}

// parseGPU returns a model of FP8 operands.
func parseGPU(name string) (oracle.Model, error) {
	m, err := oracle.ParseModel(name)
	if err == nil && m.Unit == oracle.Grouped {
		return m, usagef("%s multiplies NVFP4 operands, which verify does not read", m)
	}
	return m, err
}

func (d *demandFlags) parseBound(name string) (a oracle.Accumulation, err error) {
	d.bounded = true
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

// demand returns what is demanded, if the flags go together.
func (d *demandFlags) demand() (verify.Demand, error) {
	demand := verify.Demand{Want: d.model.want}
	gpu := d.model.want == verify.Predicted
	switch {
	case d.bounded && d.model.want != verify.Exact:
		return demand, usagef("--bound is for --model exact: leave it out where bits are demanded")
	case d.promote > 0 && !gpu && d.bound.Kernel.Model.Name == "":
		return demand, usagef("--promote is for GPU models: name one with --model or --bound")
	case d.order != oracle.AnyOrder && d.model.want == verify.Canonical:
		return demand, usagef("--scale-order is not for --model canonical, whose order is a-then-b")
	}
	if gpu {
		demand.Kernel = oracle.Kernel{Model: d.model.model, Promote: d.promote, Scales: d.order}
		return demand, nil
	}
	demand.Accumulation = d.bound
	demand.Accumulation.Scales = d.order
	demand.Accumulation.Kernel.Promote, demand.Accumulation.Kernel.Scales = d.promote, d.order
	return demand, nil
}
