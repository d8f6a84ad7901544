package flash

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// goldenCase is a case of attention.safetensors, as its metadata say.
type goldenCase struct {
	name     string
	HeadsQ   int    `json:"heads_q"`
	HeadsKV  int    `json:"heads_kv"`
	SeqQ     int    `json:"seq_q"`
	SeqK     int    `json:"seq_k"`
	HeadDim  int    `json:"head_dim"`
	HeadDimV int    `json:"head_dim_v"`
	Causal   bool   `json:"causal"`
	Window   [2]int `json:"window"`
	SMScale  string `json:"sm_scale"`
	P        string `json:"p"`
	VScale   string `json:"v_scale"`
	Variants string `json:"variants"`
	Sink     bool   `json:"sink"`
}

// goldenVariant is a kernel of its metadata.
type goldenVariant struct {
	Block  int     `json:"block"`
	Order  string  `json:"order"`
	Offset float32 `json:"offset_log2"`
	PScale float32 `json:"p_scale"`
	Tau    float32 `json:"tau"`
	Splits int     `json:"splits"`
}

func (v goldenVariant) kernel(p string) Kernel {
	return Kernel{Tile: v.Block, Descending: v.Order == "rev", Offset: v.Offset, PScale: v.PScale,
		Threshold: v.Tau,
		Splits:    v.Splits, P: map[string]Cast{"e4m3": E4M3, "bf16": BFloat16}[p]}
}

func golden(t *testing.T) (*safetensors.File, []goldenCase, map[string]goldenVariant) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "attention", "attention.safetensors"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	var cases []goldenCase
	for key, text := range file.Metadata() {
		name, ok := strings.CutPrefix(key, "case.")
		if !ok {
			continue
		}
		c := goldenCase{name: name}
		require.NoError(t, json.Unmarshal([]byte(text), &c))
		cases = append(cases, c)
	}
	require.GreaterOrEqual(t, len(cases), 22)
	var variants map[string]goldenVariant
	require.NoError(t, json.Unmarshal([]byte(file.Metadata()["variants"]), &variants))
	return file, cases, variants
}

func (c goldenCase) flash() string {
	return c.name + ".flash_" + map[string]string{"e4m3": "p8", "bf16": "bf16"}[c.P]
}

func elements[T safetensors.Element](t *testing.T, file *safetensors.File, name string) []T {
	t.Helper()
	x, err := safetensors.Elements[T](file, name)
	require.NoError(t, err)
	return x
}

func (c goldenCase) problem(t *testing.T, file *safetensors.File) *attention.Problem {
	scale, err := strconv.ParseFloat(c.SMScale, 32)
	require.NoError(t, err)
	p := &attention.Problem{Scale: float32(scale), Keys: c.SeqK,
		Mask: attention.Mask{Causal: c.Causal}}
	if c.Window != [2]int{-1, -1} {
		p.Mask.Window = &attention.Window{Left: c.Window[0], Right: c.Window[1]}
	}
	if c.Sink {
		p.Sinks, err = file.Float32s(c.name + ".sink")
		require.NoError(t, err)
	}
	if c.P == "bf16" {
		kv := c.bfloat16(t, file, "kv_bf16")
		p.Q = attention.Operand{BFloat16: c.bfloat16(t, file, "q_bf16"),
			Shape: [3]int{c.HeadsQ, c.SeqQ, c.HeadDim}}
		p.K = attention.Operand{BFloat16: kv, Shape: [3]int{1, c.SeqK, c.HeadDim}}
		p.V.Shape = [3]int{1, c.SeqK, c.HeadDimV}
		for i := range c.SeqK {
			p.V.BFloat16 = append(p.V.BFloat16, kv[i*c.HeadDim:][:c.HeadDimV]...)
		}
	} else {
		p.Q.Codes = c.codes(t, file, "q", c.HeadDim)
		p.K.Codes = c.codes(t, file, "k", c.HeadDim)
		p.V.Codes = c.codes(t, file, "v", c.HeadDimV)
	}
	require.NoError(t, p.Check())
	return p
}

func (c goldenCase) bfloat16(t *testing.T, file *safetensors.File, name string) []fp8.BFloat16 {
	b, err := file.Bytes(c.name + "." + name)
	require.NoError(t, err)
	x := make([]fp8.BFloat16, len(b)/2)
	for i := range x {
		x[i] = fp8.BFloat16(b[2*i]) | fp8.BFloat16(b[2*i+1])<<8
	}
	return x
}

