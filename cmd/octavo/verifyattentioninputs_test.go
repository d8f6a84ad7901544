package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/flash"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// attentionCodes are random codes of [heads, tokens, dim] with blocks of scales; pow2 is of scales
// that are powers of 2.
func attentionCodes(r *rand.Rand, heads, tokens, dim int, b tensor.Block,
	pow2 bool) attention.Operand {
	x := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{heads, tokens, dim}, Block: b}
	for range heads * tokens * dim {
		x.Codes = append(x.Codes, fp8.EncodeOne(r.NormFloat64(), fp8.E4M3, fp8.Policy{}))
	}
	rows, cols := x.Grid()
	for range rows * cols {
		s := float32(math.Exp2(float64(r.IntN(3) - 1)))
		if !pow2 {
			s *= 1 + r.Float32()
		}
		x.Scales = append(x.Scales, s)
	}
	return attention.Operand{Codes: x}
}

// codesIn is a tensor of codes.
func codesIn(name string, shape []int, o ...attention.Operand) safetensors.Tensor {
	var all []byte
	for _, x := range o {
		all = append(all, x.Codes.Codes...)
	}
	return filetest.Raw(name, safetensors.F8E4M3, shape, all...)
}

// scalesIn is a tensor of scales, in F32, E8M0 or UE4M3, whose exponents have a bias of 7.
func scalesIn(name string, shape []int, dtype safetensors.DType, scales ...float32) safetensors.Tensor {
	if dtype == safetensors.F32 {
		return filetest.F32(name, shape, scales...)
	}
	var codes []byte
	for _, s := range scales {
		exponent := int(math.Log2(float64(s)))
		code := byte(exponent + 127)
		if dtype == safetensors.F8E4M3 {
			code = byte(exponent+7) << 3
		}
		codes = append(codes, code)
	}
	return filetest.Raw(name, dtype, shape, codes...)
}

// canonically is what package attention computes.
func canonically(t *testing.T, p *attention.Problem) (out, lse []float32) {
	t.Helper()
	s := p.Sizes()
	out, lse = make([]float32, s.Heads*s.Queries*s.ValueDim), make([]float32, s.Heads*s.Queries)
	require.NoError(t, attention.Forward(t.Context(), out, p,
		attention.Options{P: attention.PE4M3, LSE: lse}))
	return out, lse
}

// canonicalBits ask for the bits of package attention, which the operands must be read right for.
var canonicalBits = []string{"--kernel", "octavo-e4m3", "--bits", "--quiet"}

func attentionBits(path string, more ...string) []string {
	return slices.Concat([]string{"verify", "attention", path}, canonicalBits, more)
}

