package pack

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Names of the files of a pack for PyTorch.
const (
	OperandsFile = "operands.safetensors"
	ExpectedFile = "expected.json"
	ScriptFile   = "selftest_torch.py"
)

//go:embed selftest_torch.py
var script []byte

// expected is the JSON that says what the operators are and what is right.
type expected struct {
	Form      string     `json:"form"`
	Version   int        `json:"version"`
	Size      string     `json:"size"`
	Seed      uint64     `json:"seed"`
	Operators []forTorch `json:"operators"`
}

// forTorch is an operator in files.
type forTorch struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"`
	With     map[string]any `json:"with"` // what it is to be run with
	Results  []torchResult  `json:"results"`
	Checksum string         `json:"checksum"`
}

// torchResult is a result: elements are whole multiples of 2^unit. Its right elements, in
// units, are the tensor of the operator's name, ".want" and its number.
type torchResult struct {
	What string   `json:"what"`
	Rows int      `json:"rows"`
	Cols int      `json:"cols"`
	Unit int      `json:"unit"`
	Sums []string `json:"sums"` // Σ w·x mod 2^64 of each row, in hexadecimal
}

// Files makes the pack for PyTorch: operands and what is right, both of a seed.
func Files(ctx context.Context, seed uint64, p progress.Reporter) ([]outdir.File, error) {
	e := expected{Form: Form, Version: Version, Size: fileSize.Name, Seed: seed}
	var all []safetensors.Tensor
	operators, longest := operatorsOf(fileSize), 0
	for i, o := range operators {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		j := o.prepare(keyOf(seed, o.name, 0), fileSize)
		t := forTorch{Name: o.name, Kind: j.kind, With: j.with, Checksum: j.checksum()}
		for _, f := range j.files {
			f.Name = o.name + "." + f.Name
			all = append(all, f)
		}
		for n, r := range j.results {
			longest = max(longest, r.rows, r.cols)
			all = append(all, r.file(fmt.Sprintf("%s.want%d", o.name, n)))
			x := torchResult{What: r.what, Rows: r.rows, Cols: r.cols, Unit: r.unit}
			for _, sum := range r.right() {
				x.Sums = append(x.Sums, fmt.Sprintf("%016x", sum))
			}
			t.Results = append(t.Results, x)
		}
		e.Operators = append(e.Operators, t)
		if p != nil {
			p.Progress("selftest", int64(i+1), int64(len(operators)))
		}
	}
	all = append(all, safetensors.New("weights", safetensors.I64, []int{longest}, weights(longest)))
	// Larger elements first, so that all lie at multiples of their size.
	slices.SortStableFunc(all, func(a, b safetensors.Tensor) int {
		return cmp.Compare(b.DType.Size(), a.DType.Size())
	})
	operands, err := safetensors.Encode(all, nil)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		return nil, err
	}
	return []outdir.File{
		{Name: OperandsFile, Data: operands}, {Name: ExpectedFile, Data: append(text, '\n')}, {Name: ScriptFile, Data: script},
	}, nil
}

// FileNames are those of Files.
func FileNames() []string { return []string{OperandsFile, ExpectedFile, ScriptFile} }

// file returns the right elements in 32 bits, or in 64 where one needs them.
func (r *result) file(name string) safetensors.Tensor {
	shape, all := []int{r.rows, r.cols}, make([]int64, r.rows*r.cols)
	parallel.For(r.rows, 1, 0, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range r.cols {
				all[i*r.cols+j] = r.want(i, j)
			}
		}
	})
	short := make([]int32, len(all))
	for i, x := range all {
		if short[i] = int32(x); int64(short[i]) != x {
			return safetensors.New(name, safetensors.I64, shape, all)
		}
	}
	return safetensors.New(name, safetensors.I32, shape, short)
}

// setProduct says what files have of a product.
func (j *job) setProduct(p product, a, b *tensor.Tensor) {
	j.kind, j.files = "product", append(codesAndScales("a", a), codesAndScales("b", b)...)
	extents := func(t *tensor.Tensor) [2]int {
		rows, cols := t.Dims()
		return [2]int{cmp.Or(t.Block.Rows, rows), cmp.Or(t.Block.Cols, cols)}
	}
	j.with = map[string]any{
		"a_format": name(p.a), "b_format": name(p.b),
		"a_block": extents(a), "b_block": extents(b), "bfloat16": p.back,
	}
}

// codesAndScales returns codes as bytes and scales as float32.
func codesAndScales(name string, t *tensor.Tensor) []safetensors.Tensor {
	rows, cols := t.Grid()
	return []safetensors.Tensor{
		safetensors.New(name, safetensors.U8, t.Shape, t.Codes),
		float32s(name+"_scales", t.Scales, rows, cols),
	}
}

func float32s(name string, x []float32, shape ...int) safetensors.Tensor {
	return safetensors.New(name, safetensors.F32, shape, x)
}
