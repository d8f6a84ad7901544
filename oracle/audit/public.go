package audit

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// cases are the public failures.
var cases = []Case{
	{
		Name:  "flashinfer-4093",
		Issue: "https://github.com/flashinfer-ai/flashinfer/pull/4093",
		Title: "MXFP8 weights whose scales are read from wrong addresses pass a functional test",
		Says: []string{
			"scales of weights were only permuted by rows, and the kernel reads them interleaved in tiles of 128x4: about 99.8 % of scale bytes are read from a wrong address",
			"random weights repeat E8M0 exponents, so that a misplaced read is often of an equal one",
			"the functional test's atol of 0.05 is far over the scale of the output, about 0.0025",
		},
		Assumed: []string{
			"one product of [16, 1024] and [256, 1024] in place of a mixture of experts; normal data, weights scaled so that C has the size that is reported; C in bfloat16; rtol 0",
		},
		Type: fault.BFloat16,
		build: func(ctx context.Context) (fault.Product, Test, error) {
			p, err := mxProduct(ctx, 16, 256, 1024, 0.0025/math.Sqrt(1024), 1)
			return p, Test{Criteria: []Criterion{{Atol: 0.05}}}, err
		},
		faults: []fault.Fault{misread},
		claims: []claim{
			survives("weights whose scales are written by rows and read in tiles of 128x4 pass", misread),
			survives("an all-zeros kernel passes", fault.Fault{Kind: "unwritten"}),
			honestPass(),
		},
	},
	{
		Name:  "flashinfer-4093-layout",
		Issue: "https://github.com/flashinfer-ai/flashinfer/pull/4093",
		Title: "the same, where the reference has the wrong layout as well",
		Says: []string{
			"the layout's unit test had the layout without interleaving hard-coded as expected",
		},
		Assumed: []string{
			"the test compares products, and not scales, and demands equal bits; operands as above",
		},
		Type: fault.BFloat16,
		build: func(ctx context.Context) (fault.Product, Test, error) {
			p, err := mxProduct(ctx, 16, 256, 1024, 0.0025/math.Sqrt(1024), 1)
			return p, Test{Criteria: []Criterion{{}}, Reference: Reference{Of: Canonical, Fault: misread}}, err
		},
		faults: []fault.Fault{misread},
		claims: []claim{
			survives("the fault passes, however small the tolerance", misread),
			{"correct kernels fail", func(r *Report) bool { return r.FalseFailures > 0 }},
			{"the reference is found to be no product of these operands", func(r *Report) bool { return r.Reference.Outside > 0 }},
		},
	},
	{
		Name:  "flashinfer-4685",
		Issue: "https://github.com/flashinfer-ai/flashinfer/pull/4685",
		Title: "operands of the least subnormals, with a tolerance far above their product",
		Says: []string{
			"FP8 operands are random bit patterns 0 to 3: zeros and subnormals",
			"shape (129, 7, 256, 2) with alpha of 0.125, a bias from -0.5 to 0.5 for each of 129, scales of E8M0 for 32, C in bfloat16",
			"assert_close with atol 1e-1 and rtol 1e-3; a kernel that drops the product and applies the bias only passes",
			"the largest |alpha*GEMM| is from about 1e-3, of E4M3, to about 5.8e-8, of E5M2",
		},
		Assumed: []string{
			"E4M3 by E4M3; scales of 1 and 2, of which follow the sizes that are reported; alpha is part of the scales; one of the two products of the batch, transposed, because the bias is one of columns here",
		},
		Type: fault.BFloat16,
		build: func(context.Context) (fault.Product, Test, error) {
			r := rand.New(rand.NewPCG(4685, 1))
			small := func(int, int) byte { return byte(r.IntN(4)) }
			a := codes("a", fp8.E4M3, 7, 256, tensor.Block{Rows: 1, Cols: 32}, small, func(int, int) float32 { return 0.125 * float32(1+r.IntN(2)) })
			b := codes("b", fp8.E4M3, 129, 256, tensor.Block{Rows: 1, Cols: 32}, small, func(int, int) float32 { return float32(1 + r.IntN(2)) })
			bias := make([]float32, 129)
			for j := range bias {
				bias[j] = fp8.BFloat16FromFloat32(float32(j)/128 - 0.5).Float32()
			}
			return fault.Product{A: a, B: b, Bias: bias}, Test{Criteria: []Criterion{{Rtol: 1e-3, Atol: 1e-1}}, Reference: Reference{Of: Canonical}}, nil
		},
		claims: []claim{
			survives("a kernel that drops the product and applies the bias only passes", noProduct(256)),
			{"no element of the product is a hundredth of atol", func(r *Report) bool {
				o := r.Find(noProduct(256))
				return o != nil && math.Abs(float64(o.Worst.Got-o.Worst.Want)) < 1e-3+0x1p-9 // and bfloat16's rounding
			}},
			honestPass(),
		},
	},
	{
		Name:  "onnxruntime-31155",
		Issue: "https://github.com/microsoft/onnxruntime/pull/31155",
		Title: "a product that cancels almost wholly, with a larger tolerance",
		Says: []string{
			"GemvTensorCoreTilesFp16: weights of period 3, activations of period 4 and small scales cancel; the case n, k, block of 18, 256, 64 has a largest |expected| of 0.041016",
			"the tolerance is absolute, 0.05: an all-zeros kernel passes",
		},
		Assumed: []string{
			"weights -1, 0 and 1 and activations -0.75, -0.25, 0.25 and 0.75, whose periods cancel, with scales of weights that give C the size that is reported; four rows; activations are FP8 here, of the same values",
		},
		Type: fault.Float16,
		build: func(context.Context) (fault.Product, Test, error) {
			return cancelling(nil), Test{Criteria: []Criterion{{Atol: 0.05}}}, nil
		},
		claims: []claim{
			survives("an all-zeros kernel passes", fault.Fault{Kind: "unwritten"}),
			{"the largest element is about 0.041", func(r *Report) bool { return math.Abs(float64(r.Largest)-0.041) < 0.001 }},
			honestPass(),
		},
	},
	{
		Name:  "onnxruntime-31155-bias",
		Issue: "https://github.com/microsoft/onnxruntime/pull/31155",
		Title: "the same in bfloat16 with a bias",
		Says: []string{
			"GemvTensorCoreTilesBf16: a tolerance of 0.1, magnitudes of the sums up to 0.045 and a bias of integers from -2 to 2: a kernel that returns the bias only passes",
		},
		Assumed: []string{"operands as above"},
		Type:    fault.BFloat16,
		build: func(context.Context) (fault.Product, Test, error) {
			bias := make([]float32, 18)
			for j := range bias {
				bias[j] = float32(j%5 - 2)
			}
			return cancelling(bias), Test{Criteria: []Criterion{{Atol: 0.1}}}, nil
		},
		claims: []claim{
			survives("a kernel that returns the bias only passes", noProduct(256)),
			caught("an all-zeros kernel fails, by the bias", fault.Fault{Kind: "unwritten"}),
			honestPass(),
		},
	},
	{
		Name:  "rocm-libraries-11115",
		Issue: "https://github.com/ROCm/rocm-libraries/issues/11115",
		Title: "a relative norm with a fudge factor of 32.5",
		Says: []string{
			"scaled FP8 products with K = 64 on gfx950 fail by 1.19 times a tolerance with a factor of 5.0; the log hints that 32.5 is meant for FP8",
			"rocRoller's gemmAcceptableError: ‖got - want‖ / ‖want‖ below fudge · epsilon · sqrt(K), where fudge is 5, times 6.5 for FP8 on gfx950",
		},
		Assumed: []string{
			"256x256 elements of normal data, E4M3 with an E8M0 scale for 32; C in float32, of epsilon 2^-23; there is no model of gfx950 here, so that its own error, 5.7e-6 by what is reported, is not reproduced",
		},
		Type: fault.Float32,
		build: func(ctx context.Context) (fault.Product, Test, error) {
			p, err := mxProduct(ctx, 256, 256, 64, 1, 3)
			return p, Test{Criteria: []Criterion{{Measure: RelativeL2, Limit: 32.5 * 0x1p-23 * 8}}}, err
		},
		claims: []claim{
			{"float32 sums in any order are more than a thousand times below the limit", func(r *Report) bool {
				for _, h := range r.Honest {
					if h.Claimed && h.Values[0].Value*1000 > h.Values[0].Limit {
						return false
					}
				}
				return true
			}},
			survives("a kernel that takes subnormals for zero passes", fault.Fault{Kind: "codes-flushed", Of: fault.Both}),
		},
	},
	{
		Name:  "vllm-29470",
		Issue: "https://github.com/vllm-project/vllm/pull/29470",
		Title: "quantized codes compared with atol=32",
		Says: []string{
			"silu_mul_per_token_group_quant_fp8_colmajor: FP8 codes of groups of 128, as float32, are compared by torch.testing.assert_close with an atol of 32, the distance of the largest E4M3 numbers",
			"inputs are uniform in [0, 1), 128 rows and more",
		},
		Assumed: []string{
			"the quantized matrix, of 128x128, is multiplied by the identity, so that C is the values of its codes; rtol 0; a factor on C stands for a quantizer that scales wrongly",
		},
		Type: fault.Float32,
		build: func(ctx context.Context) (fault.Product, Test, error) {
			p, err := quantized(ctx)
			return p, Test{Criteria: []Criterion{{Atol: 32}}}, err
		},
		faults: []fault.Fault{{Kind: "scaled", Factor: 0.93}, {Kind: "scaled", Factor: 1.07}, {Kind: "clamped", Factor: 416}},
		claims: []claim{
			survives("values seven in a hundred too small pass", fault.Fault{Kind: "scaled", Factor: 0.93}),
			survives("values seven in a hundred too large pass", fault.Fault{Kind: "scaled", Factor: 1.07}),
			survives("a quantizer that saturates at 416 and not at 448 passes", fault.Fault{Kind: "clamped", Factor: 416}),
			survives("a quantizer without subnormals passes", fault.Fault{Kind: "codes-flushed", Of: fault.A}),
			honestPass(),
		},
	},
	{
		Name:  "vllm-48847",
		Issue: "https://github.com/vllm-project/vllm/pull/48847",
		Title: "the reference quantizes by itself, otherwise than the kernel, and correct kernels fail",
		Says: []string{
			"test_w8a8_block_fp8_fused_moe, tolerances of 0.035: shapes of K = 7168 and N of 1024 and more fail, because the reference quantizes the activations anew and rounds SiLU to bfloat16 first; the kernel is right",
			"the second product of N = 4608 by issue 45332: differences of a few units in the last place of bfloat16 move the scales of 65 % of groups and 11.4 % of codes",
			"weights in blocks of 128x128, activations in 1x128, C in bfloat16",
		},
		Assumed: []string{
			"the second product alone, 83 rows and 256 of 7168 columns; its input is silu(g)·u of normal g and u of standard deviation 0.56, as those inputs give, and in the reference g and u are off by one unit in the last place of bfloat16 in most elements",
		},
		Type: fault.BFloat16,
		build: func(ctx context.Context) (fault.Product, Test, error) {
			p, other, err := requantized(ctx)
			return p, Test{Criteria: []Criterion{{Rtol: 0.035, Atol: 0.035}},
				Reference: Reference{Of: Canonical, A: other, Note: "activations that were quantized anew, from values of bfloat16"}}, err
		},
		claims: []claim{
			{"correct kernels fail", func(r *Report) bool { return r.FalseFailures > 0 }},
			{"the reference is found to be no product of the kernel's operands", func(r *Report) bool { return r.Reference.Outside > 0 }},
			{"correct kernels pass with the right reference", func(r *Report) bool {
				for _, h := range r.Honest {
					if h.Claimed && h.Outside > 0 {
						return false
					}
				}
				return true
			}},
		},
	},
}

