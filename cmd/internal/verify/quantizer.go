package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/fault"
	judged "github.com/octavo-fp8/octavo/oracle/judge/quantizer"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Quantizer says what to read of an array and of what a quantizer made of it. Names are those
// of tensors in File, or FILE:NAME of another safetensors file, or say a file of their own as
// those of products do.
type Quantizer struct {
	File         string
	X            string
	Codes        string
	Scales       string // "": those of the codes and "_scale_inv"
	Outer        string // "": there are none
	OuterDivides bool
	Format       *fp8.Format // nil: the type of the codes says it, or the metadata
	ScaleFormat  *tensor.ScaleFormat
	Packed       bool
	Layout       *fault.GridLayout // of scales; nil: what fits
	Other        *tensor.Block     // block of the claim where its own does not fit the scales
	BFloat16     bool              // arrays of type <u2 are bfloat16
}

// Run reads everything and judges it. When ctx ends it returns an error.
func (q *Quantizer) Run(ctx context.Context, r scaling.Recipe, o judged.Options) (*judged.Verdict, error) {
	s, err := q.open()
	if err != nil {
		return nil, err
	}
	defer s.close()
	return q.judge(ctx, s, r, o)
}

// Judge reads everything from a source, and judges it.
func (q *Quantizer) Judge(ctx context.Context, in *operands.Source, r scaling.Recipe, o judged.Options) (*judged.Verdict, error) {
	return q.judge(ctx, &quantizerFiles{main: in}, r, o)
}

// DefaultBlock claims the block that the profile's library gives to activations or, if only that
// fits the scales, to weights.
func (q *Quantizer) DefaultBlock(r *scaling.Recipe) {
	r.Block = r.Profile.Block(scaling.Input)
	weight := r.Profile.Block(scaling.Weight)
	q.Other = &weight
}

