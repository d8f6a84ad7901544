package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func smallConfig() nn.Config {
	return nn.Config{Vocab: 23, Dim: 16, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 40, Context: 12}
}

// smallModel returns a model whose logits are far from equal.
func smallModel(t *testing.T, c nn.Config) *nn.Llama {
	m, err := nn.NewLlama(c, 7)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(7, uint64(i), 0.3)
		}
	}
	return m
}

func someTokens(n, vocab int) []int32 {
	r := rand.New(rand.NewPCG(1, 2))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(vocab))
	}
	return tokens
}

func recipe(t *testing.T, name string) Recipe {
	r, err := ParseRecipe(name)
	require.NoError(t, err)
	return r
}

// copyOf returns a model of another configuration with the weights of m, changed.
func copyOf(t *testing.T, m *nn.Llama, c nn.Config, change func(name string, w []float32, cols int)) *nn.Llama {
	n, err := nn.NewZeroLlama(c)
	require.NoError(t, err)
	for i, p := range n.Params() {
		copy(p.Value, m.Params()[i].Value)
		if change != nil && strings.Contains(p.Name, "_proj") {
			change(p.Name, p.Value, p.Cols)
		}
	}
	return n
}

// decode makes weights what their codes under a recipe stand for.
func decode(t *testing.T, r scaling.Recipe, w []float32, cols int) {
	q := tensor.Tensor{Shape: []int{len(w) / cols, cols}}
	require.NoError(t, scaling.Quantize(t.Context(), &q, w, scaling.Quantizer{Recipe: r}))
	tensor.Dequantize(w, &q)
}

// plainWindow is what loops in float64 find of a window of 10 tokens behind a prefix of one.
type plainWindow struct {
	n                int
	ref, loss, kl    float64
	same             int
	largestKL, logit float64
	klAt, logitAt    int
}

const (
	plainLength = 10
	plainPrefix = 3
)

// plain computes everything that is found of a whole model.
func plain(t *testing.T, ref, got *nn.Llama, tokens []int32) (all []plainWindow) {
	for at := 0; at < len(tokens); at += plainLength {
		text := tokens[at:min(at+plainLength, len(tokens))]
		sequence := append([]int32{plainPrefix}, text...)
		if at+plainLength < len(tokens) { // else the last one is a target alone
			text = tokens[at : at+plainLength+1]
		} else {
			sequence = sequence[:len(sequence)-1]
		}
		p, err := ref.Logits(t.Context(), sequence, 1, len(sequence))
		require.NoError(t, err)
		q, err := got.Logits(t.Context(), sequence, 1, len(sequence))
		require.NoError(t, err)
		var w plainWindow
		for row := range sequence {
			if at > 0 && row == 0 {
				continue // the last target of the window before
			}
			v := ref.Config().Vocab
			w.add(p[row*v:(row+1)*v], q[row*v:(row+1)*v], int(text[row]), at+row)
		}
		all = append(all, w)
	}
	return all
}

func (w *plainWindow) add(p, q []float32, target, place int) {
	logs := func(x []float32) (logs []float64, top int) {
		sum := 0.0
		for i, v := range x {
			sum += math.Exp(float64(v))
			if v > x[top] {
				top = i
			}
		}
		for _, v := range x {
			logs = append(logs, float64(v)-math.Log(sum))
		}
		return logs, top
	}
	lp, topP := logs(p)
	lq, topQ := logs(q)
	kl := 0.0
	for i := range lp {
		kl += math.Exp(lp[i]) * (lp[i] - lq[i])
		if d := math.Abs(float64(p[i]) - float64(q[i])); d > w.logit {
			w.logit, w.logitAt = d, place
		}
	}
	w.n++
	w.ref -= lp[target]
	w.loss -= lq[target]
	w.kl += kl
	if topP == topQ {
		w.same++
	}
	if kl > w.largestKL {
		w.largestKL, w.klAt = kl, place
	}
}

