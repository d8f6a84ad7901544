package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/swiglu"
)

// featuredModel is a configuration with features of a family, small.
type featuredModel struct {
	name   string
	config Config
}

// featured returns models that have every feature between them.
func featured() []featuredModel {
	base := Config{Vocab: 13, Dim: 12, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 10, Context: 12, NormEps: 1e-4}
	with := func(name string, change func(c *Config)) featuredModel {
		c := base
		change(&c)
		if c.Experts != nil && c.Experts.Router.Scale == 0 { // as a saved one
			c.Experts.Router = c.Experts.Router.withDefaults()
		}
		return featuredModel{name, c}
	}
	return []featuredModel{
		with("head dim and partial rotation", func(c *Config) { c.HeadDim, c.RotaryDim = 6, 4 }),
		with("windows and two bases", func(c *Config) {
			c.Windows, c.RopeTheta, c.WindowRopeTheta = []int{3, 0}, 1e5, 100
			c.RopeScaling = RopeScaling{Factor: 2}
			c.HeadDim = 4
		}),
		with("gemma", func(c *Config) {
			c.HeadDim, c.Windows, c.WindowRopeTheta = 6, []int{3, 0}, 50
			c.Norms = Norms{PlusOne: true, After: true, QueryKey: true}
			c.EmbeddingScale, c.ScoreScale, c.ScoreCap, c.LogitCap = 3.5, 0.3, 2, 1.5
			c.Gate.Activation, c.TieHead = GateGELUTanh, true
		}),
		with("gpt-oss", func(c *Config) {
			c.HeadDim, c.Windows, c.Sinks = 6, []int{3, 0}, true
			c.Biases = Biases{QueryKeyValue: true, Output: true, MLP: true, Router: true}
			c.Gate = Gate{GateClamped, 1.702, 0.4}
			c.RopeScaling = RopeScaling{Factor: 4, Original: 600, Low: 1, High: 32, YaRN: true, Untruncated: true, Attention: 1.2}
			c.Experts = &ExpertsConfig{Hidden: 7, Shared: 1, Router: RouterConfig{Experts: 4, TopK: 2, Score: ScoreSoftmax}}
		}),
		with("long rope and GELU", func(c *Config) {
			c.HeadDim, c.Gate.Activation, c.Norms.QueryKey = 4, GateGELU, true
			c.Biases.QueryKeyValue = true
			c.RopeScaling = RopeScaling{Original: 4, Short: []float64{1, 2}, Long: []float64{3, 40}, Attention: 1.1}
		}),
		with("latent attention", func(c *Config) {
			c.KVHeads, c.MLA = 0, &MLAConfig{QueryRank: 5, KVRank: 6, NoPE: 3, RoPE: 4, Value: 5}
			c.Biases, c.Norms = Biases{QueryKeyValue: true, Output: true}, Norms{After: true}
			c.ScoreScale, c.Sinks, c.ScoreCap, c.Windows = 0.7, true, 3, []int{0, 4}
			c.Layers, c.DenseLayers, c.Windows = 3, []int{1}, []int{0, 4, 0}
			c.RopeScaling = RopeScaling{Factor: 4, Original: 6000, Low: 1, High: 32, YaRN: true, Attention: 1.2}
			c.Experts = &ExpertsConfig{Hidden: 7, Router: RouterConfig{Experts: 6, TopK: 2, Groups: 2, TopGroups: 1, GroupScores: 2}}
		}),
	}
}

// plainly is a model with the features of a Config by their definitions, in float64.
type plainly struct {
	Config
	params map[string][]float64
}

func newPlainly(m *Llama) plainly {
	p := plainly{m.Config(), map[string][]float64{}}
	for _, q := range m.Params() {
		p.params[q.Name] = doubles(q.Value)
	}
	return p
}

