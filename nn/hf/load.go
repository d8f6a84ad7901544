package hf

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
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

	// WeightBits is how many bits a weight takes in the form that it is kept in after [Open],
	// which checks that all fit in memory; 0 is 16 where the checkpoint has all of them in
	// BF16, and otherwise 32.
	WeightBits int

	// Streamed says that after [Open] values are read layer by layer, and that those of no more than
	// two layers are kept: the model's own matrices cannot be written to
	// ([nn.NewUnreadLlama]), and memory for two layers is enough.
	Streamed bool

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
// and values, frequencies of rotary positions, where the head is tied, a copy of the embedding
// as head, and of a DeepSeek-V3 the num_nextn_predict_layers layers behind the last one, which
// predict tokens further on.
//
// A model takes four bytes for each weight. Gradients have their place in its address space;
// where the system gives out memory when it is first written to, as Linux does, they take none
// before there are any.
//
// The error is [ErrConfig], [ErrTensor] or one of package checkpoint, nn or of the context.
func Load(ctx context.Context, c *checkpoint.Checkpoint, o Options) (*nn.Llama, error) {
	o.Streamed = false
	l, err := open(ctx, c, o, 32)
	if err != nil {
		return nil, err
	}
	if err := l.read(l.Model.Params(), nil); err != nil {
		return nil, err
	}
	return l.Model, nil
}

// Unread is a model whose values are still in the checkpoint: all of its matrices are zero, and
// take no memory where the system gives it out when it is first written to, as Linux does.
type Unread struct {
	Model *nn.Llama

	c       *checkpoint.Checkpoint
	d       described
	weights map[*nn.Param]located
	workers int
	meter   *meter.Meter
}

// Open is [Load] without the values of parameters, which [Unread.Read] reads one by one: for
// those who keep them in another form, such as a [generate.Generator]. The checkpoint must stay
// open.
//
// [generate.Generator]: https://pkg.go.dev/github.com/octavo-fp8/octavo/nn/generate#Generator
func Open(ctx context.Context, c *checkpoint.Checkpoint, o Options) (*Unread, error) {
	return open(ctx, c, o, 0)
}

// Read writes the values of a parameter of the model, [Rows, Cols], to dst. It is for one
// goroutine at a time. The error is that of [Load].
func (l *Unread) Read(p *nn.Param, dst []float32) error {
	if w := l.weights[p]; w.w == nil || len(dst) != p.Rows*p.Cols {
		return tensorError("%d values of %s, %d by %d, of the model in %s: this is another model, "+
			"or a wrong length", len(dst), p.Name, p.Rows, p.Cols, l.c.Dir())
	}
	return l.read([]*nn.Param{p}, dst)
}

// open is Open of a model that takes so many bits for a weight; 0 is what o says.
func open(ctx context.Context, c *checkpoint.Checkpoint, o Options, bits int) (*Unread, error) {
	d, err := describe(c)
	if err != nil {
		return nil, err
	}
	cfg, err := d.choose(o)
	if err != nil {
		return nil, err
	}
	found, err := match(c, d)
	if err != nil {
		return nil, err
	}
	values, kept := counted(cfg, o.Streamed)
	if bits = cmp.Or(bits, o.WeightBits); bits == 0 {
		bits = found.bits()
	}
	what, make := "the model as FP32", nn.NewZeroLlama
	if o.Streamed {
		bits, what, make = 32, "a model of which two layers are kept as FP32", nn.NewUnreadLlama
	}
	if bits != 32 {
		what = fmt.Sprintf("the model in %d bits for each weight", bits)
	}
	if err := memory.Check((kept+7)/8, int64(bits), what, "take a smaller model"); err != nil {
		return nil, fmt.Errorf("hf: %s: %w", d.file, err)
	}
	m, err := make(cfg)
	if err != nil {
		return nil, err
	}
	l := &Unread{Model: m, c: c, d: d, workers: cfg.Workers, weights: map[*nn.Param]located{}}
	for i, p := range m.Params() {
		l.weights[p] = found.weights[i]
	}
	l.meter = meter.New(ctx, o.Progress, "load", values)
	if err := l.meter.Err(); err != nil {
		return nil, err
	}
	return l, l.setBiases(found.biases)
}

// counted returns how many values a model has, and how many are kept at once: where it is streamed
// those of two layers and of the larger of embedding and head.
func counted(c nn.Config, streamed bool) (all, kept int64) {
	layers := map[string]int64{}
	rest, layer := int64(0), int64(0)
	for s := range c.Shapes() {
		n := int64(s.Rows) * int64(s.Cols)
		all += n
		name, ok := strings.CutPrefix(s.Name, "model.layers.")
		if !ok {
			rest = max(rest, n)
			continue
		}
		name, _, _ = strings.Cut(name, ".")
		layers[name] += n
		layer = max(layer, layers[name])
	}
	if !streamed {
		return all, all
	}
	return all, 2*layer + rest
}

