package moe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand is one of those of an expert's products.
type operand struct {
	what   string // in words
	tensor string // in names of taps and of telemetry, behind that of the expert
	op     string // of telemetry: the product that it is an operand of
}

// Operands by their index.
const (
	inputOfGate = iota
	inputOfDown
	gradientOfGate
	gradientOfDown
)

func operands() []operand {
	return []operand{
		{"input of gate and up", "gate_proj.input", "forward"},
		{"input of down", "down_proj.input", "forward"},
		{"gradient of gate", "gate_proj.gradient", "input-gradient"},
		{"gradient of down", "down_proj.gradient", "input-gradient"},
	}
}

// place is where an operand is.
type place struct {
	operand int
	mixture int // of the layers with experts
	expert  int // the number of experts for the shared one
}

// tensor returns the name of an operand.
func (s study) tensor(p place) string {
	c := s.config()
	of := fmt.Sprintf("experts.%d", p.expert)
	if p.expert == c.Experts.Router.Experts {
		of = "shared_experts"
	}
	return fmt.Sprintf("model.layers.%d.mlp.%s.%s", c.Dense+p.mixture, of, operands()[p.operand].tensor)
}

// places are all operands of experts, shared ones last.
func (s study) places() (all []place) {
	for o := range operands() {
		for m := range s.mixtures() {
			for e := range s.experts() + 1 {
				all = append(all, place{o, m, e})
			}
		}
	}
	return all
}

// heard is what telemetry said of an operand in a step.
type heard struct {
	place
	step                         int
	amax                         float64
	elements, saturated, flushed int64
}

// ears hear of the operands of experts.
type ears struct {
	names map[[2]string]place // by tensor and op
	to    *result
}

func newEars(s study, to *result) *ears {
	e := &ears{make(map[[2]string]place), to}
	for _, p := range s.places() {
		e.names[[2]string{s.tensor(p), operands()[p.operand].op}] = p
	}
	return e
}

// Event implements [telemetry.Sink].
func (e *ears) Event(v telemetry.Event) error {
	if p, ok := e.names[[2]string{v.Tensor, v.Op}]; ok {
		e.to.heard = append(e.to.heard, heard{
			place: p, step: int(v.Step), amax: v.Stats.Amax, elements: v.Stats.Elements,
			saturated: v.Stats.Saturated(), flushed: v.Stats.Flushed,
		})
	}
	return nil
}

// comparison is of an arm with FP32 at the same weights and biases, over the batches.
type comparison struct {
	changed   []int // by mixture: choices that FP32 does not make
	choices   int   // of each mixture
	gradients []gradientError
}

// gradientError is the error of the gradient of a weight of a linear layer.
type gradientError struct {
	weight       string
	off, squares float64 // of the errors, and of the true gradient
}

// relative is the length of the errors over that of the gradient; NaN where that is 0.
func (e gradientError) relative() float64 { return math.Sqrt(e.off / e.squares) }

// parts of a model that a weight may be in.
var parts = []string{"attention", "dense MLP", "shared expert", "experts", "router"}

// partOf returns the part of a weight, and "" for what is no linear layer of a block.
func partOf(weight string) string {
	_, rest, ok := strings.Cut(weight, "model.layers.")
	_, rest, _ = strings.Cut(rest, ".")
	switch {
	case !ok || strings.Contains(rest, "norm."):
		return ""
	case strings.HasPrefix(rest, "self_attn."):
		return "attention"
	case strings.HasPrefix(rest, "mlp.experts."):
		return "experts"
	case strings.HasPrefix(rest, "mlp.shared_experts."):
		return "shared expert"
	case rest == "mlp.gate.weight":
		return "router"
	}
	return "dense MLP"
}

// pass runs a batch after those of the training forward and back.
func (r *seedRun) pass(ctx context.Context, m *nn.Llama, i int) error {
	b, err := r.in.At(r.steps + i)
	if err != nil {
		return err
	}
	_, err = b.Gradients(ctx, m)
	return err
}

// twin returns a model with the weights and biases of another, in other arithmetic.
func (r *seedRun) twin(of *nn.Llama, use func(*nn.Config)) (*nn.Llama, error) {
	c := r.config()
	c.Workers = r.workers
	use(&c)
	m, err := training.Twin(of, c)
	if err != nil {
		return nil, err
	}
	state := m.Shared().Scaling().State()
	state.Routers = of.Shared().Scaling().State().Routers
	return m, m.Shared().Scaling().Restore(state)
}

