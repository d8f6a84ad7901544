package agree

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// judge is a judgement under way.
type judge struct {
	*Layer
	x, w    *source
	claim   *Claim
	claimed candidate
	ctx     context.Context
	workers int
	v       *Verdict

	mu   sync.Mutex
	seen screened
	kept map[operandKey]*operand

	pairs
	noise float64 // of the claim
}

// Check judges a layer. The error is [ErrLayer], that of a recipe or of reading the weight,
// or the context's. The verdict does not depend on Workers. Nothing is kept of the layer.
func Check(ctx context.Context, l *Layer, c Claim, o Options) (*Verdict, error) {
	if err := l.check(&c); err != nil {
		return nil, err
	}
	named := *l // its types have names
	named.InputOf, named.Of, named.Weight.Of = cmp.Or(l.InputOf, F32), cmp.Or(l.Of, F32), cmp.Or(l.Weight.Of, F32)
	j := &judge{Layer: &named, claim: &c, claimed: named.claimed(&c), ctx: ctx, workers: o.Workers, kept: map[operandKey]*operand{}}
	j.x, j.w = newSources(&named, &c)
	if !j.x.makes(j.claimed.input) || !j.w.makes(j.claimed.weight) {
		return nil, layerError("%s is not recomputed", c.Recipe.Name)
	}
	j.v = &Verdict{
		Claim: c.Recipe.Name, Input: j.claimed.input.text(string(j.InputOf)), Weight: j.claimed.weight.text(j.stored()),
		InputOf: j.InputOf, Of: j.Of, Tokens: l.Tokens, In: l.Weight.Cols, Out: l.Weight.Rows, Sums: c.Kernel.Model.Name,
		input: j.claimed.input, weight: j.claimed.weight,
	}
	if err := j.screen(); err != nil {
		return nil, err
	}
	if err := j.pair(); err != nil {
		return nil, err
	}
	found, err := j.compete(j.candidates(o.Recipes))
	if err != nil {
		return nil, err
	}
	j.decide(found)
	return j.v, nil
}

// stored says how the weight is stored.
func (l *Layer) stored() string {
	if c := l.Weight.Codes; c != nil {
		return c.Format.String() + " as stored"
	}
	return string(l.Weight.Of)
}

func (l *Layer) bias(col int) float32 {
	if l.Bias == nil {
		return 0
	}
	return l.Bias[col]
}

func (l *Layer) got(token, col int) float32 { return l.Output[token*l.Weight.Rows+col] }

const (
	alike  = 1.5
	enough = 64 // elements whose errors together say which candidate is likelier
)

// decide says what came of it.
func (j *judge) decide(found []weighed) {
	v := j.v
	v.Pairs, v.Looked, v.Outside, v.Largest = len(j.want), j.seen.elements, j.seen.outside, jsonfloat.Number(j.seen.largest)
	if v.Outside > 0 {
		v.WrongTokens, v.WrongColumns = len(worst(j.seen.tokens)), len(worst(j.seen.cols))
	} else {
		for _, fits := range j.fits {
			if !fits {
				v.Outside++
			}
		}
	}
	best := math.Inf(1)
	for _, w := range found {
		best = min(best, w.noise)
	}
	near := func(noise, to float64) bool { return len(j.want) < enough || noise <= alike*max(to, 1) }
	explained := func(to float64) (all []Explanation) {
		for _, w := range found {
			if near(w.noise, to) {
				all = append(all, j.explanation(w))
			}
		}
		return all
	}
	switch {
	case v.Outside == 0 && j.seen.unbounded > 0:
		v.Outcome, v.Why = verdict.Undecided, "elements differ that have no bound, since sums may overflow"
	case v.Outside == 0 && !near(j.noise, best) && j.noise > 4:
		v.Outcome, v.Why = verdict.Undecided, "all is within the bound, but another candidate is far nearer"
		v.Explained = explained(best)
	case v.Outside == 0 && j.noise > 4 && j.claim.Kernel.Model.Name == "" && j.sums():
		v.Outcome = verdict.Fail
	case v.Outside == 0:
		v.Outcome, v.Alike = verdict.Pass, explained(j.noise)
	default:
		v.Outcome, v.Explained = verdict.Fail, explained(best)
		if len(v.Explained) > 0 || j.sums() {
			return
		}
		if r := j.claimed.input; j.Passes == nil && j.Tokens > 1 && r.Quantized && !r.Static && !r.Recipe.PerRow() {
			v.Outcome = verdict.Undecided
			v.Why = "the input's scale is that of a pass of the engine, and the dump does not say which tokens were in one"
			if r.Recipe.Block.Rows > 1 {
				v.Why = "tokens of a pass of the engine share scales of the input, and the dump does not say which tokens were in one"
			}
		}
	}
}

func (j *judge) explanation(w weighed) Explanation {
	return Explanation{
		Kind: w.kind, Text: w.kind.text(), Input: w.input.text(string(j.InputOf)), Weight: w.weight.text(j.stored()),
		Explained: w.tally.Explained, Of: w.tally.Explained + w.tally.Missed, Same: w.same,
		input: w.input, weight: w.weight,
	}
}

// worst returns the places of the largest values above 0, the largest first.
func worst(sizes []float64) (at []int) {
	for i, x := range sizes {
		if x > 0 {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	return at
}