// choose returns the configuration of the model that options ask for.
func (d *described) choose(o Options) (nn.Config, error) {
	cfg := d.Config
	cfg.MLA, cfg.Experts = copied(cfg.MLA), copied(cfg.Experts)
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

// built returns what of a configuration is no choice. That experts have biases is none, but how
// fast they are moved is.
func built(c nn.Config) nn.Config {
	c.FP8, c.Rounding, c.Smoothing = nil, nil, nil
	c.BF16First, c.BF16Last, c.Activations, c.Policies = 0, 0, nn.ActivationsFP32, nil
	c.Context, c.Workers = 0, 0
	if c.Experts = copied(c.Experts); c.Experts != nil {
		r := &c.Experts.Router
		if r.BalanceLoss, r.Rounding = 0, nil; r.BiasRate > 0 {
			r.BiasRate = biasRate
		}
	}
	return c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

const headName = "lm_head.weight"

// located is a parameter in a checkpoint.
type located struct {
	place
	w *checkpoint.Weight
}

// tensors are those of a model in a checkpoint.
type tensors struct {
	weights []located            // in the order of the parameters
	biases  []*checkpoint.Weight // of routers, by layers
}

// bits is how many bits a weight takes with its values: 16 if all are stored in BF16.
func (t tensors) bits() int {
	for _, l := range t.weights {
		if l.w.Scheme != nil || l.w.Parts[checkpoint.Codes].DType != safetensors.BF16 {
			return 32
		}
	}
	return 16
}

// match finds the tensors of a model.
func match(c *checkpoint.Checkpoint, d described) (found tensors, err error) {
	m := matcher{c: c, d: d, known: map[string]bool{}, source: filepath.Base(d.file)}
	for s := range d.Shapes() {
		l, err := m.find(d.places(s))
		if err != nil {
			return found, err
		}
		found.weights = append(found.weights, l)
		if bias := d.biasOf(s); bias != nil {
			if l, err = m.find(bias); err != nil {
				return found, err
			}
			found.biases = append(found.biases, l.w)
		}
	}
	return found, m.refuseOthers()
}

// matcher finds tensors by what a configuration says of them.
type matcher struct {
	c      *checkpoint.Checkpoint
	d      described
	known  map[string]bool // by name
	source string          // where the configuration is from
}

// find finds what may be at one of several places.
func (m *matcher) find(places []place) (located, error) {
	p, w := find(m.c, places)
	if w == nil {
		return located{}, tensorError("%s: %s is missing, which a model of %d layers as in %s has",
			m.c.Dir(), p.tensor, m.d.Layers, m.source)
	}
	if !slices.Equal(w.Shape, p.shape) {
		return located{}, tensorError("%s: %s is %v: want %v as in %s",
			fileOf(m.c, w), p.tensor, w.Shape, p.shape, m.source)
	}
	m.known[w.Name] = true
	return located{p, w}, nil
}

// refuseOthers returns an error for the first tensor that was not found and has a part.
func (m *matcher) refuseOthers() error {
	for _, w := range m.c.Weights() {
		if !m.known[w.Name] && !m.ignored(w.Name) {
			return tensorError("%s: %s, %v, is no part of a model as in %s",
				fileOf(m.c, w), w.Name, w.Shape, m.source)
		}
	}
	return nil
}

// ignored reports whether a tensor may be there and has no part in the model.
func (m *matcher) ignored(name string) bool {
	return ignored(name) || m.d.TieHead && name == m.d.headTensor() || m.d.isPredicted(name) || m.d.ofMore(name)
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

// setBiases gives the routers of the model their biases.
func (l *Unread) setBiases(biases []*checkpoint.Weight) error {
	if len(biases) == 0 {
		return nil
	}
	var r checkpoint.Reader
	state := l.Model.Shared().Scaling().State()
	for _, w := range biases {
		router := strings.TrimSuffix(w.Name, "."+biasName)
		values := state.Routers[router].Bias
		if err := checkpoint.ReadValues(&r, w, 0, 0, values); err != nil {
			return err
		}
		for i, x := range values {
			if x-x != 0 {
				return tensorError("%s: %s[%d] is %v: want a finite number", fileOf(l.c, w), w.Name, i, x)
			}
		}
	}
	return l.Model.Shared().Scaling().Restore(state)
}

// strip is some rows of a matrix that a parameter, [rows, cols], is in, whose values go to dst.
type strip struct {
	located
	lo, hi     int
	rows, cols int
	dst        []float32
}

// stripValues is the least number of values in a strip that is not the last.
const stripValues = 1 << 18

// strips cuts what a parameter is in where blocks begin.
func (l located) strips(all []strip, rows, cols int, dst []float32) []strip {
	_, height, width := l.w.Dims()
	block := 1
	if l.w.Scheme != nil {
		block, _ = l.w.Block.Extents(height, width)
	}
	step := max(stripValues/max(width, 1), 1)
	step = (step + block - 1) / block * block
	first, _ := l.at(0, 0)
	last, _ := l.at(rows-1, cols-1)
	for lo := first / block * block; lo <= last; lo += step {
		all = append(all, strip{l, lo, min(lo+step, last+1), rows, cols, dst})
	}
	return all
}

// count returns how many values of the parameter are in the strip.
func (s strip) count() (n int) {
	for row := max(s.lo, s.row); row < s.hi; row++ {
		if (row-s.row)%s.rowStep == 0 {
			n++
		}
	}
	if s.transposed {
		return n * s.rows
	}
	return n * s.cols
}

// read reads the values of a strip. Memory is what it may use, and what it has used.
func (s strip) read(r *checkpoint.Reader, memory []float32) ([]float32, error) {
	_, _, width := s.w.Dims()
	if s.rowStep == 1 && s.colStep == 1 && !s.transposed && width == s.cols && s.lo >= s.row {
		return memory, checkpoint.ReadValues(r, s.w, s.matrix, s.lo, s.dst[(s.lo-s.row)*width:(s.hi-s.row)*width])
	}
	memory = slices.Grow(memory[:0], (s.hi-s.lo)*width)[:(s.hi-s.lo)*width]
	if err := checkpoint.ReadValues(r, s.w, s.matrix, s.lo, memory); err != nil {
		return memory, err
	}
	for row := max(s.lo, s.row); row < s.hi; row++ {
		k := row - s.row
		if k%s.rowStep != 0 {
			continue
		}
		k /= s.rowStep
		from := memory[(row-s.lo)*width+s.col:]
		if s.transposed {
			for i := range s.rows {
				s.dst[i*s.cols+k] = from[i*s.colStep]
			}
			continue
		}
		for j := range s.cols {
			s.dst[k*s.cols+j] = from[j*s.colStep]
		}
	}
	return memory, nil
}

// read reads the values of parameters, in strips, several at once: to dst, that of a single
// one, or, if it is nil, to those of the model.
func (l *Unread) read(params []*nn.Param, dst []float32) error {
	var all []strip
	values := func(p *nn.Param) []float32 {
		if dst != nil {
			return dst
		}
		return p.Value
	}
	for _, p := range params {
		all = l.weights[p].strips(all, p.Rows, p.Cols, values(p))
	}
	err := l.each(all)
	for _, p := range params {
		if err != nil {
			return err
		}
		if !l.d.interleaved {
			rotationOf(l.d.Config, p.Name).interleave(values(p), rowLength(p.Name, p.Cols))
		}
		if head := l.c.Weight(l.d.headTensor()); l.d.TieHead && head != nil && p == l.Model.Params()[0] {
			err = l.compareHead(head, p, values(p))
		}
	}
	return err
}

// each reads every strip. The error is that of the first strip that has one of those that were
// begun.
func (l *Unread) each(all []strip) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	failures := make([]error, len(all))
	for range min(parallel.Workers(l.workers), len(all)) {
		wait.Go(func() {
			var r checkpoint.Reader
			var memory []float32
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				if memory, failures[i] = all[i].read(&r, memory); failures[i] == nil {
					failures[i] = l.meter.Add(int64(all[i].count()))
				}
				if failures[i] != nil {
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
func (l *Unread) compareHead(head *checkpoint.Weight, embedding *nn.Param, of []float32) error {
	if want := []int{embedding.Rows, embedding.Cols}; !slices.Equal(head.Shape, want) {
		return tensorError("%s: %s is %v: it is tied to %s, %v",
			fileOf(l.c, head), head.Name, head.Shape, embedding.Name, want)
	}
	var r checkpoint.Reader
	whole := located{place{rowStep: 1, colStep: 1}, head}
	var values []float32
	for _, s := range whole.strips(nil, embedding.Rows, embedding.Cols, nil) {
		first, end := s.lo*embedding.Cols, s.hi*embedding.Cols
		values = slices.Grow(values[:0], end-first)[:end-first]
		if err := checkpoint.ReadValues(&r, head, 0, s.lo, values); err != nil {
			return err
		}
		for i := first; i < end; i++ {
			if x, y := values[i-first], of[i]; x != y && (x == x || y == y) {
				return tensorError("%s: %s[%d, %d] is %v, and %s, to which it is tied, has %v there",
					fileOf(l.c, head), head.Name, i/embedding.Cols, i%embedding.Cols, x, embedding.Name, y)
			}
		}
		if err := l.meter.Err(); err != nil {
			return err
		}
	}
	return nil
}