// loss is the mean cross-entropy of the next tokens of sequences of so many.
func (p plainly) loss(tokens []int32, seq int) (mean float64) {
	for lo := 0; lo < len(tokens); lo += seq {
		logits := p.logits(tokens[lo : lo+seq])
		for i, row := range logits {
			var sum float64
			for _, v := range row {
				sum += math.Exp(v)
			}
			mean += (math.Log(sum) - row[tokens[lo+(i+1)%seq]]) / float64(len(tokens))
		}
	}
	return mean
}

// linear returns the product of rows with a named weight, and its bias.
func (p plainly) linear(name string, x [][]float64) [][]float64 {
	w, ok := p.params[name+".weight"]
	if !ok {
		panic(name)
	}
	bias, in := p.params[name+".bias"], len(x[0])
	y := make([][]float64, len(x))
	for i, row := range x {
		y[i] = make([]float64, len(w)/in)
		for o := range y[i] {
			for k, v := range row {
				y[i][o] += v * w[o*in+k]
			}
			if bias != nil {
				y[i][o] += bias[o]
			}
		}
	}
	return y
}

// norm returns the norm of rows, part by part as long as the gain.
func (p plainly) norm(name string, x [][]float64, eps float64) [][]float64 {
	gain := p.params[name+".weight"]
	y := make([][]float64, len(x))
	for i, row := range x {
		for lo := 0; lo < len(row); lo += len(gain) {
			var square float64
			for _, v := range row[lo : lo+len(gain)] {
				square += v * v / float64(len(gain))
			}
			for k, g := range gain {
				if p.Norms.PlusOne {
					g++
				}
				y[i] = append(y[i], row[lo+k]/math.Sqrt(square+eps)*g)
			}
		}
	}
	return y
}

func plus(a, b [][]float64) [][]float64 {
	sum := make([][]float64, len(a))
	for i := range a {
		for k := range a[i] {
			sum[i] = append(sum[i], a[i][k]+b[i][k])
		}
	}
	return sum
}

func (p plainly) logits(tokens []int32) [][]float64 {
	table := p.params[embeddingName]
	var x [][]float64
	for _, t := range tokens {
		row := slices.Clone(table[int(t)*p.Dim:][:p.Dim])
		for i := range row {
			row[i] *= cmp.Or(p.EmbeddingScale, 1)
		}
		x = append(x, row)
	}
	for layer := range p.Layers {
		prefix := layerPrefix(layer)
		y := p.attend(layer, prefix+"self_attn.", p.norm(prefix+"input_layernorm", x, p.NormEps))
		if p.Norms.After {
			y = p.norm(prefix+"post_self_attn_layernorm", y, p.NormEps)
		}
		x = plus(x, y)
		y = p.feed(layer, prefix+"mlp.", p.norm(prefix+"post_attention_layernorm", x, p.NormEps))
		if p.Norms.After {
			y = p.norm(prefix+"post_mlp_layernorm", y, p.NormEps)
		}
		x = plus(x, y)
	}
	head := "lm_head"
	if p.TieHead {
		head = "model.embed_tokens"
	}
	logits := p.linear(head, p.norm("model.norm", x, p.NormEps))
	for _, row := range logits {
		for i, v := range row {
			if p.LogitCap != 0 {
				row[i] = p.LogitCap * math.Tanh(v/p.LogitCap)
			}
		}
	}
	return logits
}

