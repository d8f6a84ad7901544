package agree_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// e4m3 are the numbers of OCP E4M3 that are not negative, from their definition.
var e4m3 = func() (all []float64) {
	for code := range 127 {
		e, m := code>>3, float64(code&7)
		if e == 0 {
			all = append(all, math.Ldexp(m, -9))
		} else {
			all = append(all, math.Ldexp(8+m, e-10))
		}
	}
	return all
}()

// nearest rounds x to E4M3: to nearest even, beyond the largest to the largest.
func nearest(x float64) (value float64, code byte) {
	a, best := math.Abs(x), 0
	for i, v := range e4m3 {
		d, least := math.Abs(a-v), math.Abs(a-e4m3[best])
		if d < least || d == least && i%2 == 0 {
			best = i
		}
	}
	value, code = e4m3[best], byte(best)
	if math.Signbit(x) {
		value, code = -value, code|0x80
	}
	return value, code
}

// blocks are what DeepGEMM makes of a matrix: codes, and max(amax, 1e-4)/448 of each block.
type blocks struct {
	rows, cols, h, w int
	codes            []byte
	values           []float64 // of codes
	scales           []float32
}

func (b *blocks) grid() (int, int) { return (b.rows + b.h - 1) / b.h, (b.cols + b.w - 1) / b.w }

func (b *blocks) scale(i, j int) *float32 {
	_, across := b.grid()
	return &b.scales[i/b.h*across+j/b.w]
}

func quantize(x []float32, rows, cols, h, w int, change func(s float32) float32) *blocks {
	b := &blocks{rows: rows, cols: cols, h: h, w: w, codes: make([]byte, rows*cols), values: make([]float64, rows*cols)}
	down, across := b.grid()
	b.scales = make([]float32, down*across)
	for i := range rows {
		for j := range cols {
			s := b.scale(i, j)
			*s = max(*s, float32(math.Abs(float64(x[i*cols+j]))))
		}
	}
	for i, amax := range b.scales {
		b.scales[i] = change(max(amax, 1e-4) / 448)
	}
	for i := range rows {
		for j := range cols {
			at := i*cols + j
			b.values[at], b.codes[at] = nearest(float64(x[at] * (1 / *b.scale(i, j))))
		}
	}
	return b
}

func kept(s float32) float32 { return s }

// roundedUp is the power of two at or above s.
func roundedUp(s float32) float32 {
	p := float32(0x1p-100)
	for p < s {
		p *= 2
	}
	return p
}

// sums are products added in float32, in order, within blocks of K of 128, and rounded.
type sums struct {
	a, b func(i, k int) (value float64, scale float32)
}

func (s sums) product(m, n, k int, round func(float32) float32) []float32 {
	out := make([]float32, m*n)
	for i := range m {
		for j := range n {
			total := float32(0)
			for lo := 0; lo < k; lo += 128 {
				part := float32(0)
				var sa, sb float32
				for at := lo; at < min(lo+128, k); at++ {
					var x, y float64
					x, sa = s.a(i, at)
					y, sb = s.b(j, at)
					part += float32(x * y)
				}
				total += float32(part*sa) * sb
			}
			out[i*n+j] = round(total)
		}
	}
	return out
}

func (b *blocks) at(i, k int) (float64, float32) { return b.values[i*b.cols+k], *b.scale(i, k) }

func plain(x []float32, cols int) func(i, k int) (float64, float32) {
	return func(i, k int) (float64, float32) { return float64(x[i*cols+k]), 1 }
}

// bf16 rounds to bfloat16 from its definition: eight bits, ties to even.
func bf16(x float32) float32 {
	f, e := math.Frexp(float64(x))
	return float32(math.Ldexp(math.RoundToEven(f*256), e-8))
}

func same(x float32) float32 { return x }

func bell(r *rand.Rand, n int, size float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = bf16(float32(r.NormFloat64() * size))
	}
	return x
}

