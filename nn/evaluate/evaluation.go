package evaluate

import (
	"cmp"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/jsonfloat"
)

// Mean is a mean over targets, and its standard error, NaN of a single window.
type Mean struct {
	Mean  jsonfloat.Number `json:"mean"`
	Error jsonfloat.Number `json:"standardError"`
}

// Evaluation says what recipes cost a model on a text.
type Evaluation struct {
	Tokens  int `json:"tokens"`  // of the text
	Targets int `json:"targets"` // tokens that were predicted
	Windows int `json:"windows"`
	Context int `json:"context"` // tokens in a window, with the prefix
	Prefix  int `json:"prefix"`  // tokens before those of the text in each window
	Stride  int `json:"stride"`

	// Vocabulary is its size, and the perplexity of guessing all tokens alike.
	Vocabulary int `json:"vocabulary"`

	// LayerTargets and LayerWindows are those of the runs layer by layer: the first ones.
	LayerTargets int `json:"layerTargets"`
	LayerWindows int `json:"layerWindows"`

	Loss       Mean             `json:"loss"` // of FP32, in nats a token
	Perplexity jsonfloat.Number `json:"perplexity"`

	// Uneven is how far the loss of a target is from that of guessing all tokens alike, or the
	// likeliest token from as likely as all others, in nats, at most: 0 but for rounding where a
	// model tells no token from another. That is of FP32.
	Uneven jsonfloat.Number `json:"uneven"`

	Results []Result `json:"results"` // the modes of each recipe in turn
}

// Result is what a recipe costs in one mode.
type Result struct {
	Recipe   string `json:"recipe"`
	Operands string `json:"operands"` // in words
	Mode     Mode   `json:"mode"`
	Cost
	Loss       Mean             `json:"loss"`
	Perplexity jsonfloat.Number `json:"perplexity"`

	// SameTop is the share of targets for which the most likely token is that of FP32.
	SameTop jsonfloat.Number `json:"sameTop"`

	// LargestKL and LargestLogit are the largest divergence of a target and the largest
	// difference of a logit.
	LargestKL    Largest `json:"largestKL"`
	LargestLogit Largest `json:"largestLogit"`

	// Layers and Kinds are what a layer, or all linear layers of a kind, cost alone, and
	// Linears what each linear layer loses of its output, but for those of experts that no
	// token went to; empty without LayerTokens.
	Layers  []PartCost `json:"layers"`
	Kinds   []PartCost `json:"kinds"`
	Linears []Linear   `json:"linears"`

	Sums []WindowSums `json:"sums"` // of each window
}

// WindowSums are what a result is the mean of, in nats: sums over the targets of a window.
type WindowSums struct {
	Targets int              `json:"targets"`
	Loss    jsonfloat.Number `json:"loss"`
	KL      jsonfloat.Number `json:"kl"`
}

// Cost is what quantizing changes.
type Cost struct {
	KL         Mean `json:"kl"`         // divergence from FP32, in nats a token
	Difference Mean `json:"difference"` // of the loss from FP32's, in nats a token
	NonFinite  int  `json:"nonFinite"`  // targets for which a logit is not finite
}

// Largest is the largest value of something, and its place.
type Largest struct {
	Value jsonfloat.Number `json:"value"`
	Place int              `json:"place"`           // of the target in the text
	Token int32            `json:"token,omitempty"` // whose logit it is
}

// PartCost is what a part of the model costs where it alone is quantized.
type PartCost struct {
	Name string `json:"name"`
	Cost
}

// Linear is what a linear layer loses where it alone is quantized and has the inputs that it
// has in FP32.
type Linear struct {
	Name  string `json:"name"`
	Layer int    `json:"layer"`
	Kind  string `json:"kind"`

	// SQNR is that of the output, in decibels: +Inf if nothing was lost, NaN if all is 0 or
	// something is not finite.
	SQNR jsonfloat.Number `json:"sqnrDecibels"`
}

// WorstLayers returns the layers that cost the most alone, those whose divergence is NaN
// first, at most n.
func (r *Result) WorstLayers(n int) []PartCost { return worst(r.Layers, n) }

// WorstKinds is WorstLayers of kinds of linear layers.
func (r *Result) WorstKinds(n int) []PartCost { return worst(r.Kinds, n) }

func worst(parts []PartCost, n int) []PartCost {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b PartCost) int {
		return cmp.Compare(orFirst(-a.KL.Mean), orFirst(-b.KL.Mean))
	})
	return parts[:min(n, len(parts))]
}

// WorstLinears returns the linear layers that lose the most, those without an SQNR first, at
// most n.
func (r *Result) WorstLinears(n int) []Linear {
	all := slices.Clone(r.Linears)
	slices.SortStableFunc(all, func(a, b Linear) int {
		return cmp.Compare(orFirst(a.SQNR), orFirst(b.SQNR))
	})
	return all[:min(n, len(all))]
}

// orFirst returns x, or what sorts first for NaN.
func orFirst(x jsonfloat.Number) float64 {
	if math.IsNaN(float64(x)) {
		return math.Inf(-1)
	}
	return float64(x)
}

// perplexity returns e to the mean loss.
func perplexity(loss jsonfloat.Number) jsonfloat.Number {
	x := float64(loss)
	switch {
	case math.IsNaN(x):
		return loss
	case x > 700:
		return jsonfloat.Number(math.Inf(1))
	}
	return jsonfloat.Number(elementary.Pow(math.E, x))
}