// TestVerifyAttentionReadsScales has every kind of scales that Q, K and V may have.
func TestVerifyAttentionReadsScales(t *testing.T) {
	const heads, kv, queries, keys, dim, valueDim = 4, 2, 3, 48, 64, 32
	r := rand.New(rand.NewPCG(1, 18))
	whole, token, parts := tensor.Block{}, tensor.Block{Rows: 1}, tensor.Block{Rows: 1, Cols: 32}
	head := func(tokens int) tensor.Block { return tensor.Block{Rows: tokens} }
	for _, test := range []struct {
		q, k, v       tensor.Block
		qs, ks, vs    []int // shapes in the file
		more, without []string
	}{
		{q: whole, k: whole, v: whole, qs: []int{1}, ks: []int{}, vs: []int{1, 1, 1}},
		{q: head(queries), k: head(keys), v: head(keys), qs: []int{heads}, ks: []int{kv, 1, 1},
			vs: []int{kv, 1}},
		{q: token, k: token, v: token, qs: []int{heads, queries}, ks: []int{kv, keys, 1},
			vs: []int{kv, keys}},
		{q: parts, k: parts, v: whole, qs: []int{heads, queries, 2}, ks: []int{kv, keys, 2},
			vs: []int{1}},
		{q: whole, k: tensor.Block{Rows: 16, Cols: 32}, v: tensor.Block{Rows: 16}, qs: []int{1},
			ks: []int{kv, 3, 2},
			vs: []int{kv, 3}},
		{q: whole, k: tensor.Block{Rows: 12}, v: head(keys), qs: []int{1}, ks: []int{kv, 4, 1},
			vs:   []int{kv},
			more: []string{"--k-block", "12"}},
		{q: whole, k: whole, v: tensor.Block{Rows: keys, Cols: 1}, qs: []int{1}, ks: []int{1},
			vs: []int{kv, 1, valueDim}},
		{q: whole, k: whole, v: tensor.Block{Rows: keys, Cols: 1}, qs: []int{1}, ks: []int{1},
			vs: []int{kv, valueDim}},
		{q: whole, k: whole, v: tensor.Block{Rows: keys, Cols: 8}, qs: []int{1}, ks: []int{1},
			vs: []int{kv, 1, 4}},
	} {
		for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.F8E8M0, safetensors.F8E4M3} {
			pow2 := dtype != safetensors.F32
			what := fmt.Sprintf("%v %v %v", test.qs, test.ks, test.vs)
			p := &attention.Problem{Q: attentionCodes(r, heads, queries, dim, test.q, pow2),
				K: attentionCodes(r, kv, keys, dim, test.k, pow2), V: attentionCodes(r, kv, keys, valueDim,
					test.v, pow2)}
			out, lse := canonically(t, p)
			path := filetest.Write(t, nil,
				codesIn("q", []int{heads, queries, dim}, p.Q), codesIn("k", []int{kv, keys, dim}, p.K),
				codesIn("v", []int{kv, keys, valueDim}, p.V),
				scalesIn("q_scale_inv", test.qs, dtype, p.Q.Codes.Scales...),
				scalesIn("k_scale_inv", test.ks, dtype, p.K.Codes.Scales...),
				scalesIn("v_scale_inv", test.vs, dtype, p.V.Codes.Scales...),
				filetest.F32("out", []int{heads, queries, valueDim}, out...), filetest.F32("lse",
					[]int{heads, queries}, lse...))
			text := succeed(t, attentionBits(path, test.more...)...)
			require.Contains(t, text, "PASS: all 384 elements", what)
			require.Contains(t, text, "bits: 384 of 384", what)
		}
	}
}

// TestVerifyAttentionAmbiguousScales has shapes refused that may mean several things or nothing.
func TestVerifyAttentionAmbiguousScales(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 18))
	b := tensor.Block{}
	p := &attention.Problem{Q: attentionCodes(r, 2, 3, 32, b, true),
		K: attentionCodes(r, 2, 64, 32, b, true),
		V: attentionCodes(r, 2, 64, 64, b, true)}
	out, _ := canonically(t, p)
	for _, test := range []struct {
		name  string
		shape []int
		want  string
		more  []string
	}{
		{"v_scale_inv", []int{2, 64},
			"tensor \"v_scale_inv\" of shape [2 64] may hold scales of tokens or columns of tensor \"v\": " +
				"reshape it to [2 64 1] or [2 1 64]", nil},
		{"v_scale_inv", []int{2, 16}, "may hold scales of tokens or columns", nil},
		{"v_scale_inv", []int{3, 5},
			"tensor \"v_scale_inv\" of shape [3 5] does not hold the scales of tensor \"v\" of shape [2 " +
				"64 64]: want " +
				"[1] for all, [2] for heads, [2 64 1] for tokens, [2 1 64] for columns, or fewer tokens or " +
				"columns for blocks of them", nil},
		{"k_scale_inv", []int{2, 64, 3},
			"want [1] for all, [2] for heads, [2 64 1] for tokens, or fewer", nil},
		{"k_scale_inv", []int{2, 13}, "has 13 scales for 64 tokens: say with --k-block", nil},
		{"k_scale_inv", []int{2, 13}, "and not one for 4 tokens each: change --k-block",
			[]string{"--k-block", "4"}},
		{"q_scale_inv", []int{1, 2},
			"may hold scales of tokens or heads of tensor \"q\": reshape it to [1 2 1] or [2]", nil},
	} {
		shapes := map[string][]int{"q_scale_inv": {1}, "k_scale_inv": {1}, "v_scale_inv": {1}}
		shapes[test.name] = test.shape
		all := []safetensors.Tensor{codesIn("q", []int{2, 3, 32}, p.Q),
			codesIn("k", []int{2, 64, 32}, p.K),
			codesIn("v", []int{2, 64, 64}, p.V), filetest.F32("out", []int{2, 3, 64}, out...)}
		for name, shape := range shapes {
			n := 1
			for _, e := range shape {
				n *= e
			}
			all = append(all, filetest.F32(name, shape, slices.Repeat([]float32{1}, n)...))
		}
		fail(t, 1, test.want, append([]string{"verify", "attention", filetest.Write(t, nil, all...)},
			test.more...)...)
	}
}