// misread is what flashinfer's kernel made of scales of B that were not interleaved.
var misread = fault.Fault{Kind: "scales-layout", Of: fault.B, Written: fault.RowMajor, Read: fault.Tiles128x4}

// noProduct leaves all k products out.
func noProduct(k int) fault.Fault { return fault.Fault{Kind: "k-lost", To: k} }

// codes makes a tensor of codes and scales.
func codes(name string, f fp8.Format, rows, cols int, block tensor.Block, code func(i, k int) byte, scale func(r, c int) float32) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, cols}, Block: block, Codes: make([]byte, rows*cols)}
	for i := range t.Codes {
		t.Codes[i] = code(i/cols, i%cols)
	}
	gridRows, gridCols := t.Grid()
	t.Scales = make([]float32, gridRows*gridCols)
	for i := range t.Scales {
		t.Scales[i] = scale(i/gridCols, i%gridCols)
	}
	return t
}

// quantize quantizes values under a profile, in blocks.
func quantize(ctx context.Context, name string, rows int, values []float32, profile scaling.Profile, block tensor.Block) (*tensor.Tensor, error) {
	t := &tensor.Tensor{Name: name, Shape: []int{rows, len(values) / rows}}
	r := scaling.Recipe{Profile: profile, Format: fp8.E4M3, Block: block}
	return t, scaling.Quantize(ctx, t, values, scaling.Quantizer{Recipe: r})
}

