package hf

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/smooth"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
)

// SmoothOptions are those of [Smooth].
type SmoothOptions struct {
	// Strength is how much of what makes a channel of a layer's input larger than others goes
	// into the weights that it is multiplied by: alpha of SmoothQuant (arXiv 2211.10438,
	// equation 4), from 0 to 1; 0 is 0.5.
	Strength float64

	// BF16 says that values will be stored in BF16, in which they must stay exact, too.
	BF16 bool

	// Progress, unless nil, hears of tokens, as "smooth": each runs twice.
	Progress progress.Reporter
}

// Smoothing is what [Smooth] did.
type Smoothing struct {
	Channels int      // that were divided by a power of two other than 1
	Values   int      // of weights that were multiplied, twice where rows and columns were
	Limited  int      // channels whose power was made smaller, so that no value lost a bit
	Left     []string // what was left as it is, and why

	Tokens int // whose logits were compared: every bit of them is as before
}

// Smooth divides channels of the inputs of linear layers by powers of two and multiplies the
// columns of weights that meet them by the same, so that outliers of channels are no longer
// outliers of their block (SmoothQuant, Xiao et al., arXiv 2211.10438; for the input of the last
// linear layer of an MLP, Smooth-SwiGLU, Fishman et al., arXiv 2409.12517, its factors folded
// into weights). The division is folded into what makes the input: the gain of the norm, the rows
// of the up and the value projection. The sequences say how large channels are.
//
// Since factors are powers of two, the model computes the same function: products of single
// values are the same, and so are all sums, unless something under- or overflows. Smooth checks
// what it can: it checks that each value it changes keeps all of its bits, and runs the sequences
// again and compares the logits, by a 64-bit sum of the bits of each row.
//
// The error is [nn.ErrInput] for sequences that the model cannot have and none at all,
// [ErrNotFinite] for an input that has no largest magnitude, [ErrTensor] where a logit differs, or
// that of the context. The model is then to be thrown away.
func Smooth(ctx context.Context, m *nn.Llama, sequences [][]int32, o SmoothOptions) (*Smoothing, error) {
	if o.Strength == 0 {
		o.Strength = 0.5
	}
	if !(o.Strength > 0 && o.Strength <= 1) {
		return nil, inputError("SmoothOptions.Strength is %v: it must be from 0 to 1", o.Strength)
	}
	s := newSmoother(m, o)
	before, err := s.run(ctx, sequences, s.record)
	if err != nil {
		return nil, err
	}
	for _, g := range s.groups {
		s.fold(g)
	}
	after, err := s.run(ctx, sequences, nil)
	if err != nil {
		return nil, err
	}
	for i, sequence := range before {
		for j, bits := range sequence {
			if after[i][j] != bits {
				return nil, tensorError("the folded model gives other logits for token %d of sequence %d: "+
					"something under- or overflows in it", j, i)
			}
		}
	}
	return &s.done, nil
}

// smoother folds factors into a model.
type smoother struct {
	model   *nn.Llama
	options SmoothOptions
	params  map[string]*nn.Param
	groups  []*foldGroup
	inputs  map[string]*foldGroup // by the names of activations
	count   *meter.Meter
	done    Smoothing
	err     error // of what record was given
}

// foldGroup is an input of linear layers and what it is made by.
type foldGroup struct {
	name     string
	divided  []*nn.Param // by rows of channels: gains, [1, channels], matrices and biases of what makes the input
	multiply []*nn.Param // by columns: the weights that it meets
	channels int         // of what is divided
	amax     []float32   // of the input, by channel of it

	// Channels of values of grouped queries meet several columns: of each head.
	perHead, repeat int // elements of a head and heads that share them; repeat 1: each channel one column
}

// columns calls do for each column that a channel meets.
func (g *foldGroup) columns(channel int, do func(column int)) {
	head, within := channel/g.perHead, channel%g.perHead
	for r := range g.repeat {
		do((head*g.repeat+r)*g.perHead + within)
	}
}

func newSmoother(m *nn.Llama, o SmoothOptions) *smoother {
	s := &smoother{model: m, options: o, params: map[string]*nn.Param{}, inputs: map[string]*foldGroup{}}
	for _, p := range m.Params() {
		s.params[p.Name] = p
	}
	c := m.Config()
	if c.Norms.PlusOne {
		s.done.Left = append(s.done.Left, "inputs of norms: a gain of 1 + weight cannot be divided without rounding")
	}
	if c.Gate.Activation == nn.GateClamped {
		s.done.Left = append(s.done.Left, "inputs of down_proj: the gate clamps and shifts up_proj's result")
	}
	for layer := range c.Layers {
		s.addLayer(c, "model.layers."+strconv.Itoa(layer)+".")
	}
	return s
}