// TestVerifyAttentionOutputs has outputs of every type, with P in BF16 as of BF16 operands.
func TestVerifyAttentionOutputs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 18))
	bf16 := func(heads, tokens, dim int) (attention.Operand, safetensors.Tensor) {
		o, data := attention.Operand{Shape: [3]int{heads, tokens, dim}}, []byte{}
		for range heads * tokens * dim {
			o.BFloat16 = append(o.BFloat16, fp8.BFloat16FromFloat32(float32(r.NormFloat64())))
			data = binary.LittleEndian.AppendUint16(data, uint16(o.BFloat16[len(o.BFloat16)-1]))
		}
		return o, filetest.Raw("", safetensors.BF16, o.Shape[:], data...)
	}
	var p attention.Problem
	var files [3]safetensors.Tensor
	for i, o := range []*attention.Operand{&p.Q, &p.K, &p.V} {
		*o, files[i] = bf16(2, 5+30*i, 32)
		files[i].Name = []string{"q", "k", "v"}[i]
	}
	p.V, files[2] = bf16(2, 35, 32)
	files[2].Name = "v"
	for dtype, cast := range map[safetensors.DType]flash.Cast{
		safetensors.F32: flash.Float32, safetensors.BF16: flash.BFloat16, safetensors.F16: flash.Float16,
	} {
		k := flash.Octavo(attention.PBFloat16, 1)
		k.Out = cast
		got, err := flash.Predict(t.Context(), &p, k, flash.Options{})
		require.NoError(t, err)
		var numbers []float64
		for _, x := range got.Out {
			numbers = append(numbers, float64(x))
		}
		out := filetest.Raw("out", dtype, []int{2, 5, 32}, filetest.Values(dtype, numbers)...)
		path := filetest.Write(t, nil, files[0], files[1], files[2], out,
			filetest.F32("lse", []int{2, 5}, got.LSE...))
		text := succeed(t, "verify", "attention", path, "--kernel", "octavo-bf16", "--bits", "--quiet")
		require.Contains(t, text, "PASS: all 320 elements")
		require.Contains(t, text, "output: "+cast.String())
		require.Contains(t, succeed(t, "verify", "attention", path, "--quiet"), "P in bf16")

		// A step of the type further is outside of what P in float32 allows, where one that was
		// rounded is not.
		k.P, k.Values = flash.Float32, flash.Product{}
		got, err = flash.Predict(t.Context(), &p, k, flash.Options{})
		require.NoError(t, err)
		for i, x := range got.Out {
			numbers[i] = float64(x)
		}
		args := []string{"verify", "attention", "", "--p-format", "float32", "--quiet"}
		write := func() string {
			out := filetest.Raw("out", dtype, []int{2, 5, 32}, filetest.Values(dtype, numbers)...)
			return filetest.Write(t, nil, files[0], files[1], files[2], out)
		}
		args[2] = write()
		succeed(t, args...)
		step := map[flash.Cast]float64{flash.Float32: 0x1p-14, flash.BFloat16: 0x1p-6,
			flash.Float16: 0x1p-9}[cast]
		numbers[17] *= 1 + step
		args[2] = write()
		require.Contains(t, octavo(nil, args...).stdout, "FAIL: 1 of 320 elements", cast.String())
	}
}