// codes returns an operand; V of a latent cache is the first columns of K.
func (c goldenCase) codes(t *testing.T, file *safetensors.File, name string,
	dim int) *tensor.Tensor {
	from := name
	info, ok := file.Info(c.name + "." + name)
	if !ok {
		from = "k"
		info, ok = file.Info(c.name + ".k")
	}
	require.True(t, ok)
	codes, err := file.Bytes(c.name + "." + from)
	require.NoError(t, err)
	scales, err := file.Float32s(c.name + "." + name + "_scale")
	require.NoError(t, err)
	grid, ok := file.Info(c.name + "." + name + "_scale")
	require.True(t, ok)
	heads, tokens := info.Shape[0], info.Shape[1]
	x := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{heads, tokens, dim}, Codes: codes,
		Scales: scales, Stride: info.Shape[2]}
	switch g := grid.Shape; {
	case c.VScale == "channel" && name == "v":
		require.Equal(t, []int{heads, dim}, g)
		x.Block = tensor.Block{Rows: tokens, Cols: 1}
	case g[1] > 1:
		require.Equal(t, []int{heads, tokens}, g)
		x.Block = tensor.Block{Rows: 1}
	case g[0] > 1:
		x.Block = tensor.Block{Rows: tokens}
	}
	return x
}

// same fails unless the bits are the same, NaN aside.
func same(t *testing.T, want, got []float32, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) && !(want[i] != want[i] &&
			got[i] != got[i]) {
			t.Fatalf("%s %d: want %v, got %v", what, i, want[i], got[i])
		}
	}
}

// TestGoldenFlash: every bit of every case and variant, and every tile of those that have
// a trace.
func TestGoldenFlash(t *testing.T) {
	file, cases, variants := golden(t)
	runs := 0
	for _, c := range cases {
		p := c.problem(t, file)
		for _, v := range c.Variants {
			k := variants[string(v)].kernel(c.P)
			name := c.flash() + "." + string(v)
			got, err := Predict(t.Context(), p, k, Options{})
			require.NoError(t, err, name)
			same(t, elements[float32](t, file, name+".out"), got.Out, name+".out")
			same(t, elements[float32](t, file, name+".lse"), got.LSE, name+".lse")
			counts := elements[int64](t, file, name+".counts")
			require.Equal(t, counts, []int64{got.Saturated, got.Flushed}, name)
			if k.Splits == 1 {
				same(t, elements[float32](t, file, name+".m"), got.Max, name+".m")
				same(t, elements[float32](t, file, name+".l"), got.Sum, name+".l")
			}
			runs++
			if _, ok := file.Info(name + ".h0.z"); ok {
				goldenTrace(t, file, name, p, k)
			}
		}
	}
	require.GreaterOrEqual(t, runs, 80)
}

func goldenTrace(t *testing.T, file *safetensors.File, name string, p *attention.Problem,
	k Kernel) {
	s := p.Sizes()
	for h := range s.Heads {
		for i := range s.Queries {
			at := &Row{h, i}
			got, err := Predict(t.Context(), p, k, Options{Rows: []int{h*s.Queries + i}, Trace: at})
			require.NoError(t, err)
			row := func(name string) []float32 {
				all := elements[float32](t, file, name)
				n := len(all) / s.Queries
				return all[i*n:][:n]
			}
			prefix := fmt.Sprintf("%s.h%d.", name, h)
			z := row(prefix + "z")
			lo, hi := p.Mask.Range(i, s.Queries, s.Keys)
			same(t, z[lo:hi], got.Trace.Z[lo:hi], prefix+"z")
			require.NotEmpty(t, got.Trace.Tiles)
			for _, tile := range got.Trace.Tiles {
				b := fmt.Sprintf("%ss%d.b%d.", prefix, tile.Split, tile.From/k.Tile)
				same(t, row(b+"p"), tile.P, b+"p")
				same(t, row(b+"o"), tile.Out, b+"o")
				same(t, row(b+"alpha"), []float32{tile.Alpha}, b+"alpha")
				same(t, row(b+"m"), []float32{tile.Max}, b+"m")
				same(t, row(b+"l"), []float32{tile.Sum}, b+"l")
				codes, err := file.Bytes(b + "pq")
				require.NoError(t, err)
				n := len(codes) / s.Queries
				cast := make([]float32, n)
				fp8.Decode(cast, codes[i*n:][:n], fp8.E4M3)
				same(t, cast, tile.Cast, b+"pq")
			}
		}
	}
}
