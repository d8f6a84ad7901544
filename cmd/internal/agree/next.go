package agree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/scaling"
)

// Names of what dumps have of tokens.
const (
	tokensName   = "tokens"
	logprobsName = "logprobs"
	logitsName   = "logits"
)

// Next says what the differences do to the next token.
type Next struct {
	// Measured is the difference of the recorded log-probabilities, the second engine's less
	// the first's, and MeasuredSize that of its magnitude; nil where a dump lacks them.
	Measured     *Figure `json:"measured,omitempty"`
	MeasuredSize *Figure `json:"measuredSize,omitempty"`
	MeasuredKL   *Figure `json:"measuredKL,omitempty"` // by recorded logits
	Tokens       int     `json:"tokens"`

	// Whole and Layers are of the model run with what explains the first engine's layers, and
	// with what explains the second's, in all layers or in one.
	Whole  *Cause  `json:"whole,omitempty"`
	Layers []Cause `json:"layers,omitempty"`
	// Sum is that of the layers' KL.
	Sum jsonfloat.Number `json:"sum,omitempty"`
	// Assumed are layers that are run as is claimed, since nothing explains them, or what
	// does is none of what is run.
	Assumed []string `json:"assumed,omitempty"`
	// NotRun are layers in which the two differ and that are none of those that are exchanged,
	// such as routers.
	NotRun []string `json:"notRun,omitempty"`
	// Why says why the layers are not judged.
	Why string `json:"why,omitempty"`
}

// Figure is a mean over tokens and its interval at 95 %, as if tokens were independent.
type Figure struct {
	Mean jsonfloat.Number `json:"mean"`
	Low  jsonfloat.Number `json:"low"`
	High jsonfloat.Number `json:"high"`
}

// Cause is what a layer causes: its divergence in nats a token, and the difference of the
// log-probability of the token that followed.
type Cause struct {
	Name       string `json:"name"`
	KL         Figure `json:"kl"`
	Difference Figure `json:"difference"`
}

func figureOf(values []float64) Figure {
	i := statistics.OfMean(values, 1)
	return Figure{jsonfloat.Number(i.At), jsonfloat.Number(i.Low), jsonfloat.Number(i.High)}
}

func causeOf(c evaluate.Change) Cause { return Cause{c.Name, figureOf(c.KL), figureOf(c.Difference)} }

// next fills in what layers do to the next token.
func (j *Job) next(ctx context.Context, r *Report, sides [2]*side, c *checkpoint.Checkpoint) error {
	n := &Next{}
	var tokens [2][]int
	for i, s := range sides {
		var err error
		if tokens[i], err = s.whole(tokensName); err != nil && !errors.Is(err, errNone) {
			return err
		}
	}
	text := tokens[0]
	if text == nil {
		text = tokens[1]
	}
	same := tokens[0] == nil || tokens[1] == nil || slices.Equal(tokens[0], tokens[1])
	if same {
		if err := n.measure(sides); err != nil {
			return err
		}
	}
	switch {
	case j.NoDivergence:
		n.Why = "--no-divergence"
	case text == nil:
		n.Why = "no dump has tokens"
	case len(r.Modules) == 0:
		n.Why = "no dump has linear layers"
	case !same:
		n.Why = "the dumps are of other tokens"
	default:
		if err := j.exchange(ctx, r, c, text, n); err != nil {
			return err
		}
	}
	if n.Measured != nil || n.MeasuredKL != nil || n.Whole != nil || text != nil {
		r.Next = n
	} else {
		r.NotJudged = append(r.NotJudged, NotJudged{"what layers do to the next token", n.Why})
	}
	return nil
}

// both reads a matrix of both sides, of one size: nil where one lacks it.
func both(sides [2]*side, name string) (all [2]recorded, err error) {
	if !sides[0].has(name) || !sides[1].has(name) {
		return all, nil
	}
	for i, s := range sides {
		if all[i], err = s.read(name); err != nil {
			return all, err
		}
	}
	if all[0].cols != all[1].cols || all[0].rows != all[1].rows {
		return [2]recorded{}, nil
	}
	return all, nil
}

// measure fills in what recorded log-probabilities and logits say.
func (n *Next) measure(sides [2]*side) error {
	logprobs, err := both(sides, logprobsName)
	if err != nil {
		return err
	}
	logits, err := both(sides, logitsName)
	if err != nil {
		return err
	}
	var differences, sizes, divergences []float64
	for i, a := range logprobs[0].values {
		if d := float64(logprobs[1].values[i]) - float64(a); !math.IsNaN(d) {
			differences, sizes = append(differences, d), append(sizes, math.Abs(d))
		}
	}
	for i := range logits[0].rows {
		p, q := logits[0].row(i), logits[1].row(i)
		logP, logQ, kl := logSum(p), logSum(q), 0.0
		for k := range p {
			l := float64(p[k]) - logP
			kl += math.Exp(l) * (l - (float64(q[k]) - logQ))
		}
		divergences = append(divergences, kl)
	}
	if logprobs[0].values != nil {
		d, s := figureOf(differences), figureOf(sizes)
		n.Measured, n.MeasuredSize, n.Tokens = &d, &s, len(differences)
	}
	if divergences != nil {
		f := figureOf(divergences)
		n.MeasuredKL, n.Tokens = &f, cmp.Or(n.Tokens, len(divergences))
	}
	return nil
}

