package serve

import (
	"errors"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// operation answers a request with a result, which becomes JSON, and arrays.
type operation func(c *call) (result any, arrays []safetensors.Tensor, err error)

var operations map[string]operation

func init() {
	operations = map[string]operation{ // which name each other in errors
		"audit":           auditTest,
		"check":           check,
		"check_attention": checkAttention,
		"check_quantizer": checkQuantizer,
		"multiply":        multiply,
		"encode":          encode,
		"decode":          decode,
		"quantize":        quantize,
		"dequantize":      dequantize,
		"operands":        exactOperands,
		"cancelling":      cancelling,
		"generate":        generate,
	}
}

// recipe is one of weights, by its name.
type recipe struct{ vocabulary.Weights }

func (r *recipe) UnmarshalText(name []byte) (err error) {
	r.Weights, err = vocabulary.Quantizing.Weights(string(name))
	return err
}

var errNoRecipe = errors.New("the option recipe is missing")

// nothing is the result of an operation that has only arrays.
var nothing = struct{}{}

// policy is an [fp8.Policy] in JSON.
type policy struct {
	Overflow fp8.Overflow `json:"overflow"`
	Inf      fp8.Inf      `json:"inf"`
	NaN      fp8.NaN      `json:"nan"`
	Zero     fp8.Zero     `json:"zero"`
	Rounding fp8.Rounding `json:"rounding"`
	Seed     uint64       `json:"seed"`
	Quotient fp8.Quotient `json:"quotient"`
}

// stats are [fp8.Stats] in JSON.
type stats struct {
	Elements  int64          `json:"elements"`
	Amax      jsonout.Number `json:"amax"`
	Smallest  jsonout.Number `json:"smallest"`
	Saturated int64          `json:"saturated"`
	Flushed   int64          `json:"flushed"`
	Subnormal int64          `json:"subnormal"`
	Zeros     int64          `json:"zeros"`
	NaN       int64          `json:"nan"`
	PosInf    int64          `json:"pos_inf"`
	NegInf    int64          `json:"neg_inf"`
	Became    int64          `json:"became_non_finite"`
}

func statsOf(st *fp8.Stats) stats {
	return stats{st.Elements, jsonout.Number(st.Amax), jsonout.Number(st.Smallest), st.Saturated(), st.Flushed, st.Subnormal,
		st.Zeros, st.NaN, st.PosInf, st.NegInf, st.BecameNonFinite}
}

// find returns the description of an array that has to be there.
func (c *call) find(name string) (safetensors.Info, error) {
	info, ok := c.file.Info(name)
	if !ok {
		return info, fmt.Errorf("%s wants a tensor %q", c.request.Operation, name)
	}
	return info, nil
}

// floats calls the function for the type of an array of floats.
func (c *call) floats(name string, f32 func([]float32) error, f64 func([]float64) error, f16 func([]float16.Float16) error, bf16 func([]fp8.BFloat16) error) error {
	info, err := c.find(name)
	if err != nil {
		return err
	}
	switch info.DType {
	case safetensors.F32:
		return with(c, name, f32)
	case safetensors.F64:
		return with(c, name, f64)
	case safetensors.F16:
		return with(c, name, f16)
	case safetensors.BF16:
		return with(c, name, bf16)
	}
	return fmt.Errorf("tensor %q is %s: want floats, F32, F64, F16 or BF16", name, info.DType)
}

// with calls do with the elements of an array.
func with[T safetensors.Element](c *call, name string, do func([]T) error) error {
	x, err := safetensors.Elements[T](c.file, name)
	if err != nil {
		return err
	}
	return do(x)
}

func encode(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		Format *fp8.Format `json:"format"`
		policy
	}
	if err := c.read(&o, "values"); err != nil {
		return nil, nil, err
	}
	format, err := formatOf(o.Format)
	if err != nil {
		return nil, nil, err
	}
	p, st := fp8.Policy(o.policy), fp8.Stats{}
	var codes []byte
	err = c.floats("values",
		func(x []float32) error { codes = encodeAll(x, format, p, &st); return nil },
		func(x []float64) error { codes = encodeAll(x, format, p, &st); return nil },
		func(x []float16.Float16) error { codes = encodeAll(x, format, p, &st); return nil },
		func(x []fp8.BFloat16) error { codes = encodeAll(x, format, p, &st); return nil })
	if err != nil {
		return nil, nil, err
	}
	info, _ := c.file.Info("values")
	return map[string]any{"stats": statsOf(&st)}, []safetensors.Tensor{codesArray("codes", format, info.Shape, codes)}, nil
}