// gpuCase is a problem and what a kernel with the sums of a GPU makes of it.
func gpuCase(t *testing.T, r *rand.Rand, keys int, sums string, promote int) (path string) {
	const heads, queries, dim = 1, 2, 16
	p := &attention.Problem{Q: attentionCodes(r, heads, queries, dim, tensor.Block{Rows: queries},
		false),
		K: attentionCodes(r, heads, keys, dim, tensor.Block{Rows: keys}, false),
		V: attentionCodes(r, heads, keys, dim, tensor.Block{Rows: keys}, false), Scale: 0.02}
	for i := range p.V.Codes.Codes {
		p.V.Codes.Codes[i] &= 0x7F // sums that grow lose the most
	}
	m, err := oracle.ParseModel(sums)
	require.NoError(t, err)
	core := flash.Product{Order: flash.Instruction, Model: m}
	k := flash.Kernel{Tile: 128, Descending: true, Offset: 8, P: flash.E4M3,
		Scores: flash.Scores{Product: core}, Values: core}
	k.Values.Promote, k.Values.Carry = promote, promote == 0
	got, err := flash.Predict(t.Context(), p, k, flash.Options{})
	require.NoError(t, err)
	// What truncated sums lose is made V's scale, so that they look as if it were applied twice.
	want, err := flash.Exact[float64](t.Context(), p, flash.Options{})
	require.NoError(t, err)
	share := float64(got.Out[0]) / want.Out[0]
	p.V.Codes.Scales[0] = float32(share)
	got, err = flash.Predict(t.Context(), p, k, flash.Options{})
	require.NoError(t, err)
	return filetest.Write(t, nil,
		codesIn("q", []int{heads, queries, dim}, p.Q), codesIn("k", []int{heads, keys, dim}, p.K),
		codesIn("v", []int{heads, keys, dim}, p.V),
		filetest.F32("q_scale_inv", []int{heads}, p.Q.Codes.Scales...),
		filetest.F32("k_scale_inv", []int{heads}, p.K.Codes.Scales...),
		filetest.F32("v_scale_inv", []int{heads}, p.V.Codes.Scales...),
		filetest.F32("out", []int{heads, queries, dim}, got.Out...), filetest.F32("lse",
			[]int{heads, queries}, got.LSE...))
}

func onGPU(path string, more ...string) []string {
	return append([]string{"verify", "attention", path, "--scale", "0.02", "--quiet"}, more...)
}

// TestVerifyAttentionSums has results with the sums of every GPU judged right if that is said,
// promoted or not.
func TestVerifyAttentionSums(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 18))
	for _, sums := range judged.Sums()[2:] {
		for _, promote := range []int{0, 64} {
			path := gpuCase(t, r, 300, sums, promote)
			args := onGPU(path, "--sums", sums, "--promote", strconv.Itoa(promote))
			text := strings.Join(strings.Fields(succeed(t, args...)), " ")
			require.Contains(t, text, "P·V by "+sums)
			require.Equal(t, promote > 0, strings.Contains(text, "promoted every 64"))
			succeed(t, append(args, "--tile", "128", "--descending", "true")...)
		}
	}
	path := gpuCase(t, r, 300, "hopper-wgmma", 0)
	fail(t, 1, "--promote is for GPU models", onGPU(path, "--promote", "64")...)
	fail(t, 1, "--promote is for GPU models", onGPU(path, "--sums", "float32", "--promote", "64")...)
	fail(t, 2, "want one of float32, exact, ", onGPU(path, "--sums", "hoper")...)
	fail(t, 1, "tile 70000 must be from 0 to 65536", onGPU(path, "--tile", "70000")...)
	fail(t, 1, "splits 70000 must be from 0 to 65536", onGPU(path, "--splits", "70000")...)
}

// TestVerifyAttentionAccusesNoGPU gives results of kernels whose sums keep 14 bits, as FP8's on
// Hopper and Ada do, and says nothing of sums.
func TestVerifyAttentionAccusesNoGPU(t *testing.T) {
	r, undecided := rand.New(rand.NewPCG(5, 5)), 0
	for i, sums := range []string{"hopper-wgmma", "ada-mma", "hopper-wgmma", "ada-mma"} {
		if testing.Short() && i > 0 {
			break
		}
		path := gpuCase(t, r, []int{14000, 16000, 2000, 3000}[i], sums, 0)
		res := octavo(nil, onGPU(path)...)
		text := strings.Join(strings.Fields(res.stdout), " ")
		require.NotContains(t, text, "FAIL:")
		require.NotContains(t, text, "fault")
		if res.status == 0 {
			continue
		}
		undecided++
		require.Equal(t, 3, res.status)
		require.Contains(t, text, "UNDECIDED: ")
		require.Contains(t, res.stderr, "say with --sums how the kernel adds")
		require.Contains(t, text, "with --sums hopper-wgmma nothing is outside of its bound")
		succeed(t, onGPU(path, "--sums", sums)...)
		if !testing.Short() {
			require.Contains(t, octavo(nil, onGPU(path, "--sums", "float32")...).stdout, "FAIL:")
		}
	}
	require.Positive(t, undecided)
}

