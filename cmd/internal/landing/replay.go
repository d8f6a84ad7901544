package landing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Check is what is compared, and the first place that differs.
type Check struct {
	What     string `json:"what"` // such as "codes of x.input"
	Elements int    `json:"elements"`
	Differ   int    `json:"differ"`
	First    int    `json:"first,omitempty"` // index of the first that differs
	Was      string `json:"was,omitempty"`
	Is       string `json:"is,omitempty"`
}

// Same reports whether all bits are the same.
func (c Check) Same() bool { return c.Differ == 0 }

// Replay computes the operator of a bundle again, and compares.
func (b *Bundle) Replay(ctx context.Context, workers int) (*Result, error) {
	o := b.Operator
	if o == nil {
		return nil, errors.New("it has no operator: no product in FP8 was computed in the step that it is of")
	}
	level, err := octavo.Level()
	if err != nil {
		return nil, err
	}
	v := &Result{
		Cause: b.Cause, Step: b.Step, Operator: o.Name, Op: o.Op, Found: o.Explain().String(), Level: level,
	}
	v.NotJudged = o.unknown()
	v.Checks, err = o.Replay(ctx, workers)
	v.Same = err == nil && v.Failure() == ""
	return v, err
}

// Replay computes the operator again: operands of the values that they were made of, where
// those are there, and the product of the operands. The error is one of operands that cannot be
// multiplied.
func (o *Operator) Replay(ctx context.Context, workers int) (checks []Check, err error) {
	made := [2]*tensor.Tensor{o.A.Tensor, o.B.Tensor}
	for i, operand := range []Operand{o.A, o.B} {
		if operand.Values == nil {
			continue
		}
		if made[i], err = operand.quantize(ctx, workers); err != nil {
			return nil, err
		}
		name := operand.Tensor.Name
		checks = append(checks,
			compare("codes of "+name, operand.Tensor.Codes, made[i].Codes, func(b byte) uint32 { return uint32(b) }),
			compare("scales of "+name, operand.Tensor.Scales, made[i].Scales, math.Float32bits))
		if outer := operand.Tensor.Outer.Scales; len(outer) > 0 {
			checks = append(checks, compare("outer scales of "+name, outer, made[i].Outer.Scales, math.Float32bits))
		}
	}
	result := make([]float32, len(o.Result))
	if err := gemm.Multiply(ctx, result, made[0], made[1], gemm.Options{Workers: workers}); err != nil {
		return nil, err
	}
	return append(checks, compare(o.Name, o.Result, result, math.Float32bits)), nil
}

// quantize makes the operand of its values.
func (o *Operand) quantize(ctx context.Context, workers int) (*tensor.Tensor, error) {
	t := &tensor.Tensor{Name: o.Tensor.Name, Shape: slices.Clone(o.Tensor.Shape)}
	if o.Multipliers == nil {
		q := scaling.Quantizer{Recipe: o.Recipe, Options: tensor.Options{Workers: workers}}
		return t, scaling.Quantize(ctx, t, o.Values, q)
	}
	t.Format, t.Block = o.Recipe.Format, o.Recipe.Block
	q := tensor.Quantizer{Policy: o.Recipe.EncodePolicy(), Options: tensor.Options{Workers: workers}}
	q.Scale = func(block int, _ float32, _ bool) fp8.Scale {
		return fp8.Scale{Stored: 1 / o.Multipliers[block], Multiplier: o.Multipliers[block]}
	}
	return t, tensor.Quantize(ctx, t, o.Values, q)
}

// compare compares two lists by their bits. One that is of another length differs throughout.
func compare[T any](what string, was, is []T, bits func(T) uint32) Check {
	c := Check{What: what, Elements: len(was)}
	if len(was) != len(is) {
		c.Differ = len(was)
		c.Was, c.Is = fmt.Sprintf("%d values", len(was)), fmt.Sprintf("%d values", len(is))
		return c
	}
	for i := range was {
		if a, b := bits(was[i]), bits(is[i]); a != b {
			if c.Differ == 0 {
				c.First, c.Was, c.Is = i, fmt.Sprintf("%#x", a), fmt.Sprintf("%#x", b)
			}
			c.Differ++
		}
	}
	return c
}

// Finding is the first element that is wrong, and why.
type Finding struct {
	Value
	Of  string // "operand", "result", or "" where nothing is
	Why string
}

// String says where and why in one sentence.
func (f Finding) String() string {
	if f.Of == "" {
		return f.Why
	}
	return fmt.Sprintf("%s: %v at element %d of %s, row %d, column %d: %s",
		f.Of, float32(f.Value.Value), f.Index, f.Tensor, f.Row, f.Col, f.Why)
}

// Explain finds the first element that is wrong: one of an operand that is not finite, or of
// the result, or else the first value of an operand that saturated or, without any, became zero.
func (o *Operator) Explain() Finding {
	for _, operand := range []Operand{o.A, o.B} {
		_, cols := operand.Tensor.Dims()
		if v := firstNonFinite(operand.Tensor.Name, operand.Values, cols); v != nil {
			return Finding{*v, "operand", "it came in with the operand, before it was quantized"}
		}
	}
	cols, sum := o.B.Tensor.Dims()
	if v := firstNonFinite(o.Name, o.Result, cols); v != nil {
		return Finding{*v, "result", o.whyResult(v.Row, v.Col, sum)}
	}
	for _, of := range []struct {
		fate int
		why  string
	}{{saturated, "it saturated: it became %v under the scale %v"}, {flushed, "underflow: it became %v under the scale %v"}} {
		for _, operand := range []Operand{o.A, o.B} {
			if f, ok := operand.first(of.fate, of.why); ok {
				return f
			}
		}
	}
	if unknown := o.unknown(); len(unknown) > 0 {
		return Finding{Why: "nothing that was kept is wrong; what was lost of " + strings.Join(unknown, " and ") +
			" is not judged, since codes alone were kept"}
	}
	return Finding{Why: "every value is finite, none saturated, and none became zero"}
}

// unknown names the operands of which no values were kept.
func (o *Operator) unknown() (names []string) {
	for _, operand := range []Operand{o.A, o.B} {
		if operand.Values == nil && len(operand.Tensor.Codes) > 0 {
			names = append(names, operand.Tensor.Name)
		}
	}
	return names
}

// first returns the first value of a fate.
func (o *Operand) first(of int, why string) (Finding, bool) {
	t := o.Tensor
	_, cols := t.Dims()
	for i, v := range o.Values {
		if row, col := i/cols, i%cols; fate(t, row, col, v) == of {
			at := Value{t.Name, i, row, col, float64(v)}
			return Finding{at, "operand", fmt.Sprintf(why, t.At(row, col), t.Scale(row, col))}, true
		}
	}
	return Finding{}, false
}

// whyResult says why an element of the result is not finite where operands are.
func (o *Operator) whyResult(row, col, sum int) string {
	for k := range sum {
		for _, side := range []struct {
			*tensor.Tensor
			row int
		}{{o.A.Tensor, row}, {o.B.Tensor, col}} {
			if v := side.At(side.row, k); !isFinite(v) {
				return fmt.Sprintf("element [%d, %d] of %s is %v once it is quantized, under the scale %v",
					side.row, k, side.Name, v, side.Scale(side.row, k))
			}
		}
	}
	return "the sum of finite products is beyond FP32"
}