func (q *Quantizer) judge(ctx context.Context, s *quantizerFiles, r scaling.Recipe, o judged.Options) (*judged.Verdict, error) {
	x, codes, err := s.arrays(q)
	if err != nil {
		return nil, err
	}
	r.Format = codes.Format
	if !r.Profile.For(r.Format) {
		return nil, fmt.Errorf("tensor %q is %v: profile %s is not for that format", codes.Name, r.Format, r.Profile)
	}
	codes.Block = r.Block
	raw, layout, err := s.scales(q, codes, r.Profile.ScaleFormat())
	if errors.Is(err, errGrid) && q.Other != nil {
		other := *codes
		other.Block = *q.Other
		if also, l, otherErr := s.scales(q, &other, r.Profile.ScaleFormat()); otherErr == nil {
			r.Block, codes, raw, layout, err = other.Block, &other, also, l, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if codes.Outer, err = s.outer(q, r.Profile, codes); err != nil {
		return nil, err
	}
	switch x.DType {
	case safetensors.BF16:
		return checkQuantized[fp8.BFloat16](ctx, x, codes, raw, layout, r, o)
	case safetensors.F16:
		return checkQuantized[float16.Float16](ctx, x, codes, raw, layout, r, o)
	}
	return checkQuantized[float32](ctx, x, codes, raw, layout, r, o)
}

// Identify reads everything and says which profiles give it.
func (q *Quantizer) Identify(ctx context.Context, o judged.Options) (*judged.Identity, error) {
	s, err := q.open()
	if err != nil {
		return nil, err
	}
	defer s.close()
	x, codes, err := s.arrays(q)
	if err != nil {
		return nil, err
	}
	scales, err := s.find(q.scalesName())
	if err != nil {
		return nil, err
	}
	raw, format, err := s.readScales(q, scales, nil)
	if err != nil {
		return nil, err
	}
	codes.ScaleFormat = format
	if q.Outer != "" {
		if codes.Outer, err = s.outer(q, "", codes); err != nil {
			return nil, err
		}
	}
	switch x.DType {
	case safetensors.BF16:
		return identify[fp8.BFloat16](ctx, x, codes, raw, q.Layout, o)
	case safetensors.F16:
		return identify[float16.Float16](ctx, x, codes, raw, q.Layout, o)
	}
	return identify[float32](ctx, x, codes, raw, q.Layout, o)
}

func checkQuantized[T judged.Value](ctx context.Context, x operands.Tensor, codes *tensor.Tensor, raw []float32, l fault.GridLayout, r scaling.Recipe, o judged.Options) (*judged.Verdict, error) {
	values, err := safetensors.Elements[T](x.File, x.Name)
	if err != nil {
		return nil, err
	}
	return judged.Check(ctx, judged.Result[T]{X: values, Got: codes, Raw: raw, Layout: l}, r, o)
}

func identify[T judged.Value](ctx context.Context, x operands.Tensor, codes *tensor.Tensor, raw []float32, l *fault.GridLayout, o judged.Options) (*judged.Identity, error) {
	values, err := safetensors.Elements[T](x.File, x.Name)
	if err != nil {
		return nil, err
	}
	return judged.Identify(ctx, values, codes, raw, l, o)
}

// quantizerFiles are the files that names are looked up in.
type quantizerFiles struct {
	main   *operands.Source
	others map[string]*operands.Source
}

func (q *Quantizer) open() (*quantizerFiles, error) {
	main, err := openSource(q.File, q.BFloat16)
	if err != nil {
		return nil, err
	}
	return &quantizerFiles{main, map[string]*operands.Source{}}, nil
}

func (s *quantizerFiles) close() {
	if s.main.File != nil {
		s.main.File.Close()
	}
	for _, o := range s.others {
		o.File.Close()
	}
}

// FileOf returns the safetensors file and the tensor that a name says, with ok false where
// it says no file.
func FileOf(name string) (path, tensor string, ok bool) {
	const suffix = ".safetensors:"
	at := strings.LastIndex(name, suffix)
	if at < 0 {
		return "", name, false
	}
	return name[:at+len(suffix)-1], name[at+len(suffix):], true
}

// find finds a tensor by its name.
func (s *quantizerFiles) find(name string) (operands.Tensor, error) {
	path, inFile, ok := FileOf(name)
	if !ok {
		return s.main.Find(name)
	}
	o := s.others[path]
	if o == nil {
		file, err := safetensors.Open(path)
		if err != nil {
			return operands.Tensor{}, err
		}
		o = &operands.Source{File: file, BFloat16: s.main.BFloat16}
		s.others[path] = o
	}
	t, err := o.Find(inFile)
	if err != nil {
		err = about(path, err)
	}
	return t, err
}

// arrays finds the values and reads the codes.
func (s *quantizerFiles) arrays(q *Quantizer) (x operands.Tensor, codes *tensor.Tensor, err error) {
	if x, err = s.find(q.X); err != nil {
		return x, nil, fmt.Errorf("%w: name the values with --x", err)
	}
	switch x.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16:
	default:
		return x, nil, noFloats(x)
	}
	c, err := s.find(q.Codes)
	if err != nil {
		return x, nil, fmt.Errorf("%w: name the codes with --codes", err)
	}
	o := operands.Operand{Format: q.Format, Packed: q.Packed}
	if codes, err = o.ReadCodes(c); err != nil {
		if errors.Is(err, operands.ErrFormat) && q.Format == nil {
			err = fmt.Errorf("%w: add --format e4m3 or another", err)
		}
		return x, nil, err
	}
	whole := *codes
	whole.Block, whole.Scales = tensor.Block{}, []float32{1}
	if err := whole.CheckCodes(); err != nil {
		if !q.Packed {
			err = fmt.Errorf("%w; --packed says that a byte holds several", err)
		}
		return x, nil, err
	}
	rows, cols := codes.Dims()
	n := int64(rows) * int64(cols)
	if x.Len() != n || len(x.Shape) > 0 && len(codes.Shape) > 0 && x.Shape[len(x.Shape)-1] != codes.Shape[len(codes.Shape)-1] {
		err = fmt.Errorf("tensor %q has shape %v and tensor %q %v: codes are those of values one by one", x.Name, x.Shape, codes.Name, codes.Shape)
		if bits := codes.Format.Bits(); bits < 8 && !q.Packed && n*8 == x.Len()*int64(bits) {
			err = fmt.Errorf("%w; --packed says that a byte holds several", err)
		}
		return x, nil, err
	}
	return x, codes, nil
}

func (q *Quantizer) scalesName() string {
	if q.Scales == "" {
		return q.Codes + operands.ScaleSuffix
	}
	return q.Scales
}

// readScales reads scales in the order in which they lie: words of four bytes are packed E8M0.
func (s *quantizerFiles) readScales(q *Quantizer, t operands.Tensor, want *tensor.ScaleFormat) ([]float32, tensor.ScaleFormat, error) {
	switch t.DType {
	case safetensors.I32, safetensors.U32:
		data, err := t.File.Bytes(t.Name)
		if err != nil {
			return nil, 0, err
		}
		scales := make([]float32, len(data))
		for i, b := range data {
			scales[i] = fp8.E8M0(b).Float32()
		}
		return scales, tensor.E8M0Scales, nil
	}
	o := operands.Operand{ScaleFormat: q.ScaleFormat}
	if o.ScaleFormat == nil && t.DType == safetensors.U8 {
		o.ScaleFormat = want
	}
	return o.ReadScales(t)
}

// errGrid is of scales that are not those of the grid of blocks.
var errGrid = errors.New("verify: no scales of these blocks")

// scales reads the scales of codes into them, and returns them as they lie, too.
func (s *quantizerFiles) scales(q *Quantizer, codes *tensor.Tensor, want tensor.ScaleFormat) (raw []float32, l fault.GridLayout, err error) {
	t, err := s.find(q.scalesName())
	if err != nil {
		return nil, l, fmt.Errorf("%w: name the scales with --scales", err)
	}
	ask := &want
	if want == tensor.Float32Scales {
		ask = nil
	}
	raw, codes.ScaleFormat, err = s.readScales(q, t, ask)
	if err != nil {
		return nil, l, err
	}
	rows, cols := codes.Grid()
	packed := t.DType == safetensors.I32 || t.DType == safetensors.U32
	layouts := judged.LayoutsOf(rows, cols, len(raw), t.Shape, packed)
	switch {
	case q.Layout != nil:
		l = *q.Layout
		if n := judged.LayoutSize(l, rows, cols); n > len(raw) {
			return nil, l, fmt.Errorf("tensor %q has %d scales: in the order %v a grid of %dx%d has %d", t.Name, len(raw), l, rows, cols, n)
		}
	case len(layouts) == 0:
		return nil, l, sentinel.Errorf(errGrid, "tensor %q of shape %v has %d scales: codes of shape %v have %dx%d with block %v; say another --block, or how they lie with --scale-layout",
			t.Name, t.Shape, len(raw), codes.Shape, rows, cols, codes.Block)
	default:
		l = layouts[0]
	}
	codes.Scales = judged.Arrange(raw, l, rows, cols)
	return raw, l, nil
}

// outer reads outer scales.
func (s *quantizerFiles) outer(q *Quantizer, p scaling.Profile, codes *tensor.Tensor) (o tensor.Outer, err error) {
	if q.Outer == "" {
		if p.Outer() {
			return o, fmt.Errorf("profile %s has outer scales: name them with --outer", p)
		}
		return o, nil
	}
	if p != "" && !p.Outer() {
		return o, fmt.Errorf("profile %s has no outer scales: leave --outer out", p)
	}
	t, err := s.find(q.Outer)
	if err != nil {
		return o, err
	}
	if t.DType != safetensors.F32 {
		return o, fmt.Errorf("tensor %q is %s: outer scales are F32", t.Name, t.DType)
	}
	if o.Scales, err = t.File.Float32s(t.Name); err != nil {
		return o, err
	}
	rows, _ := codes.Dims()
	n := len(o.Scales)
	if n == 0 || rows%n != 0 || n > math.MaxInt32 {
		return o, fmt.Errorf("tensor %q has %d outer scales for %d rows", t.Name, n, rows)
	}
	if n > 1 {
		o.Rows = rows / n
	}
	o.Divide = q.OuterDivides || p == scaling.NVFP4CompressedTensors
	return o, nil
}