func encodeAll[T fp8.Float](x []T, f fp8.Format, p fp8.Policy, st *fp8.Stats) []byte {
	codes := make([]byte, len(x))
	fp8.Encode(codes, x, f, p, st)
	return codes
}

// formatOf returns a format that has to be said.
func formatOf(f *fp8.Format) (fp8.Format, error) {
	if f == nil {
		return 0, fmt.Errorf("the option format is missing: want one of %v", fp8.Formats())
	}
	return *f, nil
}

func decode(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		Format *fp8.Format `json:"format"`
	}
	if err := c.read(&o, "codes"); err != nil {
		return nil, nil, err
	}
	info, err := c.find("codes")
	if err != nil {
		return nil, nil, err
	}
	format, known := operands.FormatOf(info.DType)
	switch {
	case !known && info.DType != safetensors.U8:
		return nil, nil, fmt.Errorf("tensor %q is %s: want codes", "codes", info.DType)
	case known && o.Format != nil && *o.Format != format:
		return nil, nil, fmt.Errorf("tensor %q is %s and not %v: leave format out", "codes", info.DType, *o.Format)
	case !known:
		if format, err = formatOf(o.Format); err != nil {
			return nil, nil, err
		}
	}
	width := info.DType.Bits() // of a code in the array
	if info.Len() > math.MaxInt32 {
		return nil, nil, fmt.Errorf("tensor %q of shape %v has too many codes: decode it in parts", "codes", info.Shape)
	}
	codes, err := tensorfile.ReadCodes(c.file, "codes", width, 0, int(info.Len()), new([]byte), new([]byte))
	if err != nil {
		return nil, nil, err
	}
	t := &tensor.Tensor{Name: "codes", Format: format, Shape: info.Shape, Codes: codes, Scales: []float32{1}}
	if err := t.CheckCodes(); len(codes) > 0 && err != nil {
		return nil, nil, err
	}
	values := make([]float32, len(codes))
	fp8.Decode(values, codes, format)
	return nothing, []safetensors.Tensor{floatArray("values", info.Shape, values)}, nil
}

func quantize(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		Recipe  recipe        `json:"recipe"`
		Format  *fp8.Format   `json:"format"`
		Block   *tensor.Block `json:"block"`
		Epsilon float32       `json:"epsilon"`
		policy
	}
	if err := c.read(&o, "values"); err != nil {
		return nil, nil, err
	}
	info, err := c.find("values")
	if err != nil {
		return nil, nil, err
	}
	if o.Recipe.Name == "" {
		return nil, nil, errNoRecipe
	}
	if o.Format != nil {
		if o.Recipe.Weights, err = o.Recipe.InFormat(*o.Format); err != nil {
			return nil, nil, err
		}
	}
	r := o.Recipe.Recipe
	r.Policy, r.Epsilon = fp8.Policy(o.policy), o.Epsilon
	if o.Block != nil {
		r.Block = *o.Block
	}
	var st fp8.Stats
	t := &tensor.Tensor{Name: "values", Shape: info.Shape}
	q := scaling.Quantizer{Recipe: r, Options: tensor.Options{Stats: &st, Progress: c}}
	err = c.floats("values",
		func(x []float32) error { return scaling.Quantize(c.ctx, t, x, q) },
		func(x []float64) error { return scaling.Quantize(c.ctx, t, x, q) },
		func(x []float16.Float16) error { return scaling.Quantize(c.ctx, t, x, q) },
		func(x []fp8.BFloat16) error { return scaling.Quantize(c.ctx, t, x, q) })
	if err != nil {
		return nil, nil, err
	}
	scales, err := tensorfile.AppendScales(nil, t.Scales, t.ScaleFormat, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("tensor %q: %w", "values", err)
	}
	rows, cols := t.Grid()
	arrays := []safetensors.Tensor{
		codesArray("codes", t.Format, info.Shape, t.Codes), safetensors.New("scales", tensorfile.ScaleTypeOf(t.ScaleFormat), []int{rows, cols}, scales),
	}
	if !t.Outer.None() {
		arrays = append(arrays, floatArray("outer", []int{len(t.Outer.Scales)}, t.Outer.Scales))
	}
	return map[string]any{
		"format": t.Format, "block": t.Block, "scale_format": t.ScaleFormat, "outer_divides": t.Outer.Divide, "stats": statsOf(&st),
	}, arrays, nil
}

