package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Arithmetic is how values become codes and scales, to the bit: the name of a profile of
// package scaling, whose arithmetic is float32, or one of the constants here, of libraries
// that compute in the type of the weight. Where that is BF16 a quotient is rounded to BF16
// before it is rounded to a code. "c over x" in PyTorch, of a constant and a tensor, is the
// rounded reciprocal of x times c.
type Arithmetic string

const (
	// CompressedTensors is llm-compressor's of FP8 and NVFP4. FP8: s = amax/448, or the
	// type's epsilon where that is 0; x/s. NVFP4: the divisor g = 2688 over amax, 1 where
	// that is infinite; s = UE4M3(g*(amax/6)), 0.125 where that is 0, of amax/6 in the type
	// of the weight; x/(s/g) in float32. Its MX formats are mx-compressed-tensors.
	CompressedTensors Arithmetic = "compressed-tensors"

	// AutoFP8 is AutoFP8's: m = 448 over max(amax, 1e-12); x*m; stored is 1/m in float32.
	AutoFP8 Arithmetic = "autofp8"

	// ModelOpt is Model-Optimizer's of FP8: s = amax/448 in float32, 1 for zeros; x/s.
	ModelOpt Arithmetic = "modelopt-fp8"
)

// profile returns the profile that a names, and whether it names one.
func (a Arithmetic) profile() (scaling.Profile, bool) {
	switch a {
	case CompressedTensors, AutoFP8, ModelOpt, "":
		return "", false
	}
	return scaling.Profile(a), true
}

// Check returns an error, ErrLayout, if weights in a scheme cannot come of the arithmetic.
func (a Arithmetic) Check(s *Scheme) error {
	outer := !s.Parts[Outer].None()
	p, ok := a.profile()
	var why string
	switch {
	case a == "":
		why = "it can be read, not written"
	case !ok && a == CompressedTensors && outer && s.Format == fp8.E2M1:
		return nil
	case !ok && (s.Format != fp8.E4M3 || outer || s.ScaleFormat != tensor.Float32Scales && s != fp8Block):
		why = "this arithmetic is for E4M3 under float scales"
	case !ok:
		return nil
	case !p.Valid() || p.Delayed():
		why = "there is no such arithmetic without a history"
	case !p.For(s.Format):
		why = fmt.Sprintf("this arithmetic is not for %v", s.Format)
	case p.Outer() != outer:
		why = "one of them has an outer scale"
	case p == scaling.NVFP4TERow:
		why = "this arithmetic has an outer scale for each row"
	case outer && s.Divide != (p == scaling.NVFP4CompressedTensors):
		why = "one of them divides by the outer scale"
	case p.ScaleFormat() == tensor.UE4M3Scales != (s.ScaleFormat == tensor.UE4M3Scales):
		why = "one of them has scales in UE4M3"
	default:
		return nil
	}
	return sentinel.Errorf(ErrLayout, "scheme %s by %q: %s", s.Name, string(a), why)
}

// fits reports whether scales of the arithmetic are numbers of a type: those of a profile are
// float32, and of fewer bits only where they are powers of two.
func (a Arithmetic) fits(s *Scheme, d safetensors.DType) bool {
	p, ok := a.profile()
	if !ok || d != safetensors.BF16 && d != safetensors.F16 {
		return true
	}
	for _, amax := range []float32{1.1, 1.3, 1.7} {
		if x, _ := math.Frexp(float64(recipeOf(p, s, s.Block).Scale(amax).Stored)); x != 0.5 {
			return false
		}
	}
	return true
}

// recipe returns the recipe of a profile's arithmetic.
func recipeOf(p scaling.Profile, s *Scheme, b tensor.Block) scaling.Recipe {
	return scaling.Recipe{Profile: p, Format: s.Format, Block: b}
}

// encoder quantizes strips of rows of one weight, each of whole blocks.
type encoder struct {
	scheme     *Scheme
	block      tensor.Block
	arithmetic Arithmetic

	// amax is the largest magnitude of all that shares an outer scale or an only one, NaN
	// where there is a NaN. Others do not need it.
	amax float32
}

// needsAmax reports whether amax must be known before the first strip.
func (e *encoder) needsAmax() bool {
	return e.block.Rows == 0 || !e.scheme.Parts[Outer].None()
}

// quantize encodes a strip into t, whose Name and Shape are set.
func quantize[T fp8.Float](
	ctx context.Context, e *encoder, t *tensor.Tensor, src []T, o tensor.Options,
) error {
	t.Format, t.Block = e.scheme.Format, e.block
	p, isProfile := e.arithmetic.profile()
	switch {
	case isProfile && e.block.Rows == 0 && !p.Outer():
		return e.underOne(ctx, t, p, o, src)
	case isProfile:
		q := scaling.Quantizer{Recipe: recipeOf(p, e.scheme, e.block), Options: o}
		if p.Outer() {
			// Above zeros the outer scale is 1: of an amax of 0 it would be 0, and scales NaN.
			q.OuterAmax = []float32{cmp.Or(e.amax, 448*e.scheme.Format.Max())}
		}
		return scaling.Quantize(ctx, t, src, q)
	case !e.scheme.Parts[Outer].None():
		return quantizeCTNVFP4(ctx, e, t, src, o)
	}
	return quantizeOwnType(ctx, e, t, src, o)
}

