package lint_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
	"github.com/octavo-fp8/octavo/safetensors"
)

// findings returns what a rule finds in a model of one file.
func findings(t *testing.T, rule, config string, tensors ...safetensors.Tensor) (found []lint.Finding) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), tensors, checkpoint.Metadata()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.ConfigName), []byte(config), 0o600))
	r, err := lint.Check(t.Context(), dir, lint.Options{})
	require.NoError(t, err)
	for _, f := range r.Findings {
		if f.Rule == rule {
			found = append(found, f)
		}
	}
	return found
}

const fp8Config = `{"quantization_config":{"quant_method":"fp8","activation_scheme":"dynamic","weight_block_size":[128,128]}}`

// TestRagged: of 576 rows in blocks of 128 rows // grid is no block, of 192 it is another one, and
// where blocks fill a weight, or one block holds all of it, there is nothing to say.
func TestRagged(t *testing.T) {
	const ctConfig = `{"quantization_config":{"quant_method":"compressed-tensors","format":"float-quantized","config_groups":` +
		`{"g":{"weights":{"strategy":"block","block_structure":[128,128]},"input_activations":{"dynamic":true}}}}}`
	for _, c := range []struct {
		rows, cols, gridRows, gridCols int
		what                           string
	}{
		{576, 128, 5, 1, "576 rows and 128 columns in blocks of 128 x 128"},
		{192, 128, 2, 1, "192 rows and 128 columns in blocks of 128 x 128: rows // grid is 96, columns // grid is 128"},
		{128, 192, 1, 2, "128 rows and 192 columns in blocks of 128 x 128: rows // grid is 128, columns // grid is 96"},
		{256, 384, 2, 3, ""},
		{64, 96, 1, 1, ""},
	} {
		for config, scale := range map[string]string{fp8Config: "weight_scale_inv", ctConfig: "weight_scale"} {
			weight := safetensors.Info{Name: "a.weight", DType: safetensors.F8E4M3, Shape: []int{c.rows, c.cols}}
			grid := safetensors.Info{Name: "a." + scale, DType: safetensors.F32, Shape: []int{c.gridRows, c.gridCols}}
			var scales []float64
			for i := range c.gridRows * c.gridCols {
				scales = append(scales, 0.001+float64(i)/1e5)
			}
			found := findings(t, "block-ragged", config,
				safetensors.Tensor{Info: weight, Data: someCodes(c.rows * c.cols)}, safetensors.Tensor{Info: grid, Data: float32s(scales...)})
			if c.what == "" {
				require.Empty(t, found)
				continue
			}
			require.Len(t, found, 1)
			require.Equal(t, c.what, found[0].What)
			require.Equal(t, lint.Info, found[0].Severity)
			require.Equal(t, []string{"a.weight"}, found[0].Tensors)
		}
	}
}

// TestRoundedLateHonest: none of many models is accused whose scales are rounded first, whatever
// their weights are like, and all are whose scales are rounded afterwards.
func TestRoundedLateHonest(t *testing.T) {
	const rows, cols = 256, 640 // ten blocks
	values := make([]byte, 2*rows*cols)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		size := math.Exp2(-3 - 6*r.Float64())
		for i := 0; i < len(values); i += 2 {
			x := math.Float32bits(float32(size * r.NormFloat64()))
			binary.LittleEndian.PutUint16(values[i:], uint16(x>>16))
		}
		in, out := t.TempDir(), t.TempDir()
		info := safetensors.Info{Name: "a.weight", DType: safetensors.BF16, Shape: []int{rows, cols}}
		require.NoError(t, safetensors.WriteFile(filepath.Join(in, "model.safetensors"), []safetensors.Tensor{{Info: info, Data: values}}, checkpoint.Metadata()))
		require.NoError(t, os.WriteFile(filepath.Join(in, checkpoint.ConfigName), []byte("{}"), 0o600))
		for _, late := range []bool{false, true} {
			to := map[bool]string{false: "deepseek-v3-ue8m0", true: "deepseek-v3"}[late]
			dir := filepath.Join(out, to)
			convertTo(t, in, to, dir)
			e := loadDir(t, dir)
			if late {
				s := of(e, "a.weight_scale_inv")
				for i := 0; i < len(s.Data); i += 4 { // rounded up, as DeepGEMM rounds
					bits := binary.LittleEndian.Uint32(s.Data[i:])
					binary.LittleEndian.PutUint32(s.Data[i:], (bits+1<<23-1)&^(1<<23-1))
				}
				e.quantization()["scale_fmt"] = "ue8m0"
			}
			saved := t.TempDir()
			e.save(saved)
			report, err := lint.Check(t.Context(), saved, lint.Options{})
			require.NoError(t, err)
			n := 0
			for _, f := range report.Findings {
				if f.Rule == "ue8m0-late" {
					n++
				}
			}
			require.Equal(t, map[bool]int{false: 0, true: 1}[late], n, fmt.Sprint(seed, late))
		}
	}
}

// convertTo converts a model.
func convertTo(t *testing.T, from, to, dir string) {
	t.Helper()
	c, err := checkpoint.Open(from)
	require.NoError(t, err)
	defer c.Close()
	l, err := checkpoint.ParseLayout(to)
	require.NoError(t, err)
	p, err := checkpoint.NewPlan(c, l, checkpoint.PlanOptions{})
	require.NoError(t, err)
	_, err = checkpoint.Convert(t.Context(), p, dir, checkpoint.Options{})
	require.NoError(t, err)
}