// stored is a weight of codes in a checkpoint.
func stored(b *blocks) agree.Weight {
	t := &tensor.Tensor{
		Format: fp8.E4M3, Shape: []int{b.rows, b.cols}, Block: tensor.Block{Rows: b.h, Cols: b.w},
		Codes: b.codes, Scales: b.scales,
	}
	amax := float32(0)
	for i := range b.rows {
		for k := range b.cols {
			v, s := b.at(i, k)
			amax = max(amax, float32(math.Abs(v))*s)
		}
	}
	return agree.Weight{Rows: b.rows, Cols: b.cols, Codes: t, Values: dequantized(t), Amax: func() (float32, error) { return amax, nil }}
}

// dequantized reads the values of codes.
func dequantized(t *tensor.Tensor) func(dst []float32, lo int) error {
	return func(dst []float32, lo int) error { tensor.DequantizeRows(dst, t, lo); return nil }
}

// values is a weight of BF16.
func values(x []float32, rows, cols int) agree.Weight {
	return agree.Weight{
		Rows: rows, Cols: cols, Of: agree.BF16,
		Values: func(dst []float32, lo int) error { copy(dst, x[lo*cols:]); return nil },
		Amax: func() (float32, error) {
			amax, _ := fp8.Amax(x)
			return amax, nil
		},
	}
}

func recipes() (all []agree.Recipe) {
	for _, p := range scaling.Profiles() {
		if !p.Delayed() {
			x, w := p.Recipe(scaling.Input), p.Recipe(scaling.Weight)
			all = append(all, agree.Recipe{Name: string(p), Input: &x, Weight: &w})
		}
	}
	return append(all, agree.Recipe{Name: "bf16"})
}

func recipe(t *testing.T, name string) agree.Recipe {
	t.Helper()
	for _, r := range recipes() {
		if r.Name == name {
			return r
		}
	}
	t.Fatal(name)
	return agree.Recipe{}
}

// shape of a layer, and what its results are.
type shape struct {
	m, n, k int
	of      agree.Type
}

func (s shape) round() func(float32) float32 {
	if s.of == agree.BF16 {
		return bf16
	}
	return same
}

// check judges what an engine made of its input and a weight.
func check(t *testing.T, s shape, x, out []float32, w agree.Weight, claim string) *agree.Verdict {
	t.Helper()
	l := &agree.Layer{Tokens: s.m, Input: x, InputOf: agree.BF16, Output: out, Of: s.of, Weight: w, Passes: []int{s.m}}
	v, err := agree.Check(context.Background(), l, agree.Claim{Recipe: recipe(t, claim)}, agree.Options{Recipes: recipes()})
	require.NoError(t, err)
	return v
}

var shapes = []shape{{24, 200, 384, agree.BF16}, {9, 130, 300, agree.F32}, {40, 77, 161, agree.BF16}}

