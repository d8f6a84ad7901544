package evaluate

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
)

// Options are those of [Run]. All but Recipes have useful zero values.
type Options struct {
	Recipes []Recipe
	Modes   []Mode // of each recipe; nil: all

	// Context is the number of tokens in a window, with the prefix, at most the model's; 0 is
	// the model's, but at most 512. Stride is the distance of windows, at most that of the
	// tokens of the text in one, which 0 stands for.
	Context, Stride int

	// Prefix begins every window.
	Prefix []int32

	// LayerTokens is the number of tokens at the beginning of the text, rounded up to whole
	// windows, on which each layer and each kind of linear layer is quantized alone; 0 is
	// 2048, and below 0 is none. With L layers a window costs one pass for each run, and for
	// these windows about L/2+8 more.
	LayerTokens int

	// Progress, unless nil, hears of layers that have run, a window each, as "evaluate".
	Progress progress.Reporter
}

const (
	defaultContext     = 512
	defaultLayerTokens = 2048
)

// complete returns o checked, with its defaults filled in.
func (o Options) complete(c nn.Config) (Options, error) {
	if o.Context == 0 {
		o.Context = min(c.Context, defaultContext)
	}
	if o.Modes == nil {
		o.Modes = Modes()
	}
	if o.LayerTokens == 0 {
		o.LayerTokens = defaultLayerTokens
	}
	length := o.Context - len(o.Prefix)
	if o.Stride == 0 {
		o.Stride = length
	}
	switch {
	case o.Context < 1 || o.Context > c.Context:
		return o, optionError("Context is %d: it must be from 1 to the model's %d", o.Context, c.Context)
	case length < 1:
		return o, optionError("Context is %d: the prefix has %d tokens, which leaves none for the text",
			o.Context, len(o.Prefix))
	case o.Stride < 1 || o.Stride > length:
		return o, optionError("Stride is %d: it must be from 1 to %d, the tokens of the text in a window",
			o.Stride, length)
	}
	for _, m := range o.Modes {
		if err := modes.Check(m); err != nil {
			return o, optionError("Modes: %w", err)
		}
	}
	for _, r := range o.Recipes {
		if err := r.check(); err != nil {
			return o, err
		}
	}
	return o, nil
}

// Run evaluates a model on a text under recipes. Meanwhile it replaces linear layers of the
// model and sets its Tap, and it restores them; the model's own options for them, such as
// FP8, play no part. The model must not be used concurrently.
//
// The error is [ErrOptions], [ErrTokens], which names the first token that the model does not
// have, [ErrModel], or one of package nn or of the context.
func Run(ctx context.Context, m *nn.Llama, tokens []int32, o Options) (report *Evaluation, err error) {
	c := m.Config()
	if o, err = o.complete(c); err != nil {
		return nil, err
	}
	if err := checkTokens("the prefix", o.Prefix, c.Vocab); err != nil {
		return nil, err
	}
	if err := checkTokens("the text", tokens, c.Vocab); err != nil {
		return nil, err
	}
	windows := cut(tokens, o.Context-len(o.Prefix), o.Stride, o.Prefix)
	if len(windows) == 0 {
		return nil, tokenError("%d tokens: at least one must follow another", len(tokens))
	}
	r, err := newRunner(m)
	if err != nil {
		return nil, err
	}
	defer r.restore()
	e := &evaluator{runner: r, Options: o, workers: c.Workers, windows: windows}
	e.prepare(ctx)
	shared := m.Shared()
	tap := shared.Tap
	defer func() { shared.Tap = tap }()
	err = shared.Scaling().Inference(func() error { return e.run(ctx) })
	if err != nil {
		return nil, err
	}
	return e.result(len(tokens)), nil
}

func checkTokens(what string, tokens []int32, vocab int) error {
	for i, t := range tokens {
		if t < 0 || int(t) >= vocab {
			return tokenError("token %d of %s is %d: the model has those from 0 to %d", i, what, t, vocab-1)
		}
	}
	return nil
}

// evaluator is a [Run].
type evaluator struct {
	*runner
	Options
	workers int
	windows []window
	layered int // the number of windows that are run layer by layer

	runs   []run
	loss   sums
	local  *local
	meter  *meter.Meter
	tapped error // of a Tap

	ref, got    logits
	divergences []divergence
	refLoss     []float64
}

// run is a recipe in a mode, and what has been found of it.
type run struct {
	recipe  Recipe
	mode    Mode
	options nn.Options

	whole         found
	layers, kinds []found
}

// prepare lists the runs and counts what there is to do.
func (e *evaluator) prepare(ctx context.Context) {
	var options []nn.Options
	for _, recipe := range e.Recipes {
		for _, m := range e.Modes {
			r := run{recipe: recipe, mode: m, options: recipe.options(m)}
			if e.LayerTokens > 0 {
				r.layers, r.kinds = make([]found, len(e.blocks)), make([]found, len(e.kinds))
			}
			e.runs = append(e.runs, r)
			options = append(options, r.options)
		}
	}
	for _, w := range e.windows {
		if w.at >= e.LayerTokens || len(e.runs) == 0 {
			break
		}
		e.layered++
	}
	blocks := len(e.blocks)
	passes := int64(blocks) * int64(1+len(e.runs))
	layered := int64(blocks*(blocks+1)/2+len(e.kinds)*blocks) * int64(len(e.runs))
	total := passes*int64(len(e.windows)) + layered*int64(e.layered)
	e.meter = meter.New(ctx, e.Progress, "evaluate", total)
	if e.layered > 0 {
		e.local = newLocal(e.runner, options)
	}
}

