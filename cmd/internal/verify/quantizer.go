package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

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
	Claimed      *fp8.Format       // of the claim; nil: what the codes are
	Other        *tensor.Block     // block of the claim where its own does not fit the scales
	BFloat16     bool              // arrays of type <u2 are bfloat16
}

// Run reads everything and judges it. When ctx ends it returns an error.
func (q *Quantizer) Run(ctx context.Context, r scaling.Recipe, o judged.Options) (v *judged.Verdict, err error) {
	err = q.open(func(s *operands.Source) error {
		v, err = q.Judge(ctx, s, r, o)
		return err
	})
	return v, err
}

// open opens the files.
func (q *Quantizer) open(use func(s *operands.Source) error) error {
	s, err := openSource(q.File, q.BFloat16)
	if err != nil {
		return err
	}
	if s.File != nil {
		defer s.File.Close()
	}
	return use(s)
}

// DefaultBlock claims the block that the profile's library gives to activations or, if only that
// fits the scales, to weights.
func (q *Quantizer) DefaultBlock(r *scaling.Recipe) {
	r.Block = r.Profile.Block(scaling.Input)
	weight := r.Profile.Block(scaling.Weight)
	q.Other = &weight
}

// Judge reads everything from a source, and judges it.
func (q *Quantizer) Judge(ctx context.Context, in *operands.Source, r scaling.Recipe, o judged.Options) (v *judged.Verdict, err error) {
	err = q.read(in, func(s *operands.Source, x operands.Tensor, codes *tensor.Tensor) error {
		r.Format = codes.Format
		if q.Claimed != nil && *q.Claimed != r.Format {
			return fmt.Errorf("tensor %q is %v: the recipe that is claimed encodes to %v", codes.Name, r.Format, *q.Claimed)
		}
		if !r.Profile.For(r.Format) {
			return fmt.Errorf("tensor %q is %v: profile %s is not for that format", codes.Name, r.Format, r.Profile)
		}
		codes.Block = r.Block
		raw, layout, err := q.scales(s, codes, r.Profile.ScaleFormat())
		if errors.Is(err, errGrid) && q.Other != nil {
			other := *codes
			other.Block = *q.Other
			if also, l, otherErr := q.scales(s, &other, r.Profile.ScaleFormat()); otherErr == nil {
				r.Block, codes, raw, layout, err = other.Block, &other, also, l, nil
			}
		}
		if err != nil {
			return err
		}
		if codes.Outer, err = q.outer(s, r.Profile, codes); err != nil {
			return err
		}
		switch x.DType {
		case safetensors.BF16:
			v, err = checkQuantized[fp8.BFloat16](ctx, x, codes, raw, layout, r, o)
		case safetensors.F16:
			v, err = checkQuantized[float16.Float16](ctx, x, codes, raw, layout, r, o)
		default:
			v, err = checkQuantized[float32](ctx, x, codes, raw, layout, r, o)
		}
		return err
	})
	return v, err
}

// Identify reads everything and says which profiles give it.
func (q *Quantizer) Identify(ctx context.Context, o judged.Options) (id *judged.Identity, err error) {
	err = q.open(func(s *operands.Source) error {
		id, err = q.identify(ctx, s, o)
		return err
	})
	return id, err
}

func (q *Quantizer) identify(ctx context.Context, in *operands.Source, o judged.Options) (id *judged.Identity, err error) {
	err = q.read(in, func(s *operands.Source, x operands.Tensor, codes *tensor.Tensor) error {
		scales, err := s.Find(q.scalesName())
		if err != nil {
			return err
		}
		var raw []float32
		if raw, codes.ScaleFormat, err = q.readScales(scales, nil); err != nil {
			return err
		}
		if q.Outer != "" {
			if codes.Outer, err = q.outer(s, "", codes); err != nil {
				return err
			}
		}
		switch x.DType {
		case safetensors.BF16:
			id, err = identify[fp8.BFloat16](ctx, x, codes, raw, q.Layout, o)
		case safetensors.F16:
			id, err = identify[float16.Float16](ctx, x, codes, raw, q.Layout, o)
		default:
			id, err = identify[float32](ctx, x, codes, raw, q.Layout, o)
		}
		return err
	})
	return id, err
}

