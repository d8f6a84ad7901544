package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// A capture is what bench/gpu/capture.cu wrote: d = c + a·bᵀ for tiles, one
// instruction or a chain of them.

// TestCapture demands every result of captures of real GPUs: that which the
// environment variable OCTAVO_CAPTURE names, or all that there are.
func TestCapture(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := safetensors.Open(path)
			require.NoError(t, err)
			defer file.Close()
			misses, err := checkCapture(file, t.Logf)
			require.NoError(t, err)
			require.Zero(t, misses, "%s, %s", file.Metadata()["device"], path)
		})
	}
}

func captures(t *testing.T) []string {
	if path := os.Getenv("OCTAVO_CAPTURE"); path != "" {
		return []string{path}
	}
	paths, err := filepath.Glob(filepath.Join(testutil.Shared(t, "silicon"), "capture-*.safetensors"))
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Skip("no capture of a GPU: models not tested against one; bench/gpu says how to make it")
	}
	return paths
}

// checkCapture counts the results of a capture that are not those of the models,
// and logs, where some are not, how many a neighbouring F would miss.
func checkCapture(file *safetensors.File, logf func(string, ...any)) (misses int, err error) {
	for _, info := range file.Tensors() {
		name, ok := strings.CutSuffix(info.Name, ".d")
		if !ok {
			continue
		}
		c, err := readCaptured(file, name)
		if err != nil {
			return misses, fmt.Errorf("case %s: %w", name, err)
		}
		n := c.misses(c.model)
		if misses += n; n == 0 {
			continue
		}
		line := fmt.Sprintf("%s, %v: %d of %d results differ; with F of", name, c.model, n, len(c.d))
		for f := c.model.F - 3; f <= c.model.F+3; f++ {
			m := c.model
			m.F = f
			line += fmt.Sprintf(" %d: %d,", f, c.misses(m))
		}
		logf("%s", strings.TrimSuffix(line, ","))
	}
	return misses, nil
}

// captured is a case of a capture.
type captured struct {
	model   Model
	fa, fb  fp8.Format
	m, n, k int
	a, b    []byte    // codes, [tiles, m, k] and [tiles, n, k]
	x, y    []float32 // or numbers, where the model is of such
	c, d    []uint32  // bits, [tiles, m, n]
	half    bool      // results are float16
}

// modelOf returns the model of an instruction of a GPU of a compute capability, for
// operands of FP8 or of a format of floats.
func modelOf(instruction, compute string, f Float) (Model, error) {
	major, _, _ := strings.Cut(compute, ".")
	known := instruction == "mma" || instruction == "wgmma" && major == "9" || instruction == "tcgen05" && major == "10"
	switch {
	case f != NoFloat && !known:
	case f != NoFloat && compute == "8.9":
		return Ada(f), nil
	case f != NoFloat && major == "8":
		return Ampere(f), nil
	case f != NoFloat && major == "9":
		return Hopper(f), nil
	case f != NoFloat && (major == "10" || major == "12"):
		return Blackwell(f), nil
	case f != NoFloat:
	case instruction == "tcgen05" && major == "10":
		return BlackwellTCGen05(), nil
	case instruction == "wgmma" && major == "9":
		return HopperWGMMA(), nil
	case instruction != "mma":
	case compute == "8.9":
		return AdaMMA(), nil
	case major == "9":
		return HopperMMA(), nil
	case major == "10":
		return BlackwellMMA(), nil
	case major == "12":
		return BlackwellTCGen05(), nil
	}
	return Model{}, fmt.Errorf("no model of %s with compute capability %s", instruction, compute)
}

func readCaptured(file *safetensors.File, name string) (*captured, error) {
	words := strings.Split(name, "-") // instruction, result, a, b, inputs, kK
	if len(words) != 6 {
		return nil, errors.New("its name is not INSTRUCTION-RESULT-A-B-INPUTS-kK")
	}
	c := &captured{half: words[1] == "f16"}
	var err error
	var f Float
	if words[2] == words[3] {
		f, _ = ParseFloat(words[2])
	}
	if c.model, err = modelOf(words[0], file.Metadata()["compute"], f); err != nil {
		return nil, err
	}
	a, _ := file.Info(name + ".a")
	b, _ := file.Info(name + ".b")
	d, _ := file.Info(name + ".d")
	if len(a.Shape) != 3 || len(b.Shape) != 3 || !slices.Equal(d.Shape, []int{a.Shape[0], a.Shape[1], b.Shape[1]}) {
		return nil, fmt.Errorf("shapes %v of a, %v of b and %v of d", a.Shape, b.Shape, d.Shape)
	}
	c.m, c.n, c.k = a.Shape[1], b.Shape[1], a.Shape[2]
	if f == NoFloat {
		err = c.readCodes(file, name, words[2], words[3])
	} else {
		err = c.readFloats(file, name)
	}
	if err != nil {
		return nil, err
	}
	if c.c, err = c.bits(file, name+".c"); err != nil {
		return nil, err
	}
	c.d, err = c.bits(file, name+".d")
	return c, err
}

