// Package attentiontest reads the golden attentions of the shared directory, for the tests
// of several packages.
package attentiontest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Golden is the file of attentions.
type Golden struct {
	*safetensors.File
	Variants map[string]Variant // of flash_p8
	Cases    []Case             // by name
}

// Variant is what decides the bits of a flash kernel, as attention.md has it.
type Variant struct {
	Block  int     `json:"block"`
	Order  string  `json:"order"` // fwd or rev
	Offset float32 `json:"offset_log2"`
	PScale float32 `json:"p_scale"`
	Tau    float32 `json:"tau"`
	Splits int     `json:"splits"`
}

// Case is one attention, whose results are tensors named after it.
type Case struct {
	Name     string
	P        string // e4m3 or bf16
	Variants []string
	Problem  *attention.Problem
}

// description is a case in the file's metadata.
type description struct {
	HeadsQ   int    `json:"heads_q"`
	HeadsKV  int    `json:"heads_kv"`
	SeqK     int    `json:"seq_k"`
	DimV     int    `json:"head_dim_v"`
	Causal   bool   `json:"causal"`
	Window   [2]int `json:"window"`
	Scale    string `json:"sm_scale"`
	P        string `json:"p"`
	VScale   string `json:"v_scale"`
	Variants string `json:"variants"`
	Sink     bool   `json:"sink"`
}

// Open reads every case of the file; the test closes it.
func Open(t testing.TB) *Golden {
	t.Helper()
	file, err := safetensors.Open(testutil.Shared(t, "golden", "attention", "attention.safetensors"))
	fatal(t, err)
	t.Cleanup(func() { file.Close() })
	g := &Golden{File: file}
	fatal(t, json.Unmarshal([]byte(file.Metadata()["variants"]), &g.Variants))
	for key, text := range file.Metadata() {
		name, ok := strings.CutPrefix(key, "case.")
		if !ok {
			continue
		}
		var d description
		fatal(t, json.Unmarshal([]byte(text), &d))
		g.Cases = append(g.Cases, Case{name, d.P, strings.Split(d.Variants, ""), g.problem(t, name, &d)})
	}
	if len(g.Cases) == 0 {
		t.Fatal("no cases in the golden attentions")
	}
	slices.SortFunc(g.Cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	return g
}

func (g *Golden) problem(t testing.TB, name string, d *description) *attention.Problem {
	scale, err := strconv.ParseFloat(d.Scale, 32)
	fatal(t, err)
	p := &attention.Problem{Keys: d.SeqK, Scale: float32(scale), Mask: attention.Mask{Causal: d.Causal}}
	if d.Window != [2]int{-1, -1} {
		p.Mask.Window = &attention.Window{Left: d.Window[0], Right: d.Window[1]}
	}
	if d.Sink {
		p.Sinks = g.Float32(t, name+".sink")
	}
	if _, ok := g.Info(name + ".kv_bf16"); ok {
		p.Q = g.bfloat16(t, name+".q_bf16", 0)
		p.K, p.V = g.bfloat16(t, name+".kv_bf16", 0), g.bfloat16(t, name+".kv_bf16", d.DimV)
		return p
	}
	p.Q.Codes, p.K.Codes = g.codes(t, name+".q", ""), g.codes(t, name+".k", "")
	if _, ok := g.Info(name + ".v"); ok {
		p.V.Codes = g.codes(t, name+".v", d.VScale)
		return p
	}
	v, err := p.K.Codes.ColRange(0, d.DimV)
	fatal(t, err)
	v.Shape = []int{d.HeadsKV, p.K.Codes.Shape[1], d.DimV}
	v.Scales = g.Float32(t, name+".v_scale")
	p.V.Codes = v
	return p
}

func (g *Golden) codes(t testing.TB, name, scales string) *tensor.Tensor {
	shape := g.shape(t, name)
	codes, err := g.Bytes(name)
	fatal(t, err)
	x := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: shape, Codes: codes, Scales: g.Float32(t, name+"_scale")}
	grid := g.shape(t, name+"_scale")
	switch {
	case scales == "channel":
		x.Block = tensor.Block{Rows: shape[1], Cols: 1}
	case grid[1] > 1:
		x.Block = tensor.Block{Rows: 1}
	case grid[0] > 1:
		x.Block = tensor.Block{Rows: shape[1]}
	}
	fatal(t, x.Check())
	return x
}

// bfloat16 reads an operand, or the first columns of it.
func (g *Golden) bfloat16(t testing.TB, name string, columns int) attention.Operand {
	shape := g.shape(t, name)
	values, err := safetensors.Elements[fp8.BFloat16](g.File, name)
	fatal(t, err)
	dims := [3]int(append([]int{1, 1}, shape...)[len(shape)-1:])
	if columns > 0 {
		var cut []fp8.BFloat16
		for row := range slices.Chunk(values, dims[2]) {
			cut = append(cut, row[:columns]...)
		}
		values, dims[2] = cut, columns
	}
	return attention.Operand{BFloat16: values, Shape: dims}
}

// Float32 reads a tensor.
func (g *Golden) Float32(t testing.TB, name string) []float32 {
	t.Helper()
	values, err := g.Float32s(name)
	fatal(t, err)
	return values
}

// Float64 reads a tensor.
func (g *Golden) Float64(t testing.TB, name string) []float64 {
	t.Helper()
	values, err := safetensors.Elements[float64](g.File, name)
	fatal(t, err)
	return values
}

func (g *Golden) shape(t testing.TB, name string) []int {
	t.Helper()
	info, ok := g.Info(name)
	if !ok {
		t.Fatalf("the golden attentions lack %s", name)
	}
	return info.Shape
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