func identify[T judged.Value](ctx context.Context, x operands.Tensor, codes *tensor.Tensor, raw []float32, l *fault.GridLayout, o judged.Options) (*judged.Identity, error) {
	values, err := safetensors.Elements[T](x.File, x.Name)
	if err != nil {
		return nil, err
	}
	return judged.Identify(ctx, values, codes, raw, l, o)
}

func checkQuantized[T judged.Value](ctx context.Context, x operands.Tensor, codes *tensor.Tensor, raw []float32, l fault.GridLayout, r scaling.Recipe, o judged.Options) (*judged.Verdict, error) {
	values, err := safetensors.Elements[T](x.File, x.Name)
	if err != nil {
		return nil, err
	}
	return judged.Check(ctx, judged.Result[T]{X: values, Got: codes, Raw: raw, Layout: l}, r, o)
}

// read finds the values and reads the codes.
func (q *Quantizer) read(s *operands.Source, use func(s *operands.Source, x operands.Tensor, codes *tensor.Tensor) error) error {
	x, err := s.Find(q.X)
	if err != nil {
		return fmt.Errorf("%w: name the values with --x", err)
	}
	if !isFloat(x.DType) {
		return noFloats(x)
	}
	c, err := s.Find(q.Codes)
	if err != nil {
		return fmt.Errorf("%w: name the codes with --codes", err)
	}
	const packed = "%w; --packed says that a byte holds several"
	codes, err := readCodes(&operands.Operand{Format: q.Format, Packed: q.Packed}, c, "", "codes of 8 bits or fewer")
	switch {
	case errors.Is(err, tensor.ErrCode) && !q.Packed:
		return fmt.Errorf(packed, err)
	case err != nil:
		return err
	}
	rows, cols := codes.Dims()
	n := int64(rows) * int64(cols)
	if x.Len() != n || len(x.Shape) > 0 && len(codes.Shape) > 0 && x.Shape[len(x.Shape)-1] != codes.Shape[len(codes.Shape)-1] {
		err = fmt.Errorf("tensor %q has shape %v and tensor %q %v: codes are those of values one by one", x.Name, x.Shape, codes.Name, codes.Shape)
		if bits := codes.Format.Bits(); bits < 8 && !q.Packed && n*8 == x.Len()*int64(bits) {
			err = fmt.Errorf(packed, err)
		}
		return err
	}
	return use(s, x, codes)
}

func (q *Quantizer) scalesName() string { return cmp.Or(q.Scales, q.Codes+operands.ScaleSuffix) }

// readScales reads scales in the order in which they lie: words of four bytes are packed E8M0.
func (q *Quantizer) readScales(t operands.Tensor, want *tensor.ScaleFormat) ([]float32, tensor.ScaleFormat, error) {
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
func (q *Quantizer) scales(s *operands.Source, codes *tensor.Tensor, want tensor.ScaleFormat) (raw []float32, l fault.GridLayout, err error) {
	t, err := s.Find(q.scalesName())
	if err != nil {
		return nil, l, fmt.Errorf("%w: name the scales with --scales", err)
	}
	ask := &want
	if want == tensor.Float32Scales {
		ask = nil
	}
	raw, codes.ScaleFormat, err = q.readScales(t, ask)
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
func (q *Quantizer) outer(s *operands.Source, p scaling.Profile, codes *tensor.Tensor) (o tensor.Outer, err error) {
	if q.Outer == "" {
		if p.Outer() {
			return o, fmt.Errorf("profile %s has outer scales: name them with --outer", p)
		}
		return o, nil
	}
	if p != "" && !p.Outer() {
		return o, fmt.Errorf("profile %s has no outer scales: leave --outer out", p)
	}
	t, err := s.Find(q.Outer)
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
