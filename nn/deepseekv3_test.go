package nn

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestE5M6Codes: every code is that of IEEE binary16 without its last four bits of
// mantissa.
func TestE5M6Codes(t *testing.T) {
	for code := range uint16(1 << 12) {
		want := float16.Frombits(code << 4).Float32()
		got := e5m6Value(code)
		if math.IsNaN(float64(want)) {
			require.True(t, math.IsNaN(float64(got)), "%#03x", code)
			require.True(t, math.IsNaN(float64(e5m6Value(e5m6Code(want)))), "%#03x", code)
			continue
		}
		require.Equal(t, math.Float32bits(want), math.Float32bits(got), "%#03x", code)
		require.Equal(t, code, e5m6Code(want))
	}
}

// TestKeptE5M6 rounds to the nearest of all numbers of the format, found one by one, under
// the largest power of two that carries none past the largest.
func TestKeptE5M6(t *testing.T) {
	const rows, cols = 9, 141 // two tiles in a row, which ends with half a byte
	var numbers []float64     // at least 0, ascending
	for code := range uint16(31 << 6) {
		numbers = append(numbers, float64(float16.Frombits(code<<4).Float32()))
	}
	nearest := func(x float64) float64 {
		best := 0
		for i, n := range numbers {
			d, least := math.Abs(math.Abs(x)-n), math.Abs(math.Abs(x)-numbers[best])
			if d < least || d == least && i%2 == 0 {
				best = i
			}
		}
		return math.Copysign(numbers[best], x)
	}
	x := randoms(1, rows*cols)
	for i := range x { // many binades in each tile
		x[i] *= float32(math.Ldexp(1, -i*7%40))
	}
	copy(x, []float32{
		65024, 65024 * (1 - 0x1p-8), -1.5 * 0x1p-20, 2.5 * 0x1p-20, 0.5 * 0x1p-20, 0,
		1 + 0x1p-7, 1 + 3*0x1p-7,
	})
	clear(x[cols : 2*cols])
	for i := range cols { // below the smallest normal float32
		x[2*cols+i] = float32(math.Ldexp(float64(i), -140))
	}
	for _, workers := range []int{1, 3} {
		k := keptE5M6{workers: workers}
		k.keep(randoms(2, 2*len(x)), 2*rows, cols) // memory is reused
		k.keep(x, rows, cols)
		require.Len(t, k.codes, rows*((12*cols+7)/8))
		require.Len(t, k.scales, rows*2)
		got := make([]float32, len(x))
		k.restore(got)
		for i, v := range x {
			lo := i/cols*cols + i%cols/128*128
			tile := x[lo:min(lo+128, i/cols*cols+cols)]
			up := 1.0
			if amax := largestOf(tile); amax > 0 {
				up = math.Exp2(min(math.Floor(math.Log2(65024/amax)), 127))
			}
			require.Equal(t, float32(nearest(float64(v)*up)/up), got[i], "element %d: %v", i, v)
		}
	}
	special := []float32{float32(math.Inf(-1)), float32(math.NaN()), 3, float32(math.Inf(1)), 1e30}
	var k keptE5M6
	k.keep(special, 1, len(special))
	got := make([]float32, len(special))
	k.restore(got)
	require.True(t, math.IsNaN(float64(got[1])))
	got[1] = 0
	require.Equal(t, []float32{special[0], 0, 3, special[3], 65024}, got, "an infinity has no scale")
}

