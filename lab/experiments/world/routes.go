package world

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

// The model with experts. A block of 128 values is a token.
const (
	routedDim     = 128
	routedHidden  = 128
	routedExperts = 8
	routedTopK    = 2
	routedRanks   = 4
	routedBatch   = 4
	routedContext = 64
)

// Ways in which experts multiply.
const (
	expertsInFP8  = "FP8"
	expertsInFP32 = "FP32"
)

// routeKind is a way to send tokens to experts, which multiply in a way.
type routeKind struct {
	experts           string
	dispatch, combine string // names of wires
}

// exactly loses nothing on the way and in experts: what all others are compared with.
var exactly = routeKind{expertsInFP32, "fp32", "fp32"}

// Those that goals are about. What practice sends is BF16 both ways, or e4m3 there: of
// DeepSeek-V3 with scales that are powers of two, as its experts' inputs have, and of
// DeepEP with others unless it is told to.
var (
	bothBF16      = routeKind{expertsInFP8, "bf16", "bf16"}
	dispatchPow2  = routeKind{expertsInFP8, "e4m3-block-pow2", "bf16"}
	dispatchFP8   = routeKind{expertsInFP8, "e4m3-block", "bf16"}
	combineFP8    = routeKind{expertsInFP8, "bf16", "e4m3-block"}
	combineFP4    = routeKind{expertsInFP8, "bf16", "mxfp4"}
	combineCast   = routeKind{expertsInFP8, "bf16", "e4m3-cast"}
	plainDispatch = routeKind{expertsInFP32, "e4m3-block", "bf16"}
	plainCombine  = routeKind{expertsInFP32, "bf16", "e4m3-block"}
)

// routeKinds are all that are compared.
var routeKinds = []routeKind{
	bothBF16, dispatchPow2, dispatchFP8, {expertsInFP8, "mxfp4", "bf16"},
	combineFP8, {expertsInFP8, "bf16", "mxfp8"}, {expertsInFP8, "e4m3-block", "e4m3-block"}, combineFP4, combineCast,
	{expertsInFP32, "bf16", "bf16"}, plainDispatch, plainCombine,
}

// use sets how experts multiply.
func (k routeKind) use(o *nn.Options) {
	if k.experts == expertsInFP8 {
		recipes := nn.DefaultFP8()
		o.FP8 = &recipes
	}
}

func (k routeKind) wires() wires { return wires{wire(k.dispatch), wire(k.combine)} }

// route is what came of sending tokens in a way. Errors are distances from what is exact
// over its length.
type route struct {
	kind     routeKind
	output   float64 // error of what experts give, for the same inputs
	gradient float64 // error of the gradients of all weights
	loss     float64 // held out
}

func routedConfig(o lab.Options) nn.Config {
	c := training.Llama(routedDim, 2, routedContext)
	c.Experts = &nn.ExpertsConfig{
		Hidden: routedHidden,
		Router: nn.RouterConfig{Experts: routedExperts, TopK: routedTopK, BalanceLoss: 0.01},
	}
	c.Workers = o.Workers
	return c
}

func routedSetup(o lab.Options, s scope) (training.Setup, error) {
	return training.NewSetup(o, o.Seed, training.Setup{
		Steps: s.routedSteps, Batch: routedBatch, Seq: routedContext, Rate: 2e-3, Judged: s.heldOut,
	})
}

// What things take, in about milliseconds.
const (
	routedStepWork = 40
	forwardWork    = 14
)

func (s *sample) routesWork() int64 {
	return int64(s.routedSteps*routedStepWork + (1+len(routeKinds))*s.routeWork())
}

// routeWork is that of one way.
func (s *sample) routeWork() int {
	return s.gradientBatches*routedStepWork + (1+s.heldOut)*forwardWork
}

