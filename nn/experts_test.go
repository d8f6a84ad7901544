package nn

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

// expertOptions are ways to multiply and to keep activations.
func expertOptions() map[string]Options {
	bf16, e3m2 := DefaultRounding(NarrowBF16), DefaultRounding(NarrowE3M2)
	e3m2.Stochastic = true
	delayed := ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*Operands{&delayed.Forward, &delayed.InputGradient, &delayed.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 3, 3
	}
	current := ProfileFP8(scaling.TECurrent, fp8.E4M3)
	all := map[string]Options{
		"fp32": {}, "bf16": {Rounding: &bf16}, "e3m2": {Rounding: &e3m2},
		"delayed": {FP8: &delayed}, "delayed fp8": {FP8: &delayed, Activations: ActivationsFP8},
		"delayed deepseek-v3": {FP8: &delayed, Activations: ActivationsDeepSeekV3},
		"per tensor":          {FP8: &current, Activations: ActivationsFP8SwiGLU},
	}
	for _, r := range Recipes() {
		all[r.Name] = Options{FP8: &r.FP8, Activations: r.Activations}
	}
	for _, f := range ActivationFormats() {
		all["fp8 "+f.String()] = Options{FP8: all["fp8"].FP8, Activations: f}
	}
	return all
}

// plainExperts is the plain definition: an MLP for each expert, which gets its tokens by
// itself, in order.
type plainExperts struct {
	c       ExpertsConfig
	router  *Router
	experts []*MLP
	shared  *MLP

	tokens  [][]int // of each expert
	weights []float32
	chosen  []int32
	outputs [][]float32
}

func newPlainExperts(t *testing.T, c ExpertsConfig, o Options) *plainExperts {
	p := &plainExperts{c: c}
	var err error
	p.router, err = NewRouter("mlp.", c.Dim, c.Router, o)
	require.NoError(t, err)
	for e := range c.Router.Experts {
		m, err := NewMLP(fmt.Sprintf("mlp.experts.%d.", e), c.Dim, c.Hidden, o)
		require.NoError(t, err)
		p.experts = append(p.experts, m)
	}
	if c.Shared > 0 {
		p.shared, err = NewMLP("mlp.shared_experts.", c.Dim, c.Shared*c.Hidden, o)
		require.NoError(t, err)
	}
	return p
}

func (p *plainExperts) params() []*Param {
	params := []*Param{p.router.Gate.Weight}
	for _, m := range p.experts {
		params = append(params, m.Params()...)
	}
	if p.shared != nil {
		params = append(params, p.shared.Params()...)
	}
	return params
}

func (p *plainExperts) forward(t *testing.T, x []float32, batch, seq int) []float32 {
	rows, dim, k := batch*seq, p.c.Dim, p.c.Router.TopK
	p.chosen, p.weights = make([]int32, rows*k), make([]float32, rows*k)
	must(p.router.Forward(t.Context(), p.chosen, p.weights, slices.Clone(x), batch, seq))
	y := make([]float32, len(x))
	p.tokens, p.outputs = make([][]int, len(p.experts)), make([][]float32, len(p.experts))
	for e, m := range p.experts {
		room := rows
		if p.c.CapacityFactor > 0 {
			room = int(math.Ceil(p.c.CapacityFactor * float64(rows*k) / float64(len(p.experts))))
		}
		var in []float32
		for i, c := range p.chosen {
			if int(c) == e && len(p.tokens[e]) < room {
				p.tokens[e] = append(p.tokens[e], i)
				in = append(in, x[i/k*dim:][:dim]...)
			}
		}
		p.outputs[e] = make([]float32, len(in))
		must(m.Forward(t.Context(), p.outputs[e], in, len(p.tokens[e])))
		for row, i := range p.tokens[e] {
			for j := range dim {
				y[i/k*dim+j] += float32(p.weights[i] * p.outputs[e][row*dim+j])
			}
		}
	}
	if p.shared != nil {
		part := make([]float32, len(x))
		must(p.shared.Forward(t.Context(), part, slices.Clone(x), rows))
		for i := range y {
			y[i] += part[i]
		}
	}
	return y
}

