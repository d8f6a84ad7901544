package agree

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	var logprobs [2][]float64
	for i, s := range sides {
		if !s.has(logprobsName) {
			continue
		}
		x, err := s.read(logprobsName)
		if err != nil {
			return err
		}
		for _, v := range x.values {
			logprobs[i] = append(logprobs[i], float64(v))
		}
	}
	var tokens [2][]int
	for i, s := range sides {
		all, err := s.whole(tokensName)
		if err != nil && !errors.Is(err, errNone) {
			return err
		}
		tokens[i] = all
	}
	if a, b := logprobs[0], logprobs[1]; a != nil && len(a) == len(b) && slices.Equal(tokens[0], tokens[1]) {
		var differences, sizes []float64
		for i := range a {
			if d := b[i] - a[i]; !math.IsNaN(d) {
				differences, sizes = append(differences, d), append(sizes, math.Abs(d))
			}
		}
		d, s := figureOf(differences), figureOf(sizes)
		n.Measured, n.MeasuredSize, n.Tokens = &d, &s, len(differences)
	}
	if tokens[0] == nil || tokens[1] == nil || slices.Equal(tokens[0], tokens[1]) {
		if err := n.logits(sides); err != nil {
			return err
		}
	}
	text := tokens[0]
	if text == nil {
		text = tokens[1]
	}
	switch {
	case j.NoDivergence:
		n.Why = "--no-divergence"
	case text == nil:
		n.Why = "no dump has tokens"
	case len(r.Modules) == 0:
		n.Why = "no dump has linear layers"
	case tokens[0] != nil && tokens[1] != nil && !slices.Equal(tokens[0], tokens[1]):
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

// logits fills in the divergence of recorded logits.
func (n *Next) logits(sides [2]*side) error {
	if !sides[0].has(logitsName) || !sides[1].has(logitsName) {
		return nil
	}
	a, err := sides[0].read(logitsName)
	if err != nil {
		return err
	}
	b, err := sides[1].read(logitsName)
	if err != nil || a.rows != b.rows || a.cols != b.cols {
		return err
	}
	var all []float64
	for i := range a.rows {
		p, q := a.values[i*a.cols:(i+1)*a.cols], b.values[i*a.cols:(i+1)*a.cols]
		logP, logQ := logSum(p), logSum(q)
		kl := 0.0
		for k := range p {
			l := float64(p[k]) - logP
			kl += math.Exp(l) * (l - (float64(q[k]) - logQ))
		}
		all = append(all, kl)
	}
	f := figureOf(all)
	n.MeasuredKL = &f
	if n.Tokens == 0 {
		n.Tokens = len(all)
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
	for _, module := range r.Modules {
		for i, d := range module.Sides {
			if d == nil {
				continue
			}
			rounding, exact := d.rounding()
			roundings[i][module.Name] = rounding
			if !exact {
				n.Assumed = append(n.Assumed, module.Name)
			}
		}
		// What one side has not recorded it has as the other.
		for i := range roundings {
			if module.Sides[i] == nil {
				roundings[i][module.Name] = roundings[1-i][module.Name]
			}
		}
	}
	n.Assumed = slices.Compact(n.Assumed)
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
	n.Whole = &whole
	n.Layers = []Cause{}
	sum := 0.0
	for _, l := range x.Layers {
		cause := causeOf(l)
		n.Layers = append(n.Layers, cause)
		sum += float64(cause.KL.Mean)
	}
	n.Sum = jsonfloat.Number(sum)
	if n.Tokens == 0 {
		n.Tokens = x.Targets
	}
	return nil
}

// rounding returns how the layer is run: as what explains it, or else as is claimed, and
// whether that is what it was found to do.
func (d *Judged) rounding() (r nn.Rounding, exact bool) {
	input, weight := d.Treatments()
	exact = d.Right()
	if !exact {
		for _, e := range d.Explained {
			x, w := e.Treatments()
			if runs(x) && runs(w) && e.Kind != "sums" && e.Kind != "no-bias" {
				input, weight, exact = x, w, true
				break
			}
		}
	}
	if !runs(input) || !runs(weight) {
		return r, false
	}
	r = nn.Rounding{Input: narrowing(input), Weight: narrowing(weight), BF16Results: d.Of == agree.BF16}
	if r.Input == (nn.Narrowing{}) && d.InputOf == agree.BF16 {
		r.Input.Format = nn.NarrowBF16
	}
	return r, exact
}

// runs reports whether package nn rounds an operand so.
func runs(t agree.Treatment) bool {
	_, ok := narrowed(t)
	return ok
}

func narrowing(t agree.Treatment) nn.Narrowing {
	n, _ := narrowed(t)
	return n
}

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