// measureRoutes trains a model with experts in FP32 and sends its tokens in all ways.
func (s *sample) measureRoutes(ctx context.Context, p *lab.Steps) error {
	run, err := trial.New("experts", routedConfig(s.o), s.o.Seed)
	if err != nil {
		return err
	}
	for step := range s.setup.Steps {
		if _, err := s.setup.Step(ctx, run, step, s.setup.Schedule().At(step)); err != nil {
			return err
		}
		if err := s.done(ctx, p, "experts in training", routedStepWork); err != nil {
			return err
		}
	}
	var want *passed
	for _, kind := range append([]routeKind{exactly}, routeKinds...) {
		r, got, err := s.route(ctx, run.Model, kind, want)
		if err != nil {
			return err
		}
		if want == nil {
			want = got
		}
		s.routes = append(s.routes, r)
		if err := s.done(ctx, p, "tokens on their way", int64(s.routeWork())); err != nil {
			return err
		}
	}
	return nil
}

// passed is what forward and backward passes left: what experts were given and gave, by
// layer, and gradients, by batch and weight.
type passed struct{ in, out, gradients [][]float32 }

// route measures a way against what is exact, which is the first that is measured.
func (s *sample) route(ctx context.Context, m *nn.Llama, kind routeKind, want *passed) (*route, *passed, error) {
	model, err := newStack(m, routedRanks, kind.use)
	if err != nil {
		return nil, nil, err
	}
	model.use(kind.wires())
	got, err := s.pass(ctx, model)
	if err != nil {
		return nil, nil, err
	}
	if want == nil {
		want = got
	}
	r := &route{kind: kind, gradient: apart(got.gradients, want.gradients)}
	if r.output, err = model.outputError(ctx, want); err != nil {
		return nil, nil, err
	}
	r.loss, err = s.heldOutLoss(ctx, model)
	return r, got, err
}

// pass computes the gradients of batches that were not trained on. What experts were given and
// gave is of the first.
func (s *sample) pass(ctx context.Context, model *stack) (*passed, error) {
	var got passed
	for i := range s.gradientBatches {
		for _, p := range model.params() {
			clear(p.Grad)
		}
		tokens, targets, err := s.setup.Corpus.Batch(s.setup.Steps+i, routedBatch, routedContext)
		if err != nil {
			return nil, err
		}
		if _, err := model.forward(ctx, tokens, targets, routedBatch, routedContext); err != nil {
			return nil, err
		}
		if i == 0 {
			for _, l := range model.layers {
				got.in, got.out = append(got.in, l.in), append(got.out, l.out)
			}
		}
		if err := model.backward(ctx); err != nil {
			return nil, err
		}
		for _, p := range model.params() {
			got.gradients = append(got.gradients, slices.Clone(p.Grad))
		}
	}
	return &got, nil
}

// outputError gives the experts of all layers what they were given where nothing is lost.
func (m *stack) outputError(ctx context.Context, want *passed) (float64, error) {
	var got [][]float32
	for i, l := range m.layers {
		y := make([]float32, len(want.in[i]))
		if err := l.experts.forward(ctx, y, want.in[i], m.batch, m.seq); err != nil {
			return 0, err
		}
		got = append(got, y)
	}
	return apart(got, want.out), nil
}

func (s *sample) heldOutLoss(ctx context.Context, model *stack) (float64, error) {
	var sum float64
	for i := range s.heldOut {
		tokens, targets, err := s.setup.Corpus.HeldOut(i, routedBatch, routedContext)
		if err != nil {
			return 0, err
		}
		loss, err := model.forward(ctx, tokens, targets, routedBatch, routedContext)
		if err != nil {
			return 0, err
		}
		sum += float64(loss)
	}
	return sum / float64(s.heldOut), nil
}

// apart is the distance of got from want, all arrays together, over the length of want.
func apart(got, want [][]float32) float64 {
	var squares, of float64
	for i, w := range want {
		for j, v := range w {
			d := float64(got[i][j]) - float64(v)
			squares += float64(d * d)
			of += float64(float64(v) * float64(v))
		}
	}
	return math.Sqrt(squares / of)
}

// routeOf returns what came of a way.
func (s *sample) routeOf(k routeKind) *route {
	return s.routes[slices.IndexFunc(s.routes, func(r *route) bool { return r.kind == k })]
}
