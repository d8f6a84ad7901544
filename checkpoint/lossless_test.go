package checkpoint_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// fp8Blocks is DeepSeek's scheme of blocks with E8M0 scales.
func fp8Blocks(t *testing.T) *checkpoint.Scheme { return layout(t, "deepseek-v4").Rules[1].Scheme }

// mxfp4 returns a weight of one row for each list of codes, which are those of one block of 32
// each, under the bytes of scales.
func mxfp4(name string, rows [][][]byte, scales [][]byte) []safetensors.Tensor {
	n := len(rows[0])
	codes := stored(name+".weight_packed", safetensors.U8, 0, len(rows), 16*n)
	bytes := stored(name+".weight_scale", safetensors.U8, 0, len(rows), n)
	for r, row := range rows {
		for b, block := range row {
			for i, c := range block {
				at := (r*n+b)*32 + i
				codes.Data[at/2] |= c << (4 * (at % 2))
			}
			bytes.Data[r*n+b] = scales[r][b]
		}
	}
	return []safetensors.Tensor{codes, bytes}
}

// representable says by trying every scale that can be stored whether there is one under
// which every value is one of a format.
func representable(values []float64, f fp8.Format, least, most int) bool {
	has := valuesIn(f)
	for e := least; e <= most; e++ {
		if !slices.ContainsFunc(values, func(v float64) bool { return !has[math.Ldexp(v, -e)] }) {
			return true
		}
	}
	return false
}

// valuesIn returns the finite values of a format.
var valuesIn = func() func(fp8.Format) map[float64]bool {
	known := map[fp8.Format]map[float64]bool{}
	return func(f fp8.Format) map[float64]bool {
		if known[f] == nil {
			known[f] = map[float64]bool{}
			for c := range 1 << f.Bits() {
				if x := float64(f.Float32(byte(c))); x-x == 0 {
					known[f][x] = true
				}
			}
		}
		return known[f]
	}
}()

// e2m1 are the magnitudes of codes.
var e2m1 = [8]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// TestProveEveryPair proves blocks of every two codes under scales of every spread up to 24, and
// of all codes together, as searching among all scales does.
func TestProveEveryPair(t *testing.T) {
	to := fp8Blocks(t)
	var tensors []safetensors.Tensor
	want := map[string]bool{}
	for spread := range 25 {
		for a := range byte(8) {
			for b := range byte(8) {
				name := fmt.Sprintf("m.%d.%d.%d", spread, a, b)
				tensors = append(tensors, mxfp4(name, [][][]byte{{{a, a | 8}, {b}}}, [][]byte{{byte(110 + spread), 110}})...)
				want[name+".weight"] = representable([]float64{math.Ldexp(e2m1[a], spread-17), math.Ldexp(e2m1[b], -17)}, fp8.E4M3, -127, 127)
			}
		}
		name := fmt.Sprintf("all.%d", spread)
		every := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
		tensors = append(tensors, mxfp4(name, [][][]byte{{every, every}}, [][]byte{{127, byte(127 - spread)}})...)
		want[name+".weight"] = spread <= 14
	}
	proved, broken := 0, 0
	for _, p := range prove(t, opened(t, tensors...), to, tensor.Block{Rows: 1, Cols: 128}) {
		require.Equal(t, want[p.Weight.Name], p.Broken == nil, p.Weight.Name)
		require.Equal(t, 17, p.Limit)
		if proved++; p.Broken != nil {
			broken++
		}
	}
	require.Equal(t, len(want), proved)
	require.Greater(t, broken, 100)
	require.Less(t, broken, proved/2)
}

func prove(t *testing.T, c *checkpoint.Checkpoint, to *checkpoint.Scheme, b tensor.Block) []checkpoint.Proof {
	t.Helper()
	var claims []checkpoint.LosslessClaim
	for _, w := range c.Weights() {
		claims = append(claims, checkpoint.LosslessClaim{Weight: w, Scheme: to, Block: b})
	}
	proofs, err := checkpoint.ProveLossless(t.Context(), claims, checkpoint.Options{Workers: 3, Strip: 1 << 8})
	require.NoError(t, err)
	return proofs
}

