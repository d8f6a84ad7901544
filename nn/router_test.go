package nn

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainRouting is what the paper says of one sequence, in float64: the chosen experts of each
// token with their weights, and the balance loss without its factor.
func plainRouting(c RouterConfig, logits [][]float64, bias []float64) (chosen [][]int, weights [][]float64, loss float64) {
	c = c.withDefaults()
	shares, counts := make([]float64, c.Experts), make([]float64, c.Experts)
	for _, z := range logits {
		s := make([]float64, len(z))
		var all float64
		for i := range z {
			s[i] = 1 / (1 + math.Exp(-z[i]))
			if c.Score == ScoreSoftmax {
				s[i] = math.Exp(z[i])
			}
			all += s[i]
		}
		var total float64
		for i := range s {
			if c.Score == ScoreSoftmax {
				s[i] /= all
			}
			total += s[i]
		}
		for _, e := range best(s, c.TopK) {
			counts[e]++
		}
		biased := slices.Clone(s)
		for i := range biased {
			shares[i] += s[i] / total / float64(len(logits))
			if bias != nil {
				biased[i] += bias[i]
			}
		}
		size := c.Experts / c.Groups
		groups := make([]float64, c.Groups)
		for g := range groups {
			part := biased[g*size:][:size]
			for _, i := range best(part, min(max(c.TopK/c.TopGroups, 1), size)) {
				groups[g] += part[i]
			}
		}
		allowed := best(groups, c.TopGroups)
		for i := range biased {
			if !slices.Contains(allowed, i/size) {
				biased[i] = math.Inf(-1)
			}
		}
		top := best(biased, c.TopK)
		slices.Sort(top)
		var sum float64
		for _, e := range top {
			sum += s[e]
		}
		if c.Unnormalized {
			sum = 1
		}
		var w []float64
		for _, e := range top {
			w = append(w, s[e]/sum*c.Scale)
		}
		chosen, weights = append(chosen, top), append(weights, w)
	}
	for i := range shares {
		f := counts[i] * float64(c.Experts) / float64(c.TopK*len(logits))
		loss += f * shares[i]
	}
	return chosen, weights, loss
}

// best returns the places of the n largest values, the largest first.
func best(x []float64, n int) []int {
	places := make([]int, len(x))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(x[b], x[a]) })
	return places[:n]
}

var routerConfigs = map[string]RouterConfig{
	"deepseek-v3":  {Experts: 8, TopK: 3, Scale: 2.5, Groups: 4, TopGroups: 2, BiasRate: 0.05, BalanceLoss: 0.3},
	"one group":    {Experts: 6, TopK: 2, BiasRate: 0.1, BalanceLoss: 0.1},
	"mixtral":      {Experts: 5, TopK: 2, Score: ScoreSoftmax},
	"unnormalized": {Experts: 8, TopK: 4, Score: ScoreSoftmax, Unnormalized: true, Scale: 16, Groups: 2, TopGroups: 1, BalanceLoss: 0.2},
	"all":          {Experts: 3, TopK: 3, Unnormalized: true},
}

