package oracle

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// ScaleOrder is the order in which a library applies the scales sa and sb of a
// block of K to its sum p. Each operation is rounded to float32. Orders of cuBLAS were
// measured on an H200: 13.0, through torch 2.11 (silicon.md).
type ScaleOrder uint8

const (
	// AnyOrder says that the order is not known. A prediction then takes AThenB.
	AnyOrder ScaleOrder = iota
	// ProductThenFMA is c = fma(sa·sb, p, c): cuBLAS for scales of tensors, and for 1x128
	// blocks of A and 128x128 of B. DeepGEMM's source (sm90_fp8_gemm_1d2d.cuh) has it, where
	// the contraction to a fused multiply-add is expected, not verified.
	ProductThenFMA
	// AThenB is c = fma(p·sa, sb, c): cuBLAS for 1x128 blocks of both (as the reference in
	// TransformerEngine, blockwise_fp8_gemm_reference.py), and package gemm.
	AThenB
	// BThenA is c = fma(p·sb, sa, c): cuBLAS for scales of rows of both.
	BThenA
)

// Kernel describes how a library's kernel uses the instruction of a Model. Within a
// block of K that has one pair of scales, instructions are chained from +0. After every
// Promote products the chain's sum is added to a float32 sum, and a new chain begins at
// +0. The block's sum is scaled and added to the result. Then the result is multiplied by
// the product of the outer scales, rounded to float32, where operands have such, as the
// alpha of CUTLASS and cuBLAS is. Bias and old C are added last, in float32, and the sum
// is rounded to the type of C.
//
// The instruction of a Scaled or Grouped model, or one of E8M0, applies the scales of blocks itself, and
// the chain goes on from block to block. Where K is no multiple of an instruction's, zeros
// fill the last.
type Kernel struct {
	Model   Model      `json:"model"`
	Promote int        `json:"promote"` // 0: not within a block
	Scales  ScaleOrder `json:"scales"`
}

// Check returns an error unless the model is one that exists or could, and the other
// fields are in range.
func (k Kernel) Check() error {
	if err := k.checkFields(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

func (k *Kernel) checkFields() error {
	if err := k.Model.checkFields(); err != nil {
		return err
	}
	if k.Promote < 0 {
		return sentinel.Errorf(ErrModel, "promotion after %d products: want 0 or more", k.Promote)
	}
	return checkScaleOrder(k.Scales)
}

// CheckOperands returns the error for which [Predict] would refuse the operands: an
// [ErrModel] if the kernel does not multiply such, or that of [gemm.CheckOperands].
func (k Kernel) CheckOperands(a, b *tensor.Tensor) error {
	p, err := newProduct(a, b)
	if err == nil {
		err = k.check(&p)
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

func checkScaleOrder(s ScaleOrder) error {
	if err := scaleOrders.Check(s); err != nil {
		return sentinel.Errorf(ErrModel, "%w", err)
	}
	return nil
}

// check reports whether the kernel can multiply the operands.
func (k *Kernel) check(p *product) error {
	if err := k.checkFields(); err != nil {
		return err
	}
	m := &k.Model
	for _, t := range []*tensor.Tensor{p.a, p.b} {
		if !m.Takes(t.Format) {
			return sentinel.Errorf(ErrModel, "tensor %q: model %q has no operands of format %v", t.Name, m.Name, t.Format)
		}
		if err := k.checkScales(t, p); err != nil {
			return err
		}
	}
	if m.Unit == Grouped {
		_, err := m.scaleFormat(p.a, p.b)
		return err
	}
	return nil
}

// checkScales demands blocks of whole instructions, or groups, and E8M0 scales but of a
// Grouped model.
func (k *Kernel) checkScales(t *tensor.Tensor, p *product) error {
	m := &k.Model
	if !m.ScalesInside() {
		return nil
	}
	least := m.K
	if m.Unit == Grouped {
		least = groupLength
	}
	if p.block < p.k && p.block%least != 0 {
		return sentinel.Errorf(ErrModel, "tensor %q in blocks of %v: model %q needs blocks of a multiple of %d along K",
			t.Name, t.Block, m.Name, least)
	}
	if m.Unit == Grouped {
		return nil
	}
	return m.checkScaleValues(t, tensor.E8M0Scales)
}

// checkScaleValues demands that scales of format f may be those of t.
func (m *Model) checkScaleValues(t *tensor.Tensor, f tensor.ScaleFormat) error {
	if t.ScaleFormat == f {
		return nil // they are, as gemm checked
	}
	rows, cols := t.Grid()
	for i := range rows {
		for j := range cols {
			if s := t.ScaleRow(i)[j]; !f.Holds(s) {
				return sentinel.Errorf(ErrModel, "tensor %q: scale of block (%d, %d) is %v: model %q needs scales that %v has",
					t.Name, i, j, s, m.Name, f)
			}
		}
	}
	return nil
}

// exponentOf returns the exponent of a power of two.
func exponentOf(s float32) int {
	_, e := math.Frexp(float64(s))
	return e - 1
}