// underOne quantizes a strip of a tensor that has one scale.
func (e *encoder) underOne(
	ctx context.Context, t *tensor.Tensor, p scaling.Profile, o tensor.Options, src any,
) error {
	r := recipeOf(p, e.scheme, e.block)
	var s fp8.Scale
	var err error
	nan := e.amax != e.amax
	q := tensor.Quantizer{
		Policy: p.Policy(e.scheme.Format), ScaleFormat: p.ScaleFormat(), Options: o,
		Scale: func(int, float32, bool) fp8.Scale { return s },
	}
	switch src := src.(type) {
	case []float32:
		if s, err = scaling.Scale[float32](r, e.amax, nan); err == nil {
			err = tensor.Quantize(ctx, t, src, q)
		}
	case []float16.Float16:
		if s, err = scaling.Scale[float16.Float16](r, e.amax, nan); err == nil {
			err = tensor.Quantize(ctx, t, src, q)
		}
	case []fp8.BFloat16:
		if s, err = scaling.Scale[fp8.BFloat16](r, e.amax, nan); err == nil {
			err = tensor.Quantize(ctx, t, src, q)
		}
	}
	return err
}

// ownScale returns the scale of a block by libraries that compute in the type T of weights:
// what is stored, and what values are multiplied or divided by.
func ownScale[T fp8.Float](a Arithmetic, amax, top float32) (stored, by float32, divide bool) {
	switch a {
	case AutoFP8:
		m := over[T](top, max(amax, number.Of[T]().Round(1e-12)))
		return 1 / m, m, false
	case ModelOpt:
		s := amax / top
		if s == 0 {
			s = 1
		}
		return s, s, true
	}
	s := number.Of[T]().Round(amax / top)
	if s == 0 {
		s = float32(number.Of[T]().Epsilon())
	}
	return s, s, true
}

// over returns c over x as PyTorch divides a number by a tensor.
func over[T fp8.Float](c, x float32) float32 {
	return number.Of[T]().Round(float32(number.Of[T]().Round(1/x) * c))
}

// quantizeOwnType rounds each quotient to T before it becomes a code.
func quantizeOwnType[T fp8.Float](
	ctx context.Context, e *encoder, t *tensor.Tensor, src []T, o tensor.Options,
) error {
	return tensor.Quantize(ctx, t, src, tensor.Quantizer{
		Policy: fp8.Policy{Quotient: quotient[T]()}, Options: o,
		Scale: func(_ int, amax float32, nan bool) fp8.Scale {
			if e.block.Rows == 0 {
				amax = e.amax
			} else if nan {
				amax = float32(math.NaN())
			}
			stored, by, divide := ownScale[T](e.arithmetic, amax, e.scheme.Format.Max())
			if divide {
				return fp8.Scale{Stored: stored, Divisor: by}
			}
			return fp8.Scale{Stored: stored, Multiplier: by}
		},
	})
}

// quotient returns the type that values of type T are divided in.
func quotient[T fp8.Float]() fp8.Quotient {
	switch typeOf[T]() {
	case safetensors.BF16:
		return fp8.QuotientBFloat16
	case safetensors.F16:
		return fp8.QuotientFloat16
	}
	return fp8.QuotientWide
}

// ctOuter returns compressed-tensors' divisor of a tensor with the given amax, whose values
// are of type T, as its generate_gparam computes it.
func ctOuter[T fp8.Float](amax float32) float32 {
	g := over[T](448*6, max(amax, 0x1p-126))
	if math.IsInf(float64(g), 1) {
		return 1
	}
	return g
}

// quantizeCTNVFP4 is NVFP4 as compressed-tensors computes it in the type of the weight.
func quantizeCTNVFP4[T fp8.Float](
	ctx context.Context, e *encoder, t *tensor.Tensor, src []T, o tensor.Options,
) error {
	g := ctOuter[T](e.amax)
	if g != g || g == 0 {
		return sentinel.Errorf(ErrLayout, "tensor %q: its largest magnitude is %v: there is no outer scale for it",
			t.Name, e.amax)
	}
	p := scaling.NVFP4CompressedTensors
	return tensor.Quantize(ctx, t, src, tensor.Quantizer{
		Policy: p.Policy(e.scheme.Format), ScaleFormat: tensor.UE4M3Scales, Options: o,
		Outer: tensor.Outer{Scales: []float32{g}, Divide: true},
		Scale: func(_ int, amax float32, nan bool) fp8.Scale {
			if nan {
				amax = float32(math.NaN())
			}
			s := fp8.EncodeUE4M3(g * number.Of[T]().Round(amax/6)).Float32()
			if s == 0 {
				s = 0.125
			}
			return fp8.Scale{Stored: s, Divisor: s / g}
		},
	})
}
