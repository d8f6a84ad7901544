package quantizer

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func (e *example) text() string {
	v := e.check()
	var b strings.Builder
	require.NoError(e.t, v.WriteText(&b))
	data, err := json.Marshal(v)
	require.NoError(e.t, err)
	require.Contains(e.t, string(data), v.Outcome)
	var page strings.Builder
	require.NoError(e.t, v.WritePage(&page, "octavo verify", "a machine"))
	require.Contains(e.t, page.String(), "<h1")
	return strings.Join(strings.Fields(b.String()), " ")
}

// TestSentences has each sentence for an input of which it is true, and not for one of which it
// is not.
func TestSentences(t *testing.T) {
	honest := func() *example {
		return newExample(t, laplace(3, 40, 256, 23), 40, 256, scaling.DeepSeek, fp8.E4M3, tile)
	}
	texts := map[string]string{"right": honest().text()}
	e := honest()
	e.got.Codes[300] ^= 1
	texts["one code"] = e.text()
	e = honest()
	e.got.Codes[300] ^= 0x38 // which no scale gives
	texts["far code"] = e.text()
	e = honest()
	e.got.Scales[5] *= 1.01
	texts["one scale"] = e.text()
	e = honest()
	for n := range e.got.Scales {
		s := e.got.Scales[n] / 2
		e.got.Scales[n] = s
		e.encode(n, 1, "even", func(y float32) float32 { return y / s })
	}
	texts["half"] = e.text()
	e = honest()
	for n := 20; n < 40; n++ {
		s := e.got.Scales[n]
		e.encode(n, 1, "cut", func(y float32) float32 { return y / s })
	}
	e.got.Codes[0] ^= 1
	texts["cut and one"] = e.text()
	e = honest()
	e.x, e.got.Shape, e.got.Codes, e.got.Scales = nil, []int{0, 256}, nil, nil
	texts["empty"] = e.text()
	x := laplace(3, 40, 256, 23)
	x[3] = float32(math.NaN())
	e = newExample(t, x, 40, 256, scaling.MXCompressedTensors, fp8.E4M3, micro)
	e.got.Scales[0] = 1
	texts["undefined"] = e.text()
	e = honest()
	e.recipe.Policy.Rounding = fp8.Stochastic
	texts["nearest"] = e.text()
	q := scaling.Quantizer{Recipe: e.recipe}
	require.NoError(t, scaling.Quantize(t.Context(), e.got, e.x, q))
	texts["random"] = e.text()

	for _, s := range []struct{ sentence, of, not string }{
		{"PASS: all 80 scales and 10240 codes are those of deepseek E4M3 1x128, bit for bit", "right", "one code"},
		{"PASS: ", "right", "undefined"},
		{"PASS: all", "right", "one scale"},
		{"PASS: there is no element", "empty", "right"},
		{"each of 10240 codes is next to its value, and no test of their rounding raises an alarm", "random", "nearest"},
		{"FAIL: 0 of 80 scales and 1 of 10240 codes are not those of deepseek", "one code", "right"},
		{"they are not rounded at random", "nearest", "random"},
		{"UNDECIDED: 1 of 320 scales and ", "undefined", "right"},
		{"compressed-tensors does not define the scale of a block with NaN", "undefined", "right"},
		{"fault scale-exponent-off: ", "half", "one scale"},
		{"fault directed: ", "cut and one", "one code"},
		{"and not 1 wrong codes", "cut and one", "half"},
		{"no known fault explains it", "one code", "half"},
		{"codes are right: what is stored is not the scale that they are made with", "one scale", "one code"},
		{"codes of 1 of 1 blocks with wrong ones are those of one scale each", "cut and one, interval", "far code"},
		{"no one scale gives all codes of a block, in 1 block with wrong ones", "far code", "half"},
		{"all codes are right under the scales that are stored", "half", "one scale"},
		{"only what is stored is wrong", "one scale", "half"},
	} {
		if s.of != "cut and one, interval" {
			require.Contains(t, texts[s.of], s.sentence)
		}
		require.NotContains(t, texts[s.not], s.sentence)
	}
	// Codes of another scale, of which no rule says which.
	e = honest()
	e.encode(7, 1, "even", func(y float32) float32 { return y / (e.got.Scales[7] * 1.217) })
	require.Contains(t, e.text(), "codes are made with another scale than is stored: codes of 1 of 1 blocks with wrong ones are those of one scale each")
}

