package hf

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
)

// Options are those of [Load]. The zero value is a model in FP32.
type Options struct {
	// Context is the longest sequence, at most that of [Config]; 0 is that of Config but at
	// most [DefaultContext]. Memory of the positions grows with it, and that of activations with what
	// sequences there are.
	Context int

	// Configure, unless nil, changes the configuration in everything but its sizes, such as
	// [nn.Recipe.Apply] does.
	Configure func(*nn.Config)

	Workers int // goroutines, of the model too; 0: GOMAXPROCS

	// Progress, unless nil, hears of values that were read, as "load".
	Progress progress.Reporter
}

// DefaultContext is the longest sequence of a model that is loaded without Options.Context.
const DefaultContext = 4096

// Load returns the model in a checkpoint. Nothing is allocated before all tensors are found
// to be there, of the right shape, and no others. Values are those of
// [checkpoint.ReadValues] in FP32, NaN and infinities included; their order is the one that
// the documentation of the package describes. Of a quantized checkpoint weights are
// dequantized, and inputs are not rounded unless Configure says so.
//
// Beside the tensors of the model there may be what has no part in it: scales of cached keys
// and values, frequencies of rotary positions, and, where the head is tied, a copy of the
// embedding as head.
//
// A model takes four bytes for each weight. Gradients have their place in its address space;
// where the system gives out memory when it is first written to, as Linux does, they take none
// before there are any.
//
// The error is [ErrConfig], [ErrTensor] or one of package checkpoint, nn or of the context.
func Load(ctx context.Context, c *checkpoint.Checkpoint, o Options) (*nn.Llama, error) {
	d, err := describe(c)
	if err != nil {
		return nil, err
	}
	cfg, err := d.choose(o)
	if err != nil {
		return nil, err
	}
	weights, err := match(c, d)
	if err != nil {
		return nil, err
	}
	m, err := nn.NewZeroLlama(cfg)
	if err != nil {
		return nil, err
	}
	l := loader{c: c, d: d, workers: cfg.Workers}
	if err := l.fill(ctx, m, weights, o.Progress); err != nil {
		return nil, err
	}
	return m, nil
}

// choose returns the configuration of the model that options ask for.
func (d *described) choose(o Options) (nn.Config, error) {
	cfg := d.Config
	cfg.Workers = o.Workers
	if o.Configure != nil {
		o.Configure(&cfg)
	}
	if !reflect.DeepEqual(built(cfg), built(d.Config)) {
		return cfg, configError(d.file,
			"Options.Configure changes sizes or constants: they are those of the file")
	}
	switch cfg.Context = o.Context; {
	case o.Context == 0:
		cfg.Context = min(d.Context, DefaultContext)
	case o.Context > d.Context:
		return cfg, configError(d.file, "a context of %d: it must be at most %d, as %s says",
			o.Context, d.Context, d.limit)
	}
	return cfg, cfg.Validate()
}

// built returns what of a configuration is no choice.
func built(c nn.Config) nn.Config {
	c.FP8, c.Rounding, c.Smoothing = nil, nil, nil
	c.BF16First, c.BF16Last, c.Activations, c.Policies = 0, 0, nn.ActivationsFP32, nil
	c.Context, c.Workers = 0, 0
	return c
}

const headName = "lm_head.weight"

// match returns the weights of a model in the order of its parameters.
func match(c *checkpoint.Checkpoint, d described) (weights []*checkpoint.Weight, err error) {
	known, source := map[string]bool{}, filepath.Base(d.file)
	for s := range d.Shapes() {
		w := c.Weight(s.Name)
		if w == nil || w.Name != s.Name {
			return nil, tensorError("%s: %s is missing, which a model of %d layers as in %s has",
				c.Dir(), s.Name, d.Layers, source)
		}
		want, transposed := shapeOf(s), w.Scheme != nil && w.Scheme.Transposed
		if !slices.Equal(w.Shape, want) || transposed {
			return nil, tensorError("%s: %s is %v: want %v as in %s",
				fileOf(c, w), s.Name, w.Shape, want, source)
		}
		known[s.Name] = true
		weights = append(weights, w)
	}
	for _, w := range c.Weights() {
		if !known[w.Name] && !ignored(w.Name) && !(d.TieHead && w.Name == headName) {
			return nil, tensorError("%s: %s, %v, is no part of a model as in %s",
				fileOf(c, w), w.Name, w.Shape, source)
		}
	}
	return weights, nil
}

// shapeOf returns the shape in files: norms are vectors.
func shapeOf(s nn.Shape) []int {
	if strings.HasSuffix(s.Name, "norm.weight") {
		return []int{s.Cols}
	}
	return []int{s.Rows, s.Cols}
}

