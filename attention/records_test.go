package attention_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

func kvGolden(t *testing.T) *safetensors.File {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "attention", "kv.safetensors"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func bfloat16s(t *testing.T, file *safetensors.File, name string) []fp8.BFloat16 {
	raw, err := file.Bytes(name)
	require.NoError(t, err)
	values := make([]fp8.BFloat16, len(raw)/2)
	for i := range values {
		values[i] = fp8.BFloat16(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return values
}

// goldenRecords are the cases of kv.safetensors by how their names begin.
var goldenRecords = []struct {
	prefix string
	kind   attention.Record
}{
	{"v32", attention.FlashMLAV32}, {"model1", attention.FlashMLAModel1},
	{"vllm_ds", attention.VLLMDeepSeek}, {"indexer", attention.DeepGEMMIndexer},
}

// TestRecordsGolden compares every byte of records, and every value of what they hold,
// with FlashMLA's, vLLM's and DeepGEMM's.
func TestRecordsGolden(t *testing.T) {
	file := kvGolden(t)
	for _, info := range file.Tensors() {
		name, isInput := strings.CutSuffix(info.Name, ".x")
		for _, golden := range goldenRecords {
			if !isInput || !strings.HasPrefix(name, golden.prefix) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				compareRecords(t, file, name, golden.kind, info.Shape)
			})
		}
	}
}

func compareRecords(
	t *testing.T, file *safetensors.File, name string, kind attention.Record, shape []int,
) {
	require.Equal(t, shape[2], kind.Dim())
	bytes := name + ".records"
	if _, ok := file.Info(bytes); !ok {
		bytes = name + ".blocks"
	}
	want, err := file.Bytes(bytes)
	require.NoError(t, err)
	values := bfloat16s(t, file, name+".x")
	wide := make([]float32, len(values))
	for i, v := range values {
		wide[i] = v.Float32()
	}
	got := attention.Records{Kind: kind, Tokens: shape[1], Stride: len(want) / shape[0],
		Data: make([]byte, len(want))}
	require.NoError(t, got.Check())
	require.Equal(t, shape[0]*shape[1], got.Len())
	for _, put := range []func(){
		func() { attention.PutRecords(&got, 0, values) },
		func() { attention.PutRecords(&got, 0, wide) },
		func() { // token by token, the last first
			for i := got.Len() - 1; i >= 0; i-- {
				attention.PutRecords(&got, i, values[i*kind.Dim():][:kind.Dim()])
			}
		},
	} {
		clear(got.Data)
		put()
		if strings.Contains(name, "nonfinite") { // the golden's NaN codes have no sign to go by
			require.Zero(t, differingButForNaN(got.Data, want))
		} else {
			require.Equal(t, want, got.Data)
		}
	}
	for suffix, rounded := range map[string]bool{"dequant": false, "dequant_f32scale": false,
		"dequant_bf16scale": true} {
		if _, ok := file.Info(name + "." + suffix); ok {
			got.ScaleBFloat16 = rounded
			compareValues(t, file, name+"."+suffix, &got)
		}
	}
	compareExponents(t, file, name, &got)
}

// differingButForNaN counts bytes that are different, and not both NaN of E4M3.
func differingButForNaN(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] && (a[i]&0x7F != 0x7F || b[i]&0x7F != 0x7F) {
			n++
		}
	}
	return n
}

func compareValues(t *testing.T, file *safetensors.File, name string, r *attention.Records) {
	want := bfloat16s(t, file, name)
	dim := len(want) / r.Len() // vLLM's are those of the codes alone
	got := make([]fp8.BFloat16, r.Kind.Dim())
	for i := range r.Len() {
		r.Values(got, i)
		for j, w := range want[i*dim : (i+1)*dim] {
			if math.IsNaN(float64(w.Float32())) && math.IsNaN(float64(got[j].Float32())) {
				continue
			}
			require.Equal(t, w, got[j], "%s: token %d, value %d", name, i, j)
		}
	}
}

func compareExponents(t *testing.T, file *safetensors.File, name string, r *attention.Records) {
	if _, ok := file.Info(name + ".scale_exponents"); !ok {
		return
	}
	raw, err := file.Bytes(name + ".scale_exponents")
	require.NoError(t, err)
	scales := make([]float32, 8)
	for i := range r.Len() {
		for _, s := range scales[:r.Scales(scales, i)] {
			require.Equal(t, math.Ldexp(1, int(int32(binary.LittleEndian.Uint32(raw)))), float64(s))
			raw = raw[4:]
		}
	}
	require.Empty(t, raw)
}