// normal returns values of mean 0 and a standard deviation.
func normal(rows, cols int, deviation float64, seed uint64) []float32 {
	v := oracle.Generator{Rows: rows, Cols: cols, Seed: seed}.Values()
	for i := range v {
		v[i] *= float32(deviation)
	}
	return v
}

// mxProduct returns a product of normal data in MXFP8, the weights of a standard deviation.
func mxProduct(ctx context.Context, m, n, k int, deviation float64, seed uint64) (fault.Product, error) {
	block := tensor.Block{Rows: 1, Cols: 32}
	a, err := quantize(ctx, "a", m, normal(m, k, 1, seed), scaling.MXFloor, block)
	if err != nil {
		return fault.Product{}, err
	}
	b, err := quantize(ctx, "b", n, normal(n, k, deviation, seed+1), scaling.MXFloor, block)
	return fault.Product{A: a, B: b}, err
}

// cancelling returns a product of [4, 256] by [256, 18] that cancels within every period
// of twelve.
func cancelling(bias []float32) fault.Product {
	encode := func(v float32) byte { return fp8.EncodeOne(v, fp8.E4M3, fp8.Policy{}) }
	a := codes("a", fp8.E4M3, 4, 256, tensor.Block{},
		func(i, k int) byte { return encode(float32((i+k)%4)*0.5 - 0.75) }, func(int, int) float32 { return 1 })
	b := codes("b", fp8.E4M3, 18, 256, tensor.Block{Rows: 1, Cols: 64},
		func(j, k int) byte { return encode(float32((j+k)%3 - 1)) }, func(j, c int) float32 { return float32(1+(j+c)%3) / 201 })
	return fault.Product{A: a, B: b, Bias: bias}
}