func (e *evaluator) run(ctx context.Context) error {
	for i, w := range e.windows {
		if err := e.reference(ctx, w, i < e.layered); err != nil {
			return err
		}
		for k := range e.runs {
			r := &e.runs[k]
			if err := e.quantized(ctx, w, r.options, &r.whole, 0, every); err != nil {
				return err
			}
			if i >= e.layered {
				continue
			}
			if err := e.apart(ctx, w, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// apart quantizes each layer alone, and each kind of linear layer.
func (e *evaluator) apart(ctx context.Context, w window, r *run) error {
	for layer := range r.layers {
		only := func(s slot) bool { return s.layer == layer }
		if err := e.quantized(ctx, w, r.options, &r.layers[layer], layer, only); err != nil {
			return err
		}
	}
	for i, kind := range e.kinds {
		only := func(s slot) bool { return s.kind == kind }
		if err := e.quantized(ctx, w, r.options, &r.kinds[i], 0, only); err != nil {
			return err
		}
	}
	return nil
}

// reference runs a window in FP32, and where it asks for it measures linear layers.
func (e *evaluator) reference(ctx context.Context, w window, measure bool) error {
	e.model.Shared().Tap = nil
	if measure {
		e.model.Shared().Tap = func(name string, x []float32, rows, _ int) {
			layer, ok := strings.CutSuffix(name, ".input")
			if i, known := e.local.names[layer]; ok && known && e.tapped == nil {
				e.tapped = e.local.measure(ctx, i, x, rows)
			}
		}
	}
	err := e.runner.reference(ctx, &e.ref.values, w.tokens)
	e.model.Shared().Tap = nil
	if err == nil {
		err = e.tapped
	}
	if err != nil {
		return err
	}
	e.ref.vocab = e.config.Vocab
	e.ref.measure(len(w.tokens), e.workers)
	sum := 0.0
	e.refLoss = e.refLoss[:0]
	for row, target := range w.targets {
		loss := 0.0
		if target != nn.IgnoreIndex {
			loss = e.ref.logSums[row] - float64(e.ref.row(row)[target])
		}
		if math.IsNaN(loss) {
			return modelError("the logits for token %d are not finite in FP32: "+
				"look for NaN and infinities with octavo inspect", w.place(row, len(e.Prefix)))
		}
		e.refLoss = append(e.refLoss, loss)
		sum += loss
	}
	e.loss.add(sum, w.count)
	return e.meter.Add(int64(len(e.blocks)))
}

// quantized runs the window of the last reference, from a layer on, with other linear layers
// in some slots, and adds how far that is from FP32.
func (e *evaluator) quantized(
	ctx context.Context, w window, o nn.Options, f *found, from int, which func(slot) bool,
) error {
	if err := e.put(o, which); err != nil {
		return err
	}
	if err := e.from(ctx, &e.got.values, from, len(w.tokens)); err != nil {
		return err
	}
	if err := e.plain(which); err != nil {
		return err
	}
	e.got.vocab = e.config.Vocab
	e.got.measure(len(w.tokens), e.workers)
	e.divergences = append(e.divergences[:0], make([]divergence, len(w.targets))...)
	compare(e.divergences, &e.ref, &e.got, w.targets, e.workers)
	f.add(w, e.divergences, e.refLoss, len(e.Prefix))
	return e.meter.Add(int64(len(e.blocks) - from))
}

// result sums up.
func (e *evaluator) result(tokens int) *Evaluation {
	r := &Evaluation{
		Tokens: tokens, Windows: len(e.windows), LayerWindows: e.layered,
		Context: e.Context, Prefix: len(e.Prefix), Stride: e.Stride,
		Loss: e.loss.mean(), Results: make([]Result, 0, len(e.runs)),
	}
	r.Perplexity = perplexity(r.Loss.Mean)
	for i, w := range e.windows {
		r.Targets += w.count
		if i < e.layered {
			r.LayerTargets += w.count
		}
	}
	for i := range e.runs {
		of := &e.runs[i]
		loss := of.whole.loss.mean()
		out := Result{
			Recipe: of.recipe.Name, Operands: of.recipe.String(), Mode: of.mode,
			Cost: of.whole.cost(), Loss: loss, Perplexity: perplexity(loss.Mean),
			SameTop:      jsonfloat.Number(float64(of.whole.same) / float64(r.Targets)),
			LargestKL:    of.whole.largestKL,
			LargestLogit: of.whole.largestLogit,
			Layers:       []PartCost{}, Kinds: []PartCost{}, Linears: []Linear{},
		}
		if e.layered > 0 {
			e.reportParts(i, of, &out)
		}
		r.Results = append(r.Results, out)
	}
	return r
}

func (e *evaluator) reportParts(i int, of *run, out *Result) {
	for layer := range of.layers {
		name := "model.layers." + strconv.Itoa(layer)
		out.Layers = append(out.Layers, PartCost{name, of.layers[layer].cost()})
	}
	for k, kind := range e.kinds {
		out.Kinds = append(out.Kinds, PartCost{kind, of.kinds[k].cost()})
	}
	for k, s := range e.slots {
		if !e.local.measured[k] {
			continue
		}
		sqnr := e.local.ratios[i][k].decibels()
		out.Linears = append(out.Linears, Linear{s.name, s.layer, s.kind, sqnr})
	}
}
