package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/cmd/internal/claim"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/operands"
	verdicts "github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// productOptions say what is multiplied, and what a kernel is claimed to make of it.
type productOptions struct {
	AFormat    *fp8.Format       `json:"a_format"`
	ABlock     *tensor.Block     `json:"a_block"`
	BFormat    *fp8.Format       `json:"b_format"`
	BBlock     *tensor.Block     `json:"b_block"`
	ADivides   bool              `json:"a_outer_divides"`
	BDivides   bool              `json:"b_outer_divides"`
	Model      string            `json:"model"`
	Bound      string            `json:"bound"`
	Promote    int               `json:"promote"`
	ScaleOrder oracle.ScaleOrder `json:"scale_order"`
	Workers    int               `json:"workers"`
}

// claim returns what is claimed.
func (o *productOptions) claim() (judge.Claim, error) {
	t := claim.Terms{Promote: o.Promote, Order: o.ScaleOrder}
	var err error
	if o.Model != "" {
		if t.Model, err = claim.ParseModel(o.Model); err != nil {
			return judge.Claim{}, err
		}
	}
	if o.Bound != "" {
		t.Bounded = true
		if t.Bound, err = claim.ParseBound(o.Bound); err != nil {
			return judge.Claim{}, err
		}
	}
	if o.Promote < 0 || o.Promote > math.MaxInt32 {
		return judge.Claim{}, fmt.Errorf("promote is %d: want 0 to %d", o.Promote, math.MaxInt32)
	}
	return t.Claim(func(option string) string { return strings.ReplaceAll(option, " ", "_") })
}

// product is what an operation multiplies.
type product struct {
	a, b  *tensor.Tensor
	m, n  int
	bias  []float32
	claim judge.Claim
	files *operands.Files
}

// product reads everything but C and the old C.
func (c *call) product(o *productOptions) (p product, err error) {
	if p.claim, err = o.claim(); err != nil {
		return p, err
	}
	if o.Workers < 0 {
		return p, fmt.Errorf("%d workers: want 0 or more", o.Workers)
	}
	if p.a, err = c.operand("a", o.AFormat, o.ABlock, o.ADivides); err != nil {
		return p, err
	}
	if p.b, err = c.operand("b", o.BFormat, o.BBlock, o.BDivides); err != nil {
		return p, err
	}
	p.m, _ = p.a.Dims()
	p.n, _ = p.b.Dims()
	names := operands.Product{C: "c"}
	if c.has("bias") {
		names.Bias = "bias"
	}
	if c.has("old") {
		names.Accumulate = "old"
	}
	p.files = names.In(c.file)
	p.bias, err = p.files.Bias(p.n)
	return p, err
}

// sample is a [judge.Sample] in JSON.
type sample struct {
	Elements int          `json:"elements"`
	Suspects int          `json:"suspects"`
	Rows     []int        `json:"rows"`
	Cols     []int        `json:"cols"`
	Tiles    []judge.Tile `json:"tiles"`
	Seed     uint64       `json:"seed"`
}

func check(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		productOptions
		Sample *sample      `json:"sample"`
		Alarms judge.Alarms `json:"alarms"`
		Page   bool         `json:"page"`
	}
	if err := c.read(&o, "a", "a_scales", "a_outer", "b", "b_scales", "b_outer", "c", "bias", "old"); err != nil {
		return nil, nil, err
	}
	p, err := c.product(&o.productOptions)
	if err != nil {
		return nil, nil, err
	}
	p.claim.Alarms = o.Alarms
	options := judge.Options{Bias: p.bias, Workers: o.Workers, Progress: c, Sample: (*judge.Sample)(o.Sample)}
	got, err := p.files.Result(p.a, p.b)
	var v *judge.Verdict
	switch {
	case errors.Is(err, operands.ErrUint16):
		err = fmt.Errorf("%w: say that it is bfloat16", err)
	case errors.Is(err, operands.ErrName):
		err = fmt.Errorf("check wants a tensor %q: %w", "c", err)
	case err != nil:
	case got.DType == safetensors.BF16:
		v, err = judgeProduct[fp8.BFloat16](c, &p, options)
	case got.DType == safetensors.F16:
		v, err = judgeProduct[float16.Float16](c, &p, options)
	default:
		v, err = judgeProduct[float32](c, &p, options)
	}
	if err != nil {
		return nil, nil, err
	}
	return report(v, v.Pass, v.Outcome, v.Failure(), o.Page)
}