// rotate rotates part of each head of so many elements.
func (p plainly) rotate(layer int, x [][]float64, head, first, dim int) {
	theta, s := p.RopeTheta, p.RopeScaling
	if p.Windows != nil && p.Windows[layer] > 0 && p.WindowRopeTheta != 0 {
		theta, s = p.WindowRopeTheta, RopeScaling{}
	}
	index := func(turns float64) float64 {
		return float64(dim) * math.Log(float64(s.Original)/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high := index(s.High), index(s.Low)
	if !s.Untruncated {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = math.Max(low, 0), math.Min(high, float64(dim)-1)
	for position, row := range x {
		for lo := 0; lo < len(row); lo += head {
			for i := range dim / 2 {
				f := math.Pow(theta, -2*float64(i)/float64(dim))
				switch {
				case s.Short != nil && len(x) > s.Original:
					f /= s.Long[i]
				case s.Short != nil:
					f /= s.Short[i]
				case s.YaRN:
					ramp := math.Max(0, math.Min(1, (float64(i)-low)/(high-low)))
					f = f/s.Factor*ramp + f*(1-ramp)
				case s.Factor != 0:
					f /= s.Factor
				}
				sin, cos := math.Sincos(float64(position) * f)
				a, b := &row[lo+first+2*i], &row[lo+first+2*i+1]
				*a, *b = (*a*cos-*b*sin)*cmp.Or(s.Attention, 1), (*a*sin+*b*cos)*cmp.Or(s.Attention, 1)
			}
		}
	}
}

func (p plainly) attend(layer int, prefix string, x [][]float64) [][]float64 {
	key, value, kvHeads := cmp.Or(p.HeadDim, p.Dim/p.Heads), 0, p.KVHeads
	var q, k, v [][]float64
	if m := p.MLA; m != nil {
		key, value = m.NoPE+m.RoPE, m.Value
		eps := cmp.Or(m.NormEps, p.NormEps)
		q = p.linear(prefix+"q_b_proj", p.norm(prefix+"q_a_layernorm", p.linear(prefix+"q_a_proj", x), eps))
		p.rotate(layer, q, key, m.NoPE, m.RoPE)
		var latent, shared [][]float64
		for _, row := range p.linear(prefix+"kv_a_proj_with_mqa", x) {
			latent, shared = append(latent, row[:m.KVRank]), append(shared, row[m.KVRank:])
		}
		p.rotate(layer, shared, m.RoPE, 0, m.RoPE)
		k, v = make([][]float64, len(x)), make([][]float64, len(x))
		for i, row := range p.linear(prefix+"kv_b_proj", p.norm(prefix+"kv_a_layernorm", latent, eps)) {
			for h := range p.Heads {
				part := row[h*(m.NoPE+value):]
				k[i] = append(append(k[i], part[:m.NoPE]...), shared[i]...)
				v[i] = append(v[i], part[m.NoPE:][:value]...)
			}
		}
	} else {
		value = key
		q, k, v = p.linear(prefix+"q_proj", x), p.linear(prefix+"k_proj", x), p.linear(prefix+"v_proj", x)
		if p.Norms.QueryKey {
			q, k = p.norm(prefix+"q_norm", q, p.NormEps), p.norm(prefix+"k_norm", k, p.NormEps)
		}
		p.rotate(layer, q, key, 0, cmp.Or(p.RotaryDim, key))
		p.rotate(layer, k, key, 0, cmp.Or(p.RotaryDim, key))
	}
	mixed := make([][]float64, len(x))
	for i := range x {
		for h := range p.Heads {
			of := h / (p.Heads / kvHeads)
			var scores []float64
			for j := range i + 1 {
				var s float64
				for e := range key {
					s += q[i][h*key+e] * k[j][of*key+e]
				}
				s *= cmp.Or(p.ScoreScale, 1/math.Sqrt(float64(key)))
				if p.ScoreCap != 0 {
					s = p.ScoreCap * math.Tanh(s/p.ScoreCap)
				}
				if p.Windows != nil && p.Windows[layer] > 0 && j <= i-p.Windows[layer] {
					s = math.Inf(-1)
				}
				scores = append(scores, s)
			}
			var sum float64
			if p.Sinks {
				sum = math.Exp(p.params[prefix+"sinks"][h])
			}
			for _, s := range scores {
				sum += math.Exp(s)
			}
			row := make([]float64, value)
			for j, s := range scores {
				for e := range row {
					row[e] += math.Exp(s) / sum * v[j][of*value+e]
				}
			}
			mixed[i] = append(mixed[i], row...)
		}
	}
	return p.linear(prefix+"o_proj", mixed)
}

func (p plainly) mlp(prefix string, x [][]float64) [][]float64 {
	gate, up := p.linear(prefix+"gate_proj", x), p.linear(prefix+"up_proj", x)
	for i := range gate {
		for k, g := range gate[i] {
			u := up[i][k]
			switch p.Gate.Activation {
			case GateSiLU:
				g /= 1 + math.Exp(-g)
			case GateGELU:
				g *= math.Erfc(-g/math.Sqrt2) / 2
			case GateGELUTanh:
				g *= (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))) / 2
			case GateClamped:
				g, u = math.Min(g, p.Gate.Limit), math.Max(-p.Gate.Limit, math.Min(u, p.Gate.Limit))+1
				g /= 1 + math.Exp(-p.Gate.Alpha*g)
			}
			up[i][k] = g * u
		}
	}
	return p.linear(prefix+"down_proj", up)
}

func (p plainly) feed(layer int, prefix string, x [][]float64) [][]float64 {
	if p.Experts == nil || layer < p.Dense || slices.Contains(p.DenseLayers, layer) {
		return p.mlp(prefix, x)
	}
	r := p.Experts.Router
	y := make([][]float64, len(x))
	for i, scores := range p.linear(prefix+"gate", x) {
		var sum float64
		for e, s := range scores {
			scores[e] = math.Exp(s)
			if r.Score == ScoreSigmoid {
				scores[e] = 1 / (1 + math.Exp(-s))
			}
			sum += scores[e]
		}
		y[i] = make([]float64, p.Dim)
		chosen := choose64(r, scores)
		sum = 0
		for _, e := range chosen {
			sum += scores[e]
		}
		for _, e := range chosen {
			result := p.mlp(fmt.Sprintf("%sexperts.%d.", prefix, e), x[i:i+1])[0]
			for k, v := range result {
				y[i][k] += scores[e] / sum * r.Scale * v
			}
		}
	}
	if p.Experts.Shared > 0 {
		y = plus(y, p.mlp(prefix+"shared_experts.", x))
	}
	return y
}

// choose64 returns the experts that are chosen: of the groups with the largest sums of their
// GroupScores largest scores those with the largest scores.
func choose64(r RouterConfig, scores []float64) (chosen []int) {
	sums, size := make([]float64, r.Groups), len(scores)/r.Groups
	for g := range sums {
		group := slices.Clone(scores[g*size:][:size])
		slices.Sort(group)
		for _, s := range group[size-max(r.GroupScores, 1):] {
			sums[g] += s
		}
	}
	ranked := func(values []float64) []int {
		order := make([]int, len(values))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		return order
	}
	groups := ranked(sums)[:r.TopGroups]
	for _, e := range ranked(scores) {
		if slices.Contains(groups, e/size) && len(chosen) < r.TopK {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

// livelyFeatured returns a model whose parameters are none alike, sinks, gains and biases included.
func livelyFeatured(t *testing.T, cfg Config) *Llama {
	t.Helper()
	m := livelyModel(t, cfg)
	for _, p := range m.Params() {
		if strings.HasSuffix(p.Name, ".bias") {
			for i := range p.Value {
				p.Value[i]--
			}
		}
	}
	return m
}

// TestFeatures compares loss and logits with their definition, and all gradients with its
// difference quotients.
func TestFeatures(t *testing.T) {
	const batch, seq = 2, 7
	for _, f := range featured() {
		t.Run(f.name, func(t *testing.T) {
			m := livelyFeatured(t, f.config)
			want := newPlainly(m)
			tokens := someTokens(5, batch*seq, f.config.Vocab)
			copy(tokens, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) // so that each row of the table counts
			targets := slices.Concat(tokens[1:seq], tokens[:1], tokens[seq+1:], tokens[seq:seq+1])
			loss, err := m.Loss(t.Context(), tokens, targets, batch, seq)
			require.NoError(t, err)
			require.InDelta(t, want.loss(tokens, seq), loss, 2e-6)
			for i, row := range want.logits(tokens[:seq]) {
				for k, v := range row {
					require.InDelta(t, v, m.logits[i*f.config.Vocab+k], 2e-5*math.Max(1, math.Abs(v)))
				}
			}
			require.NoError(t, m.Backward(t.Context()))
			for _, p := range m.Params() {
				for direction := range uint64(2) {
					requireSlope(t, p.Name, p.Grad, want.params[p.Name], direction, func() float64 { return want.loss(tokens, seq) })
				}
			}
			require.Equal(t, shapesOf(m), slices.Collect(m.Config().Shapes()))
			require.NotEmpty(t, m.Config().Features())
		})
	}
	require.Empty(t, tiny.Features())
}

// requireSlope compares the slope that a gradient has in some direction with a difference quotient.
func requireSlope(t *testing.T, name string, grad []float32, x []float64, stream uint64, loss func() float64) {
	t.Helper()
	const h = 1e-5
	old, direction := slices.Clone(x), randoms(stream, len(x))
	var got, square float64
	at := func(h float64) float64 {
		for i := range x {
			x[i] = old[i] + h*float64(direction[i])
		}
		return loss()
	}
	want := (at(h) - at(-h)) / (2 * h)
	copy(x, old)
	for i, g := range grad {
		got += float64(g) * float64(direction[i])
		square += float64(g) * float64(g)
	}
	require.NotZero(t, square, "%s: nothing depends on it", name)
	require.InDelta(t, want, got, 5e-5*math.Sqrt(square), name)
}

func shapesOf(m *Llama) (shapes []Shape) {
	for _, p := range m.Params() {
		shapes = append(shapes, Shape{p.Name, p.Rows, p.Cols})
	}
	return shapes
}

// TestFeatureErrors: what cannot be is refused by name.
func TestFeatureErrors(t *testing.T) {
	long := RopeScaling{Original: 4, Short: []float64{1}, Long: []float64{2}}
	yarn := RopeScaling{Factor: 2, Original: 4, Low: 1, High: 32, YaRN: true}
	experts := &ExpertsConfig{Hidden: 4, Router: RouterConfig{Experts: 4, TopK: 1, Groups: 2, TopGroups: 1}}
	for want, change := range map[string]func(*Config){
		"Config.HeadDim is -2":                         func(c *Config) { c.HeadDim = -2 },
		"Config.RotaryDim is 0: of heads of 3":         func(c *Config) { c.HeadDim = 3 },
		"Config.RotaryDim is 3":                        func(c *Config) { c.RotaryDim = 3 },
		"Config.RotaryDim is 4: of heads of 2":         func(c *Config) { c.RotaryDim = 4 },
		"Config.Windows has 1: want one for each of 2": func(c *Config) { c.Windows = []int{1} },
		"Config.Windows[1] is -1":                      func(c *Config) { c.Windows = []int{0, -1} },
		"Config.WindowRopeTheta is 0.5":                func(c *Config) { c.WindowRopeTheta = 0.5 },
		"Config.ScoreScale is -1":                      func(c *Config) { c.ScoreScale = -1 },
		"Config.ScoreCap is NaN":                       func(c *Config) { c.ScoreCap = math.NaN() },
		"Config.LogitCap is +Inf":                      func(c *Config) { c.LogitCap = math.Inf(1) },
		"Config.EmbeddingScale is 1e+07":               func(c *Config) { c.EmbeddingScale = 1e7 },
		"Config.Biases.Router is true":                 func(c *Config) { c.Biases.Router = true },
		"activation of a gate":                         func(c *Config) { c.Gate.Activation = 9 },
		"Config.Gate has Alpha 1":                      func(c *Config) { c.Gate.Alpha = 1 },
		"Config.Gate.Alpha is 0":                       func(c *Config) { c.Gate = Gate{GateClamped, 0, 1} },
		"Config.Gate.Limit is -7":                      func(c *Config) { c.Gate = Gate{GateClamped, 1, -7} },
		"Config.Smoothing is that of SwiGLU":           func(c *Config) { c.Gate.Activation, c.Smoothing = GateGELU, new(swiglu.Smoothing) },
		"Config.Smoothing: the bias of the down":       func(c *Config) { c.Biases.MLP, c.Smoothing = true, new(swiglu.Smoothing) },
		"Config.DenseLayers are [0]: they must":        func(c *Config) { c.DenseLayers = []int{0} },
		"Config.DenseLayers are [1 0]":                 func(c *Config) { c.Experts, c.DenseLayers = experts, []int{1, 0} },
		"Config.DenseLayers are [2]":                   func(c *Config) { c.Experts, c.DenseLayers = experts, []int{2} },
		"RouterConfig.GroupScores is 3": func(c *Config) {
			c.Experts = copied(experts)
			c.Experts.Router.GroupScores = 3
		},
		"with MLA leave them out": func(c *Config) {
			c.KVHeads, c.HeadDim, c.MLA = 0, 2, &MLAConfig{KVRank: 2, NoPE: 2, RoPE: 2, Value: 2}
		},
		"Rotary and Scores are those of the Config": func(c *Config) {
			c.KVHeads, c.MLA = 0, &MLAConfig{KVRank: 2, NoPE: 2, RoPE: 2, Value: 2, Scores: Scores{Window: 1}}
		},
		"RopeScaling.Attention is -1":   func(c *Config) { c.RopeScaling = RopeScaling{Factor: 2, Attention: -1} },
		"RopeScaling.Untruncated":       func(c *Config) { c.RopeScaling = RopeScaling{Factor: 2, Untruncated: true} },
		"RopeScaling.YaRN needs a base": func(c *Config) { c.RopeScaling, c.RopeTheta = yarn, 1 },
		"RopeScaling.Original is 0: with Short": func(c *Config) {
			c.RopeScaling = long
			c.RopeScaling.Original = 0
		},
		"RopeScaling has 1 factors in Short and 2 in Long": func(c *Config) {
			c.RopeScaling = long
			c.RopeScaling.Long = []float64{1, 2}
		},
		"RopeScaling.Short or Long has a factor of 0": func(c *Config) {
			c.RopeScaling = long
			c.RopeScaling.Long = []float64{0}
		},
		"RopeScaling.Short has 1 factors: want one for each of 2 pairs": func(c *Config) { c.RopeScaling, c.HeadDim = long, 4 },
		"RopeScaling.Factor, Low": func(c *Config) {
			c.RopeScaling = long
			c.RopeScaling.Factor = 2
		},
	} {
		cfg := tiny
		change(&cfg)
		_, err := NewLlama(cfg, 1)
		require.ErrorIs(t, err, ErrConfig, want)
		require.ErrorContains(t, err, want)
	}
	for _, s := range []Scores{{Window: -1}, {Scale: -1}, {Cap: 1e9}} {
		_, err := NewAttention("a.", AttentionConfig{Dim: 4, Heads: 2, Scores: s}, Options{})
		require.ErrorIs(t, err, ErrConfig)
		_, err = NewMLA("a.", MLAConfig{Dim: 4, Heads: 2, KVRank: 2, NoPE: 2, RoPE: 2, Value: 2, Scores: s}, Options{})
		require.ErrorIs(t, err, ErrConfig)
	}
}

// TestLongWindow compares windows, sinks and a cap with their definition in sequences of many bands
// of scores, whose first keys are out of the window.
func TestLongWindow(t *testing.T) {
	const seq = 3*bandRows - 15
	cfg := Config{
		Vocab: 7, Dim: 4, Layers: 2, Heads: 2, KVHeads: 1, Hidden: 4, Context: seq,
		Windows: []int{bandRows + 6, 9}, Sinks: true, ScoreCap: 2,
	}
	m := livelyFeatured(t, cfg)
	want := newPlainly(m)
	tokens := someTokens(5, seq, cfg.Vocab)
	loss, err := m.Loss(t.Context(), tokens, slices.Concat(tokens[1:], tokens[:1]), 1, seq)
	require.NoError(t, err)
	require.InDelta(t, want.loss(tokens, seq), loss, 1e-6)
	require.NoError(t, m.Backward(t.Context()))
	for _, p := range m.Params() {
		requireSlope(t, p.Name, p.Grad, want.params[p.Name], 3, func() float64 { return want.loss(tokens, seq) })
	}
	for i, p := range m.blocks[1].Attention.probs[:seq*seq] { // of which products read some
		if row, key := i/seq, i%seq; key > row || key <= row-9 {
			require.Zero(t, p, "row %d, key %d", row, key)
		}
	}
}

// TestWideWindow: a window as long as the sequence changes no bit.
func TestWideWindow(t *testing.T) {
	want := traceOf(t, ragged(), 2, 19)
	cfg := ragged()
	cfg.Windows = []int{19, 25}
	require.Equal(t, want, traceOf(t, cfg, 2, 19))
}

// TestFeaturesOfWorkers: results are the same to the bit for any number of them, in FP8 too.
func TestFeaturesOfWorkers(t *testing.T) {
	for _, f := range featured() {
		for _, cfg := range []Config{f.config, deepSeekV3Of(f.config)} {
			cfg.Workers = 1
			want := traceOf(t, cfg, 4, 11)
			cfg.Workers = 5
			require.Equal(t, want, traceOf(t, cfg, 4, 11), f.name)
		}
	}
}

// TestGate compares gates and their gradients with definitions in float64, also where nothing
// is left of one branch.
func TestGate(t *testing.T) {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	clamped := func(u, g float64) float64 {
		g = math.Min(g, 2.5)
		return (math.Max(-2.5, math.Min(u, 2.5)) + 1) * g * sigmoid(1.7*g)
	}
	for gate, want := range map[Gate]func(u, g float64) float64{
		{}:                     func(u, g float64) float64 { return u * g * sigmoid(g) },
		{Activation: GateGELU}: func(u, g float64) float64 { return u * g * math.Erfc(-g/math.Sqrt2) / 2 },
		{Activation: GateGELUTanh}: func(u, g float64) float64 {
			return u * g * sigmoid(2*math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))
		},
		{GateClamped, 1.7, 2.5}: clamped,
	} {
		g, u := randoms(1, 401), randoms(2, 401)
		for i := range g {
			g[i] *= 3
		}
		copy(g, []float32{0, 36.9, 37, 37.5, -37.5, 1e4, -1e4, 100, -100})
		z, du, dg, dz := make([]float32, len(g)), make([]float32, len(g)), make([]float32, len(g)), randoms(3, len(g))
		gate.Multiply(z, u, g)
		gate.backward(du, dg, dz, u, g, swiglu.Scales{})
		for i := range g {
			u, g, d := float64(u[i]), float64(g[i]), float64(dz[i])
			size := 1e-6 * math.Max(1, math.Abs(g)) * math.Max(1, math.Abs(u))
			const h = 1e-5
			require.InDelta(t, want(u, g), z[i], size, "%v of %v, %v", gate, u, g)
			require.InDelta(t, d*(want(u+h, g)-want(u-h, g))/(2*h), du[i], 10*size, "%v of %v, %v", gate, u, g)
			require.InDelta(t, d*(want(u, g+h)-want(u, g-h))/(2*h), dg[i], 10*size, "%v of %v, %v", gate, u, g)
		}
		nan := float32(math.NaN())
		z, u = z[:2], []float32{nan, 1}
		gate.Multiply(z, u, []float32{1, nan})
		require.True(t, z[0] != z[0] && z[1] != z[1], "%v", gate)
		gate.backward(du[:2], dg[:2], []float32{1, 1}, u, []float32{1, nan}, swiglu.Scales{})
		require.True(t, dg[0] != dg[0] && dg[1] != dg[1] && du[1] != du[1], "%v", gate)
	}
}