// TestLayers has engines that do what they claim, and others, and wants to be told what.
func TestLayers(t *testing.T) {
	for n, s := range shapes {
		r := rand.New(rand.NewPCG(uint64(n), 36))
		x, w := bell(r, s.m*s.k, 2), bell(r, s.n*s.k, 0.03)
		for i := range s.m { // rows whose scales are not alike
			for k := range s.k {
				x[i*s.k+k] = bf16(x[i*s.k+k] * float32(math.Exp2(float64(i%3)+float64(k/128))))
			}
		}
		qx, qw := quantize(x, s.m, s.k, 1, 128, kept), quantize(w, s.n, s.k, 128, 128, kept)
		upX, upW := quantize(x, s.m, s.k, 1, 128, roundedUp), *qw
		upW.scales = append([]float32(nil), qw.scales...)
		for i, scale := range upW.scales {
			upW.scales[i] = roundedUp(scale)
		}
		stands := make([]float32, s.n*s.k)
		for i := range s.n {
			for k := range s.k {
				v, scale := qw.at(i, k)
				stands[i*s.k+k] = float32(v) * scale
			}
		}
		again := quantize(stands, s.n, s.k, 128, 128, roundedUp)
		narrow := make([]float32, len(stands))
		for i, v := range stands {
			narrow[i] = bf16(v)
		}
		small := quantize(x, s.m, s.k, 1, 64, kept)
		codes := stored(qw)
		run := func(a, b func(i, k int) (float64, float32)) []float32 {
			return sums{a, b}.product(s.m, s.n, s.k, s.round())
		}
		scaledOnce := func(b *blocks) func(i, k int) (float64, float32) {
			return func(i, k int) (float64, float32) {
				v, scale := b.at(i, k)
				return v * float64(scale), 1
			}
		}
		_, across := qw.grid()
		down := (s.n + 127) / 128
		transposed := func(i, k int) (float64, float32) {
			at := i/128*across + k/128
			_ = at
			return qw.values[i*s.k+k], qw.scales[k/128*down+i/128]
		}
		for _, c := range []struct {
			name, claim string
			w           agree.Weight
			out         []float32
			want        string // of what explains it; "": it is right
		}{
			{"honest", "deepgemm", codes, run(qx.at, qw.at), ""},
			{"honest, dequantized first", "deepgemm", codes, run(scaledOnce(qx), scaledOnce(qw)), ""},
			{"honest BF16", "bf16", values(w, s.n, s.k), run(plain(x, s.k), plain(w, s.k)), ""},
			{"honest BF16 of codes", "bf16", codes, run(plain(x, s.k), plain(narrow, s.k)), ""},
			{"honest, quantized by the engine", "deepgemm", values(w, s.n, s.k), run(qx.at, qw.at), ""},
			{"honest up", "deepgemm-ue8m0", values(w, s.n, s.k), run(upX.at, quantize(w, s.n, s.k, 128, 128, roundedUp).at), ""},
			{"left in BF16", "deepgemm", codes, run(plain(x, s.k), plain(narrow, s.k)), "the layer is not quantized"},
			{"left in BF16 by an engine that quantizes", "deepgemm", values(w, s.n, s.k), run(plain(x, s.k), plain(w, s.k)), "the layer is not quantized"},
			{"weights alone", "deepgemm", codes, run(plain(x, s.k), qw.at), "the input is not quantized"},
			{"quantized after all", "bf16", values(w, s.n, s.k), run(qx.at, qw.at), "deepgemm"},
			{"input rounded up", "deepgemm", codes, run(upX.at, qw.at), "scales are rounded up"},
			{"rounded up, again", "deepgemm", codes, run(upX.at, again.at), "scales are rounded up"},
			{"weight read up", "deepgemm", codes, run(qx.at, upW.at), "of codes that were made under others"},
			{"blocks of 64", "deepgemm", codes, run(scaledOnce(small), scaledOnce(qw)), "1x64"},
			{"transposed", "deepgemm", codes, run(scaledOnce(qx), func(i, k int) (float64, float32) {
				v, scale := transposed(i, k)
				return v * float64(scale), 1
			}), "transposed"},
		} {
			name := fmt.Sprintf("%dx%dx%d %s %s", s.m, s.n, s.k, s.of, c.name)
			if down == 1 && c.name == "transposed" {
				continue // the transpose of one row is the same
			}
			v := check(t, s, x, c.out, c.w, c.claim)
			causes := strings.Join(v.Causes(), "\n")
			if c.want == "" {
				require.Equal(t, "right", v.Word(), "%s: %s", name, causes)
				require.Zero(t, v.Outside, name)
				continue
			}
			require.Equal(t, "wrong", v.Word(), name)
			require.Contains(t, causes, c.want, name)
		}
	}
}