// plainMean returns the ratio of sums and its standard error.
func plainMean(all []plainWindow, of func(plainWindow) float64) (mean, err float64) {
	n := 0
	for _, w := range all {
		mean += of(w)
		n += w.n
	}
	mean /= float64(n)
	for _, w := range all {
		err += math.Pow(of(w)-mean*float64(w.n), 2)
	}
	k := float64(len(all))
	return mean, math.Sqrt(err*k/(k-1)) / float64(n)
}

func requireMean(t *testing.T, want []plainWindow, of func(plainWindow) float64, got Mean) {
	t.Helper()
	mean, err := plainMean(want, of)
	require.InDelta(t, mean, float64(got.Mean), 2e-7)
	require.InDelta(t, err, float64(got.Error), 2e-7)
}

// TestPlain compares reports with sums in float64 over models that were quantized as a whole
// by other means.
func TestPlain(t *testing.T) {
	c := smallConfig()
	m := smallModel(t, c)
	tokens := someTokens(37, c.Vocab)
	names := []string{"nvfp4", "bf16", "fp8", "te-current", "mxfp4", "mx-floor:e2m3"}
	if testing.Short() {
		names = names[:2]
	}
	for _, name := range names {
		r := recipe(t, name)
		report, err := Run(t.Context(), m, tokens, Options{Recipes: []Recipe{r}, Context: plainLength + 1, Prefix: []int32{plainPrefix}, LayerTokens: 11})
		require.NoError(t, err)
		require.Equal(t, []int{37, 37, 4, 2}, []int{report.Tokens, report.Targets, report.Windows, report.LayerWindows})
		require.Equal(t, []int{plainLength + 1, 1, plainLength}, []int{report.Context, report.Prefix, report.Stride})
		require.Len(t, report.Results, 3)
		for _, got := range report.Results {
			quantized := c
			o := r.options(got.Mode)
			quantized.FP8, quantized.Rounding = o.FP8, o.Rounding
			other := copyOf(t, m, quantized, nil)
			if got.Mode == Weights && r.Weight.Recipe != nil {
				other = copyOf(t, m, c, func(_ string, w []float32, cols int) { decode(t, *r.Weight.Recipe, w, cols) })
			}
			want := plain(t, m, other, tokens)
			requireMean(t, want, func(w plainWindow) float64 { return w.ref }, report.Loss)
			requireMean(t, want, func(w plainWindow) float64 { return w.loss }, got.Loss)
			requireMean(t, want, func(w plainWindow) float64 { return w.loss - w.ref }, got.Difference)
			requireMean(t, want, func(w plainWindow) float64 { return w.kl }, got.KL)
			require.InEpsilon(t, math.Exp(float64(got.Loss.Mean)), float64(got.Perplexity), 1e-12)
			same, _ := plainMean(want, func(w plainWindow) float64 { return float64(w.same) })
			require.InDelta(t, same, float64(got.SameTop), 1e-12)
			var largest plainWindow
			for _, w := range want {
				if w.largestKL > largest.largestKL {
					largest.largestKL, largest.klAt = w.largestKL, w.klAt
				}
				if w.logit > largest.logit {
					largest.logit, largest.logitAt = w.logit, w.logitAt
				}
			}
			require.InDelta(t, largest.largestKL, float64(got.LargestKL.Value), 1e-6)
			require.Equal(t, largest.klAt, got.LargestKL.Place)
			require.Equal(t, largest.logit, float64(got.LargestLogit.Value))
			require.Equal(t, largest.logitAt, got.LargestLogit.Place)
			require.Positive(t, got.KL.Mean)
			if got.Mode == Weights && r.Weight.Recipe != nil {
				requireParts(t, m, r, tokens, got)
			}
		}
	}
}

