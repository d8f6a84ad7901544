package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// floats is a tensor of float32, or cut to bfloat16.
func floatTensor(name string, d safetensors.DType, shape []int, x []float32) safetensors.Tensor {
	t := safetensors.Tensor{Info: safetensors.Info{Name: name, DType: d, Shape: shape}}
	for _, v := range x {
		if d == safetensors.BF16 {
			t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(fp8.BFloat16FromFloat32(v)))
		} else {
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
		}
	}
	return t
}

func bytesTensor(name string, d safetensors.DType, shape []int, data []byte) safetensors.Tensor {
	return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: d, Shape: shape}, Data: data}
}

func writeTensors(t *testing.T, all ...safetensors.Tensor) string {
	t.Helper()
	data, err := safetensors.Encode(all, nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cache.safetensors")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

// normals are BF16 values.
func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 8))
	x := make([]float32, n)
	for i := range x {
		x[i] = fp8.BFloat16FromFloat32(float32(r.NormFloat64())).Float32()
	}
	return x
}

// TestVerifyCacheRecords reads records, and names two that are exchanged.
func TestVerifyCacheRecords(t *testing.T) {
	const tokens = 37
	for _, kind := range []attention.Record{attention.FlashMLAV32, attention.FlashMLAModel1, attention.VLLMDeepSeek, attention.DeepGEMMIndexer} {
		n := kind.Dim()
		x := normals(uint64(kind), tokens*n)
		in := writeTensors(t, floatTensor("k", safetensors.BF16, []int{tokens, 1, n}, x))
		r := &attention.Records{Kind: kind, Tokens: 16, Data: make([]byte, 3*kind.BlockBytes(16))}
		attention.PutRecords(r, 0, x)
		got := func(exchange bool) string {
			rows := x
			if exchange {
				rows = append([]float32(nil), x...)
				copy(rows[5*n:6*n], x[20*n:])
				copy(rows[20*n:21*n], x[5*n:])
			}
			attention.PutRecords(r, 0, rows)
			return writeTensors(t, bytesTensor("cache", safetensors.U8, []int{3, kind.BlockBytes(16)}, r.Data))
		}
		args := []string{"verify", "cache", in, "--record", kind.String(), "--page", "16", "--got"}
		code, stdout, stderr := cacheVerdict(append(args, got(false))...)
		require.Equal(t, 0, code, "%v: %s%s", kind, stdout, stderr)
		require.Contains(t, stdout, "not judged")
		code, stdout, _ = cacheVerdict(append(args, got(true))...)
		require.Equal(t, 1, code)
		require.Contains(t, strings.Join(strings.Fields(stdout), " "), "tokens 5 and 20 are exchanged")
	}
}

// TestVerifyCacheSlots reads tokens from slots of pages, of mixed precision.
func TestVerifyCacheSlots(t *testing.T) {
	const tokens, heads, dim, codes, slots = 20, 2, 48, 32, 32
	x := normals(4, tokens*heads*dim)
	at := make([]float32, tokens)
	data, wide, scales := make([]byte, slots*heads*codes), make([]float32, slots*heads*(dim-codes)), make([]float32, slots*heads)
	for i := range tokens {
		at[i] = float32((i*7 + 3) % slots)
		for h := range heads {
			row, slot := x[(i*heads+h)*dim:], int(at[i])*heads+h
			amax, _ := fp8.Amax(row[:codes])
			scales[slot] = amax / 448
			for c, v := range row[:codes] {
				data[slot*codes+c] = fp8.EncodeOne(v/scales[slot], fp8.E4M3, fp8.Policy{})
			}
			copy(wide[slot*(dim-codes):], row[codes:dim])
		}
	}
	in := writeTensors(t, floatTensor("k", safetensors.BF16, []int{tokens, heads, dim}, x), floatTensor("v", safetensors.BF16, []int{tokens, heads, dim}, x))
	write := func() string {
		return writeTensors(t, bytesTensor("k", safetensors.F8E4M3, []int{2, 16, heads, codes}, data),
			floatTensor("k_scale_inv", safetensors.F32, []int{slots, heads}, scales),
			floatTensor("k_wide", safetensors.BF16, []int{slots, heads, dim - codes}, wide),
			floatTensor("at", safetensors.F32, []int{tokens}, at))
	}
	args := []string{"verify", "cache", in, "--slots", "at", "--got"}
	code, stdout, stderr := cacheVerdict(append(args, write())...)
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "V: the file has nothing of it")
	require.Contains(t, stdout, "K: what was read: the file has none of it")
	wide[int(at[9])*heads*(dim-codes)] += 1
	code, stdout, _ = cacheVerdict(append(args, write())...)
	require.Equal(t, 1, code)
	require.Contains(t, strings.Join(strings.Fields(stdout), " "), "columns 32 to 47 of K, which are kept in bfloat16, are not those of the input in tokens 9, heads 0")
	at[3] = slots
	code, _, stderr = cacheVerdict(append(args, write())...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "slot 32 of token 3: the cache has 32")
}

