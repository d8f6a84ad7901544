package inspect

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestFaultyScales says what is wrong with scales, where, and what the others are.
func TestFaultyScales(t *testing.T) {
	float := filetest.FloatBytes
	nan := float32(math.NaN())
	for _, test := range []struct {
		name   string
		dtype  safetensors.DType
		data   []byte
		lo, hi float32
		says   string // "": nothing is wrong
	}{
		{"UE4M3", safetensors.F8E4M3, []byte{0x38, 0x40, 0x00}, 0, 2, ""},
		{"UE4M3 NaN", safetensors.F8E4M3, []byte{0x38, 0x7F, 0x30, 0x7F}, 0.5, 1,
			"w_scale_inv: 2 of the scales are NaN, and so are their blocks; the first, scale 1, is the byte 0x7f, which is NaN in UE4M3"},
		{"UE4M3 with a sign", safetensors.F8E4M3, []byte{0x38, 0x40, 0x30, 0xB8}, 0.5, 2,
			"w_scale_inv: 1 of the scales are no scales; the first, scale 3, is the byte 0xb8, which is no UE4M3: its top bit is set"},
		{"UE4M3 NaN with a sign", safetensors.F8E4M3, []byte{0xFF}, nan, nan, "the first, scale 0, is the byte 0xff, which is no UE4M3: its top bit is set"},
		{"E8M0", safetensors.F8E8M0, []byte{127, 128, 126, 129}, 0.5, 4, ""},
		{"E8M0 NaN", safetensors.F8E8M0, []byte{127, 255, 126, 129}, 0.5, 4,
			"w_scale_inv: 1 of the scales are NaN, and so are their blocks; the first, scale 1, is the byte 0xff, which is NaN in E8M0"},
		{"bytes of UE4M3", safetensors.U8, []byte{0x38, 0x80}, 1, 1, "the first, scale 1, is the byte 0x80, which is no UE4M3: its top bit is set"},
		{"float32", safetensors.F32, float(1, 0, 3), 0, 3, ""},
		{"float32 NaN", safetensors.F32, float(1, nan, 3), 1, 3, "1 of the scales are no scales; the first, scale 1, is NaN"},
		{"float32 negative", safetensors.F32, float(1, 2, -3), 1, 2, "1 of the scales are no scales; the first, scale 2, is -3"},
		{"float32 infinite", safetensors.F32, float(1, float32(math.Inf(1)), -1), 1, 1, "2 of the scales are no scales; the first, scale 1, is +Inf"},
		{"BF16 NaN", safetensors.BF16, []byte{0x80, 0x3F, 0xC0, 0x7F}, 1, 1, "1 of the scales are no scales; the first, scale 1, is NaN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := len(test.data) * 8 / test.dtype.Bits()
			path := filetest.Write(t, map[string]string{"octavo.scale_format": "UE4M3"},
				filetest.Raw("w", safetensors.F4, []int{n, 16}, make([]byte, 8*n)...), filetest.Raw("w_scale_inv", test.dtype, []int{n, 1}, test.data...))
			r := run(t, Job{Inputs: inputs(t, path)})
			s := r.Tensors[0].Scales
			require.Equal(t, fmt.Sprint(test.lo, test.hi), fmt.Sprint(float32(s.Min), float32(s.Max)))
			for _, v := range []View{{}, {Detail: true}} {
				var b strings.Builder
				require.NoError(t, r.WriteText(&b, v))
				for line := range strings.Lines(strings.ReplaceAll(b.String(), path, "w")) {
					require.LessOrEqual(t, len(line), 81)
				}
				said := strings.Join(strings.Fields(b.String()), " ")
				if test.says == "" {
					require.NotRegexp(t, `scale \d`, said)
					require.NotContains(t, said, "Scales that are NaN")
					continue
				}
				require.Contains(t, said, test.says)
				require.Contains(t, said, "Scales that are NaN or no scales: of 1 tensor.")
			}
			require.Equal(t, test.says != "", strings.Contains(text(t, r), `"first":`))
		})
	}
}

// TestBytesOfCodes decodes codes of the formats that have no type, of which the metadata
// say which they are, and nothing else that is bytes.
func TestBytesOfCodes(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, test := range []struct {
		metadata string
		want     fp8.Format
		known    bool
	}{
		{"MXINT8", fp8.MXINT8, true}, {"E3M4", fp8.E3M4, true}, {"E4M3IEEE", fp8.E4M3IEEE, true}, {"E4M3B11FNUZ", fp8.E4M3B11FNUZ, true},
		{"E4M3, MXINT8", fp8.MXINT8, true}, {"E3M4, E2M1", fp8.E3M4, true},
		{"MXINT8, E3M4", 0, false}, {"E2M1", 0, false}, {"", 0, false}, {"int8", 0, false},
	} {
		t.Run(test.metadata, func(t *testing.T) {
			path := filetest.Write(t, map[string]string{"octavo.format": test.metadata},
				filetest.Raw("w", safetensors.U8, []int{8, 32}, all...), filetest.Raw("w_scale_inv", safetensors.F8E8M0, []int{8, 1}, make([]byte, 8)...),
				filetest.Raw("tokens", safetensors.U8, []int{256}, all...))
			r := run(t, Job{Inputs: inputs(t, path)})
			require.Nil(t, r.Tensors[2].Values, "bytes without scales")
			got := r.Tensors[0]
			if !test.known {
				require.Nil(t, got.Values)
				require.Nil(t, got.Scales)
				return
			}
			amax, zeros, largest, bad := 0.0, int64(0), int64(0), int64(0)
			for i := range all {
				var v [1]float32
				fp8.Decode(v[:], all[i:i+1], test.want)
				switch x := math.Abs(float64(v[0])); {
				case math.IsNaN(x) || math.IsInf(x, 0):
					bad++
				case x == 0:
					zeros++
				default:
					amax = max(amax, x)
					if x >= float64(test.want.Max()) {
						largest++
					}
				}
			}
			v := got.Values
			require.Equal(t, []any{test.want.String(), int64(256), math.Ldexp(amax, -127), zeros, largest, bad}, []any{got.Format, v.Elements, float64(v.Amax), v.Zeros, *v.Largest, v.nonFinite()})
			require.Equal(t, "w_scale_inv", got.Scales.Name)
			require.Equal(t, 1, r.Totals.FP8WithScales)
			var b strings.Builder
			require.NoError(t, r.WriteText(&b, View{}))
			require.Contains(t, b.String(), "  "+test.want.String()+" ")
			b.Reset()
			require.NoError(t, r.WriteText(&b, View{Detail: true}))
			require.Contains(t, b.String(), "U8 of "+test.want.String()+" [8 32]")
		})
	}
}