// TestNoise explains nothing by a known fault where bits were changed by chance.
func TestNoise(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, p := range []scaling.Profile{scaling.DeepSeek, scaling.MXRCeil, scaling.TECurrent, scaling.NVFP4TE} {
			f := fp8.E4M3
			if p == scaling.NVFP4TE {
				f = fp8.E2M1
			}
			e := newExample(t, laplace(seed, 40, 256, 23), 40, 256, p, f, p.Block(scaling.Input))
			for range 1 + r.IntN(400) {
				e.got.Codes[r.IntN(len(e.got.Codes))] ^= 1 << r.IntN(f.Bits()-1)
			}
			v := e.check()
			require.Equal(t, "fail", v.Outcome)
			require.Empty(t, convincing(v), "%v: %s", p, v.Cause())
			e = newExample(t, laplace(seed, 40, 256, 23), 40, 256, p, f, p.Block(scaling.Input))
			for range 1 + r.IntN(len(e.got.Scales)) {
				n := r.IntN(len(e.got.Scales))
				if e.got.ScaleFormat == tensor.Float32Scales {
					e.got.Scales[n] *= float32(0.5 + r.Float64())
				} else {
					e.got.Scales[n] = []float32{0.25, 0.5, 2, 4, 8}[r.IntN(5)]
				}
			}
			if v = e.check(); v.Outcome == "fail" {
				require.Empty(t, convincing(v), "%v: %s", p, v.Cause())
			}
		}
	}
}

// convincing are the findings that are more than perhaps so.
func convincing(v *Verdict) (all []Finding) {
	for _, f := range v.Findings {
		if !f.Weak {
			all = append(all, f)
		}
	}
	return all
}

// TestFew has a fault that shows in few codes named with reserve, and chance not at all.
func TestFew(t *testing.T) {
	e := newExample(t, laplace(3, 40, 256, 23), 40, 256, scaling.MXFloor, fp8.E4M3, micro)
	changed := 0
	for i, c := range e.got.Codes {
		if y := e.x[i] / e.got.Scale(i/256, i%256); changed < 3 && math.Abs(float64(y)) > 470 {
			e.got.Codes[i] = c | 0x7F
			changed++
		} else if changed == 3 {
			e.x[i] = 0
			e.got.Codes[i] = 0
		}
	}
	require.Equal(t, 3, changed)
	for n := range e.got.Scales {
		if e.amax(n, size) == 0 {
			e.got.Scales[n] = 0x1p-127
		}
	}
	text := e.text()
	require.Contains(t, text, "perhaps fault overflow: ")
	require.Contains(t, text, "so few that chance may look the same")
}

// TestUndefined leaves undecided what libraries leave undefined, and nothing else.
func TestUndefined(t *testing.T) {
	x := laplace(3, 40, 256, 23)
	x[3], x[40] = float32(math.Inf(1)), float32(math.NaN())
	for p, blocks := range map[scaling.Profile][]int{scaling.MXModelOpt: {0, 1}, scaling.MXCompressedTensors: {1}, scaling.MXFloor: {}} {
		for n := range 2 {
			e := newExample(t, x, 40, 256, p, fp8.E2M1, micro)
			require.True(t, e.check().Pass)
			e.got.Scales[n] = 2
			want := "fail"
			for _, b := range blocks {
				if b == n {
					want = "undecided"
				}
			}
			require.Equal(t, want, e.check().Outcome, "%v %d", p, n)
			e.got.Scales[100] = 0x1p-100
			require.Equal(t, "fail", e.check().Outcome)
		}
	}
	e := newExample(t, x, 40, 256, scaling.TEBlock, fp8.E4M3, tile)
	e.got.Codes[40] ^= 0x80 // a NaN of the other sign
	v := e.check()
	require.Equal(t, "undecided", v.Outcome)
	require.Equal(t, 1, v.Codes.Undecided)
}