// TestSums has kernels that add with fewer bits.
func TestSums(t *testing.T) {
	s := shape{12, 96, 1024, agree.F32}
	r := rand.New(rand.NewPCG(7, 8))
	x, w := bell(r, s.m*s.k, 1), bell(r, s.n*s.k, 1)
	for i := range x { // sums that grow
		x[i], w[i%len(w)] = float32(math.Abs(float64(x[i]))), float32(math.Abs(float64(w[i%len(w)])))
	}
	qx, qw := quantize(x, s.m, s.k, 1, 128, kept), quantize(w, s.n, s.k, 128, 128, kept)
	codes := stored(qw)
	a := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{s.m, s.k}, Block: tensor.Block{Rows: 1, Cols: 128}, Codes: qx.codes, Scales: qx.scales}
	out := make([]float32, s.m*s.n)
	k := oracle.Kernel{Model: oracle.HopperWGMMA(), Scales: oracle.ProductThenFMA}
	require.NoError(t, oracle.Predict(t.Context(), out, nil, a, codes.Codes, k, oracle.Options{}))
	v := check(t, s, x, out, codes, "deepgemm")
	require.Equal(t, "wrong", v.Word())
	require.Contains(t, strings.Join(v.Causes(), "\n"), "hopper-wgmma")

	l := &agree.Layer{Tokens: s.m, Input: x, InputOf: agree.BF16, Output: out, Of: s.of, Weight: codes}
	v, err := agree.Check(t.Context(), l, agree.Claim{Recipe: recipe(t, "deepgemm"), Kernel: k}, agree.Options{Recipes: recipes()})
	require.NoError(t, err)
	require.Equal(t, "right", v.Word(), "with the sums that it has claimed")

	for i := range s.m {
		for j := range s.n {
			sum := float32(0)
			for at := range s.k {
				sum = bf16(sum + bf16(x[i*s.k+at]*w[j*s.k+at]))
			}
			out[i*s.n+j] = sum
		}
	}
	v = check(t, s, x, out, values(w, s.n, s.k), "bf16")
	require.Equal(t, "wrong", v.Word())
	require.Contains(t, strings.Join(v.Causes(), "\n"), "of products in BF16")
}

// TestNothingExplains has noise, one wrong element of a column that is looked at, and a scale
// of a tensor of which it is not known which tokens it is for.
func TestNothingExplains(t *testing.T) {
	s := shape{16, 140, 256, agree.BF16}
	r := rand.New(rand.NewPCG(1, 2))
	x, w := bell(r, s.m*s.k, 1), bell(r, s.n*s.k, 1)
	out := sums{plain(x, s.k), plain(w, s.k)}.product(s.m, s.n, s.k, bf16)
	noisy := append([]float32(nil), out...)
	for i := range noisy {
		noisy[i] = bf16(noisy[i] * float32(1+0.02*r.NormFloat64()))
	}
	v := check(t, s, x, noisy, values(w, s.n, s.k), "bf16")
	require.Equal(t, "wrong", v.Word())
	require.Contains(t, v.Causes()[0], "nothing that is known")
	out[3*s.n] += 40
	v = check(t, s, x, out, values(w, s.n, s.k), "bf16")
	require.Equal(t, "wrong", v.Word())
	require.Equal(t, 1, v.Outside)
	require.Contains(t, v.Causes()[0], "nothing that is known")
	require.Equal(t, []int{1, 1}, []int{v.WrongTokens, v.WrongColumns})

	// Two passes, of which each has a scale of its own.
	whole := func(tokens []float32) *blocks {
		return quantize(tokens, len(tokens)/s.k, s.k, s.m, s.k, kept)
	}
	for i := range s.k * 5 {
		x[i] *= 3
	}
	one, two := whole(x[:5*s.k]), whole(x[5*s.k:])
	qw := quantize(w, s.n, s.k, s.n, s.k, kept)
	out = append(sums{one.at, qw.at}.product(5, s.n, s.k, bf16), sums{two.at, qw.at}.product(s.m-5, s.n, s.k, bf16)...)
	l := &agree.Layer{Tokens: s.m, Input: x, InputOf: agree.BF16, Output: out, Of: s.of, Weight: values(w, s.n, s.k)}
	c := agree.Claim{Recipe: recipe(t, "te-current")}
	v, err := agree.Check(t.Context(), l, c, agree.Options{Recipes: recipes()})
	require.NoError(t, err)
	require.Equal(t, "undecided", v.Word())
	l.Passes = []int{5, s.m - 5}
	v, err = agree.Check(t.Context(), l, c, agree.Options{Recipes: recipes()})
	require.NoError(t, err)
	require.Equal(t, "right", v.Word(), v.Causes())
}