// addLayer adds the inputs of a layer.
func (s *smoother) addLayer(c nn.Config, layer string) {
	attention, mlp := layer+"self_attn.", layer+"mlp."
	if c.MLA != nil {
		s.addNorm(c, layer+"input_layernorm.weight", attention+"q_a_proj", attention+"q_proj", attention+"kv_a_proj_with_mqa")
		s.addNorm(c, attention+"q_a_layernorm.weight", attention+"q_b_proj")
		s.addNorm(c, attention+"kv_a_layernorm.weight", attention+"kv_b_proj")
	} else {
		s.addNorm(c, layer+"input_layernorm.weight", attention+"q_proj", attention+"k_proj", attention+"v_proj")
		s.addValues(c, attention)
	}
	into := []string{mlp + "gate", mlp + "gate_proj", mlp + "up_proj"}
	for e := 0; s.params[mlp+"experts."+strconv.Itoa(e)+".up_proj.weight"] != nil; e++ {
		expert := mlp + "experts." + strconv.Itoa(e) + "."
		into = append(into, expert+"gate_proj", expert+"up_proj")
		s.addProduct(c, expert)
	}
	into = append(into, mlp+"shared_experts.gate_proj", mlp+"shared_experts.up_proj")
	s.addNorm(c, layer+"post_attention_layernorm.weight", into...)
	s.addProduct(c, mlp)
	s.addProduct(c, mlp+"shared_experts.")
}

// addNorm adds the result of a norm, which the modules multiply that are there.
func (s *smoother) addNorm(c nn.Config, gain string, modules ...string) {
	if c.Norms.PlusOne || s.params[gain] == nil {
		return
	}
	s.add(&foldGroup{name: gain, divided: []*nn.Param{s.params[gain]}, repeat: 1}, modules...)
}

// addValues adds what attention makes of values.
func (s *smoother) addValues(c nn.Config, attention string) {
	if g := s.madeBy(attention + "v_proj"); g != nil {
		g.perHead = c.HeadDim
		if g.perHead == 0 {
			g.perHead = c.Dim / c.Heads
		}
		g.repeat = c.Heads / max(c.KVHeads, 1)
		if c.KVHeads == 0 {
			g.repeat = 1
		}
		s.add(g, attention+"o_proj")
	}
}

// addProduct adds the product of the branches of an MLP.
func (s *smoother) addProduct(c nn.Config, mlp string) {
	if c.Gate.Activation == nn.GateClamped {
		return
	}
	if g := s.madeBy(mlp + "up_proj"); g != nil {
		g.repeat = 1
		s.add(g, mlp+"down_proj")
	}
}

// madeBy returns the group of what a linear layer makes, nil if there is no such layer.
func (s *smoother) madeBy(module string) *foldGroup {
	weight := s.params[module+".weight"]
	if weight == nil {
		return nil
	}
	g := &foldGroup{name: module, divided: []*nn.Param{weight}}
	if bias := s.params[module+".bias"]; bias != nil {
		g.divided = append(g.divided, bias)
	}
	return g
}

func (s *smoother) add(g *foldGroup, modules ...string) {
	for _, module := range modules {
		if weight := s.params[module+".weight"]; weight != nil {
			g.multiply = append(g.multiply, weight)
			s.inputs[module+".input"] = g
		}
	}
	columns := g.multiply[0].Cols
	g.channels = columns / g.repeat
	if g.perHead == 0 {
		g.perHead = g.channels
	}
	g.amax = make([]float32, columns)
	s.groups = append(s.groups, g)
}