// TestWeightGradientOfTiles follows the weight gradient of a layer by hand: x rounded in
// tiles along channels, then along tokens, and dy along tokens.
func TestWeightGradientOfTiles(t *testing.T) {
	const rows, out, in = 150, 5, 131
	recipe, err := ParseRecipe("deepseek-v3")
	require.NoError(t, err)
	x, dy := randoms(2, rows*in), randoms(3, rows*out)
	for i := range x { // outliers in some channels, by which both ways to cut tiles differ
		if i%in%50 == 7 {
			x[i] *= 300
		}
	}
	gradient := func(f ActivationFormat) []float32 {
		o := Options{FP8: &recipe.FP8, Activations: f, Workers: 2}
		l, err := NewLinear("layer.weight", out, in, o)
		require.NoError(t, err)
		copy(l.Weight.Value, randoms(1, out*in))
		y, dx := make([]float32, rows*out), make([]float32, rows*in)
		caller := append([]float32(nil), x...)
		require.NoError(t, l.Forward(t.Context(), y, caller, rows))
		if f != ActivationsFP32 {
			clear(caller) // it is not read again
		}
		require.NoError(t, l.Backward(t.Context(), dx, dy))
		w := l.Weight.Value
		require.Equal(t, quantizedProduct(t, recipe.FP8.Forward, x, w, rows, out, in), y)
		wantDX := quantizedProduct(t, recipe.FP8.InputGradient, dy, flip(w, out), rows, in, out)
		require.Equal(t, wantDX, dx)
		return l.Weight.Grad
	}
	got := gradient(ActivationsDeepSeekV3)
	tiles := roundedTo(fp8E4M3, 128, exactMultiplier, x, in)
	dyT, xT := flip(dy, rows), flip(tiles, rows)
	require.Equal(t, quantizedProduct(t, recipe.FP8.WeightGradient, dyT, xT, out, in, rows), got)

	a := roundedTo(fp8E4M3, 128, exactMultiplier, dyT, rows)
	b := roundedTo(fp8E4M3, 128, exactMultiplier, xT, rows)
	var distance, norm float64 // from the gradient of x that was rounded once
	easier := gradient(ActivationsFP8)
	for i := range got {
		sum, magnitudes := 0.0, 0.0
		for k := range rows {
			p := float64(a[i/in*rows+k]) * float64(b[i%in*rows+k])
			sum, magnitudes = sum+p, magnitudes+math.Abs(p)
		}
		require.InDelta(t, sum, got[i], (rows+8)*0x1p-24*magnitudes, "element %d", i)
		distance += float64(got[i]-easier[i]) * float64(got[i]-easier[i])
		norm += float64(got[i]) * float64(got[i])
	}
	require.Equal(t, gradient(ActivationsFP32), easier)
	require.Greater(t, math.Sqrt(distance/norm), 0.01, "two roundings are not one")
}

// TestAttentionReadsE5M6: the output projection's weight gradient and the gradients of
// queries, keys and values, by formulas of what was kept.
func TestAttentionReadsE5M6(t *testing.T) {
	const batch, seq = 2, 19
	cfg := ragged()
	recipe, err := ParseRecipe("deepseek-v3")
	require.NoError(t, err)
	recipe.Apply(&cfg, 0)
	a := livelyModel(t, cfg).blocks[0].Attention
	rows, dim, headDim := batch*seq, cfg.Dim, cfg.Dim/cfg.Heads
	x, dy := randoms(5, rows*dim), randoms(6, rows*dim)
	require.NoError(t, a.Forward(t.Context(), make([]float32, len(x)), x, batch, seq))
	mixed := append([]float32(nil), *a.mixed...)
	clear(*a.mixed) // as the next layer may
	require.NoError(t, a.Backward(t.Context(), make([]float32, len(x)), dy))

	o := roundedTo(e5m6, 128, powerOfTwoMultiplier, mixed, dim)
	rounded := recipe.FP8
	rounded.WeightGradient.B.Profile = scaling.TEBlockPow2
	want := quantizedProduct(t, rounded.WeightGradient, flip(dy, rows), flip(o, rows), dim, dim, rows)
	require.Equal(t, want, a.Output.Weight.Grad)

	q, k, v, dO := unrotated(t, cfg, a, rows)
	dQ := make([]float64, len(a.q))
	dK, dV := make([]float64, len(a.k)), make([]float64, len(a.v))
	kv := dim / cfg.Heads * cfg.KVHeads
	for row := range rows {
		for h := range cfg.Heads {
			first, group := row/seq*seq, h/(cfg.Heads/cfg.KVHeads)
			qi, oi := row*dim+h*headDim, row*dim+h*headDim
			at := func(j int) int { return j*kv + group*headDim }
			dot := func(a, b []float32) (sum float64) {
				for i := range headDim {
					sum += float64(a[i]) * float64(b[i])
				}
				return sum
			}
			var p []float64
			total := 0.0
			for j := first; j <= row; j++ {
				p = append(p, math.Exp(dot(q[qi:], k[at(j):])/math.Sqrt(float64(headDim))))
				total += p[len(p)-1]
			}
			mean := dot(dO[oi:], o[oi:])
			for j := first; j <= row; j++ {
				pj := p[j-first] / total
				ds := pj * (dot(dO[oi:], v[at(j):]) - mean) / math.Sqrt(float64(headDim))
				for i := range headDim {
					dQ[qi+i] += ds * float64(k[at(j)+i])
					dK[at(j)+i] += ds * float64(q[qi+i])
					dV[at(j)+i] += pj * float64(dO[oi+i])
				}
			}
		}
	}
	for name, both := range map[string]struct {
		want []float64
		got  []float32
	}{"dq": {dQ, a.scratch.dq}, "dk": {dK, a.scratch.dk}, "dv": {dV, a.scratch.dv}} {
		for i, w := range both.want {
			require.InDelta(t, w, both.got[i], 2e-5*(1+math.Abs(w)), "%s %d", name, i)
		}
	}
}