func dequantize(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		Format       *fp8.Format   `json:"format"`
		Block        *tensor.Block `json:"block"`
		OuterDivides bool          `json:"outer_divides"`
	}
	if err := c.read(&o, "codes", "scales", "outer"); err != nil {
		return nil, nil, err
	}
	t, err := c.operand("", o.Format, o.Block, o.OuterDivides)
	if err != nil {
		return nil, nil, err
	}
	values := make([]float32, t.Len())
	tensor.Dequantize(values, t)
	return nothing, []safetensors.Tensor{floatArray("values", t.Shape, values)}, nil
}

// operand reads an operand. Without a name it is the only one.
func (c *call) operand(name string, format *fp8.Format, block *tensor.Block, outerDivides bool) (*tensor.Tensor, error) {
	o, prefix := operands.Operand{Codes: "codes", Scales: "scales", Format: format, Block: block}, ""
	if name != "" {
		o.Codes, o.Scales, prefix = name, name+"_scales", name+"_"
	}
	if c.has(prefix + "outer") {
		o.Outer, o.OuterDivides = prefix+"outer", outerDivides
	} else if outerDivides {
		return nil, fmt.Errorf("%souter_divides is of an array %q, which is missing", prefix, prefix+"outer")
	}
	t, err := o.Read(&operands.Source{File: c.file})
	switch {
	case errors.Is(err, operands.ErrFormat) && format != nil:
		return nil, fmt.Errorf("%w: leave %sformat out", err, prefix)
	case errors.Is(err, operands.ErrFormat):
		return nil, fmt.Errorf("%w: add the option %sformat, E4M3 or another", err, prefix)
	case errors.Is(err, operands.ErrFloats):
		return nil, fmt.Errorf("%w: quantize makes them", err)
	case errors.Is(err, operands.ErrBlock):
		return nil, fmt.Errorf("%w with the option %sblock", err, prefix)
	case errors.Is(err, operands.ErrName):
		return nil, fmt.Errorf("%s wants tensors %q and %q: %w", c.request.Operation, o.Codes, o.Scales, err)
	}
	return t, err
}

// codesArray returns an array of codes, one a byte.
func codesArray(name string, f fp8.Format, shape []int, codes []byte) safetensors.Tensor {
	dtype := operands.DTypeOf(f)
	if dtype.Size() != 1 {
		dtype = safetensors.U8
	}
	return safetensors.New(name, dtype, shape, codes)
}

// floatArray returns an array of float32.
func floatArray(name string, shape []int, values []float32) safetensors.Tensor {
	return safetensors.New(name, safetensors.F32, shape, values)
}

// room returns an error unless an array of so many rows and columns of a size can be made.
func (c *call) room(rows, cols, size int) error {
	most := c.server.most
	switch {
	case rows < 0 || cols < 0:
		return fmt.Errorf("%dx%d elements: want no negative number of them", rows, cols)
	case rows == 0 || cols == 0:
		return nil
	case rows > math.MaxInt/size/cols || most > 0 && int64(rows)*int64(cols)*int64(size) > most:
		return fmt.Errorf("%dx%d elements of %d bytes do not fit in memory", rows, cols, size)
	}
	return memory.Check(int64(rows)*int64(cols), int64(size), fmt.Sprintf("an array of %dx%d elements", rows, cols), "ask for smaller ones")
}