// TestRecordsPowersOfTwo: of float32 values the logarithm's rounding shows.
func TestRecordsPowersOfTwo(t *testing.T) {
	file := kvGolden(t)
	amax, err := file.Float32s("pow2.amax")
	require.NoError(t, err)
	want, err := file.Float32s("pow2.scale_code")
	require.NoError(t, err)
	for _, kind := range []attention.Record{attention.FlashMLAV32, attention.FlashMLAModel1} {
		r := attention.Records{Kind: kind, Tokens: 1, Data: make([]byte, kind.BlockBytes(1))}
		row, scales := make([]float32, kind.Dim()), make([]float32, 8)
		for i, a := range amax {
			row[5] = a
			attention.PutRecords(&r, 0, row)
			r.Scales(scales, 0)
			require.Equal(t, want[i], scales[0], "amax %v", a)
		}
	}
}

func TestRecordSizes(t *testing.T) {
	// FlashMLA's flash_mla_interface.py and DeepGEMM's tests.
	for _, test := range []struct {
		kind                    attention.Record
		token, block64, dim, dv int
		name                    string
	}{
		{attention.FlashMLAV32, 656, 41984, 576, 512, "flashmla-v3.2"},
		{attention.FlashMLAModel1, 584, 37440, 512, 512, "flashmla-model1"},
		{attention.VLLMDeepSeek, 656, 41984, 576, 512, "vllm-ds-mla"},
		{attention.DeepGEMMIndexer, 132, 8448, 128, 0, "deepgemm-indexer"},
	} {
		require.Equal(t, test.token, test.kind.TokenBytes())
		require.Equal(t, test.block64, test.kind.BlockBytes(64))
		require.Equal(t, test.dim, test.kind.Dim())
		require.Equal(t, test.dv, test.kind.ValueDim())
		var kind attention.Record
		require.NoError(t, kind.UnmarshalText([]byte(strings.ToUpper(test.name))))
		require.Equal(t, test.kind, kind)
		text, err := kind.MarshalText()
		require.NoError(t, err)
		require.Equal(t, test.name, string(text))
	}
	err := new(attention.Record).UnmarshalText([]byte("v33"))
	require.ErrorContains(t, err, "flashmla-v3.2, flashmla-model1, vllm-ds-mla, deepgemm-indexer")
}

// TestRecordsNaN: vLLM's largest magnitude leaves NaN out, by CUDA's fmaxf, so that the
// rest of the tile stays; the others' does not.
func TestRecordsNaN(t *testing.T) {
	for kind, others := range map[attention.Record]byte{
		attention.VLLMDeepSeek: 0x7E, attention.FlashMLAV32: 0x7F, attention.FlashMLAModel1: 0x7F,
		attention.DeepGEMMIndexer: 0x7F,
	} {
		r := attention.Records{Kind: kind, Tokens: 2, Data: make([]byte, kind.BlockBytes(2))}
		row := make([]float32, kind.Dim())
		row[0], row[1] = float32(math.NaN()), 3
		attention.PutRecords(&r, 0, row)
		require.Equal(t, []byte{0x7F, others}, r.Data[:2], kind)
	}
}

func TestRecordsMisuse(t *testing.T) {
	good := attention.Records{Tokens: 4, Data: make([]byte, 3*4*656)}
	require.Equal(t, 12, good.Len())
	short := good
	short.Data = short.Data[1:]
	require.Equal(t, 8, short.Len())
	for _, bad := range []attention.Records{{}, {Tokens: -1}, {Tokens: 4, Stride: 2623},
		{Kind: 99, Tokens: 4}, {Tokens: math.MaxInt}} {
		require.ErrorIs(t, bad.Check(), attention.ErrShape)
		require.PanicsWithValue(t, "attention: Records do not pass Check", func() { bad.Len() })
	}
	const beyond = "attention: values are not whole rows, or tokens beyond the records"
	for _, at := range []int{-1, 12, math.MaxInt} {
		require.PanicsWithValue(t, beyond,
			func() { attention.PutRecords(&good, at, make([]float32, 576)) })
		require.PanicsWithValue(t, beyond, func() { good.Values(make([]fp8.BFloat16, 576), at) })
		require.PanicsWithValue(t, beyond, func() { good.Scales(make([]float32, 4), at) })
	}
	require.PanicsWithValue(t, beyond, func() { good.Values(make([]fp8.BFloat16, 575), 0) })
	require.PanicsWithValue(t, "attention: unknown record", func() { attention.Record(99).Dim() })
}

// FuzzRecords reads whatever bytes are there.
func FuzzRecords(f *testing.F) {
	f.Add(uint8(0), 4, 0, make([]byte, 4*656))
	f.Add(uint8(1), 8, 5000, make([]byte, 9999))
	f.Fuzz(func(t *testing.T, kind uint8, tokens, stride int, data []byte) {
		r := attention.Records{Kind: attention.Record(kind), Tokens: tokens, Stride: stride,
			Data: data}
		if r.Check() != nil {
			return
		}
		n := min(r.Len(), 40)
		values := make([]fp8.BFloat16, n*r.Kind.Dim())
		r.Values(values, 0)
		attention.PutRecords(&r, 0, values)
	})
}
