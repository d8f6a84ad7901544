package quantizer

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// values are normal ones of blocks of many sizes, with zeros, blocks of zeros, ties and, with
// edges, tiny and large blocks, infinities and NaN.
func values(seed uint64, rows, cols int, edges bool) []float32 {
	r := rand.New(rand.NewPCG(seed, 36))
	x := make([]float32, rows*cols)
	for i := range x {
		size := math.Exp2(float64((i/cols*7+i%cols/16*3)%5 - 2))
		x[i] = float32(r.NormFloat64() * size)
		switch r.IntN(40) {
		case 0:
			x[i] = 0
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		case 2:
			x[i] = float32(r.IntN(16)-8) / 4
		}
	}
	for i := range min(cols, 64) { // a block of zeros
		x[i] = 0
	}
	if edges && rows > 6 {
		for k := range cols {
			x[1*cols+k] *= 1e-30
			x[2*cols+k] *= 1e30
			x[3*cols+k] *= 1e-6
		}
		x[4*cols+cols/2] = float32(math.Inf(1))
		x[5*cols+cols/3] = float32(math.NaN())
	}
	return x
}

// blocksOf are the blocks in which a profile is tried.
func blocksOf(p scaling.Profile) []tensor.Block {
	if chooses(p) {
		return []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 16, Cols: 16}}
	}
	all := []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Rows: 32, Cols: 1}, {Rows: 1}, {}}
	if p == scaling.NVFP4TERow {
		return []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 1}}
	}
	return all
}

// TestHonest accuses nothing that octavo quantized, by all profiles in all formats, several blocks
// and of all types of values.
func TestHonest(t *testing.T) {
	cases := 0
	for _, p := range scaling.Profiles() {
		for _, f := range fp8.Formats() {
			if !p.For(f) {
				continue
			}
			for n, b := range blocksOf(p) {
				edges := n%2 == 0
				r := scaling.Recipe{Profile: p, Format: f, Block: b}
				x := values(uint64(n+1), 37, 151, edges)
				honest(t, x, r)
				half, bf := make([]float16.Float16, len(x)), make([]fp8.BFloat16, len(x))
				for i, v := range x {
					half[i], bf[i] = float16.Fromfloat32(v), fp8.BFloat16FromFloat32(v)
				}
				if n < 2 {
					honest(t, half, r)
					honest(t, bf, r)
				}
				cases++
			}
		}
	}
	require.Greater(t, cases, 1000)
}

func honest[T Value](t *testing.T, x []T, r scaling.Recipe) {
	t.Helper()
	got := &tensor.Tensor{Name: "honest", Shape: []int{37, 151}}
	q := scaling.Quantizer{Recipe: r}
	if r.Profile.Delayed() {
		h, err := scaling.NewHistory(r)
		require.NoError(t, err)
		q.History = h
	}
	require.NoError(t, scaling.Quantize(t.Context(), got, x, q))
	v, err := Check(t.Context(), Result[T]{X: x, Got: got}, r, Options{Workers: 1})
	require.NoError(t, err)
	if r.Profile.Delayed() {
		require.Equal(t, "undecided", v.Outcome, v.Title())
		return
	}
	require.True(t, v.Pass, "%v: %s", r, v.Title())
	// The rule of the claim is what gives them.
	j := v.job
	c := j.claimed()
	j.each(j.segments(), func(s segment, scratch []float32) {
		dst := make([]byte, s.to-s.from)
		j.encode(dst, &c, s, scratch)
		if at := s.row*j.cols + s.from; string(dst) != string(got.Codes[at:at+len(dst)]) {
			t.Fatalf("%v: codes of %v are %x, want %x", r, s, dst, got.Codes[at:at+len(dst)])
		}
		require.True(t, same(j.claimedScale(s.block).Stored, got.Scales[s.block]), "%v: block %d: %v", r, s.block, got.Scales[s.block])
	})
}

