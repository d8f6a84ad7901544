package evaluate

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"
	"time"

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

	// Together, unless nil, returns one name for all linear layers whose weights share an outer
	// scale, of recipes that have one for all rows, as those do that loaders fuse: it follows from the
	// largest magnitude of all. They must be in one layer. nil: each has its own.
	Together func(layer string) string

	// Read, unless nil, writes the values of a parameter of the model, which are not there yet, to
	// dst, such as [hf.Unread.Read]. They are read layer by layer, from one goroutine, and of no
	// more than two layers, or of the embedding or the head, there are values at once.
	//
	// [hf.Unread.Read]: https://pkg.go.dev/github.com/octavo-fp8/octavo/nn/hf#Unread.Read
	Read func(p *nn.Param, dst []float32) error

	// Memory is how many bytes activations between layers may take, of all windows and runs;
	// more of them are in a temporary file. 0 is a quarter of what there is.
	Memory int64

	// State says where a run that is interrupted leaves what it has done. Without one nothing is
	// written but what Memory says.
	State State

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
	if o.State.Dir != "" && o.State.Model == "" {
		return o, optionError("State.Model is empty: it must tell the model from others")
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

// Run evaluates a model on a text under recipes. All windows go through a layer before the next one
// is read. Meanwhile it replaces linear layers of the
// model and sets its Tap, and it restores them; the model's own options for them, such as
// FP8, play no part. The model must not be used concurrently.
//
// The error is [ErrOptions], [ErrTokens], which names the first token that the model does not
// have, [ErrModel], [ErrState], or one of package nn or of the context.
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
	for _, recipe := range o.Recipes {
		if err := r.checkMixed(recipe); err != nil {
			return nil, err
		}
	}
	e := &evaluator{runner: r, Options: o, workers: c.Workers, windows: windows, amaxes: map[sharing]float32{}}
	if e.State.Dir != "" {
		e.identity = e.identify(tokens)
	}
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
	workers  int
	windows  []window
	identity identity  // of the State
	nextSave time.Time // not before
	layered  int       // the number of windows that are run layer by layer

	amaxes map[sharing]float32

	runs   []run
	loss   sums
	uneven float64 // that of [Evaluation]
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
	options func(slot) nn.Options

	whole         found
	layers, kinds []found
}