// TestFeatures compares losses of a model with what families have beside a Llama: what is around
// blocks, and biases of linear layers.
func TestFeatures(t *testing.T) {
	c := smallConfig()
	c.Biases = nn.Biases{QueryKeyValue: true, Output: true, MLP: true}
	c.Norms, c.EmbeddingScale, c.LogitCap = nn.Norms{PlusOne: true, After: true, QueryKey: true}, 5, 1.5
	m := smallModel(t, c)
	for i, p := range m.Params() {
		p.Randomize(9, uint64(i), 0.5)
	}
	tokens, r := someTokens(37, c.Vocab), recipe(t, "nvfp4")
	report, err := Run(t.Context(), m, tokens, Options{Recipes: []Recipe{r}, Modes: []Mode{Both}, Context: plainLength + 1, Prefix: []int32{plainPrefix}, LayerTokens: -1})
	require.NoError(t, err)
	quantized := c
	o := r.options(Both)
	quantized.FP8, quantized.Rounding = o.FP8, o.Rounding
	want := plain(t, m, copyOf(t, m, quantized, nil), tokens)
	requireMean(t, want, func(w plainWindow) float64 { return w.ref }, report.Loss)
	requireMean(t, want, func(w plainWindow) float64 { return w.loss }, report.Results[0].Loss)
}

// requireParts compares layers and kinds with models of which they alone were quantized.
func requireParts(t *testing.T, m *nn.Llama, r Recipe, tokens []int32, got Result) {
	parts := map[string]PartCost{}
	for _, p := range append(append([]PartCost{}, got.Layers...), got.Kinds...) {
		parts[p.Name] = p
	}
	require.Len(t, parts, 2+7)
	for name, p := range parts {
		other := copyOf(t, m, m.Config(), func(weight string, w []float32, cols int) {
			if strings.Contains(weight+".", "."+name+".") || strings.HasPrefix(weight, name+".") {
				decode(t, *r.Weight.Recipe, w, cols)
			}
		})
		want := plain(t, m, other, tokens)[:2]
		requireMean(t, want, func(w plainWindow) float64 { return w.kl }, p.KL)
		requireMean(t, want, func(w plainWindow) float64 { return w.loss - w.ref }, p.Difference)
	}
}

// TestLinears compares the SQNR of each linear layer with that of products in float64.
func TestLinears(t *testing.T) {
	c := smallConfig()
	m := smallModel(t, c)
	tokens := someTokens(12, c.Vocab)
	inputs := map[string][]float32{}
	m.Shared().Tap = func(name string, x []float32, _, _ int) {
		inputs[strings.TrimSuffix(name, ".input")] = append([]float32(nil), x...)
	}
	_, err := m.Logits(t.Context(), tokens[:11], 1, 11)
	require.NoError(t, err)
	m.Shared().Tap = nil
	r := recipe(t, "mxfp4")
	report, err := Run(t.Context(), m, tokens, Options{Recipes: []Recipe{r}})
	require.NoError(t, err)
	for _, got := range report.Results {
		require.Len(t, got.Linears, 14)
		for _, l := range got.Linears {
			w := m.Param(l.Name + ".weight")
			x := inputs[l.Name]
			require.Len(t, x, 11*w.Cols, l.Name)
			qx, qw := append([]float32(nil), x...), append([]float32(nil), w.Value...)
			if got.Mode != Weights {
				decode(t, *r.Input.Recipe, qx, w.Cols)
			}
			if got.Mode != Activations {
				decode(t, *r.Weight.Recipe, qw, w.Cols)
			}
			signal, noise := 0.0, 0.0
			for i := range 11 {
				for j := range w.Rows {
					var y, q float64
					for k := range w.Cols {
						y += float64(x[i*w.Cols+k]) * float64(w.Value[j*w.Cols+k])
						q += float64(qx[i*w.Cols+k]) * float64(qw[j*w.Cols+k])
					}
					signal += y * y
					noise += (q - y) * (q - y)
				}
			}
			require.InDelta(t, 10*math.Log10(signal/noise), float64(l.SQNR), 1e-4, "%v %s", got.Mode, l.Name)
		}
		worst := got.WorstLinears(3)
		require.Len(t, worst, 3)
		for _, l := range got.Linears {
			require.GreaterOrEqual(t, l.SQNR, worst[0].SQNR)
		}
		for _, p := range got.Layers {
			require.LessOrEqual(t, p.KL.Mean, got.WorstLayers(1)[0].KL.Mean)
		}
	}
}