// cacheVerdict runs octavo verify cache.
func cacheVerdict(args ...string) (code int, stdout, stderr string) {
	r := octavo(nil, args...)
	return r.status, r.stdout, r.stderr
}

// TestVerifyAttentionNVFP4 attends to a cache with block scales along rows under an outer scale.
func TestVerifyAttentionNVFP4(t *testing.T) {
	const heads, keys, queries, dim = 2, 40, 3, 32
	r := rand.New(rand.NewPCG(21, 8))
	cached := func(name string) (*tensor.Tensor, []safetensors.Tensor) {
		x := &tensor.Tensor{Format: fp8.E2M1, Shape: []int{heads, keys, dim}, Block: tensor.Block{Rows: 1, Cols: 16}, ScaleFormat: tensor.UE4M3Scales,
			Outer: tensor.Outer{Scales: []float32{float32(0.3 + r.Float64())}}}
		scales := make([]byte, heads*keys*dim/16)
		for i := range scales {
			scales[i] = byte(40 + r.IntN(20))
			x.Scales = append(x.Scales, fp8.UE4M3(scales[i]).Float32())
		}
		packed := make([]byte, heads*keys*dim/2)
		for i := range heads * keys * dim {
			x.Codes = append(x.Codes, byte(r.IntN(16)))
			packed[i/2] |= x.Codes[i] << (4 * (i % 2))
		}
		return x, []safetensors.Tensor{bytesTensor(name, safetensors.U8, []int{heads, keys, dim / 2}, packed),
			bytesTensor(name+"_scale_inv", safetensors.F8E4M3, []int{heads, keys, dim / 16}, scales),
			floatTensor(name+"_outer_scale", safetensors.F32, []int{1}, x.Outer.Scales)}
	}
	q := normals(5, heads*queries*dim)
	k, kFile := cached("k")
	v, vFile := cached("v")
	p := &attention.Problem{Q: attention.Operand{Shape: [3]int{heads, queries, dim}}, K: attention.Operand{Codes: k}, V: attention.Operand{Codes: v}}
	for _, x := range q {
		p.Q.BFloat16 = append(p.Q.BFloat16, fp8.BFloat16FromFloat32(x))
	}
	result := func(outer float32) string {
		out := make([]float32, heads*queries*dim)
		wrong := *v
		wrong.Outer.Scales = []float32{outer}
		of := *p
		of.V.Codes = &wrong
		require.NoError(t, attention.Forward(t.Context(), out, &of, attention.Options{P: attention.PE4M3}))
		all := append([]safetensors.Tensor{floatTensor("q", safetensors.BF16, []int{heads, queries, dim}, q),
			floatTensor("out", safetensors.F32, []int{heads, queries, dim}, out)}, kFile...)
		return writeTensors(t, append(all, vFile...)...)
	}
	args := []string{"verify", "attention", "--k-packed", "--k-format", "e2m1", "--v-packed", "--v-format", "e2m1"}
	code, stdout, stderr := cacheVerdict(append(args, result(v.Outer.Scales[0]), "--kernel", "octavo-e4m3", "--bits")...)
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "an outer scale")
	code, stdout, _ = cacheVerdict(append(args, result(3*v.Outer.Scales[0]))...)
	require.Equal(t, 1, code, stdout)
}

