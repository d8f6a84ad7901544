package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// quantizer runs a command line and returns what it prints, errors, and its status.
func quantizer(args ...string) (stdout, stderr string, status int) {
	r := octavo(strings.NewReader(""), args...)
	if !slices.Contains(args, "--json") {
		r.stdout = strings.Join(strings.Fields(r.stdout), " ")
	}
	return r.stdout, strings.Join(strings.Fields(r.stderr), " "), r.status
}

// quantized is a file of values in E2M1 under E8M0 scales, rounded up, which lie in several
// orders, and of the same codes with one that is wrong.
func quantized(t *testing.T) string {
	const rows, cols, blocks = 40, 160, 5
	r := rand.New(rand.NewPCG(4, 4))
	x := make([]float32, rows*cols)
	codes, packed := make([]byte, rows*cols), make([]byte, rows*cols/2)
	scales := make([]byte, rows*blocks)
	levels := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	for b := range scales {
		at := b/blocks*cols + b%blocks*32
		amax := 0.0
		for k := range 32 {
			x[at+k] = float32(r.NormFloat64())
			amax = max(amax, math.Abs(float64(x[at+k])))
		}
		e := math.Ceil(math.Log2(amax / 6))
		scales[b] = byte(e + 127)
		for k := range 32 {
			y, best := math.Abs(float64(x[at+k]))/math.Exp2(e), 0
			for c, v := range levels {
				if math.Abs(v-y) < math.Abs(levels[best]-y) {
					best = c
				}
			}
			codes[at+k] = byte(best)
			if x[at+k] < 0 {
				codes[at+k] |= 8
			}
			packed[(at+k)/2] |= codes[at+k] << (4 * (k % 2))
		}
	}
	tiles, words := make([]byte, 128*8), make([]byte, 40*8)
	for i := range rows {
		for k := range blocks {
			tiles[k/4*512+i%32*16+i/32*4+k%4] = scales[i*blocks+k]
			words[(k/4*40+i)*4+k%4] = scales[i*blocks+k]
		}
	}
	wrong := append([]byte(nil), codes...)
	wrong[163] ^= 2
	return filetest.Write(t, nil,
		filetest.F32("x", []int{rows, cols}, x...),
		filetest.Raw("codes", safetensors.F4, []int{rows, cols}, packed...),
		filetest.Raw("bytes", safetensors.U8, []int{rows, cols}, codes...),
		filetest.Raw("packed", safetensors.U8, []int{rows, cols / 2}, packed...),
		filetest.Raw("one", safetensors.U8, []int{rows, cols}, wrong...),
		filetest.Raw("scales", safetensors.F8E8M0, []int{rows, blocks}, scales...),
		filetest.Raw("flat", safetensors.U8, []int{rows * blocks}, scales...),
		filetest.Raw("tiles", safetensors.U8, []int{128, 8}, tiles...),
		filetest.Raw("words", safetensors.I32, []int{2, 40}, words...),
	)
}

// TestVerifyQuantizer reads codes and scales of all layouts, and names the first code that is
// wrong.
func TestVerifyQuantizer(t *testing.T) {
	path := quantized(t)
	for _, flags := range [][]string{
		nil,
		{"--codes", path + ":codes", "--scales", path + ":tiles"},
		{"--codes", "bytes", "--format", "e2m1", "--scales", "flat"},
		{"--codes", "packed", "--format", "e2m1", "--packed", "--scales", "words"},
		{"--scales", "tiles", "--scale-layout", "128x4", "--block", "1x32"},
	} {
		out, _, code := quantizer(append([]string{"verify", "quantizer", path, "--profile", "mx-rceil"}, flags...)...)
		require.Zero(t, code, "%v: %s", flags, out)
		require.Contains(t, out, "PASS: all 200 scales and 6400 codes are those of mx-rceil E2M1 1x32, bit for bit")
	}
	page := filepath.Join(t.TempDir(), "page.html")
	out, _, code := quantizer("verify", "quantizer", path, "--profile", "mx-rceil", "--codes", "one", "--format", "e2m1", "--json", "--html", page)
	require.Equal(t, 1, code)
	var v struct {
		Outcome   string
		Codes     struct{ All, Wrong int }
		FirstCode struct{ Row, Col int }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	require.Equal(t, "fail", v.Outcome)
	require.Equal(t, 1, v.Codes.Wrong)
	require.Equal(t, [2]int{1, 3}, [2]int{v.FirstCode.Row, v.FirstCode.Col})
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "no known fault explains it")

	for want, flags := range map[string][]string{
		"name the recipe":                         {},
		"or how they lie with --scale-layout":     {"--profile", "mx-rceil", "--block", "1x64"},
		"add --format":                            {"--profile", "mx-rceil", "--codes", "bytes"},
		"--packed says that a byte holds several": {"--profile", "mx-rceil", "--codes", "packed", "--format", "e2m1"},
		"name them with --outer":                  {"--profile", "nvfp4-te", "--block", "1x32"},
		"leave --outer out":                       {"--profile", "mx-rceil", "--outer", "x"},
		"profile deepgemm-fp4 is not for":         {"--profile", "deepgemm-fp4", "--codes", "bytes", "--format", "e4m3"},
		"name the values with --x":                {"--profile", "mx-rceil", "--x", "y"},
		"a grid of 40x5 has":                      {"--profile", "mx-rceil", "--scale-layout", "128x4"},
	} {
		_, errs, code := quantizer(append([]string{"verify", "quantizer", path}, flags...)...)
		require.NotZero(t, code, want)
		require.Contains(t, errs, want)
	}
	out, _, code = quantizer("verify", "--list")
	require.Zero(t, code)
	require.Contains(t, out, "sgl-project/sglang#28418")
}

// TestVerifyQuantizerOfQuantize finds right what octavo quantize writes, of weights too.
func TestVerifyQuantizerOfQuantize(t *testing.T) {
	path := quantized(t)
	for _, p := range []string{"deepseek", "nvfp4-te", "mx-rceil", "te-current"} {
		out := filetest.Output(t)
		_, errs, status := quantizer("quantize", path, "-o", out, "--only", "^x$", "--profile", p)
		require.Zero(t, status, errs)
		args := []string{"verify", "quantizer", path, "--codes", out + ":x", "--scales", out + ":x_scale_inv", "--profile", p}
		if p == "nvfp4-te" {
			args = append(args, "--outer", out+":x_outer_scale")
		}
		text, errs, status := quantizer(args...)
		require.Zero(t, status, text+errs)
		require.Contains(t, text, "PASS: all")
	}
}

// TestIdentifyQuantizer finds the profile, and says which are as near.
func TestIdentifyQuantizer(t *testing.T) {
	path := quantized(t)
	out, _, code := quantizer("identify", "quantizer", path, "--scales", "tiles")
	require.Zero(t, code, out)
	require.Contains(t, out, "mx-rceil 1x32 rounded nearest-even, scales in the order 128x4")
	require.Contains(t, out, "cannot be told apart by these values")
	require.Contains(t, out, "other bits for an infinity")
	_, errs, code := quantizer("identify", "quantizer", path, "--codes", "one", "--format", "e2m1")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "gives all bits")
}
