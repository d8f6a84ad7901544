package audit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/operands"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// ErrNone says that no fault survives.
var ErrNone = errors.New("no fault survives")

// WriteWorst writes the C of the fault that survives with the largest error, beside the
// operands, as octavo verify reads them: a, b, their scales, c and, if there are any, bias
// and old. It returns an ErrNone if there is no such fault.
func (f *Found) WriteWorst(ctx context.Context, path string) error {
	worst := f.Worst()
	if worst == nil {
		return ErrNone
	}
	c, dtype, err := f.faulty(ctx, worst.Fault)
	if err != nil {
		return err
	}
	tensors := append(product("", f.Product.A, f.Product.B, f.Product.Bias, f.Product.Old),
		safetensors.Tensor{Info: safetensors.Info{Name: "c", DType: dtype, Shape: []int{f.M, f.N}}, Data: c})
	return safetensors.WriteFile(path, tensors, map[string]string{"fault": worst.Text})
}

// faulty returns the bytes of the C that a fault makes.
func (f *Found) faulty(ctx context.Context, wrong fault.Fault) ([]byte, safetensors.DType, error) {
	switch f.Type {
	case fault.BFloat16:
		c, err := injected[fp8.BFloat16](ctx, f, wrong)
		return c, safetensors.BF16, err
	case fault.Float16:
		c, err := injected[float16.Float16](ctx, f, wrong)
		return c, safetensors.F16, err
	}
	c, err := injected[float32](ctx, f, wrong)
	return c, safetensors.F32, err
}

func injected[T gemm.Output](ctx context.Context, f *Found, wrong fault.Fault) ([]byte, error) {
	c := make([]T, f.M*f.N)
	if err := fault.Inject(ctx, c, wrong, f.Product, fault.Options{}); err != nil {
		return nil, err
	}
	return binary.Append(nil, binary.LittleEndian, c)
}

// WriteOperands writes the operands that are proposed, but for those that were given:
// exact-sums.a, exact-sums.b, their scales and, where the product has them, exact-sums.bias and
// exact-sums.old, and so on.
func (f *Found) WriteOperands(path string) error {
	var tensors []safetensors.Tensor
	text := map[string]string{}
	for i := range f.Proposal.Sets {
		s := &f.Proposal.Sets[i]
		if s.Name == "given" {
			continue
		}
		a, b, bias, old := s.Operands()
		tensors = append(tensors, product(s.Name+".", a, b, bias, old)...)
		text[s.Name] = s.Text
	}
	return safetensors.WriteFile(path, tensors, text)
}

// product returns the tensors of a product, their names after a prefix.
func product(prefix string, a, b *tensor.Tensor, bias, old []float32) (tensors []safetensors.Tensor) {
	m, _ := a.Dims()
	n, _ := b.Dims()
	tensors = append(codesAndScales(prefix+"a", a), codesAndScales(prefix+"b", b)...)
	if bias != nil {
		tensors = append(tensors, floats(prefix+"bias", bias, n))
	}
	if old != nil {
		tensors = append(tensors, floats(prefix+"old", old, m, n))
	}
	return tensors
}

// codesAndScales returns the codes and the scales of an operand.
func codesAndScales(name string, t *tensor.Tensor) []safetensors.Tensor {
	rows, cols := t.Dims()
	var codes []byte
	for i := range rows {
		codes = append(codes, t.Row(i)...)
	}
	dtype := operands.DTypeOf(t.Format)
	if dtype == "" {
		dtype = safetensors.U8
	}
	gridRows, gridCols := t.Grid()
	var scales []float32
	for r := range gridRows {
		scales = append(scales, t.ScaleRow(r)...)
	}
	return []safetensors.Tensor{
		{Info: safetensors.Info{Name: name, DType: dtype, Shape: []int{rows, cols}}, Data: codes},
		floats(name+operands.ScaleSuffix, scales, gridRows, gridCols),
	}
}

func floats(name string, values []float32, shape ...int) safetensors.Tensor {
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(fmt.Sprintf("audit: %v", err)) // a slice of float32 has a size
	}
	return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: shape}, Data: data}
}
