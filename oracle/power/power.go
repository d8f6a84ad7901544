package power

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// defaultRate is the rate of false alarms where the options name none.
const defaultRate = 1e-6

// ErrRefused is of a result that can not be judged: the claim is of directed rounding, K is
// too large for the analysis, or scales are so extreme that a sum could
// under- or overflow.
var ErrRefused = errors.New("power: not judged")

// Options of a measurement. The zero value is float32 rounded to nearest, in any order.
type Options struct {
	// Accumulation is what is known of the kernel's sums. Only Dequantized and Kernel count;
	// with Truncated there is [ErrRefused].
	Accumulation oracle.Accumulation
	Bias         []float32 // of length N, or nil
	Rate         float64   // of false alarms, over 0 and below 1; 0 means 1e-6

	Workers  int // goroutines at most; 0 means GOMAXPROCS
	Progress progress.Reporter
}

// Result is what was found. Its JSON is stable: keys are added, never changed.
type Result struct {
	Alarm bool          `json:"alarm"`
	Rate  oracle.Number `json:"rate"` // of false alarms
	// P bounds the probability with which a correct kernel, under the hypotheses, looks
	// as suspicious.
	P        oracle.Number `json:"p"`
	Elements int           `json:"elements"` // that were judged
	Left     int           `json:"left"`     // that were not, since they are not finite
	Distinct int           `json:"distinct"` // exact results, up to the sign
	// Spread is the root of the mean of the squares of errors, in units of σ: of the
	// most that float32 comes to in the worst order of additions.
	Spread oracle.Number `json:"spread"`
	Tests  []Test        `json:"tests"`
	// Likely says which faults an alarm may be of, the likeliest first.
	Likely []string `json:"likely,omitempty"`
	Sights []Sight  `json:"sights"`
}

// Test is one test of several statistics.
type Test struct {
	Name       string        `json:"name"`
	Statistics int           `json:"statistics"`
	Score      oracle.Number `json:"score"` // the largest, after all that is allowed
	Limit      oracle.Number `json:"limit"` // of the score, for an alarm
	P          oracle.Number `json:"p"`
	Where      string        `json:"where,omitempty"`
	// Measured says that the limit is one that was measured of correct kernels, and P, 0 or 1,
	// no bound of a probability.
	Measured bool `json:"measured,omitempty"`
	// Void says that a correct kernel fails it with these operands.
	Void  bool `json:"void,omitempty"`
	Alarm bool `json:"alarm"`
}

// String describes the test in a line.
func (t *Test) String() string {
	text := fmt.Sprintf("score %.3g", float64(t.Score))
	if t.Statistics > 1 {
		text += fmt.Sprintf(", the largest of %d", t.Statistics)
	}
	text += fmt.Sprintf(", limit %.3g", float64(t.Limit))
	if t.Where != "" {
		text += ", " + t.Where
	}
	switch {
	case t.Void:
		text += "; says nothing: float32 sums do the same with these operands"
	case t.Alarm && t.Measured:
		text += "; no correct kernel that was measured does that"
	case t.Alarm:
		text += fmt.Sprintf("; a correct kernel does that with a probability of %.2g at most", max(float64(t.P), 1e-15))
	}
	return text
}

// Measure judges got, of shape [M, N] and dense, which a kernel made of a, of shape [M,
// K], and b, of [N, K], in float32; old is the C to which the product was added, or nil.
// Nothing is kept of them.
//
// It returns an error if a and b make no product, with [ErrRefused] if the
// hypotheses have nothing to say of the claim, and when ctx ends; a suspicious result is
// no error. It returns an error, too, if got, old or the bias is not of the
// right length ([gemm.ErrOperands]). The result
// does not depend on Workers. Safe for concurrent use. It takes about as long as
// [oracle.Exact], three times as long where there is a suspicion.
func Measure[T gemm.Output](ctx context.Context, got, old []T, a, b *tensor.Tensor, o Options) (*Result, error) {
	if o.Rate == 0 {
		o.Rate = defaultRate
	}
	if !(o.Rate > 0 && o.Rate < 1) {
		return nil, fmt.Errorf("power: rate of false alarms %v: want one over 0 and below 1", o.Rate)
	}
	p, err := newPopulation(ctx, old, a, b, &o)
	if err != nil {
		return nil, err
	}
	if len(got) != p.m*p.n {
		return nil, sentinel.Length(gemm.ErrOperands, "power: C", len(got), p.m*p.n)
	}
	r, err := measure(ctx, p, got, old, &o)
	if err == nil && r.Alarm {
		r.Likely, err = likely(ctx, p, r, got, old, &o)
	}
	return r, err
}

// measure makes the result.
func measure[T gemm.Output](ctx context.Context, p *population, got, old []T, o *Options) (*Result, error) {
	if o.Accumulation.Kernel.Model != (oracle.Model{}) {
		m, err := newModel(ctx, p, old, o)
		if err != nil {
			return nil, err
		}
		s := modelScores(m, got)
		r := s.result(o.Rate)
		r.Sights = m.sights(s, o.Rate)
		return r, nil
	}
	s, err := newScores(ctx, p, got, o)
	if err != nil {
		return nil, err
	}
	if s.suspicious(o.Rate) {
		for _, control := range controls[T](o.Accumulation.Dequantized) {
			c, err := control(ctx, p, old, o)
			if err != nil {
				return nil, err
			}
			known, err := newScores(ctx, p, c, o)
			if err != nil {
				return nil, err
			}
			s.control(known)
		}
	}
	r := s.result(o.Rate)
	r.Sights = p.sights(s, o.Rate)
	return r, nil
}

const wrongC = "power: C is not of M*N elements"

// refused returns an error with ErrRefused.
func refused(format string, args ...any) error {
	return sentinel.Errorf(ErrRefused, "power: not judged: "+format, args...)
}

// limit is the λ that one of n statistics of a test exceeds with a probability of rate
// divided by the number of tests.
func limit(n int, rate float64) float64 {
	return math.Sqrt(2 * math.Log(2*mostTests*float64(max(n, 1))/rate))
}

// mostTests share the rate.
const mostTests = 8

// tail bounds the probability that one of n statistics exceeds λ.
func tail(n int, lambda float64) float64 {
	if lambda <= 0 {
		return 1
	}
	return min(1, 2*float64(n)*math.Exp(-lambda*lambda/2))
}