func (c *captured) readCodes(file *safetensors.File, name, fa, fb string) (err error) {
	if c.fa, err = fp8.ParseFormat(fa); err != nil {
		return err
	}
	if c.fb, err = fp8.ParseFormat(fb); err != nil {
		return err
	}
	if c.a, err = file.Bytes(name + ".a"); err != nil {
		return err
	}
	c.b, err = file.Bytes(name + ".b")
	return err
}

func (c *captured) readFloats(file *safetensors.File, name string) (err error) {
	if c.x, err = file.Float32s(name + ".a"); err != nil {
		return err
	}
	c.y, err = file.Float32s(name + ".b")
	return err
}

// bits reads results.
func (c *captured) bits(file *safetensors.File, name string) (bits []uint32, err error) {
	if !c.half {
		return safetensors.Elements[uint32](file, name)
	}
	half, err := safetensors.Elements[uint16](file, name)
	for _, x := range half {
		bits = append(bits, uint32(x))
	}
	return bits, err
}

func (c *captured) misses(m Model) (misses int) {
	for i, want := range c.d {
		if c.result(m, i) != want {
			misses++
		}
	}
	return misses
}

// result returns the bits of element i under a model.
func (c *captured) result(m Model, i int) uint32 {
	row := i / c.n
	column := row/c.m*c.n + i%c.n
	if c.model.Float != NoFloat {
		return modelBits(m, c.half)(c.x[row*c.k:(row+1)*c.k], c.y[column*c.k:(column+1)*c.k], c.old(i))
	}
	a, b := c.a[row*c.k:(row+1)*c.k], c.b[column*c.k:(column+1)*c.k]
	if c.half {
		return uint32(m.DotFloat16(a, b, c.fa, c.fb, float16.Frombits(uint16(c.c[i]))).Bits())
	}
	return math.Float32bits(m.Dot(a, b, c.fa, c.fb, math.Float32frombits(c.c[i])))
}

// old is c of element i.
func (c *captured) old(i int) float32 {
	if c.half {
		return float16.Frombits(uint16(c.c[i])).Float32()
	}
	return math.Float32frombits(c.c[i])
}