// quantized returns the product of a quantized activation and the identity.
func quantized(ctx context.Context) (fault.Product, error) {
	r := rand.New(rand.NewPCG(29470, 1))
	values := make([]float32, 128*128)
	for i := range values {
		values[i] = elementary.SiLU(float32(r.Float64())) * float32(r.Float64())
	}
	a, err := quantize(ctx, "a", 128, values, scaling.DeepSeek, tensor.Block{Rows: 1, Cols: 128})
	if err != nil {
		return fault.Product{}, err
	}
	for i := range a.Scales {
		a.Scales[i] = 1 // codes are compared, not values
	}
	one := fp8.EncodeOne(float32(1), fp8.E4M3, fp8.Policy{})
	b := codes("b", fp8.E4M3, 128, 128, tensor.Block{}, func(j, k int) byte {
		if j == k {
			return one
		}
		return 0
	}, func(int, int) float32 { return 1 })
	return fault.Product{A: a, B: b}, nil
}

// requantized returns the second product of a mixture of experts, and A as a reference
// has it that computes the first product and the activation for itself.
func requantized(ctx context.Context) (p fault.Product, other *tensor.Tensor, err error) {
	const rows, k, columns = 83, 4608, 256
	r := rand.New(rand.NewPCG(48847, 1))
	g, u := normal(rows, k, 0.56, 5), normal(rows, k, 0.56, 6)
	mine, theirs := make([]float32, rows*k), make([]float32, rows*k)
	for i := range mine {
		x, y := bfloat(g[i], 0), bfloat(u[i], 0)
		mine[i] = elementary.SiLU(x) * y
		x, y = bfloat(g[i], r.IntN(3)-1), bfloat(u[i], r.IntN(3)-1)
		theirs[i] = bfloat(bfloat(elementary.SiLU(x), 0)*y, 0)
	}
	block := tensor.Block{Rows: 1, Cols: 128}
	if p.A, err = quantize(ctx, "a", rows, mine, scaling.DeepSeek, block); err != nil {
		return p, nil, err
	}
	if other, err = quantize(ctx, "a", rows, theirs, scaling.DeepSeek, block); err != nil {
		return p, nil, err
	}
	p.B, err = quantize(ctx, "b", columns, normal(columns, k, 1.0/15, 7), scaling.DeepSeek, tensor.Block{Rows: 128, Cols: 128})
	return p, other, err
}

// bfloat rounds to bfloat16 and goes some units in the last place further.
func bfloat(x float32, units int) float32 {
	if x == 0 {
		return 0
	}
	return fp8.BFloat16(int(fp8.BFloat16FromFloat32(x)) + units).Float32()
}