// TestSame checks that results do not depend on the number of workers, and that the model is
// afterwards what it was.
func TestSame(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 3} {
		c := smallConfig()
		c.Workers = workers
		four := nn.DefaultRounding(nn.NarrowE2M1)
		c.Rounding = &four // plays no part
		m := smallModel(t, c)
		tokens := someTokens(20, c.Vocab)
		tapped := 0
		m.Shared().Tap = func(string, []float32, int, int) { tapped++ }
		before, err := m.Logits(t.Context(), tokens[:9], 1, 9)
		require.NoError(t, err)
		before = append([]float32(nil), before...)
		taps := tapped
		steps := []int64{}
		report, err := Run(t.Context(), m, tokens, Options{
			Recipes: []Recipe{recipe(t, "mxfp8"), recipe(t, "nvfp4")}, Context: 9, Stride: 4, LayerTokens: 5,
			Progress: progress.Func(func(_ string, done, total int64) { steps = append(steps, done, total) }),
		})
		require.NoError(t, err)
		require.Equal(t, taps, tapped, "the Tap hears nothing")
		require.Equal(t, steps[len(steps)-1], steps[len(steps)-2], "all was counted")
		after, err := m.Logits(t.Context(), tokens[:9], 1, 9)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.Greater(t, tapped, taps)
		text, err := json.Marshal(report)
		require.NoError(t, err)
		texts = append(texts, string(text))
		var back Evaluation
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, *report, back)
	}
	require.Equal(t, texts[0], texts[1])
}

// TestRunner compares the logits of a runner with the model's own, to the bit.
func TestRunner(t *testing.T) {
	for _, tied := range []bool{false, true} {
		c := smallConfig()
		c.TieHead, c.NormEps = tied, 1e-3
		m := smallModel(t, c)
		tokens := someTokens(11, c.Vocab)
		want, err := m.Logits(t.Context(), tokens, 1, 11)
		require.NoError(t, err)
		r, err := newRunner(m)
		require.NoError(t, err)
		var ref, got []float32
		require.NoError(t, m.Shared().Scaling().Inference(func() error {
			require.NoError(t, r.reference(t.Context(), &ref, tokens))
			return r.from(t.Context(), &got, 1, 11)
		}))
		require.Equal(t, want, ref)
		require.Equal(t, want, got)
	}
}

// TestStreamed checks that a model whose layers are read one after the other, with activations in a
// file, gives what one in memory gives, and that it is left without values.
func TestStreamed(t *testing.T) {
	for _, tied := range []bool{false, true} {
		c := smallConfig()
		c.TieHead = tied
		m := smallModel(t, c)
		tokens := someTokens(40, c.Vocab)
		o := Options{Recipes: []Recipe{recipe(t, "fp8"), recipe(t, "bf16")}, Context: 11, Stride: 7, LayerTokens: 12}
		want, err := Run(t.Context(), m, tokens, o)
		require.NoError(t, err)
		empty, err := nn.NewUnreadLlama(c)
		require.NoError(t, err)
		o.Read = func(p *nn.Param, dst []float32) error {
			copy(dst, m.Param(p.Name).Value)
			return nil
		}
		o.Memory = 1
		got, err := Run(t.Context(), empty, tokens, o)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for _, p := range empty.Params() {
			for _, x := range p.Value {
				require.True(t, x == 0 || p.Rows == 1 && x == 1)
			}
		}
		broken := errors.New("broken")
		o.Read = func(p *nn.Param, dst []float32) error {
			if p.Name == "model.layers.1.mlp.up_proj.weight" {
				return broken
			}
			copy(dst, m.Param(p.Name).Value)
			return nil
		}
		_, err = Run(t.Context(), empty, tokens, o)
		require.ErrorIs(t, err, broken)
	}
}