// prepare lists the runs and counts what there is to do.
func (e *evaluator) prepare(ctx context.Context) {
	var options []func(slot) nn.Options
	for _, recipe := range e.Recipes {
		for _, m := range e.Modes {
			r := run{recipe: recipe, mode: m, options: e.optionsOf(recipe, m)}
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

// stream is a model of which some linear layers are quantized.
type stream struct {
	options func(slot) nn.Options // of those
	which   func(slot) bool       // they are; nil: none, the reference
	from    int                   // the first layer that has some
	windows int                   // that are run, the first ones
	found   *found
}

// listStreams returns what is run, the reference first.
func (e *evaluator) listStreams() []stream {
	all := []stream{{windows: len(e.windows)}}
	for k := range e.runs {
		r := &e.runs[k]
		all = append(all, stream{r.options, every, 0, len(e.windows), &r.whole})
		if e.layered == 0 {
			continue
		}
		for layer := range r.layers {
			only := func(s slot) bool { return s.layer == layer }
			all = append(all, stream{r.options, only, layer, e.layered, &r.layers[layer]})
		}
		for i, kind := range e.kinds {
			only := func(s slot) bool { return s.kind == kind }
			all = append(all, stream{r.options, only, 0, e.layered, &r.kinds[i]})
		}
	}
	return all
}

func (e *evaluator) run(ctx context.Context) (err error) {
	streams := e.listStreams()
	kept, err := newStreamStore(streams, e.windows, e.config.Dim, e.Memory, e.State.Dir)
	if err != nil {
		return err
	}
	defer kept.close()
	l := newLoader(e.Read)
	defer l.close()
	layers, windows, err := e.resume(kept, streams)
	if err != nil {
		return err
	}
	if layers == 0 {
		if err := l.with([]*nn.Param{e.table}, func() error { return e.embed(kept) }); err != nil {
			return err
		}
		kept.turn()
		l.drop() // no layer has use for memory of the embedding
	}
	for layer := layers; layer < len(e.blocks); layer++ {
		if layer+1 < len(e.blocks) {
			l.next = e.blocks[layer+1].Params()
		}
		err := l.with(e.blocks[layer].Params(), func() error { return e.layer(ctx, kept, streams, layer) })
		if err == nil {
			err = e.save(kept, streams, layer+1, 0)
		}
		if err != nil {
			return err
		}
	}
	l.drop() // nor has the head of a layer
	last := []*nn.Param{e.norm.Gain, e.head.Weight}
	return l.with(last, func() error { return e.measure(ctx, kept, streams, windows) })
}

// embed writes the reference's stream before the first layer.
func (e *evaluator) embed(kept *streamStore) error {
	for i, w := range e.windows {
		x := sized(&e.scratch[0], len(w.tokens)*e.config.Dim)
		e.runner.embed(x, w.tokens)
		if err := kept.write(0, i, &e.scratch[0]); err != nil {
			return err
		}
	}
	return nil
}

// layer runs a layer in all streams, the reference last: others begin with it.
func (e *evaluator) layer(ctx context.Context, kept *streamStore, streams []stream, layer int) error {
	for i := range streams {
		i = len(streams) - 1 - i
		st, from := &streams[i], i
		switch {
		case st.from > layer:
			continue
		case st.from == layer:
			from = 0
		}
		in := func(s slot) bool { return s.layer == layer && st.which != nil && st.which(s) }
		if err := e.put(st.options, in); err != nil {
			return err
		}
		for w := range st.windows {
			e.tap(ctx, i == 0 && w < e.layered)
			x, err := kept.read(from, w)
			if err != nil {
				return err
			}
			y := sized(&e.scratch[0], len(x))
			if err := e.blocks[layer].Forward(ctx, y, x, 1, len(x)/e.config.Dim); err != nil {
				return err
			}
			if err := cmp.Or(e.tapped, kept.write(i, w, &e.scratch[0]), e.meter.Add(1)); err != nil {
				return err
			}
		}
		if err := e.plain(in); err != nil {
			return err
		}
	}
	return nil
}

// tap has linear layers measured, where it is asked for.
func (e *evaluator) tap(ctx context.Context, measure bool) {
	e.model.Shared().Tap = nil
	if !measure {
		return
	}
	e.model.Shared().Tap = func(name string, x []float32, rows, _ int) {
		layer, ok := strings.CutSuffix(name, ".input")
		if i, known := e.local.names[layer]; ok && known && e.tapped == nil {
			e.tapped = e.local.measure(ctx, i, x, rows)
		}
	}
}

// measure compares the logits of all streams with those of the reference, from a window on.
func (e *evaluator) measure(ctx context.Context, kept *streamStore, streams []stream, from int) error {
	e.model.Shared().Tap = nil
	for i := from; i < len(e.windows); i++ {
		w := e.windows[i]
		for k := range streams {
			st := &streams[k]
			if i >= st.windows {
				continue
			}
			x, err := kept.read(k, i)
			if err != nil {
				return err
			}
			to := &e.got
			if k == 0 {
				to = &e.ref
			}
			if err := e.finish(ctx, &to.values, x, len(w.tokens)); err != nil {
				return err
			}
			to.vocab = e.config.Vocab
			to.measure(len(w.tokens), e.workers)
			if k == 0 {
				if err := e.measureReference(w); err != nil {
					return err
				}
				continue
			}
			e.divergences = append(e.divergences[:0], make([]divergence, len(w.targets))...)
			compare(e.divergences, &e.ref, &e.got, w.targets, e.workers)
			st.found.add(w, e.divergences, e.refLoss, len(e.Prefix))
		}
		if err := e.save(kept, streams, len(e.blocks), i+1); err != nil {
			return err
		}
	}
	return nil
}

// measureReference adds the losses of a window in FP32.
func (e *evaluator) measureReference(w window) error {
	sum, even := 0.0, math.Log(float64(e.config.Vocab))
	e.refLoss = e.refLoss[:0]
	for row, target := range w.targets {
		loss := 0.0
		if target != nn.IgnoreIndex {
			q := e.ref.row(row)
			loss = e.ref.logSums[row] - float64(q[target])
			likeliest := e.ref.logSums[row] - float64(q[e.ref.largest[row]])
			e.uneven = max(e.uneven, math.Abs(loss-even), math.Abs(likeliest-even))
		}
		if math.IsNaN(loss) {
			return modelError("the logits for token %d are not finite in FP32: "+
				"look for NaN and infinities with octavo inspect", w.place(row, len(e.Prefix)))
		}
		e.refLoss = append(e.refLoss, loss)
		sum += loss
	}
	e.loss.add(sum, w.count)
	return nil
}

// result sums up.
func (e *evaluator) result(tokens int) *Evaluation {
	r := &Evaluation{
		Tokens: tokens, Windows: len(e.windows), LayerWindows: e.layered,
		Context: e.Context, Prefix: len(e.Prefix), Stride: e.Stride, Vocabulary: e.config.Vocab,
		Loss: e.loss.mean(), Uneven: jsonfloat.Number(e.uneven), Results: make([]Result, 0, len(e.runs)),
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
			Sums: of.whole.windows(),
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