func fileOf(c *checkpoint.Checkpoint, w *checkpoint.Weight) string {
	for _, part := range w.Parts {
		if part.File != "" {
			return filepath.Join(c.Dir(), part.File)
		}
	}
	return c.Dir()
}

// ignored reports whether a tensor has no part in the products of a model.
func ignored(name string) bool {
	return slices.ContainsFunc([]string{
		".rotary_emb.inv_freq", ".k_scale", ".v_scale", ".kv_scale",
		".k_proj.output_scale", ".v_proj.output_scale",
	}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// loader reads values of weights.
type loader struct {
	c       *checkpoint.Checkpoint
	d       described
	workers int
	meter   *meter.Meter
}

func (l *loader) fill(
	ctx context.Context, m *nn.Llama, weights []*checkpoint.Weight, p progress.Reporter,
) error {
	total := int64(0)
	for _, w := range weights {
		total += w.Len()
	}
	l.meter = meter.New(ctx, p, "load", total)
	if err := l.meter.Err(); err != nil {
		return err
	}
	params := m.Params()
	if err := l.read(params, weights); err != nil {
		return err
	}
	for _, param := range params {
		if rotated(param.Name) && !l.d.interleaved {
			head := l.d.Dim / l.d.Heads
			interleave(param.Value, head, param.Cols, make([]float32, head*param.Cols))
		}
	}
	if head := l.c.Weight(headName); l.d.TieHead && head != nil {
		return l.compareHead(head, params[0])
	}
	return nil
}

// rotated reports whether rows of a parameter are elements of heads that are rotated.
func rotated(name string) bool {
	return strings.HasSuffix(name, ".q_proj.weight") || strings.HasSuffix(name, ".k_proj.weight")
}

// strip is some rows of a weight.
type strip struct {
	w   *checkpoint.Weight
	lo  int
	dst []float32
}

// stripValues is the least number of values in a strip that is not the last.
const stripValues = 1 << 18

// strips cuts a weight where blocks begin.
func strips(all []strip, w *checkpoint.Weight, dst []float32) []strip {
	_, rows, cols := w.Dims()
	step := max(stripValues/max(cols, 1), 1)
	if w.Scheme != nil {
		height, _ := w.Block.Extents(rows, cols)
		step = (step + height - 1) / height * height
	}
	for lo := 0; lo < rows; lo += step {
		all = append(all, strip{w, lo, dst[lo*cols : min(lo+step, rows)*cols]})
	}
	return all
}

// read reads the values of all weights, in strips, several at once.
func (l *loader) read(params []*nn.Param, weights []*checkpoint.Weight) error {
	var all []strip
	for i, w := range weights {
		all = strips(all, w, params[i].Value)
	}
	return l.each(all, func(r *checkpoint.Reader, s strip) error {
		if err := checkpoint.ReadValues(r, s.w, 0, s.lo, s.dst); err != nil {
			return err
		}
		return l.meter.Add(int64(len(s.dst)))
	})
}

// each calls f for every strip. The error is that of the first strip that has one of those
// that were begun.
func (l *loader) each(all []strip, f func(*checkpoint.Reader, strip) error) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	failures := make([]error, len(all))
	for range min(parallel.Workers(l.workers), len(all)) {
		wait.Go(func() {
			var r checkpoint.Reader
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				if failures[i] = f(&r, all[i]); failures[i] != nil {
					next.Store(int64(len(all)))
				}
			}
		})
	}
	wait.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// compareHead returns an error unless a head that is tied has the values of the embedding.
func (l *loader) compareHead(head *checkpoint.Weight, embedding *nn.Param) error {
	if want := []int{embedding.Rows, embedding.Cols}; !slices.Equal(head.Shape, want) {
		return tensorError("%s: %s is %v: it is tied to %s, %v",
			fileOf(l.c, head), headName, head.Shape, embedding.Name, want)
	}
	var r checkpoint.Reader
	var values []float32
	for _, s := range strips(nil, head, embedding.Value) {
		values = append(values[:0], s.dst...)
		if err := checkpoint.ReadValues(&r, head, 0, s.lo, values); err != nil {
			return err
		}
		for i, x := range values {
			if y := s.dst[i]; x != y && (x == x || y == y) {
				return tensorError("%s: %s[%d, %d] is %v, and %s, to which it is tied, has %v there",
					fileOf(l.c, head), headName, s.lo+i/embedding.Cols, i%embedding.Cols, x,
					embedding.Name, y)
			}
		}
		if err := l.meter.Err(); err != nil {
			return err
		}
	}
	return nil
}
