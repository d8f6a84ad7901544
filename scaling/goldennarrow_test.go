package scaling_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// narrowCase is a case of golden/narrow/scaling.safetensors: what a library made of an
// input.
type narrowCase struct {
	Input, Block, Format string
	Amax                 string // of the tensor, in hexadecimal
}

// TestGoldenNarrow compares codes, block scales and outer scales with those that the
// libraries themselves computed, for all cases of the file.
func TestGoldenNarrow(t *testing.T) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "narrow", "scaling.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	var cases map[string]narrowCase
	require.NoError(t, json.Unmarshal([]byte(file.Metadata()["profiles"]), &cases))
	compared := 0
	for name, c := range cases {
		if strings.HasPrefix(name, "sr.") {
			continue // of package fp8
		}
		compared++
		if _, variant, ok := strings.Cut(name, ".amax-"); ok && c.Amax == "" {
			c.Amax = cases["nvfp4-te."+c.Input+".amax-"+variant].Amax // all profiles have the same
		}
		t.Run(name, func(t *testing.T) { compareNarrow(t, file, name, c) })
	}
	require.GreaterOrEqual(t, compared, 100)
	unseen := compared
	for _, info := range file.Tensors() {
		if strings.HasSuffix(info.Name, ".scales") {
			unseen--
		}
	}
	require.Zero(t, unseen, "cases without scales")
}