// TestVerifyCacheNarrow reads NVFP4, two codes a byte, and MXFP8, whose profiles nobody claims,
// and names V's block scales that are stored for others.
func TestVerifyCacheNarrow(t *testing.T) {
	const tokens, heads, dim = 24, 2, 64
	x := normals(9, tokens*heads*dim)
	in := writeTensors(t, floatTensor("k", safetensors.BF16, []int{tokens, heads, dim}, x), floatTensor("v", safetensors.BF16, []int{tokens, heads, dim}, x))
	for _, p := range []scaling.Profile{scaling.NVFP4ModelOpt, scaling.NVFP4TE, scaling.NVFP4CompressedTensors, scaling.MXRCeil, scaling.MXFloor} {
		q := &tensor.Tensor{Shape: []int{tokens * heads, dim}}
		r := p.Recipe(scaling.Input)
		if r.Block = (tensor.Block{Rows: 1, Cols: 32}); p.Outer() {
			r.Block.Cols = 16
		}
		require.NoError(t, scaling.Quantize(t.Context(), q, x, scaling.Quantizer{Recipe: r}))
		read := make([]fp8.BFloat16, len(x))
		tensor.Dequantize(read, q)
		back := make([]float32, len(x))
		for i, v := range read {
			back[i] = v.Float32()
		}
		write := func(name string, scales []float32) []safetensors.Tensor {
			all := []safetensors.Tensor{floatTensor(name+"_read", safetensors.BF16, []int{tokens, heads, dim}, back)}
			var bytes []byte
			for _, s := range scales {
				if p.Outer() {
					bytes = append(bytes, fp8.EncodeOne(s, fp8.E4M3, fp8.Policy{}))
				} else {
					code, _ := fp8.E8M0FromFloat32(s)
					bytes = append(bytes, byte(code))
				}
			}
			n := len(scales) / tokens / heads
			if !p.Outer() {
				return append(all, bytesTensor(name, safetensors.F8E4M3, []int{tokens, heads, dim}, q.Codes),
					bytesTensor(name+"_scale_inv", safetensors.F8E8M0, []int{tokens, heads, n}, bytes))
			}
			packed := make([]byte, len(q.Codes)/2)
			require.NoError(t, tensor.PackCodes(packed, q.Codes, 4, tensor.LowFirst))
			outer := map[bool]string{true: "_outer_divisor", false: "_outer_scale"}[q.Outer.Divide]
			return append(all, bytesTensor(name, safetensors.U8, []int{tokens, heads, dim / 2}, packed),
				bytesTensor(name+"_scale_inv", safetensors.F8E4M3, []int{tokens, heads, n}, bytes),
				floatTensor(name+outer, safetensors.F32, []int{1}, q.Outer.Scales))
		}
		got := writeTensors(t, append(write("k", q.Scales), write("v", q.Scales)...)...)
		code, stdout, stderr := cacheVerdict("verify", "cache", in, "--got", got)
		require.Equal(t, 0, code, "%s: %s%s", p, stdout, stderr)
		code, stdout, _ = cacheVerdict("verify", "cache", in, "--got", got, "--rule", string(p))
		require.Equal(t, 0, code, "%s: %s", p, stdout)
		if !p.Outer() {
			continue
		}
		wrong := append([]float32(nil), q.Scales...)
		for i := range wrong {
			wrong[i] = q.Scales[i/4*4+i%4/2]
		}
		got = writeTensors(t, append(write("k", q.Scales), write("v", wrong)...)...)
		code, stdout, _ = cacheVerdict("verify", "cache", in, "--got", got)
		require.Equal(t, 1, code)
		require.Contains(t, strings.Join(strings.Fields(stdout), " "), "block 1 has the scale of block 0")
	}
}