// compare compares all arms with FP32, at the weights of a model.
func (r *seedRun) compare(ctx context.Context, at *nn.Llama) ([]comparison, error) {
	exact, err := r.twin(at, func(*nn.Config) {})
	if err != nil {
		return nil, err
	}
	all := make([]comparison, len(compared()))
	for i := range r.batches {
		if err := r.pass(ctx, exact, i); err != nil {
			return nil, err
		}
		for j, a := range compared() {
			twin, err := r.twin(at, a.use)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			if err := r.pass(ctx, twin, i); err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			all[j].count(twin, exact)
			if err := r.done("comparison", passUnits); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// count adds what differs in a batch.
func (c *comparison) count(got, want *nn.Llama) {
	if c.changed == nil {
		c.changed = make([]int, len(mixturesOf(want)))
		for _, p := range want.Params() {
			if partOf(p.Name) != "" {
				c.gradients = append(c.gradients, gradientError{weight: p.Name})
			}
		}
	}
	for i, x := range mixturesOf(want) {
		k := want.Config().Experts.Router.TopK
		chosen := mixturesOf(got)[i].Router.Chosen()
		c.changed[i] += changed(chosen, x.Router.Chosen(), k)
		if i == 0 {
			c.choices += len(chosen)
		}
	}
	for i := range c.gradients {
		e := &c.gradients[i]
		e.add(got.Param(e.weight).Grad, want.Param(e.weight).Grad)
	}
}

// changed returns how many choices, k of each token, are not among those wanted.
func changed(got, want []int32, k int) (n int) {
	for i, expert := range got {
		token := i / k * k
		if !slices.Contains(want[token:token+k], expert) {
			n++
		}
	}
	return n
}

// add counts the gradient of a batch.
func (e *gradientError) add(got, want []float32) {
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		e.off += float64(d * d)
		e.squares += float64(float64(w) * float64(w))
	}
}

// Ways to share scales, by their index.
const (
	oneScale  = iota // for the tokens of all experts, as for one tensor
	scaleEach        // for those of each expert
	scaleTile        // for 1x128, as recipes have it
)

var shareWays = []string{"all experts", "each expert", "1x128"}

// roundings is what E4M3 makes of an operand of a layer's experts, by way to share scales.
type roundings struct {
	place // of expert 0
	all   [3]rounding
	least [3]rounding // of the expert with the least amax
}

// rounding is what was lost of values.
type rounding struct {
	nonzero, flushed int
	off, squares     float64 // of the errors, and of the values
}

func (r *rounding) add(other rounding) {
	r.nonzero += other.nonzero
	r.flushed += other.flushed
	r.off += other.off
	r.squares += other.squares
}

// roundingOf compares values with what became of them.
func roundingOf(values, became []float32) (r rounding) {
	for i, v := range values {
		if v != 0 {
			r.nonzero++
			if became[i] == 0 {
				r.flushed++
			}
		}
		d := float64(became[i]) - float64(v)
		r.off += float64(d * d)
		r.squares += float64(float64(v) * float64(v))
	}
	return r
}

// rounded returns what values, [.., cols], are after they were quantized to E4M3.
func rounded(ctx context.Context, values []float32, cols int, r scaling.Recipe) ([]float32, error) {
	t := &tensor.Tensor{Shape: []int{len(values) / cols, cols}}
	q := scaling.Quantizer{Recipe: r, Options: tensor.Options{Workers: 1}}
	if err := scaling.Quantize(ctx, t, values, q); err != nil {
		return nil, err
	}
	became := make([]float32, len(values))
	tensor.Dequantize(became, t)
	return became, nil
}

// roundings returns what E4M3 makes of the operands of a model's experts, in a batch after
// its training.
func (r *seedRun) roundings(ctx context.Context, m *nn.Llama) (all []roundings, err error) {
	names := make(map[string]place)
	for _, p := range r.places() {
		names[r.tensor(p)] = p
	}
	values, widths := make(map[place][]float32), make(map[place]int)
	m.Shared().Tap = func(name string, v []float32, _, cols int) {
		if p, ok := names[name]; ok {
			values[p], widths[p] = append([]float32(nil), v...), cols
		}
	}
	defer func() { m.Shared().Tap = nil }()
	if err := r.pass(ctx, m, 0); err != nil {
		return nil, err
	}
	for o := range operands() {
		for mixture := range r.mixtures() {
			var experts [][]float32
			cols := 0
			for e := range r.experts() {
				p := place{o, mixture, e}
				if v := values[p]; len(v) > 0 { // it had tokens
					experts, cols = append(experts, v), widths[p]
				}
			}
			found, err := roundExperts(ctx, experts, cols)
			if err != nil {
				return nil, err
			}
			found.place = place{operand: o, mixture: mixture}
			all = append(all, found)
		}
	}
	return all, nil
}

func amaxOf(values []float32) float32 {
	amax, _ := fp8.Amax(values)
	return amax
}

// roundExperts rounds an operand of each expert, [.., cols], under scales that are shared in
// all ways.
func roundExperts(ctx context.Context, experts [][]float32, cols int) (r roundings, err error) {
	perTensor := scaling.Recipe{Profile: scaling.TECurrent, Format: fp8.E4M3}
	var joined []float32
	least := 0 // the expert with the least amax
	for e, values := range experts {
		joined = append(joined, values...)
		if amaxOf(values) < amaxOf(experts[least]) {
			least = e
		}
	}
	ofAll, err := rounded(ctx, joined, cols, perTensor)
	if err != nil {
		return r, err
	}
	first := 0
	for e, values := range experts {
		ofEach, err := rounded(ctx, values, cols, perTensor)
		if err != nil {
			return r, err
		}
		ofTiles, err := rounded(ctx, values, cols, scaling.Default(scaling.Input))
		if err != nil {
			return r, err
		}
		own := [][]float32{oneScale: ofAll[first:][:len(values)], scaleEach: ofEach, scaleTile: ofTiles}
		first += len(values)
		for way, became := range own {
			lost := roundingOf(values, became)
			r.all[way].add(lost)
			if e == least {
				r.least[way] = lost
			}
		}
	}
	return r, nil
}