// TestAlike lists faults that give the same bits, and not those that values tell apart.
func TestAlike(t *testing.T) {
	down := func(x []float32) *Verdict {
		e := newExample(t, x, 60, 320, scaling.MXRCeil, fp8.E4M3, micro)
		for n := range e.got.Scales {
			s := math.Exp2(math.Floor(math.Log2(e.amax(n, size) / 448)))
			e.got.Scales[n] = float32(s)
			e.encode(n, 1/s, "even", nil)
		}
		return e.check()
	}
	x := laplace(3, 60, 320, 23)
	require.Contains(t, down(x).Cause(), "cannot be told, by these values, from")
	for b := range 600 {
		x[b*32] = 448 * float32(math.Exp2(float64(b%3))) // whose scale is exact: down is not one too low
		for k := 1; k < 32; k++ {
			x[b*32+k] = min(max(x[b*32+k], -400), 400)
			if b%2 == 0 {
				x[b*32] = 500
			}
		}
	}
	cause := down(x).Cause()
	require.Contains(t, cause, "rounded down")
	require.NotContains(t, cause, "one too low")
}

// TestWorkers gives the same verdict whatever the number of goroutines.
func TestWorkers(t *testing.T) {
	var texts []string
	for _, workers := range []int{0, 1, 3} {
		e := newExample(t, laplace(3, 60, 320, 23), 60, 320, scaling.MXRCeil, fp8.E4M3, micro)
		for n, s := range e.got.Scales {
			e.encode(n, 1/float64(s), "cut", nil)
		}
		v, err := Check(t.Context(), Result[float32]{X: e.x, Got: e.got}, e.recipe, Options{Workers: workers})
		require.NoError(t, err)
		texts = append(texts, v.Title()+v.Cause())
	}
	require.Equal(t, texts[0], texts[1])
	require.Equal(t, texts[0], texts[2])
}

// TestIdentify finds the profile, block and rounding of what octavo quantized, and lists those that
// cannot be told apart with values that do.
func TestIdentify(t *testing.T) {
	for _, p := range scaling.Profiles() {
		f := scaling.Profile.Recipe(p, scaling.Input).Format
		if p.Delayed() {
			continue
		}
		x := values(3, 64, 256, false)
		e := newExample(t, x, 64, 256, p, f, p.Block(scaling.Input))
		id, err := Identify(t.Context(), x, e.got, e.got.Scales, nil, Options{})
		require.NoError(t, err)
		found := false
		for n, c := range id.Same {
			found = found || c.Profile == p && c.Block == e.recipe.Block
			require.False(t, n == 0 && c.Apart != "")
		}
		require.True(t, found, "%v: %s", p, id.Title())
		// What was tried is in no reason for what was not.
		var b strings.Builder
		require.NoError(t, id.WritePage(&b, "octavo identify", ""))
		_, notJudged, _ := strings.Cut(b.String(), "<h2>Not judged</h2>")
		for _, c := range append(id.Same, id.Nearest...) {
			require.Equal(t, len(e.got.Outer.Scales) == 0, c.outer() == "none", "outer scales that are not there are not right")
			require.NotRegexp(t, `[ >]`+regexp.QuoteMeta(string(c.Profile))+`[,:]`, notJudged)
		}
		require.Regexp(t, `[ >]te-delayed[,:][^<]*scales follow from earlier steps`, notJudged)
		require.Equal(t, len(id.NotTried) > 1, strings.Contains(notJudged, "scales of another type, number or levels in all usual blocks"))
	}
	x := laplace(3, 64, 256, 23)
	r := scaling.Recipe{Profile: scaling.DeepSeek, Block: tile, Policy: fp8.Policy{Rounding: fp8.TowardZero}}
	got := &tensor.Tensor{Shape: []int{64, 256}}
	require.NoError(t, scaling.Quantize(t.Context(), got, x, scaling.Quantizer{Recipe: r}))
	id, err := Identify(t.Context(), x, got, got.Scales, nil, Options{})
	require.NoError(t, err)
	require.Contains(t, id.Title(), "1x128 rounded toward-zero")
	got.Codes[77] ^= 1
	id, err = Identify(t.Context(), x, got, got.Scales, nil, Options{})
	require.NoError(t, err)
	require.Contains(t, id.Title(), "gives all bits")
	require.Equal(t, "toward-zero", id.Nearest[0].Rounding)
	_, err = Identify(t.Context(), x, got, got.Scales[1:], nil, Options{})
	require.ErrorIs(t, err, tensor.ErrShape)
}