// TestProveEnds proves at the ends of what scales can be stored.
func TestProveEnds(t *testing.T) {
	var tensors []safetensors.Tensor
	for _, b := range []int{0, 1, 2, 7, 8, 9, 10, 100, 240, 244, 245, 246, 250, 252, 253, 254} {
		for c := byte(1); c < 8; c++ {
			tensors = append(tensors, mxfp4(fmt.Sprintf("m.%d.%d", b, c), [][][]byte{{{c}}}, [][]byte{{byte(b)}})...)
		}
	}
	all := opened(t, tensors...)
	for least, to := range map[int]*checkpoint.Scheme{-127: fp8Blocks(t), -126: layout(t, "deepseek-v3").Rules[0].Scheme} {
		for _, p := range prove(t, all, to, tensor.Block{Rows: 128, Cols: 128}) {
			var b, c int
			_, err := fmt.Sscanf(p.Weight.Name, "m.%d.%d", &b, &c)
			require.NoError(t, err)
			value := math.Ldexp(e2m1[c], b-127)
			require.Equal(t, representable([]float64{value}, fp8.E4M3, least, 127), p.Broken == nil, p.Weight.Name)
		}
	}
}

// TestProveFullRange proves pairs of codes of E4M3 that have all of its range between them,
// under every two scales that are close, at the lower end of scales too.
func TestProveFullRange(t *testing.T) {
	var tensors []safetensors.Tensor
	values := map[string][]float64{}
	for _, low := range []byte{1, 2, 3, 4, 7, 8} {
		for code := byte(0x70); code < 0x7F; code++ {
			for scale := range byte(4) {
				name := fmt.Sprintf("m.%d.%d.%d", low, code, scale)
				codes := stored(name+".weight", safetensors.F8E4M3, 0, 1, 64)
				codes.Data[5], codes.Data[63] = low, code
				scales := stored(name+".weight_scale", safetensors.U8, 0, 1, 2)
				scales.Data[1] = scale
				tensors = append(tensors, codes, scales)
				values[name+".weight"] = []float64{math.Ldexp(float64(fp8.E4M3.Float32(low)), -127), math.Ldexp(float64(fp8.E4M3.Float32(code)), int(scale)-127)}
			}
		}
	}
	c := opened(t, tensors...)
	for least, to := range map[int]*checkpoint.Scheme{-127: fp8Blocks(t), -126: layout(t, "deepseek-v3").Rules[0].Scheme} {
		broken := 0
		for _, p := range prove(t, c, to, to.Block) {
			require.Equal(t, representable(values[p.Weight.Name], fp8.E4M3, least, 127), p.Broken == nil, "%s %v", p.Weight.Name, p.Broken)
			if p.Broken != nil {
				broken++
			}
		}
		require.Positive(t, broken)
		require.Less(t, broken, len(values))
	}
}

// TestProveRandom proves blocks of all kinds of codes, FP8 as well, to every format, as
// searching does.
func TestProveRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var tensors []safetensors.Tensor
	values := map[string][]float64{}
	for i := range 60 {
		name := fmt.Sprintf("m.%d", i)
		codes := stored(name+".weight", safetensors.F8E4M3, 0, 3, 64)
		scales := stored(name+".weight_scale", safetensors.U8, 0, 3, 2)
		spread := 1 + r.IntN(8)
		for k := range scales.Data {
			scales.Data[k] = byte(120 + r.IntN(spread))
		}
		for range 1 + r.IntN(4) {
			at, code := r.IntN(len(codes.Data)), byte(r.IntN(0x7F))
			codes.Data[at] = code
		}
		for at, code := range codes.Data {
			if x := float64(fp8.E4M3.Float32(code)); x != 0 {
				values[name+".weight"] = append(values[name+".weight"], math.Ldexp(x, int(scales.Data[at/64*2+at%64/32])-127))
			}
		}
		tensors = append(tensors, codes, scales)
	}
	c := opened(t, tensors...)
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E2M1, fp8.E3M2} {
		to := *fp8Blocks(t)
		to.Format = f
		broken := 0
		for _, block := range []tensor.Block{{Rows: 128, Cols: 128}, {}, {Rows: 3, Cols: 0}, {Cols: 64}} {
			for _, p := range prove(t, c, &to, block) {
				want := representable(values[p.Weight.Name], f, -127, 127)
				require.Equal(t, want, p.Broken == nil, "%v %v %v", f, values[p.Weight.Name], p.Broken)
				if p.Broken != nil {
					broken++
				}
			}
		}
		require.Positive(t, broken)
	}
}