func (p *plainExperts) backward(t *testing.T, dy []float32, scale float32) []float32 {
	dim, k := p.c.Dim, p.c.Router.TopK
	dx, dWeights := make([]float32, len(dy)), make([]float32, len(p.weights))
	for e, m := range p.experts {
		var d []float32
		for row, i := range p.tokens[e] {
			from := dy[i/k*dim:][:dim]
			dWeights[i] = sums{}.dot(from, p.outputs[e][row*dim:][:dim])
			for _, v := range from {
				d = append(d, p.weights[i]*v)
			}
		}
		dIn := make([]float32, len(d))
		must(m.Backward(t.Context(), dIn, d))
		for row, i := range p.tokens[e] {
			for j := range dim {
				dx[i/k*dim+j] += dIn[row*dim+j]
			}
		}
	}
	part := make([]float32, len(dx))
	if p.shared != nil {
		must(p.shared.Backward(t.Context(), part, dy))
		for i := range dx {
			dx[i] += part[i]
		}
	}
	must(p.router.Backward(t.Context(), part, dWeights, scale))
	for i := range dx {
		dx[i] += part[i]
	}
	return dx
}

// fill draws parameters.
func fill(params []*Param) {
	for i, p := range params {
		p.Randomize(7, uint64(i), 0.4)
	}
}

// tapsOf keeps copies of what is tapped.
func tapsOf(s *Shared) map[string][]float32 {
	taps := map[string][]float32{}
	s.Tap = func(name string, values []float32, _, _ int) { taps[name] = slices.Clone(values) }
	return taps
}

// TestExpertsArePlain: what experts compute, report, show and remember is what the plain
// definition does, to the bit, however many workers there are, and if some experts have no
// tokens.
func TestExpertsArePlain(t *testing.T) {
	const batch, seq = 2, 13
	c := ExpertsConfig{Dim: 36, Hidden: 20, Shared: 2, Router: RouterConfig{
		Experts: 6, TopK: 2, Scale: 2.5, Groups: 3, TopGroups: 2, BiasRate: 0.01, BalanceLoss: 0.2,
	}}
	all := expertOptions()
	for i, name := range slices.Sorted(maps.Keys(all)) {
		o := all[name]
		for workers := range 3 {
			if testing.Short() && workers != i%3 {
				continue
			}
			c := c
			c.CapacityFactor = [...]float64{0, 1, 1.5}[workers]
			var shared, plainShared Shared
			o.Shared, o.Workers = &shared, workers
			x, err := NewExperts("mlp.", c, o)
			require.NoError(t, err)
			o.Shared, o.Workers = &plainShared, 1
			plain := newPlainExperts(t, c, o)
			fill(x.Params())
			fill(plain.params())
			require.Len(t, plain.params(), len(x.Params()))
			x.Router.balance.bias[1], plain.router.balance.bias[1] = -5, -5 // nobody chooses it
			recorder, plainRecorder := telemetry.New(), telemetry.New()
			shared.Reporter, plainShared.Reporter = recorder, plainRecorder
			for step := range 2 {
				in, dy := randoms(uint64(3*step), batch*seq*c.Dim), randoms(uint64(3*step+1), batch*seq*c.Dim)
				taps, plainTaps := tapsOf(&shared), tapsOf(&plainShared)
				y, dx := make([]float32, len(in)), make([]float32, len(in))
				given := slices.Clone(in)
				require.NoError(t, x.Forward(t.Context(), y, given, batch, seq))
				require.Equal(t, plain.forward(t, in, batch, seq), y, "%s, %d workers", name, workers)
				require.Zero(t, x.Router.Load()[1])
				if c.CapacityFactor == 1 {
					require.Positive(t, x.Dropped())
				}
				if o.Activations != ActivationsFP32 { // which need not be there any more
					clear(given)
				}
				shared.Scaling().BeginBackward()
				plainShared.Scaling().BeginBackward()
				require.NoError(t, x.Backward(t.Context(), dx, dy, 0.5))
				require.Equal(t, plain.backward(t, dy, 0.5), dx, "%s, %d workers", name, workers)
				for i, p := range plain.params() {
					require.Equal(t, p.Name, x.Params()[i].Name)
					require.Equal(t, p.Grad, x.Params()[i].Grad, "%s, %d workers: %s", name, workers, p.Name)
				}
				require.Equal(t, plainTaps, taps, name)
				require.Equal(t, plainShared.Scaling().State(), shared.Scaling().State(), name)
				shared.Scaling().EndStep()
				plainShared.Scaling().EndStep()
			}
			require.NoError(t, recorder.Flush())
			require.NoError(t, plainRecorder.Flush())
			require.Equal(t, plainRecorder.Totals(), recorder.Totals(), name)
			if o.FP8 != nil {
				require.NotEmpty(t, recorder.Totals())
			}
		}
	}
}