// TestCheckCapture makes a capture as capture.cu does, of the models' own results,
// and damages it.
func TestCheckCapture(t *testing.T) {
	const tiles, m, n, k = 2, 16, 16, 64
	random := rand.New(rand.NewPCG(8, 8))
	codes := func(n int) (all []byte) {
		for range n {
			all = append(all, byte(random.Uint32())&^0x40)
		}
		return all
	}
	for _, test := range []struct {
		name, compute string
		fa, fb        fp8.Format
		da, db        safetensors.DType
	}{
		{"mma-f32-bf16-bf16-wide-k64", "8.0", 0, 0, safetensors.BF16, safetensors.BF16},
		{"mma-f16-fp16-fp16-near-k64", "8.9", 0, 0, safetensors.F16, safetensors.F16},
		{"wgmma-f32-tf32-tf32-cancel-k64", "9.0", 0, 0, safetensors.F32, safetensors.F32},
		{"tcgen05-f32-bf16-bf16-wide-k64", "10.0", 0, 0, safetensors.BF16, safetensors.BF16},
		{"tcgen05-f16-e4m3-e5m2-wide-k64", "10.0", fp8.E4M3, fp8.E5M2, safetensors.F8E4M3, safetensors.F8E5M2},
		{"wgmma-f32-e4m3-e5m2-wide-k64", "9.0", fp8.E4M3, fp8.E5M2, safetensors.F8E4M3, safetensors.F8E5M2},
		{"wgmma-f16-e4m3-e4m3-near-k64", "9.0", fp8.E4M3, fp8.E4M3, safetensors.F8E4M3, safetensors.F8E4M3},
		{"mma-f32-e5m2-e4m3-wide-k64", "8.9", fp8.E5M2, fp8.E4M3, safetensors.F8E5M2, safetensors.F8E4M3},
		{"mma-f32-e5m2-e5m2-wide-k64", "9.0", fp8.E5M2, fp8.E5M2, safetensors.F8E5M2, safetensors.F8E5M2},
		{"mma-f32-e5m2-e5m2-wide-k64", "10.0", fp8.E5M2, fp8.E5M2, safetensors.F8E5M2, safetensors.F8E5M2},
		{"mma-f32-e4m3-e4m3-wide-k64", "12.0", fp8.E4M3, fp8.E4M3, safetensors.F8E4M3, safetensors.F8E4M3},
	} {
		words := strings.Split(test.name, "-")
		float, _ := ParseFloat(words[2])
		model, err := modelOf(words[0], test.compute, float)
		require.NoError(t, err)
		c := captured{model: model, fa: test.fa, fb: test.fb, m: m, n: n, k: k, half: words[1] == "f16"}
		if float == NoFloat {
			c.a, c.b = codes(tiles*m*k), codes(tiles*n*k)
		} else {
			c.x, c.a = capturedFloats(random, float, tiles*m*k)
			c.y, c.b = capturedFloats(random, float, tiles*n*k)
		}
		for range tiles * m * n {
			x := random.Float32()*8 - 4
			bits := math.Float32bits(x)
			if c.half {
				bits = uint32(float16.Fromfloat32(x).Bits())
			}
			c.c = append(c.c, bits)
		}
		for i := range c.c {
			c.d = append(c.d, c.result(model, i))
		}
		check := func() (misses int, log string, err error) {
			path := filepath.Join(t.TempDir(), "capture.safetensors")
			info := func(suffix string, dtype safetensors.DType, rows, cols int) safetensors.Info {
				return safetensors.Info{Name: test.name + suffix, DType: dtype, Shape: []int{tiles, rows, cols}}
			}
			dtype := safetensors.F32
			if c.half {
				dtype = safetensors.F16
			}
			require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{
				{Info: info(".a", test.da, m, k), Data: c.a}, {Info: info(".b", test.db, n, k), Data: c.b},
				{Info: info(".c", dtype, m, n), Data: c.raw(c.c)}, {Info: info(".d", dtype, m, n), Data: c.raw(c.d)},
			}, map[string]string{"device": "none", "compute": test.compute}))
			file, err := safetensors.Open(path)
			require.NoError(t, err)
			defer file.Close()
			misses, err = checkCapture(file, func(format string, args ...any) { log += fmt.Sprintf(format, args...) })
			return misses, log, err
		}
		misses, log, err := check()
		require.NoError(t, err)
		require.Zero(t, misses, log)
		c.d[tiles*m*n-1] ^= 1
		misses, log, err = check()
		require.NoError(t, err)
		require.Equal(t, 1, misses)
		require.Contains(t, log, fmt.Sprintf("%s, %v: 1 of 512 results differ; with F of %d: ", test.name, model, model.F-3))
	}
	_, err := modelOf("wgmma", "8.9", NoFloat)
	require.EqualError(t, err, "no model of wgmma with compute capability 8.9")
	for instruction, compute := range map[string]string{"wgmma": "10.0", "tcgen05": "9.0", "mma": "7.5"} {
		_, err = modelOf(instruction, compute, BF16)
		require.ErrorContains(t, err, "no model of "+instruction)
	}
}

// capturedFloats are numbers and their bytes in a file.
func capturedFloats(r *rand.Rand, f Float, n int) (values []float32, data []byte) {
	for range n {
		x := randomNumber(r, f, 6)
		values = append(values, x)
		switch f {
		case TF32:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		case FP16:
			data = binary.LittleEndian.AppendUint16(data, float16.Fromfloat32(x).Bits())
		default:
			data = binary.LittleEndian.AppendUint16(data, uint16(fp8.BFloat16FromFloat32(x)))
		}
	}
	return values, data
}

// raw returns results as they are in a file.
func (c *captured) raw(bits []uint32) (data []byte) {
	for _, x := range bits {
		if c.half {
			data = binary.LittleEndian.AppendUint16(data, uint16(x))
		} else {
			data = binary.LittleEndian.AppendUint32(data, x)
		}
	}
	return data
}