func logSum(row []float32) (sum float64) {
	largest := float64(slices.Max(row))
	for _, x := range row {
		sum += math.Exp(float64(x) - largest)
	}
	return largest + math.Log(sum)
}

// exchange runs the model with what explains each side's layers.
func (j *Job) exchange(ctx context.Context, r *Report, c *checkpoint.Checkpoint, text []int, n *Next) error {
	m, err := hf.Load(ctx, c, hf.Options{Workers: j.Workers, Progress: j.Progress})
	switch {
	case errors.Is(err, hf.ErrConfig) || errors.Is(err, hf.ErrTensor):
		n.Why = "the model is none that is run here: " + err.Error()
		return nil
	case err != nil:
		return err
	}
	ids := make([]int32, len(text))
	for i, id := range text {
		ids[i] = int32(id)
	}
	roundings := [2]map[string]nn.Rounding{{}, {}}
	differ := map[string]bool{}
	for _, module := range r.Modules {
		var of [2]nn.Rounding
		assumed := false
		for i, d := range module.Sides {
			if d == nil { // what one side has not recorded it has as the other
				d = module.Sides[1-i]
			}
			rounding, exact := d.rounding()
			of[i] = rounding
			assumed = assumed || !exact
		}
		if assumed {
			n.Assumed = append(n.Assumed, module.Name)
		}
		differ[module.Name] = !reflect.DeepEqual(of[0], of[1])
		roundings[0][module.Name], roundings[1][module.Name] = of[0], of[1]
	}
	of := func(side int) func(string) nn.Rounding {
		return func(layer string) nn.Rounding { return roundings[side][layer] }
	}
	x, err := evaluate.Exchange(ctx, m, ids, of(0), of(1), evaluate.Options{Progress: j.Progress})
	if err != nil {
		if errors.Is(err, evaluate.ErrTokens) {
			n.Why = err.Error()
			return nil
		}
		return err
	}
	whole := causeOf(x.Whole)
	whole.Name = "all of them"
	n.Whole, n.Layers, n.Tokens = &whole, []Cause{}, cmp.Or(n.Tokens, x.Targets)
	for _, l := range x.Layers {
		cause := causeOf(l)
		n.Layers = append(n.Layers, cause)
		n.Sum += cause.KL.Mean
		differ[l.Name] = false
	}
	for _, module := range r.Modules {
		if differ[module.Name] {
			n.NotRun = append(n.NotRun, module.Name)
		}
	}
	return nil
}

// rounding returns how the layer is run: as what explains it, or else as is claimed, and
// whether that is what it was found to do.
func (d *Judged) rounding() (r nn.Rounding, exact bool) {
	try := func(input, weight agree.Treatment) (ok bool) {
		x, runs := narrowed(input)
		w, also := narrowed(weight)
		if ok = runs && also; ok {
			r = nn.Rounding{Input: x, Weight: w, BF16Results: d.Of == agree.BF16}
			if x == (nn.Narrowing{}) && d.InputOf == agree.BF16 {
				r.Input.Format = nn.NarrowBF16
			}
		}
		return ok
	}
	for _, e := range d.Explained {
		if e.Kind != "sums" && e.Kind != "no-bias" && try(e.Treatments()) {
			return r, true
		}
	}
	return r, try(d.Treatments()) && d.Right()
}

// narrowed returns how package nn rounds an operand, if it does so.
func narrowed(t agree.Treatment) (n nn.Narrowing, ok bool) {
	switch t.Rounded {
	case agree.BF16:
		n.Format = nn.NarrowBF16
	case agree.F16:
		return n, false
	}
	switch {
	case t.Static || t.Scales == agree.ReadUp || t.Scales == agree.Transposed || t.Quantized && n.Format != "":
		return n, false
	case !t.Quantized:
		return n, true
	}
	r := t.Recipe
	if t.Scales == agree.RoundedUp {
		up, known := roundedUp[r.Profile]
		if !known {
			return n, false
		}
		r.Profile = up
	}
	n.Recipe = &r
	return n, true
}

// roundedUp are the profiles whose scales are those of another, rounded up to powers of two.
var roundedUp = map[scaling.Profile]scaling.Profile{
	scaling.DeepGEMM: scaling.DeepGEMMUE8M0, scaling.DeepSeek: scaling.DeepSeekUE8M0,
	scaling.DeepGEMMUE8M0: scaling.DeepGEMMUE8M0, scaling.DeepSeekUE8M0: scaling.DeepSeekUE8M0,
}

// text describes a figure.
func (f Figure) text() string {
	if math.IsInf(float64(f.High), 0) {
		return fmt.Sprintf("%.3g", float64(f.Mean))
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", float64(f.Mean), float64(f.Low), float64(f.High))
}