// TestCut checks that each token is a target once, behind as many as there are.
func TestCut(t *testing.T) {
	for _, prefix := range [][]int32{nil, {90}, {90, 91}} {
		for n := range 14 {
			text := someTokens(n, 80)
			for length := 1; length <= 6; length++ {
				for stride := 1; stride <= length; stride++ {
					what := fmt.Sprint(n, length, stride, prefix)
					seen := make([]int, n)
					windows := cut(text, length, stride, prefix)
					for i, w := range windows {
						require.Equal(t, i*stride, w.at, what)
						require.Equal(t, append([]int32{}, prefix...), append([]int32{}, w.tokens[:len(prefix)]...), what)
						require.LessOrEqual(t, len(w.tokens), length+len(prefix), what)
						count := 0
						for row, target := range w.targets {
							if target == nn.IgnoreIndex {
								continue
							}
							count++
							place := w.place(row, len(prefix))
							seen[place]++
							require.Equal(t, text[place], target, what)
							require.Equal(t, text[w.at:place], w.tokens[len(prefix):row+1], what)
						}
						require.Equal(t, w.count, count, what)
						require.Positive(t, count, what)
					}
					for place, k := range seen {
						want := 1
						if place == 0 && prefix == nil {
							want = 0
						}
						require.Equal(t, want, k, "%s: place %d", what, place)
					}
				}
			}
		}
	}
}

func TestRecipes(t *testing.T) {
	for _, name := range Names() {
		r := recipe(t, name)
		require.NoError(t, r.check(), name)
		require.Equal(t, name, r.Name)
	}
	require.Equal(t, "E4M3 1x128 te-block-pow2, weights 128x128", recipe(t, "fp8").String())
	require.Equal(t, "E2M1 1x16 nvfp4-te, weights 16x16", recipe(t, "nvfp4").String())
	require.Equal(t, "E2M1 1x16 nvfp4-te", recipe(t, "nvfp4-te").String(), "as checkpoints hold it")
	require.Equal(t, "E4M3 tensor te-current", recipe(t, "te-current").String())
	require.Equal(t, "E3M2 1x32 mx-floor", recipe(t, "mx-floor:e3m2").String())
	require.Equal(t, "E8M7, E8M7", recipe(t, "bf16").String())
	for name, want := range map[string]string{
		"te-delayed":     "recipe te-delayed takes its scale from the amax of earlier steps, which a model does not hold: use te-current",
		"fp9":            `there is no recipe "fp9": want one of fp8, mxfp8`,
		"":               `there is no recipe ""`,
		"mx-floor:e9":    `recipe "mx-floor:e9"`,
		"nvfp4-te:e4m3":  `recipe "nvfp4-te:e4m3": nvfp4-te is not for E4M3`,
		"mx-floor:e4m3:": `recipe "mx-floor:e4m3:"`,
	} {
		_, err := ParseRecipe(name)
		require.ErrorIs(t, err, ErrOptions)
		require.ErrorContains(t, err, "evaluate: "+want)
	}
	for _, m := range Modes() {
		text, err := m.MarshalText()
		require.NoError(t, err)
		var back Mode
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, m, back)
	}
	_, err := ParseMode("none")
	require.ErrorIs(t, err, ErrOptions)
}