// judgeProduct has C judged as the type that it has.
func judgeProduct[T gemm.Output](c *call, p *product, o judge.Options) (*judge.Verdict, error) {
	got, err := safetensors.Elements[T](c.file, "c")
	if err != nil {
		return nil, err
	}
	old, err := oldOf[T](c, p, typeOf(c, "c"))
	if err != nil {
		return nil, err
	}
	return judge.Check(c.ctx, got, old, p.a, p.b, p.claim, o)
}

// oldOf returns the old C, or nil if there is none.
func oldOf[T gemm.Output](c *call, p *product, dtype safetensors.DType) ([]T, error) {
	if !c.has("old") {
		return nil, nil
	}
	old, err := p.files.Old(p.a, p.b)
	switch {
	case err != nil:
		return nil, err
	case old.DType != dtype:
		return nil, fmt.Errorf("tensor %q, the old C, is %s and C is %s: want the same type", "old", old.DType, dtype)
	}
	return safetensors.Elements[T](c.file, "old")
}

func typeOf(c *call, name string) safetensors.DType {
	info, _ := c.file.Info(name)
	return info.DType
}

// verdict is what is said of a kernel's result.
type verdict interface {
	WriteText(w io.Writer) error
	WritePage(w io.Writer, command, machine string) error
}

// report returns what is said of a verdict, in the words of options: title says in what it fails
// unless it passes.
func report(v verdict, pass bool, outcome, title string, page bool) (any, []safetensors.Tensor, error) {
	var text, html bytes.Buffer
	said, err := json.Marshal(v)
	if err = cmp.Or(err, v.WriteText(&text)); err != nil {
		return nil, nil, err
	}
	failure := ""
	if !pass {
		failure = strings.Replace(verdicts.Failure(optionsIn(title)), "UNDECIDED: ", "undecided: ", 1)
	}
	result := map[string]any{"pass": pass, "outcome": outcome, "failure": failure,
		"text": optionsIn(text.String()), "verdict": json.RawMessage(optionsIn(string(said)))}
	if !page {
		return result, nil, nil
	}
	if err := v.WritePage(&html, "", ""); err != nil {
		return nil, nil, err
	}
	style, body, _ := strings.Cut(html.String(), "</style>") // whose variables are written as flags are
	whole := []byte(style + "</style>" + optionsIn(body))
	return result, []safetensors.Tensor{safetensors.New("page", safetensors.U8, []int{len(whole)}, whole)}, nil
}

func multiply(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		productOptions
		Type safetensors.DType `json:"type"`
	}
	if err := c.read(&o, "a", "a_scales", "a_outer", "b", "b_scales", "b_outer", "bias", "old"); err != nil {
		return nil, nil, err
	}
	if o.Bound != "" {
		return nil, nil, errors.New("multiply has no bound: check has")
	}
	p, err := c.product(&o.productOptions)
	if err != nil {
		return nil, nil, err
	}
	if err := c.room(p.m, p.n, 4); err != nil {
		return nil, nil, err
	}
	switch o.Type {
	case "", safetensors.F32:
		return multiplied[float32](c, &p, o.Workers, safetensors.F32)
	case safetensors.BF16:
		return multiplied[fp8.BFloat16](c, &p, o.Workers, o.Type)
	case safetensors.F16:
		return multiplied[float16.Float16](c, &p, o.Workers, o.Type)
	}
	return nil, nil, fmt.Errorf("type %q of C: want F32, BF16 or F16", o.Type)
}

// multiplied answers with what a kernel that keeps its claim computes.
func multiplied[T output](c *call, p *product, workers int, dtype safetensors.DType) (any, []safetensors.Tensor, error) {
	result, err := oldOf[T](c, p, dtype)
	if err != nil {
		return nil, nil, err
	}
	o := oracle.Options{Bias: p.bias, Accumulate: result != nil, Workers: workers, Progress: c}
	if result == nil {
		result = make([]T, p.m*p.n)
	}
	switch p.claim.Want {
	case judge.Exact:
		err = oracle.Exact(c.ctx, result, p.a, p.b, o)
	case judge.Canonical:
		err = gemm.Multiply(c.ctx, result, p.a, p.b, o)
	case judge.Predicted:
		err = oracle.Predict(c.ctx, result, nil, p.a, p.b, p.claim.Kernel, o)
	}
	if err != nil {
		return nil, nil, err
	}
	return nothing, []safetensors.Tensor{safetensors.New("c", dtype, []int{p.m, p.n}, result)}, nil
}

// output is a type of C, with the bits that a file has.
type output interface {
	gemm.Output
	safetensors.Element
}