// TestProveBreaks names the block and the elements that break a claim, and the counterexamples
// of vLLM's pull request 53709.
func TestProveBreaks(t *testing.T) {
	rows, scales := make([][][]byte, 300), make([][]byte, 300)
	for r := range rows {
		rows[r], scales[r] = make([][]byte, 9), make([]byte, 9)
		for b := range rows[r] {
			rows[r][b], scales[r][b] = []byte{1, 7, 9}, 120
		}
	}
	name := "model.layers.0.mlp.experts.0.up_proj"
	to := fp8Blocks(t)
	one := func() checkpoint.Proof {
		return prove(t, opened(t, mxfp4(name, rows, scales)...), to, to.Block)[0]
	}
	p := one()
	require.Nil(t, p.Broken)
	require.Equal(t, []int64{9, 0, 3, 17}, []int64{p.Blocks, int64(p.Spread), int64(p.Reach), int64(p.Limit)})

	scales[299][8] = 107 // 13 below
	rows[200][5] = nil   // nothing but zeros, under a scale far away
	scales[200][5] = 3
	p = one()
	require.Nil(t, p.Broken)
	require.Equal(t, []int{13, 16}, []int{p.Spread, p.Reach})

	scales[299][8] = 105
	scales[140][7] = 121 // the other block of that row of blocks
	p = one()
	require.NotNil(t, p.Broken)
	require.Equal(t, []int{2, 2}, []int{p.Broken.Row, p.Broken.Col})
	require.Equal(t, [][]int{{256, 257}, {299, 256}}, [][]int{p.Broken.Largest, p.Broken.Lowest})
	require.Contains(t, p.Broken.String(), "block [2, 2] of matrix 0: from 0.046875 down to 2^-23 it spans 2^18")
	require.Contains(t, p.Broken.Why, "scales differ by 2^15")

	scales[130][2] = 255 // NaN, in a block before
	p = one()
	require.Equal(t, []int{1, 0}, []int{p.Broken.Row, p.Broken.Col})
	require.Equal(t, []int{130, 64}, p.Broken.Largest)
	require.Equal(t, "a scale is NaN", p.Broken.Why)

	pr := prove(t, opened(t, mxfp4("m", [][][]byte{{{7}, {1}}}, [][]byte{{127, 110}})...), to, to.Block)[0]
	require.NotNil(t, pr.Broken, "0.5 under byte 110 beside byte 127 is lost")
	require.Equal(t, []int{17, 20}, []int{pr.Spread, pr.Reach})
}

// TestProofAndConversion converts MXFP4 of every spread to other layouts, and compares what
// the values become with what had been proved.
func TestProofAndConversion(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var tensors []safetensors.Tensor
	step := 1
	if testing.Short() {
		step = 5
	}
	for i := 0; i < 60; i += step {
		rows, scales := make([][][]byte, 130), make([][]byte, 130)
		base := []int{127, 100, 20, 135}[i%4]
		for k := range rows {
			rows[k], scales[k] = make([][]byte, 5), make([]byte, 5)
			for b := range rows[k] {
				for range 32 {
					rows[k][b] = append(rows[k][b], byte(r.IntN(16)))
				}
				scales[k][b] = byte(base - r.IntN(1+i/3))
			}
		}
		tensors = append(tensors, mxfp4(fmt.Sprintf("model.layers.%d.mlp.up_proj", i), rows, scales)...)
	}
	for _, source := range []*checkpoint.Checkpoint{opened(t, tensors...), golden(t, "llama-ct-mxfp4"), golden(t, "moe-experts-v4style-fp4")} {
		for _, l := range []string{"deepseek-v3", "deepseek-v3-ue8m0", "deepseek-v4", "ct-mxfp8", "ct-fp8-dynamic", "ct-fp8-block", "modelopt-fp8", "bf16", "f16", "f32"} {
			requireProofsHold(t, source, l)
		}
	}
}