func TestRefused(t *testing.T) {
	c := smallConfig()
	m := smallModel(t, c)
	tokens := someTokens(30, c.Vocab)
	fp8 := []Recipe{recipe(t, "fp8")}
	wrong := append(append([]int32(nil), tokens...), 23)
	for _, refused := range []struct {
		tokens []int32
		o      Options
		kind   error
		want   string
	}{
		{wrong, Options{}, ErrTokens, "token 30 of the text is 23: the model has those from 0 to 22"},
		{tokens, Options{Prefix: []int32{-1}}, ErrTokens, "token 0 of the prefix is -1"},
		{tokens[:1], Options{}, ErrTokens, "1 tokens: at least one must follow another"},
		{nil, Options{Prefix: []int32{1}}, ErrTokens, "0 tokens"},
		{tokens, Options{Context: 13}, ErrOptions, "Context is 13: it must be from 1 to the model's 12"},
		{tokens, Options{Context: 1, Prefix: []int32{1}}, ErrOptions, "Context is 1: the prefix has 1 tokens, which leaves none"},
		{tokens, Options{Context: 5, Stride: 6}, ErrOptions, "Stride is 6: it must be from 1 to 5"},
		{tokens, Options{Modes: []Mode{7}}, ErrOptions, "Modes: "},
		{tokens, Options{Recipes: []Recipe{{Name: "odd", Input: nn.Narrowing{Format: "E9M9"}}}}, ErrOptions, `recipe "odd", activations: nn: `},
	} {
		_, err := Run(t.Context(), m, refused.tokens, refused.o)
		require.ErrorIs(t, err, refused.kind)
		require.ErrorContains(t, err, "evaluate: "+refused.want)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := Run(ctx, m, tokens, Options{Recipes: fp8})
	require.ErrorIs(t, err, context.Canceled)

	m.Param("model.norm.weight").Value[0] = float32(math.NaN())
	_, err = Run(t.Context(), m, tokens, Options{Recipes: fp8})
	require.ErrorIs(t, err, ErrModel)
	require.ErrorContains(t, err, "the logits for token 1 are not finite in FP32")
}

// TestNonFinite counts what a recipe that cannot hold an outlier makes infinite.
func TestNonFinite(t *testing.T) {
	c := smallConfig()
	m := smallModel(t, c)
	bf16 := recipe(t, "bf16")
	m.Blocks()[1].MLP.Down.Weight.Value[3] = math.MaxFloat32 // infinite in BF16
	m.Blocks()[1].MLP.Up.Weight.Value[0] = 0
	for i := range m.Blocks()[1].MLP.Up.Weight.Cols {
		m.Blocks()[1].MLP.Up.Weight.Value[3*m.Blocks()[1].MLP.Up.Weight.Cols+i] = 1e-30
	}
	report, err := Run(t.Context(), m, someTokens(9, c.Vocab), Options{Recipes: []Recipe{bf16}, Modes: []Mode{Weights}})
	require.NoError(t, err)
	got := report.Results[0]
	require.Equal(t, 8, got.NonFinite)
	require.True(t, math.IsNaN(float64(got.KL.Mean)))
	require.True(t, math.IsNaN(float64(got.Perplexity)))
	require.Equal(t, "model.layers.1", got.WorstLayers(2)[0].Name)
	require.Equal(t, "model.layers.1.mlp.down_proj", got.WorstLinears(1)[0].Name)
	require.Zero(t, got.Layers[0].NonFinite)
	require.Equal(t, "down_proj", got.WorstKinds(1)[0].Name)
}

func TestLn(t *testing.T) {
	for x := 1.0; x < 1<<40; x *= 1.0173 {
		require.InDelta(t, math.Log(x), ln(x), 1e-12, "%v", x)
	}
}

// mixture has latent attention, a dense layer, and two with experts, of which 3 of 6 are chosen.
func mixture() nn.Config {
	c := smallConfig()
	c.Layers, c.KVHeads, c.Dense = 3, 0, 1
	c.MLA = &nn.MLAConfig{QueryRank: 8, KVRank: 8, NoPE: 4, RoPE: 4, Value: 4}
	c.Experts = &nn.ExpertsConfig{Hidden: 12, Shared: 1, Router: nn.RouterConfig{Experts: 6, TopK: 3}}
	return c
}

// TestMixture compares with models of which every linear layer, those of one layer or those of
// one kind were quantized, loops in float64.
func TestMixture(t *testing.T) {
	c := mixture()
	m := smallModel(t, c)
	tokens, r := someTokens(57, c.Vocab), recipe(t, "fp8")
	report, err := Run(t.Context(), m, tokens, Options{
		Recipes: []Recipe{r}, Modes: []Mode{Weights, Both}, Context: plainLength + 1, Prefix: []int32{plainPrefix},
	})
	require.NoError(t, err)
	kl := func(got *nn.Llama) (mean float64) {
		n := 0
		for _, w := range plain(t, m, got, tokens) {
			mean, n = mean+w.kl, n+w.n
		}
		return mean / float64(n)
	}
	decoded := func(which func(name string) bool) *nn.Llama {
		return copyOf(t, m, c, func(name string, w []float32, cols int) {
			if which(name) {
				decode(t, *r.Weight.Recipe, w, cols)
			}
		})
	}
	weights := report.Results[0]
	all := kl(decoded(func(string) bool { return true }))
	require.Greater(t, all, 1e-5)
	require.InDelta(t, all, float64(weights.KL.Mean), 1e-6)
	kinds := map[string]string{
		"q_a_proj": "q_a_proj.", "q_b_proj": "q_b_proj.", "kv_a_proj_with_mqa": "kv_a_proj",
		"kv_b_proj": "kv_b_proj.", "o_proj": "o_proj.",
		"gate_proj": "0.mlp.gate", "up_proj": "0.mlp.up", "down_proj": "0.mlp.down",
		"experts.gate_proj": ".experts.*.gate", "experts.up_proj": ".experts.*.up",
		"experts.down_proj": ".experts.*.down", "shared_experts.gate_proj": ".shared_experts.gate",
		"shared_experts.up_proj": ".shared_experts.up", "shared_experts.down_proj": ".shared_experts.down",
	}
	require.Len(t, weights.Kinds, len(kinds))
	for _, k := range weights.Kinds {
		before, after, _ := strings.Cut(kinds[k.Name], "*")
		want := kl(decoded(func(name string) bool {
			return strings.Contains(name, before) && strings.Contains(name, after)
		}))
		require.NotZero(t, kinds[k.Name], k.Name)
		require.Greater(t, want, 1e-9, k.Name)
		require.InDelta(t, want, float64(k.KL.Mean), 1e-6, k.Name)
	}
	for layer, part := range weights.Layers {
		prefix := fmt.Sprintf("model.layers.%d.", layer)
		want := kl(decoded(func(name string) bool { return strings.HasPrefix(name, prefix) }))
		require.InDelta(t, want, float64(part.KL.Mean), 1e-6, part.Name)
	}
	require.Len(t, weights.Linears, 3*5+3+2*(6*3+3))

	quantized := c
	quantized.FP8 = recipe(t, "fp8").options(Both).FP8
	require.InDelta(t, kl(copyOf(t, m, quantized, nil)), float64(report.Results[1].KL.Mean), 1e-6)
}

// TestIdleExpert: one that no token goes to has no place among linear layers.
func TestIdleExpert(t *testing.T) {
	c := mixture()
	c.Experts.Router.TopK, c.Experts.Shared = 1, 0
	m := smallModel(t, c)
	for _, b := range m.Blocks()[1:] {
		clear(b.Experts.Router.Gate.Weight.Value)
	}
	for _, name := range []string{"fp8", "bf16", "te-current"} {
		report, err := Run(t.Context(), m, someTokens(20, c.Vocab), Options{Recipes: []Recipe{recipe(t, name)}})
		require.NoError(t, err, name)
		for _, r := range report.Results {
			require.Len(t, r.Linears, 3*5+3+2*3, "%s %v", name, r.Mode)
			for _, l := range r.Linears {
				require.False(t, math.IsNaN(float64(l.SQNR)), "%s %v %s", name, r.Mode, l.Name)
			}
		}
	}
}