// unrotated returns what attention multiplied, with the gradients in scratch as they were
// before they were rotated back.
func unrotated(t *testing.T, cfg Config, a *Attention, rows int) (q, k, v, dO []float32) {
	r, err := NewRotary(cfg.Dim/cfg.Heads, cfg.Context, 0)
	require.NoError(t, err)
	r.rotate(a.scratch.dq, cfg.Heads, 0, a.seq, a.seq, 1, 1)
	r.rotate(a.scratch.dk, cfg.KVHeads, 0, a.seq, a.seq, 1, 1)
	return a.q, a.k, a.v, a.scratch.dMixed
}

// scalesOf hears the scales of every operand.
type scalesOf struct {
	sync.Mutex
	scales map[string][]float32
}

func (s *scalesOf) Block(op, name string, _, _ int, scale float32, _ *fp8.Stats) {
	s.Lock()
	defer s.Unlock()
	s.scales[name+" "+op] = append(s.scales[name+" "+op], scale)
}

func (s *scalesOf) NonFinite(string, string, int, float64) {}

// TestDeepSeekV3Scales: which are powers of two.
func TestDeepSeekV3Scales(t *testing.T) {
	cfg := small()
	recipe, err := ParseRecipe("deepseek-v3")
	require.NoError(t, err)
	recipe.Apply(&cfg, 0)
	m := livelyModel(t, cfg)
	heard := &scalesOf{scales: map[string][]float32{}}
	m.Listen(heard)
	tokens := someTokens(1, 32, cfg.Vocab)
	_, err = m.Loss(t.Context(), tokens, tokens, 2, 16)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	rounded := map[string]bool{
		"self_attn.o_proj.input": true, "mlp.gate_proj.input": true, "mlp.up_proj.input": true,
		"mlp.down_proj.gradient": true,
	}
	operands := map[string]int{
		"input forward": 0, "weight forward": 0, "gradient input-gradient": 0, "weight input-gradient": 0,
		"gradient weight-gradient": 0, "input weight-gradient": 0,
	}
	for _, layer := range []string{
		"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
		"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
	} {
		for operand := range operands {
			name := "model.layers.1." + layer + "." + operand
			require.NotEmpty(t, heard.scales[name], name)
			all := true
			for _, s := range heard.scales[name] {
				fraction, _ := math.Frexp(float64(s))
				all = all && fraction == 0.5
			}
			what := strings.Fields(layer + "." + operand)[0]
			require.Equal(t, rounded[what], all, name)
		}
	}
}

// TestDeepSeekV3Recipe is what the paper says of its formats and blocks.
func TestDeepSeekV3Recipe(t *testing.T) {
	r, err := ParseRecipe("deepseek-v3")
	require.NoError(t, err)
	parts := []Part{PartSquareWeights, PartRequantized, PartRoundScales, PartBF16Moments}
	require.Equal(t, parts, r.Parts())
	for _, o := range r.FP8.operands() {
		want := tensor.Block{Rows: 1, Cols: 128}
		if o.tensor == "weight" {
			want.Rows = 128
		}
		recipe := scaling.Recipe{Profile: scaling.TEBlock, Format: fp8.E4M3, Block: want}
		require.Equal(t, recipe, o.recipe, o.field)
	}
	_, loss, gradients := firstPass(t, r)
	for p, forward := range map[Part]bool{PartRequantized: false, PartRoundScales: true} {
		_, other, without := firstPass(t, r.Without(p))
		require.NotEqual(t, gradients, without, p)
		require.Equal(t, forward, loss != other, p)
	}
	cfg := kept(small(), ActivationsFP8)
	r.Without(PartRequantized).Apply(&cfg, 0)
	require.Equal(t, ActivationsFP8, cfg.Activations, "the recipe does not say")
	r.Apply(&cfg, 0)
	require.Equal(t, ActivationsDeepSeekV3, cfg.Activations)
}

// TestRoundScalesRefuses profiles without powers of two.
func TestRoundScalesRefuses(t *testing.T) {
	for profile, want := range map[scaling.Profile]string{
		"": "", scaling.TEBlock: "", scaling.TECurrentPow2: "", scaling.DeepSeek: "", scaling.MXFloor: "",
		scaling.MTFP8: "FP8.RoundScales: Forward.A has profile mtfp8, of which there is no variant " +
			"with powers of two: leave RoundScales out, or take te-block",
		scaling.TEDelayed: "Forward.A has profile te-delayed",
	} {
		f := ProfileFP8(profile, fp8.E4M3)
		f.RoundScales = true
		err := withFP8(small(), f).Validate()
		if want == "" {
			require.NoError(t, err, profile)
			continue
		}
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
	}
}
