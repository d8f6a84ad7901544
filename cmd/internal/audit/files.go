package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// ErrNone says that no fault survives.
var ErrNone = errors.New("no fault survives")

// WriteWorst writes the C of the fault that survives with the largest error, beside the
// operands, as octavo verify reads them: a, b, their scales, outer ones too, c and, if there
// are any, bias and old. It returns an ErrNone if there is no such fault.
func (f *Found) WriteWorst(ctx context.Context, path string) error {
	worst := f.Worst()
	if worst == nil {
		return ErrNone
	}
	c, err := f.faulty(ctx, worst.Fault)
	if err != nil {
		return err
	}
	metadata := map[string]string{"fault": worst.Text}
	tensors, err := product("", f.Product.A, f.Product.B, f.Product.Bias, f.Product.Old, metadata)
	if err != nil {
		return err
	}
	return safetensors.WriteFile(path, append(tensors, c), metadata)
}

// faulty returns the C that a fault makes.
func (f *Found) faulty(ctx context.Context, wrong fault.Fault) (safetensors.Tensor, error) {
	switch f.Type {
	case fault.BFloat16:
		return injected[fp8.BFloat16](ctx, f, wrong, safetensors.BF16)
	case fault.Float16:
		return injected[float16.Float16](ctx, f, wrong, safetensors.F16)
	}
	return injected[float32](ctx, f, wrong, safetensors.F32)
}

func injected[T interface {
	gemm.Output
	safetensors.Element
}](ctx context.Context, f *Found, wrong fault.Fault, d safetensors.DType) (safetensors.Tensor, error) {
	c := make([]T, f.M*f.N)
	err := fault.Inject(ctx, c, wrong, f.Product, fault.Options{})
	return safetensors.New("c", d, []int{f.M, f.N}, c), err
}

// WriteOperands writes the operands that are proposed, but for those that were given:
// exact-sums.a, exact-sums.b, their scales and, where the product has them, exact-sums.bias and
// exact-sums.old, and so on.
func (f *Found) WriteOperands(path string) error {
	var tensors []safetensors.Tensor
	metadata := map[string]string{}
	for i := range f.Proposal.Sets {
		s := &f.Proposal.Sets[i]
		if s.Name == "given" {
			continue
		}
		a, b, bias, old := s.Operands()
		of, err := product(s.Name+".", a, b, bias, old, metadata)
		if err != nil {
			return err
		}
		tensors = append(tensors, of...)
		metadata[s.Name] = s.Text
	}
	return safetensors.WriteFile(path, tensors, metadata)
}

// product returns the tensors of a product, their names after a prefix. It adds to a file's
// metadata what their types do not say.
func product(prefix string, a, b *tensor.Tensor, bias, old []float32, metadata map[string]string) (tensors []safetensors.Tensor, err error) {
	m, _ := a.Dims()
	n, _ := b.Dims()
	for i, t := range []*tensor.Tensor{a, b} {
		name := prefix + string("ab"[i])
		of, err := codesAndScales(name, t)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		if operands.DTypeOf(t.Format) == "" {
			metadata[operands.FormatKeyOf(name)] = t.Format.String()
		}
		tensors = append(tensors, of...)
	}
	if bias != nil {
		tensors = append(tensors, floats(prefix+"bias", bias, n))
	}
	if old != nil {
		tensors = append(tensors, floats(prefix+"old", old, m, n))
	}
	return tensors, nil
}

// codesAndScales returns the codes and the scales of an operand. Codes of less than a byte
// that do not fill whole bytes are U8.
func codesAndScales(name string, t *tensor.Tensor) ([]safetensors.Tensor, error) {
	rows, cols := t.Dims()
	var codes []byte
	for i := range rows {
		codes = append(codes, t.Row(i)...)
	}
	dtype, bits := operands.DTypeOf(t.Format), t.Format.Bits()
	if dtype == "" || len(codes)*bits%8 != 0 {
		dtype = safetensors.U8
	} else if bits < 8 {
		packed := make([]byte, tensor.PackedLen(len(codes), bits))
		if err := tensor.PackCodes(packed, codes, bits, tensor.LowFirst); err != nil {
			return nil, err
		}
		codes = packed
	}
	gridRows, gridCols := t.Grid()
	var scales []byte
	var err error
	for r := range gridRows {
		if scales, err = tensorfile.AppendScales(scales, t.ScaleRow(r), t.ScaleFormat, r*gridCols); err != nil {
			return nil, err
		}
	}
	tensors := []safetensors.Tensor{
		safetensors.New(name, dtype, []int{rows, cols}, codes),
		{Info: safetensors.Info{Name: name + operands.ScaleSuffix, DType: tensorfile.ScaleTypeOf(t.ScaleFormat), Shape: []int{gridRows, gridCols}}, Data: scales},
	}
	if t.Outer.None() {
		return tensors, nil
	}
	suffix := operands.OuterSuffix
	if t.Outer.Divide {
		suffix = operands.OuterDivisorSuffix
	}
	outer := t.Outer.Scales
	if len(outer) > 1 { // of rows: what is written is one matrix, also of a stack
		outer = make([]float32, rows)
		for i := range outer {
			outer[i] = t.Outer.At(i)
		}
	}
	return append(tensors, floats(name+suffix, outer, len(outer))), nil
}

func floats(name string, values []float32, shape ...int) safetensors.Tensor {
	return safetensors.New(name, safetensors.F32, shape, values)
}