// joined are sequences one after the other along tokens, [tokens, heads, dim].
func joined[T any](heads, dim int, all ...[]T) (r []T) {
	for _, x := range all {
		tokens := len(x) / heads / dim
		for t := range tokens {
			for h := range heads {
				r = append(r, x[(h*tokens+t)*dim:][:dim]...)
			}
		}
	}
	return r
}

// TestVerifyAttentionOfDifferentLengths has sequences packed, padded and in pages, which one has
// no keys, and all of one batch are judged by the bits of each alone.
func TestVerifyAttentionOfDifferentLengths(t *testing.T) {
	const heads, kv, dim, valueDim, page, most = 4, 2, 32, 16, 16, 80
	r := rand.New(rand.NewPCG(6, 18))
	lengths := [][2]int{{3, 40}, {1, 65}, {0, 20}, {2, 0}}
	var q, k, v [][]byte
	var qs, ks, vs []float32
	var outs, lses [][]float32
	cuQ, cuK, used := []int32{0}, []int32{0}, []int32{}
	for _, n := range lengths {
		p := &attention.Problem{Q: attentionCodes(r, heads, max(n[0], 1), dim,
			tensor.Block{Rows: max(n[0], 1)}, false),
			K: attentionCodes(r, kv, max(n[1], 1), dim, tensor.Block{Rows: max(n[1], 1)}, false),
			V: attentionCodes(r, kv, max(n[1], 1), valueDim, tensor.Block{Rows: max(n[1], 1)}, false)}
		p.Mask.Causal = true
		out, lse := canonically(t, p)
		if n[0] == 0 {
			p.Q.Codes.Codes, out, lse = nil, nil, nil
		}
		if n[1] == 0 { // nothing to attend to: the output is 0 and the log-sum-exp -Inf
			p.K.Codes.Codes, p.V.Codes.Codes = nil, nil
			clear(out)
			for i := range lse {
				lse[i] = float32(math.Inf(-1))
			}
		}
		q, k, v = append(q, p.Q.Codes.Codes), append(k, p.K.Codes.Codes), append(v, p.V.Codes.Codes)
		qs, ks, vs = append(qs, p.Q.Codes.Scales...), append(ks, p.K.Codes.Scales...), append(vs,
			p.V.Codes.Scales...)
		outs, lses = append(outs, out), append(lses, lse)
		cuQ, cuK = append(cuQ, cuQ[len(cuQ)-1]+int32(n[0])), append(cuK, cuK[len(cuK)-1]+int32(n[1]))
		used = append(used, int32(n[1]))
	}
	ints := func(name string, shape []int, x ...int32) safetensors.Tensor {
		var b []byte
		for _, n := range x {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
		return filetest.Raw(name, safetensors.I32, shape, b...)
	}
	raw := func(name string, shape []int, b []byte) safetensors.Tensor {
		return filetest.Raw(name, safetensors.F8E4M3, shape, b...)
	}
	lse := joined(heads, 1, lses...)
	n := len(lengths)
	queries, keys := int(cuQ[n]), int(cuK[n])
	ofQ := []safetensors.Tensor{raw("q", []int{queries, heads, dim}, joined(heads, dim, q...)),
		filetest.F32("q_scale_inv", []int{n, heads}, qs...),
		filetest.F32("k_scale_inv", []int{n, kv}, ks...), filetest.F32("v_scale_inv", []int{n, kv},
			vs...),
		filetest.F32("out", []int{queries, heads, valueDim}, joined(heads, valueDim, outs...)...),
		filetest.F32("lse", []int{queries, heads}, lse...),
		ints("cuq", []int{n + 1}, cuQ...), ints("cuk", []int{n + 1}, cuK...), ints("used", []int{n},
			used...)}
	args := []string{"--layout", "bshd", "--causal", "--cu-seqlens-q", "cuq"}

	packed := filetest.Write(t, nil, append(ofQ, raw("k", []int{keys, kv, dim}, joined(kv, dim, k...)),
		raw("v", []int{keys, kv, valueDim}, joined(kv, valueDim, v...)))...)
	text := succeed(t, attentionBits(packed, append(args, "--cu-seqlens-k", "cuk")...)...)
	require.Contains(t, text, "PASS: all 384 elements")
	require.Contains(t, text, "4 sequences of 4 query heads")
	require.Contains(t, strings.Join(strings.Fields(text), " "), "0 to 3 queries, 0 to 65 keys")

	// A batch whose tokens beyond those that count are NaN, and a cache of pages in disorder.
	nan := fp8.E4M3.NaNCode()
	fill := func(x [][]byte, dim int) (batch, pages []byte, table []int32) {
		order := rand.New(rand.NewPCG(1, 1)).Perm(n * most / page)
		pages = slices.Repeat([]byte{nan}, n*most*kv*dim)
		for b := range n {
			one := slices.Concat(joined(kv, dim, x[b]), slices.Repeat([]byte{nan},
				most*kv*dim))[:most*kv*dim]
			batch = append(batch, one...)
			for i := range most / page {
				at := order[b*(most/page)+i]
				copy(pages[at*page*kv*dim:], one[i*page*kv*dim:][:page*kv*dim])
				if table = append(table, int32(at)); i*page >= int(used[b]) {
					table[len(table)-1] = -1
				}
			}
		}
		return batch, pages, table
	}
	kBatch, kPages, table := fill(k, dim)
	vBatch, vPages, _ := fill(v, valueDim)
	padded := filetest.Write(t, nil, append(ofQ, raw("k", []int{n, most, kv, dim}, kBatch),
		raw("v", []int{n, most, kv, valueDim}, vBatch))...)
	succeed(t, attentionBits(padded, append(args, "--seqlens-k", "used")...)...)
	paged := func(table []int32) string {
		return filetest.Write(t, nil, append(ofQ, raw("k", []int{n * most / page, page, kv, dim}, kPages),
			raw("v", []int{n * most / page, page, kv, valueDim}, vPages),
			ints("pages", []int{n, most / page}, table...))...)
	}
	more := append(args, "--seqlens-k", "used", "--block-table", "pages")
	succeed(t, attentionBits(paged(table), more...)...)

	// A wrong element is named by the sequence and the query that it is of.
	outs[1][2*valueDim+5] += 3
	ofQ[4] = filetest.F32("out", []int{queries, heads, valueDim}, joined(heads, valueDim, outs...)...)
	res := octavo(nil, attentionBits(paged(table), more...)...)
	require.Equal(t, 1, res.status)
	require.Contains(t, strings.Join(strings.Fields(res.stdout), " "),
		"sequence 1, head 2, row 0, column 5: got")

	table[1] = 20
	fail(t, 1, `tensor "pages": page 1 of sequence 0 is number 20: tensor "k" has 20 pages`,
		attentionBits(paged(table), more...)...)
	fail(t, 2, "name how many keys count with --seqlens-k",
		attentionBits(padded, "--block-table", "x")...)
	fail(t, 2, "leave one out", attentionBits(padded, "--seqlens-k", "used", "--keys", "3")...)
	fail(t, 2, "leave one out", attentionBits(padded, "--block-table", "x", "--cu-seqlens-k", "y")...)
	fail(t, 1, `tensor "cuk" has the lengths of 5 sequences: there are 4`,
		attentionBits(padded, append(args, "--seqlens-k", "cuk")...)...)
	fail(t, 1, `has 1 sequences and tensor "q" 4`, attentionBits(packed, args...)...)
	fail(t, 1, `tensor "cuk" says where sequences begin, and tensor "k" of 4 dimensions has a batch`,
		attentionBits(padded, append(args, "--cu-seqlens-k", "cuk")...)...)
	for want, cu := range map[string][]int32{
		`place 1 is -1: sequences begin at 0`:                                  {0, -1, 3, 4, 5},
		`place 0 is 2: sequences begin at 0`:                                   {2, 3, 4, 5, 6},
		`the last sequence ends at token 126: tensor "k" has 125`:              {0, 1, 2, 3, 126},
		`tensor "k" has 3 sequences and tensor "q" 4`:                          {0, 1, 2, 3},
		`place 0 is 0: sequences begin at 0 and one after the other, with the`: {0},
	} {
		ofQ[7] = ints("cuk", []int{len(cu)}, cu...)
		path := filetest.Write(t, nil, append(ofQ, raw("k", []int{keys, kv, dim}, joined(kv, dim, k...)),
			raw("v", []int{keys, kv, valueDim}, joined(kv, valueDim, v...)))...)
		more := []string{}
		if len(cu) != n+1 { // scales of sequences are of other ones
			more = []string{"--k-scales", "1", "--v-scales", "1"}
		}
		fail(t, 1, want, attentionBits(path, slices.Concat(args, []string{"--cu-seqlens-k", "cuk"},
			more)...)...)
	}
	ofQ[8] = ints("used", []int{n}, 40, 81, 20, 0)
	path := filetest.Write(t, nil, append(ofQ, raw("k", []int{n, most, kv, dim}, kBatch),
		raw("v", []int{n, most, kv, valueDim}, vBatch))...)
	fail(t, 1, `the length of sequence 1 is 81: tensor "k" has room for 80 keys of it`,
		attentionBits(path, append(args, "--seqlens-k", "used")...)...)
}

// TestVerifyAttentionOfAnEmptySequence has one scale for all sequences, the first of which has
// no queries.
func TestVerifyAttentionOfAnEmptySequence(t *testing.T) {
	const heads, queries, keys, others, dim = 2, 3, 40, 20, 32
	r := rand.New(rand.NewPCG(7, 18))
	one := tensor.Block{}
	p := &attention.Problem{Q: attentionCodes(r, heads, queries, dim, one, false),
		K: attentionCodes(r, heads, keys, dim, one, false),
		V: attentionCodes(r, heads, keys, dim, one, false)}
	out, lse := canonically(t, p)
	behind := func(o attention.Operand) (codes []byte) { // those of the first sequence
		for h := range heads {
			codes = append(codes, make([]byte, others*dim)...)
			codes = append(codes, o.Codes.Codes[h*keys*dim:][:keys*dim]...)
		}
		return codes
	}
	starts := func(name string, x ...float32) safetensors.Tensor {
		return filetest.F32(name, []int{len(x)}, x...)
	}
	write := func(out []float32) string {
		return filetest.Write(t, nil,
			codesIn("q", []int{heads, queries, dim}, p.Q),
			filetest.Raw("k", safetensors.F8E4M3, []int{heads, others + keys, dim}, behind(p.K)...),
			filetest.Raw("v", safetensors.F8E4M3, []int{heads, others + keys, dim}, behind(p.V)...),
			starts("q_scale_inv", p.Q.Codes.Scales...), starts("k_scale_inv", p.K.Codes.Scales...),
			starts("v_scale_inv", p.V.Codes.Scales...),
			filetest.F32("out", []int{heads, queries, dim}, out...),
			filetest.F32("lse", []int{heads, queries}, lse...),
			starts("cuq", 0, 0, queries), starts("cuk", 0, others, others+keys))
	}
	args := []string{"--cu-seqlens-q", "cuq", "--cu-seqlens-k", "cuk"}
	text := succeed(t, attentionBits(write(out), args...)...)
	require.Contains(t, text, "PASS: all 192 elements")
	for _, name := range []string{"Q", "K", "V"} {
		require.Contains(t, text, name+": E4M3, one scale")
	}

	lse[1] = 99 // all elements are right
	file := filepath.Join(t.TempDir(), "page.html")
	res := octavo(nil, attentionBits(write(out), append(args, "--html", file)...)...)
	require.Equal(t, 1, res.status)
	require.Contains(t, strings.Join(strings.Fields(res.stdout), " "), "sequence 1: no known fault")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.False(t, strings.Contains(string(page), "sequence 0"), "a chart has an empty sequence")
	cells := regexp.MustCompile(`<td class="number">([^<]*)</td>`).FindAllStringSubmatch(string(page), -1)
	require.Equal(t, "1", cells[3][1]) // sequence, head, elements and log-sum-exps outside
	units, err := strconv.ParseFloat(cells[4][1], 64)
	require.NoError(t, err)
	require.Greater(t, units, 1.0)
}