// doubles returns x in float64.
func doubles(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// product64 returns x·wᵀ in rows, of x [rows, in] and w [out, in].
func product64(x, w []float64, in int) [][]float64 {
	var y [][]float64
	for ; len(x) > 0; x = x[in:] {
		row := make([]float64, len(w)/in)
		for o := range row {
			for i, v := range x[:in] {
				row[o] += v * w[o*in+i]
			}
		}
		y = append(y, row)
	}
	return y
}

// requireDefinition64 compares results y with those of a definition in float64, and gradients
// of x and the parameters with difference quotients of the loss that dy makes of the results,
// and what more the definition adds to it. The definition reads x and the values.
func requireDefinition64(t *testing.T, params []*Param, values [][]float64, x []float64, y, dx, dy []float32, define func() (y64 []float64, more float64)) {
	t.Helper()
	y64, _ := define()
	require.Len(t, y64, len(y))
	for i, v := range y64 {
		require.InDelta(t, v, y[i], 1e-5)
	}
	loss := func() (sum float64) {
		y64, more := define()
		for i, v := range y64 {
			sum += v * float64(dy[i])
		}
		return sum + more
	}
	requireGradient64(t, "x", dx, x, loss)
	for i, p := range params {
		requireGradient64(t, p.Name, p.Grad, values[i], loss)
	}
}

// requireGradient64 compares got with difference quotients in float64.
func requireGradient64(t *testing.T, name string, got []float32, x []float64, loss func() float64) {
	t.Helper()
	require.Len(t, got, len(x), name)
	const h = 1e-5
	var norm, distance float64
	for i, v := range x {
		x[i] = v + h
		above := loss()
		x[i] = v - h
		want := (above - loss()) / (2 * h)
		x[i] = v
		norm += want * want
		distance += (float64(got[i]) - want) * (float64(got[i]) - want)
	}
	require.NotZero(t, norm, "%s: nothing depends on it", name)
	require.Less(t, math.Sqrt(distance/norm), 2e-5, name)
}

// TestRouter compares choices, weights and the balance loss with the definition, and
// gradients with its difference quotients.
func TestRouter(t *testing.T) {
	const dim, batch, seq, scale = 5, 2, 7, 0.5
	for name, c := range routerConfigs {
		t.Run(name, func(t *testing.T) {
			var shared Shared
			r, err := NewRouter("mlp.", dim, c, Options{Shared: &shared})
			require.NoError(t, err)
			copy(r.Gate.Weight.Value, randoms(1, c.Experts*dim))
			x := randoms(2, batch*seq*dim)
			var bias []float64
			if r.balance != nil {
				for i := range c.Experts {
					r.balance.bias[i] = float32(i%3) * 0.125
				}
				bias = doubles(r.Bias())
			}
			k := c.TopK
			chosen, weights := make([]int32, batch*seq*k), make([]float32, batch*seq*k)
			require.NoError(t, r.Forward(t.Context(), chosen, weights, x, batch, seq))
			dWeights := randoms(3, len(weights))

			x64, w64 := doubles(x), doubles(r.Gate.Weight.Value)
			var top [][]int
			var w [][]float64
			var balance float64
			total := func() (sum float64) {
				top, w, balance = nil, nil, 0
				for b := range batch {
					logits := product64(x64[b*seq*dim:][:seq*dim], w64, dim)
					top1, w1, loss := plainRouting(c, logits, bias)
					top, w, balance = append(top, top1...), append(w, w1...), balance+loss*c.BalanceLoss/batch
				}
				for i, d := range dWeights {
					sum += w[i/k][i%k] * float64(d)
				}
				return sum + scale*balance
			}
			total()
			load := make([]int, c.Experts)
			for i, e := range slices.Concat(top...) {
				require.EqualValues(t, e, chosen[i], "choice %d", i)
				require.InEpsilon(t, w[i/k][i%k], weights[i], 1e-5)
				load[e]++
			}
			require.Equal(t, load, r.Load())
			require.Equal(t, chosen, r.Chosen())
			require.InDelta(t, balance, r.BalanceLoss(), 1e-6)

			dx := make([]float32, len(x))
			require.NoError(t, r.Backward(t.Context(), dx, dWeights, scale))
			requireGradient64(t, "x", dx, x64, total)
			requireGradient64(t, "weight", r.Gate.Weight.Grad, w64, total)
			require.Error(t, r.Backward(t.Context(), dx, dWeights, scale), "without a Forward")
		})
	}
}

// TestRouterRounding: products are those of a layer with the same Rounding, and otherwise FP32.
func TestRouterRounding(t *testing.T) {
	four, recipes := DefaultRounding(NarrowE2M1), DefaultFP8()
	const dim, rows = 6, 5
	x, w := randoms(1, rows*dim), randoms(2, 4*dim)
	for _, rounding := range []*Rounding{nil, &four} {
		want, err := NewLinear("gate.weight", 4, dim, Options{Rounding: rounding})
		require.NoError(t, err)
		copy(want.Weight.Value, w)
		logits := make([]float32, 4*rows)
		require.NoError(t, want.Forward(t.Context(), logits, x, rows))
		c := RouterConfig{Experts: 4, TopK: 2, Rounding: rounding}
		r, err := NewRouter("", dim, c, Options{FP8: &recipes})
		require.NoError(t, err)
		copy(r.Gate.Weight.Value, w)
		chosen, weights := make([]int32, 2*rows), make([]float32, 2*rows)
		require.NoError(t, r.Forward(t.Context(), chosen, weights, x, 1, rows))
		require.Equal(t, logits, r.logits)
	}
	cfg := mixture()
	cfg.Experts.Router.Rounding = &four
	m, err := NewLlama(cfg, 1)
	require.NoError(t, err)
	four.Input.Format = "nonsense"
	require.Equal(t, NarrowE2M1, m.Config().Experts.Router.Rounding.Input.Format, "a copy")
}

// TestRouterTies: the expert with the smaller number, also among groups, and NaN first.
func TestRouterTies(t *testing.T) {
	c := RouterConfig{Experts: 8, TopK: 2, Groups: 4, TopGroups: 2}
	r, err := NewRouter("", 1, c, Options{})
	require.NoError(t, err)
	chosen, weights := make([]int32, 2), make([]float32, 2)
	require.NoError(t, r.Forward(t.Context(), chosen, weights, []float32{1}, 1, 1))
	require.Equal(t, []int32{0, 1}, chosen)
	r.Gate.Weight.Value[5] = 1
	require.NoError(t, r.Forward(t.Context(), chosen, weights, []float32{1}, 1, 1))
	require.Equal(t, []int32{0, 5}, chosen)
	r.Gate.Weight.Value[7] = float32(math.NaN())
	require.NoError(t, r.Forward(t.Context(), chosen, weights, []float32{1}, 1, 1))
	require.Equal(t, []int32{5, 7}, chosen)
}

// TestBiases: they move by the rate toward equal loads, count what has a backward pass, and
// are saved, restored, dropped and merged.
func TestBiases(t *testing.T) {
	newRouter := func() (*Router, *Scaling) {
		shared := new(Shared)
		r, err := NewRouter("mlp.", 1, RouterConfig{Experts: 3, TopK: 1, BiasRate: 0.25}, Options{Shared: shared})
		require.NoError(t, err)
		copy(r.Gate.Weight.Value, []float32{-1, 0, 1})
		return r, shared.Scaling()
	}
	pass := func(r *Router, x ...float32) {
		chosen, weights := make([]int32, len(x)), make([]float32, len(x))
		require.NoError(t, r.Forward(t.Context(), chosen, weights, x, 1, len(x)))
		require.NoError(t, r.Forward(t.Context(), chosen, weights, x, 1, len(x)), "again")
		require.NoError(t, r.Backward(t.Context(), make([]float32, len(x)), weights, 1))
	}
	r, s := newRouter()
	pass(r, 1, 1, 1)
	pass(r, -1, -1)
	pass(r, 1)
	require.Equal(t, []int64{2, 0, 4}, s.State().Routers["mlp.gate"].Load)
	s.EndStep()
	require.Equal(t, []float32{0, 0.25, -0.25}, r.Bias())
	require.Equal(t, []int64{0, 0, 0}, s.State().Routers["mlp.gate"].Load)
	pass(r, 1)
	s.DropStep()
	s.EndStep()
	require.Equal(t, []float32{0, 0.25, -0.25}, r.Bias(), "nothing was recorded")

	text, err := json.Marshal(s.State())
	require.NoError(t, err)
	var state ScalingState
	require.NoError(t, json.Unmarshal(text, &state))
	q, other := newRouter()
	require.NoError(t, other.Restore(state))
	require.Equal(t, r.Bias(), q.Bias())

	both := func() (*Router, *Scaling) { // one does what two do
		one, all := newRouter()
		require.NoError(t, all.Restore(state))
		pass(one, 3, 3)
		pass(one, 3, -3, -3)
		return one, all
	}
	one, all := both()
	pass(r, 3, 3)
	pass(q, 3, -3, -3)
	merged, err := MergeScaling(s.State(), other.State())
	require.NoError(t, err)
	require.Equal(t, all.State(), merged)
	amax, err := MergeStepAmax(s.StepAmax(), other.StepAmax())
	require.NoError(t, err)
	require.Equal(t, all.StepAmax(), amax)
	data, err := amax.MarshalBinary()
	require.NoError(t, err)
	var read StepAmax
	require.NoError(t, read.UnmarshalBinary(data))
	require.Equal(t, amax.Loads, read.Loads)
	require.Error(t, read.UnmarshalBinary(data[:len(data)-1]))
	require.NoError(t, s.SetStepAmax(read))
	s.EndStep()
	all.EndStep()
	require.Equal(t, one.Bias(), r.Bias())

	for field, spoil := range map[string]func(*RouterState){
		"biases of 2 experts": func(r *RouterState) { r.Bias = r.Bias[:2] },
		"loads of 2 experts":  func(r *RouterState) { r.Load = r.Load[:2] },
		"is NaN":              func(r *RouterState) { r.Bias[1] = float32(math.NaN()) },
		"is -1":               func(r *RouterState) { r.Load[1] = -1 },
	} {
		bad := s.State()
		router := bad.Routers["mlp.gate"]
		spoil(&router)
		bad.Routers["mlp.gate"] = router
		require.ErrorIs(t, s.Restore(bad), ErrState)
		require.ErrorContains(t, s.Restore(bad), field)
	}
	bad := s.State()
	bad.Routers = nil
	require.ErrorContains(t, s.Restore(bad), `no router state of "mlp.gate"`)
	_, err = MergeScaling(s.State(), bad)
	require.ErrorIs(t, err, ErrState)
	bad.Routers = map[string]RouterState{"mlp.gate": s.State().Routers["mlp.gate"], "x": {}}
	require.ErrorContains(t, s.Restore(bad), `"x": the model has none`)
}

// TestRouterRefuses names what is wrong.
func TestRouterRefuses(t *testing.T) {
	for want, c := range map[string]RouterConfig{
		"Experts is 0":        {TopK: 1},
		"TopK is 4":           {Experts: 8, TopK: 4, Groups: 4, TopGroups: 1},
		"TopK is 0":           {Experts: 8},
		"Groups is 3":         {Experts: 8, TopK: 1, Groups: 3, TopGroups: 1},
		"TopGroups is 0":      {Experts: 8, TopK: 1, Groups: 2},
		"Score is Scoring(7)": {Experts: 8, TopK: 1, Score: 7},
		"Scale is -1":         {Experts: 8, TopK: 1, Scale: -1},
		"BiasRate is NaN":     {Experts: 8, TopK: 1, BiasRate: math.NaN()},
		"nn: RouterConfig.Rounding.Weight: form": {
			Experts: 8, TopK: 1, Rounding: &Rounding{Weight: Narrowing{Format: "E9M9"}},
		},
		"Shared is nil": {Experts: 8, TopK: 1, BiasRate: 1},
	} {
		_, err := NewRouter("", 4, c, Options{})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
	}
	r, err := NewRouter("", 4, RouterConfig{Experts: 8, TopK: 2}, Options{})
	require.NoError(t, err)
	require.ErrorIs(t, r.Forward(t.Context(), make([]int32, 3), make([]float32, 4), make([]float32, 8), 1, 2), ErrInput)
	require.ErrorIs(t, r.Forward(t.Context(), make([]int32, 4), make([]float32, 4), make([]float32, 7), 1, 2), ErrInput)
}