// run returns the bits of all logits' rows, as a sum of each, of sequences whose activations are
// shown to tap.
func (s *smoother) run(
	ctx context.Context, sequences [][]int32, tap func(string, []float32, int, int),
) (sums [][]uint64, err error) {
	if s.count == nil {
		for _, sequence := range sequences {
			s.done.Tokens += len(sequence)
		}
		if s.done.Tokens == 0 {
			return nil, inputError("there is no token to smooth with")
		}
		s.count = meter.New(ctx, s.options.Progress, "smooth", 2*int64(s.done.Tokens))
	}
	before := s.model.Shared().Tap
	defer func() { s.model.Shared().Tap = before }()
	s.model.Shared().Tap = tap
	vocab := s.model.Config().Vocab
	for _, sequence := range sequences {
		if len(sequence) == 0 {
			continue
		}
		logits, err := s.model.Logits(ctx, sequence, 1, len(sequence))
		if err = cmp.Or(s.err, err, s.count.Add(int64(len(sequence)))); err != nil {
			return nil, err
		}
		rows := make([]uint64, len(sequence))
		for i, x := range logits {
			// Each row's bits, mixed by their place.
			rows[i/vocab] = (rows[i/vocab] ^ uint64(math.Float32bits(x))) * 0x9e3779b97f4a7c15
		}
		sums = append(sums, rows)
	}
	return sums, nil
}

// record keeps the largest magnitude of each channel of an input.
func (s *smoother) record(name string, values []float32, _, cols int) {
	g := s.inputs[name]
	if g == nil || len(g.amax) != cols {
		return
	}
	for i, x := range values {
		if x = float32(math.Abs(float64(x))); !(x <= math.MaxFloat32) {
			if s.err == nil {
				s.err = notFinite("%s is %v at row %d and channel %d", name, values[i], i/cols, i%cols)
			}
			return
		}
		g.amax[i%cols] = max(g.amax[i%cols], x)
	}
}

// fold divides and multiplies the channels of a group.
func (s *smoother) fold(g *foldGroup) {
	for channel := range g.channels {
		power := s.power(g, channel)
		wanted := power
		for power != 0 && !s.exact(g, channel, power) {
			power -= sign(power)
		}
		if power != wanted {
			s.done.Limited++
		}
		if power == 0 {
			continue
		}
		s.done.Channels++
		s.each(g, channel, power, func(x *float32, power int) {
			if *x != 0 {
				s.done.Values++
			}
			*x = float32(math.Ldexp(float64(*x), power))
		})
	}
}

func sign(x int) int {
	if x < 0 {
		return -1
	}
	return 1
}

// power returns the binary logarithm of what a channel is to be divided by.
func (s *smoother) power(g *foldGroup, channel int) int {
	var x, w float64
	g.columns(channel, func(column int) {
		x = max(x, float64(g.amax[column]))
		for _, p := range g.multiply {
			for row := range p.Rows {
				w = max(w, math.Abs(float64(p.Value[row*p.Cols+column])))
			}
		}
	})
	return smooth.Power(s.options.Strength, x, w)
}

// each calls do for each value that a channel's factor changes, and by which power of two.
func (s *smoother) each(g *foldGroup, channel, power int, do func(x *float32, power int)) {
	for _, p := range g.divided {
		row := p.Value[channel:][:1]
		if p.Rows == g.channels { // of a matrix
			row = p.Value[channel*p.Cols:][:p.Cols]
		}
		for i := range row {
			do(&row[i], -power)
		}
	}
	g.columns(channel, func(column int) {
		for _, p := range g.multiply {
			for row := range p.Rows {
				do(&p.Value[row*p.Cols+column], power)
			}
		}
	})
}

// exact reports whether all values that a channel's factor changes keep all of their bits.
func (s *smoother) exact(g *foldGroup, channel, power int) bool {
	least := math.Ldexp(1, -126-23)
	if s.options.BF16 {
		least = math.Ldexp(1, -126-7)
	}
	exact := true
	s.each(g, channel, power, func(x *float32, power int) {
		y := math.Abs(math.Ldexp(float64(*x), power))
		if y > math.MaxFloat32 || y < 0x1p-126 && math.Mod(y, least) != 0 {
			exact = false
		}
	})
	return exact
}

// String says what was done, in a sentence.
func (s Smoothing) String() string {
	text := fmt.Sprintf("%d channels were divided by powers of two, which are in the weights that they meet: "+
		"%d values were multiplied, some of them twice, none of them rounded; the logits of %d tokens are the same bits as before",
		s.Channels, s.Values, s.Tokens)
	if s.Limited > 0 {
		text += fmt.Sprintf("; %d powers were made smaller, so that no value would lose a bit", s.Limited)
	}
	if len(s.Left) > 0 {
		text += "; left as they are: " + strings.Join(slices.Clone(s.Left), "; ")
	}
	return text
}