// TestExpertsGradient compares gradients with difference quotients of a plain definition in
// float64.
func TestExpertsGradient(t *testing.T) {
	const batch, seq = 2, 5
	c := ExpertsConfig{Dim: 6, Hidden: 5, Shared: 1, Router: RouterConfig{
		Experts: 4, TopK: 2, Scale: 1.5, BalanceLoss: 0.2,
	}}
	x, err := NewExperts("mlp.", c, Options{})
	require.NoError(t, err)
	fill(x.Params())
	in, dy := randoms(2, batch*seq*c.Dim), randoms(3, batch*seq*c.Dim)
	y, dx := make([]float32, len(in)), make([]float32, len(in))
	require.NoError(t, x.Forward(t.Context(), y, in, batch, seq))
	require.NoError(t, x.Backward(t.Context(), dx, dy, 1))

	in64 := doubles(in)
	var weights [][]float64
	for _, p := range x.Params() {
		weights = append(weights, doubles(p.Value))
	}
	requireDefinition64(t, x.Params(), weights, in64, y, dx, dy, func() (y64 []float64, more float64) {
		y64 = make([]float64, len(y))
		for b := range batch {
			part := in64[b*seq*c.Dim:][:seq*c.Dim]
			chosen, w, balance := plainRouting(c.Router, product64(part, weights[0], c.Dim), nil)
			more += balance * c.Router.BalanceLoss / batch
			for t := range seq {
				row, to := part[t*c.Dim:][:c.Dim], y64[(b*seq+t)*c.Dim:][:c.Dim]
				for i, e := range chosen[t] {
					addMLP64(to, row, weights[1+3*e:], w[t][i])
				}
				addMLP64(to, row, weights[1+3*c.Router.Experts:], 1)
			}
		}
		return y64, more
	})
}

// addMLP64 adds times the MLP of x to y; weights are gate, up and down.
func addMLP64(y, x []float64, weights [][]float64, times float64) {
	g, u := product64(x, weights[0], len(x))[0], product64(x, weights[1], len(x))[0]
	for i := range g {
		g[i] *= u[i] / (1 + math.Exp(-g[i]))
	}
	for i, v := range product64(g, weights[2], len(g))[0] {
		y[i] += times * v
	}
}

// TestExpertsTelemetry: the operands of experts have names and as many elements as tokens
// came.
func TestExpertsTelemetry(t *testing.T) {
	recipes := DefaultFP8()
	shared := &Shared{Reporter: telemetry.New()}
	c := ExpertsConfig{Dim: 8, Hidden: 6, Router: RouterConfig{Experts: 4, TopK: 2}}
	x, err := NewExperts("mlp.", c, Options{Shared: shared, FP8: &recipes})
	require.NoError(t, err)
	fill(x.Params())
	y := make([]float32, 10*c.Dim)
	require.NoError(t, x.Forward(t.Context(), y, randoms(1, len(y)), 1, 10))
	loads := make([]int, 4)
	for _, total := range shared.Reporter.(*telemetry.Recorder).Totals() {
		for e := range loads {
			if total.Tensor == fmt.Sprintf("mlp.experts.%d.gate_proj.input", e) && total.Op == opForward {
				loads[e] = int(total.Stats.Elements) / c.Dim
			}
		}
	}
	require.Equal(t, x.Router.Load(), loads)
}

// TestExpertsRefuse names what is wrong.
func TestExpertsRefuse(t *testing.T) {
	good := ExpertsConfig{Dim: 4, Hidden: 3, Router: RouterConfig{Experts: 2, TopK: 1}}
	for want, change := range map[string]func(*ExpertsConfig, *Options){
		"Shared is -1":         func(c *ExpertsConfig, _ *Options) { c.Shared = -1 },
		"CapacityFactor is -1": func(c *ExpertsConfig, _ *Options) { c.CapacityFactor = -1 },
		"up_proj.weight is":    func(c *ExpertsConfig, _ *Options) { c.Hidden = 0 },
		"TopK is 3":            func(c *ExpertsConfig, _ *Options) { c.Router.TopK = 3 },
		"Shared is nil":        func(c *ExpertsConfig, _ *Options) { c.Router.BiasRate = 1 },
		"Smoothing":            func(_ *ExpertsConfig, o *Options) { o.Smoothing = new(swiglu.Smoothing) },
	} {
		c, o := good, Options{}
		change(&c, &o)
		_, err := NewExperts("mlp.", c, o)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
	}
	x, err := NewExperts("mlp.", good, Options{})
	require.NoError(t, err)
	y := make([]float32, 8)
	require.ErrorIs(t, x.Forward(t.Context(), y, make([]float32, 7), 1, 2), ErrInput)
	require.ErrorIs(t, x.Forward(t.Context(), y, make([]float32, 8), 0, 2), ErrInput)
	require.ErrorIs(t, x.Backward(t.Context(), y, y, 1), ErrInput)
	require.NoError(t, x.Forward(t.Context(), y, make([]float32, 8), 2, 1))
	require.ErrorIs(t, x.Backward(t.Context(), y[:7], y, 1), ErrInput)
}