func requireProofsHold(t *testing.T, source *checkpoint.Checkpoint, name string) {
	t.Helper()
	amax := map[string]float32{}
	for _, w := range source.Weights() {
		amax[strings.TrimSuffix(w.Name, ".weight")] = 1
	}
	plan, err := checkpoint.NewPlan(source, layout(t, name), checkpoint.PlanOptions{Amax: amax})
	require.NoError(t, err)
	all, _ := convert(t, plan, checkpoint.Options{})
	var out []safetensors.Tensor
	var claims []checkpoint.LosslessClaim
	for _, s := range plan.Shards {
		for _, info := range s.Infos() {
			out = append(out, all[info.Name])
		}
		for _, target := range s.Targets {
			if c, ok := target.Claim(); ok {
				claims = append(claims, c)
			} else {
				require.True(t, target.Weight == nil || target.Weight.Scheme == nil || len(target.Group()) > 1)
			}
		}
	}
	proofs, err := checkpoint.ProveLossless(t.Context(), claims, checkpoint.Options{Strip: 1 << 14})
	require.NoError(t, err)
	found := differ(t, source, opened(t, out...), checkpoint.Options{})
	held := 0
	for _, p := range proofs {
		d := found[p.Weight.Name]
		if p.Broken == nil {
			held++
			require.GreaterOrEqual(t, d.Same, checkpoint.SameValues, "%s %s", name, p.Weight.Name)
		} else if d.Same >= checkpoint.SameValues {
			require.NotContains(t, p.Broken.Why, "spans", "%s %s", name, p.Weight.Name)
		}
		if powersOfTwo := []string{"deepseek-v3-ue8m0", "deepseek-v4", "ct-mxfp8", "bf16", "f16", "f32"}; slices.Contains(powersOfTwo, name) {
			require.Equal(t, p.Broken == nil, d.Same >= checkpoint.SameValues, "%s %s: %v", name, p.Weight.Name, p.Broken)
		}
	}
	t.Logf("%-18s %d of %d claims hold", name, held, len(proofs))
	if name == "ct-mxfp8" || name == "bf16" || name == "f32" {
		require.Equal(t, len(proofs), held)
	}
}

// TestProveClamped breaks where DeepGEMM's least amax keeps the scale of a block of small values
// too large, though there would be a scale.
func TestProveClamped(t *testing.T) {
	c := opened(t, mxfp4("m", [][][]byte{{{1, 7}}}, [][]byte{{90}})...)
	claim := checkpoint.LosslessClaim{Weight: c.Weights()[0], Scheme: layout(t, "deepseek-v3-ue8m0").Rules[0].Scheme, Block: tensor.Block{Rows: 128, Cols: 128}}
	clamped := claim
	clamped.Arithmetic = layout(t, "deepseek-v3-ue8m0").Rules[0].Arithmetic
	proofs, err := checkpoint.ProveLossless(t.Context(), []checkpoint.LosslessClaim{claim, clamped}, checkpoint.Options{})
	require.NoError(t, err)
	require.Nil(t, proofs[0].Broken)
	require.Contains(t, proofs[1].Broken.Why, "by deepgemm-ue8m0 its scale is 2.3841858e-07: want a power of two from 2^-43 to 2^-29")
}

// TestProveRefuses refuses claims that are none.
func TestProveRefuses(t *testing.T) {
	plain, nvfp4, mx := golden(t, "llama-bf16"), golden(t, "llama-ct-nvfp4a16"), golden(t, "llama-ct-mxfp4")
	name := "model.layers.0.mlp.up_proj.weight"
	to := fp8Blocks(t)
	for text, c := range map[string]checkpoint.LosslessClaim{
		"not of codes":        {Weight: plain.Weight(name), Scheme: to, Block: to.Block},
		"with an outer scale": {Weight: nvfp4.Weight(name), Scheme: to, Block: to.Block},
		"values of type":      {Weight: mx.Weight(name), Type: safetensors.I8},
		"this arithmetic":     {Weight: mx.Weight(name), Scheme: to, Block: to.Block, Arithmetic: "autofp8"},
		`weight ""`:           {},
	} {
		_, err := checkpoint.ProveLossless(t.Context(), []checkpoint.LosslessClaim{c}, checkpoint.Options{})
		require.ErrorIs(t, err, checkpoint.ErrLayout)
		require.ErrorContains(t, err, text)
	}
	scaled := golden(t, "llama-deepseek-fp8").Weight(name)
	p, err := checkpoint.ProveLossless(t.Context(), []checkpoint.LosslessClaim{{Weight: scaled, Scheme: to, Block: to.Block}}, checkpoint.Options{})
	require.NoError(t, err)
	require.Contains(t, p[0].Broken.Why, "no power of two")
}

// TestLossless proves what was compared.
func TestLossless(t *testing.T) {
	a := golden(t, "llama-ct-mxfp4")
	b := converted(t, a, "deepseek-v3-ue8m0")
	all, err := checkpoint.Diff(t.Context(), a, b, nil, checkpoint.Options{})
	require.NoError(t, err)
	proofs, err := checkpoint.Lossless(t.Context(), all, checkpoint.Options{})
	require.NoError(t, err)
	quantized := 0
	for _, w := range a.Weights() {
		if w.Scheme != nil {
			quantized++
		}
	}
	require.Len(t, proofs, quantized)
}