// TestGoldenIsRight accuses nothing that PyTorch, NumPy and the libraries themselves made.
func TestGoldenIsRight(t *testing.T) {
	for _, name := range []string{"scaling.safetensors", "scaling-edges.safetensors"} {
		file, err := safetensors.Open(testutil.Shared(t, "golden", name))
		require.NoError(t, err)
		defer file.Close()
		for _, info := range file.Tensors() {
			name, ok := strings.CutSuffix(info.Name, ".codes")
			if !ok {
				continue
			}
			parts := strings.Split(name, ".")
			r := scaling.Profile(parts[0]).Recipe(scaling.Input)
			source := "x"
			if len(parts) == 3 {
				r.Block, err = tensor.ParseBlock(parts[1])
				require.NoError(t, err)
				if parts[1] == "128x128" {
					source = "w"
				}
			}
			r.Format, err = fp8.ParseFormat(parts[len(parts)-1])
			require.NoError(t, err)
			x, err := file.Float32s(source)
			require.NoError(t, err)
			shape, _ := file.Info(source)
			golden(t, file, name, r, x, shape.Shape, true)
		}
	}
	file, err := safetensors.Open(testutil.Shared(t, "golden", "narrow", "scaling.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	var cases map[string]struct{ Input, Block, Format, Amax string }
	require.NoError(t, json.Unmarshal([]byte(file.Metadata()["profiles"]), &cases))
	judged := 0
	for name, c := range cases {
		family, _, _ := strings.Cut(name, ".")
		if strings.HasPrefix(name, "sr.") || strings.Contains(name, ".amax-") || strings.Contains(name, "-rht") || strings.HasSuffix(name, ".transposed") {
			continue
		}
		profile := scaling.Profile(strings.TrimSuffix(family, "-2d"))
		if mode, ok := strings.CutPrefix(family, "mx"); ok {
			for _, prefix := range []string{"fp4-", "fp8-e4m3-", "fp8-e5m2-", "fp6-e2m3-", "fp6-e3m2-", "int8-"} {
				mode = strings.TrimPrefix(mode, prefix)
			}
			profile = scaling.Profile("mx-" + mode)
			if profile == scaling.MXRCeil {
				profile = scaling.MXRCeilTorchAO
			}
		}
		r := scaling.Recipe{Profile: profile}
		r.Block, err = tensor.ParseBlock(c.Block)
		require.NoError(t, err)
		if r.Format = fp8.MXINT8; c.Format != "INT8/64" {
			r.Format, err = fp8.ParseFormat(c.Format)
			require.NoError(t, err)
		}
		x, err := file.Float32s("in." + c.Input)
		require.NoError(t, err)
		shape, _ := file.Info("in." + c.Input)
		if _, ok := file.Info(name + ".codes"); !ok {
			continue
		}
		judged++
		golden(t, file, name, r, x, shape.Shape, false)
	}
	require.Greater(t, judged, 80)
}

func golden(t *testing.T, file *safetensors.File, name string, r scaling.Recipe, x []float32, shape []int, exact bool) {
	t.Helper()
	codes, err := file.Bytes(name + ".codes")
	require.NoError(t, err)
	got := &tensor.Tensor{Name: name, Shape: shape, Format: r.Format, Block: r.Block, Codes: codes, ScaleFormat: r.Profile.ScaleFormat()}
	info, _ := file.Info(name + ".scales")
	if info.DType == safetensors.F32 {
		got.Scales, err = file.Float32s(name + ".scales")
	} else {
		var raw []byte
		raw, err = file.Bytes(name + ".scales")
		for _, b := range raw {
			s := fp8.E8M0(b).Float32()
			if info.DType == safetensors.F8E4M3 {
				s = fp8.E4M3.Float32(b)
			}
			got.Scales = append(got.Scales, s)
		}
	}
	require.NoError(t, err)
	if _, ok := file.Info(name + ".global"); ok {
		got.Outer.Scales, err = file.Float32s(name + ".global")
		require.NoError(t, err)
		got.Outer.Divide = strings.Contains(name, "compressed-tensors")
		if n := len(got.Outer.Scales); n > 1 {
			got.Outer.Rows = shape[0] / n
		}
	}
	v, err := Check(t.Context(), Result[float32]{X: x, Got: got}, r, Options{})
	require.NoError(t, err, name)
	require.NotEqual(t, "fail", v.Outcome, "%s: %s\n%v", name, v.Title(), v.findings())
	if exact {
		require.True(t, v.Pass, name+": "+v.Title())
	}
}