// TestGoldenCasts compares what profiles round to E2M1 with what the casts of their libraries
// give, NaN included, but for values that no rule of [fp8.Policy] makes.
func TestGoldenCasts(t *testing.T) {
	text, err := os.ReadFile(testutil.Shared(t, "golden", "narrow", "codes.json"))
	require.NoError(t, err)
	var golden struct {
		E2M1 struct {
			Libraries struct {
				Values []string             `json:"float32_bits"`
				Codes  map[string][]*string `json:"codes"`
			} `json:"libraries"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	casts := golden.E2M1.Libraries
	const torchAO = "mx-floor mx-ceil mx-even mx-rceil-torchao nvfp4-torchao nvfp4-torchao-global"
	const te = "nvfp4-te nvfp4-te-row nvfp4-te-4over6-mae448 nvfp4-te-4over6-mse256-fast"
	const compressedTensors = "mx-compressed-tensors nvfp4-compressed-tensors"
	const fourOverSix = "mx-fouroversix nvfp4-fouroversix-static6 nvfp4-fouroversix-mae"
	const nan, over = "7fc00000", "40e00000 41000000 7149f2ca 7f800000 ff800000"
	for library, of := range map[string]struct{ profiles, apart string }{
		"torchao f32_to_f4_unpacked":                 {torchAO, nan},
		"TransformerEngine reference cast_to_fp4x2":  {te, ""},
		"Model-Optimizer NVFP4QTensor":               {"nvfp4-modelopt", ""},
		"Model-Optimizer MXFP4QTensor":               {"mx-modelopt", ""},
		"compressed-tensors cast_to_fp4 after clamp": {compressedTensors, ""},
		"DeepGEMM _quantize_to_fp4_e2m1":             {"deepgemm-fp4 deepgemm-fp4-ue8m0", ""},
		"fouroversix":                                {fourOverSix, over + " " + nan},
	} {
		require.Len(t, casts.Codes[library], len(casts.Values), library)
		for _, name := range strings.Fields(of.profiles) {
			p, err := scaling.ParseProfile(name)
			require.NoError(t, err)
			for i, want := range casts.Codes[library] {
				if want == nil || strings.Contains(of.apart, casts.Values[i]) {
					continue
				}
				bits, err := strconv.ParseUint(casts.Values[i], 16, 32)
				require.NoError(t, err)
				x := math.Float32frombits(uint32(bits))
				code := fp8.EncodeOne(x, fp8.E2M1, p.Policy(fp8.E2M1))
				require.Equal(t, *want, fmt.Sprintf("%02x", code), "%s: %v", name, x)
			}
		}
	}
}

// narrowProfiles returns the profiles that a case is of, by the name of which its own
// begins. Of those after the first only blocks with a finite amax are compared.
func narrowProfiles(name, format string) []scaling.Profile {
	family, _, _ := strings.Cut(name, ".")
	if kind, ok := strings.CutPrefix(family, "mx"); ok {
		mode := kind[len("fp4-"):]
		for _, prefix := range []string{"fp8-e4m3-", "fp8-e5m2-", "fp6-e2m3-", "fp6-e3m2-", "int8-"} {
			if after, ok := strings.CutPrefix(kind, prefix); ok {
				mode = after
			}
		}
		if mode == "rceil" {
			return []scaling.Profile{scaling.MXRCeilTorchAO, scaling.MXRCeil}
		}
		return []scaling.Profile{scaling.Profile("mx-" + mode)}
	}
	for _, suffix := range []string{"-2d", "-rht-nosign", "-rht"} {
		family = strings.TrimSuffix(family, suffix)
	}
	return []scaling.Profile{scaling.Profile(family)}
}

func compareNarrow(t *testing.T, file *safetensors.File, name string, c narrowCase) {
	info, ok := file.Info("in." + c.Input)
	require.True(t, ok)
	for i, p := range narrowProfiles(name, c.Format) {
		r := scaling.Recipe{Profile: p}
		var err error
		r.Block, err = tensor.ParseBlock(c.Block)
		require.NoError(t, err)
		if c.Format == "INT8/64" {
			r.Format = fp8.MXINT8
		} else {
			r.Format, err = fp8.ParseFormat(c.Format)
			require.NoError(t, err)
		}
		x := narrowInput(t, file, name, c.Input)
		if info.DType == safetensors.BF16 {
			half := make([]fp8.BFloat16, len(x.values))
			for i, v := range x.values {
				half[i] = fp8.BFloat16FromFloat32(v)
			}
			if strings.Contains(name, "-rht") {
				half = transformed(t, name, half, x)
				for i, v := range half {
					x.values[i] = v.Float32()
				}
			}
			compareNarrowCase(t, file, name, c, r, x, half, i > 0)
		} else if strings.Contains(name, "-rht") {
			x.values = transformed(t, name, x.values, x)
		}
		compareNarrowCase(t, file, name, c, r, x, x.values, i > 0)
		double := make([]float64, len(x.values))
		for i, v := range x.values {
			double[i] = float64(v)
		}
		if r.Profile.ScaleFormat() == tensor.E8M0Scales { // others round in float32
			compareNarrowCase(t, file, name, c, r, x, double, i > 0)
		}
	}
}

// transformed returns values after TransformerEngine's random Hadamard transform.
func transformed[T float32 | fp8.BFloat16](t *testing.T, name string, src []T, m matrix) []T {
	h := scaling.Hadamard{Signs: scaling.NVIDIASigns}
	if strings.Contains(name, "-nosign") {
		h.Signs = 0
	}
	dst := make([]T, len(src))
	require.NoError(t, scaling.HadamardTransform(t.Context(), dst, src, m.rows, m.cols, h))
	return dst
}

type matrix struct {
	values     []float32
	rows, cols int
}

// narrowInput returns the values of a case: transposed where it says so.
func narrowInput(t *testing.T, file *safetensors.File, name, input string) matrix {
	values, err := file.Float32s("in." + input)
	require.NoError(t, err)
	info, _ := file.Info("in." + input)
	m := matrix{values, info.Shape[0], info.Shape[1]}
	if strings.HasSuffix(name, ".transposed") {
		transposed := make([]float32, len(values))
		for i := range m.rows {
			for j := range m.cols {
				transposed[j*m.rows+i] = values[i*m.cols+j]
			}
		}
		m = matrix{transposed, m.cols, m.rows}
	}
	return m
}

func compareNarrowCase[T fp8.Float](t *testing.T, file *safetensors.File, name string, c narrowCase, r scaling.Recipe, m matrix, src []T, finiteOnly bool) {
	t.Helper()
	q := scaling.Quantizer{Recipe: r}
	if strings.Contains(name, ".amax-") {
		amax, err := strconv.ParseFloat(c.Amax, 32)
		require.NoError(t, err)
		q.OuterAmax = []float32{float32(amax)}
	}
	got := &tensor.Tensor{Name: name, Shape: []int{m.rows, m.cols}}
	require.NoError(t, scaling.Quantize(t.Context(), got, src, q))
	require.NoError(t, got.CheckCodes())
	require.NoError(t, got.CheckScales())

	info, ok := file.Info(name + ".scales")
	require.True(t, ok)
	gridRows, gridCols := got.Grid()
	require.Equal(t, []int{gridRows, gridCols}, info.Shape)
	scales := narrowScales(t, file, name+".scales")
	blockRows, blockCols := r.Block.Extents(m.rows, m.cols)
	isFinite := func(row, col int) bool {
		for i := row * blockRows; i < min((row+1)*blockRows, m.rows); i++ {
			for j := col * blockCols; j < min((col+1)*blockCols, m.cols); j++ {
				if v := m.values[i*m.cols+j]; v-v != 0 {
					return false
				}
			}
		}
		return true
	}
	for i, want := range scales {
		if s := got.Scales[i]; math.Float32bits(s) != math.Float32bits(want) && (!finiteOnly || isFinite(i/gridCols, i%gridCols)) {
			t.Fatalf("%v of %T: scale %d is %v, want %v", r, src, i, s, want)
		}
	}
	if _, ok := file.Info(name + ".global"); ok {
		global, err := file.Float32s(name + ".global")
		require.NoError(t, err)
		require.Equal(t, bits(global), bits(got.Outer.Scales))
		require.Equal(t, strings.Contains(name, "compressed-tensors"), got.Outer.Divide)
	} else {
		require.True(t, got.Outer.None())
	}
	if _, ok := file.Info(name + ".codes"); !ok {
		return
	}
	codes, err := file.Bytes(name + ".codes")
	require.NoError(t, err)
	for i, want := range codes {
		if s := got.Scale(i/m.cols, i%m.cols); got.Codes[i] != want && s == s {
			t.Fatalf("%v of %T: code %d of %v under %v is %#02x, want %#02x", r, src, i, src[i], s, got.Codes[i], want)
		}
	}
}

// narrowScales returns the decoded scales of a case.
func narrowScales(t *testing.T, file *safetensors.File, name string) []float32 {
	info, _ := file.Info(name)
	if info.DType == safetensors.F32 {
		scales, err := file.Float32s(name)
		require.NoError(t, err)
		return scales
	}
	raw, err := file.Bytes(name)
	require.NoError(t, err)
	scales := make([]float32, len(raw))
	for i, b := range raw {
		if scales[i] = fp8.E8M0(b).Float32(); info.DType == safetensors.F8E4M3 {
			require.Less(t, b, byte(0x80))
			scales[i] = fp8.E4M3.Float32(b)
		}
	}
	return scales
}
