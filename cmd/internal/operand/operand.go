// Package operand reads the operands that a command line names: errors say which flag
// helps.
package operand

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/tensor"
)

// Read returns both operands of a product, whose flags begin with a and b.
func Read(p *operands.Product, files *operands.Files) (a, b *tensor.Tensor, err error) {
	if a, err = files.A(); err != nil {
		return nil, nil, Hint(p, "a", &p.A, err)
	}
	if b, err = files.B(); err != nil {
		return nil, nil, Hint(p, "b", &p.B, err)
	}
	if err := checkPacked(p, a, b); err != nil {
		return nil, nil, err
	}
	return a, b, checkEmpty(a, b)
}

// checkPacked refuses bytes that have as many rows of the other operand's codes as if each
// held several.
func checkPacked(p *operands.Product, a, b *tensor.Tensor) error {
	_, ka := a.Dims()
	_, kb := b.Dims()
	for _, x := range []struct {
		o        *operands.Operand
		t        *tensor.Tensor
		flag     string
		k, other int
	}{{&p.A, a, "a", ka, kb}, {&p.B, b, "b", kb, ka}} {
		if bits := x.t.Format.Bits(); bits < 8 && !x.o.Packed && x.o.Format != nil && x.k > 0 && x.k*8 == x.other*bits {
			return fmt.Errorf("tensor %q has rows of %d codes of %v and that of the other operand of %d: --%s-packed says that a byte holds several",
				x.t.Name, x.k, x.t.Format, x.other, x.flag)
		}
	}
	return nil
}

const maxEmptyResults = 1 << 24

// checkEmpty bounds the results of operands without data, which bounds nothing.
func checkEmpty(a, b *tensor.Tensor) error {
	m, ka := a.Dims()
	n, kb := b.Dims()
	if results := int64(m) * int64(n); ka == 0 && kb == 0 && results > maxEmptyResults {
		return fmt.Errorf("tensor %q of shape %v and tensor %q of shape %v have no elements and %d results, all 0: want %d at most",
			a.Name, a.Shape, b.Name, b.Shape, results, maxEmptyResults)
	}
	return nil
}

// Hint adds what to do about an error of an operand whose flags begin with a name.
func Hint(p *operands.Product, flag string, o *operands.Operand, err error) error {
	switch {
	case errors.Is(err, operands.ErrFormat) && o.Format != nil:
		return fmt.Errorf("%w: leave --%s-format out", err, flag)
	case errors.Is(err, operands.ErrFormat):
		return fmt.Errorf("%w: add --%s-format e4m3 or another", err, flag)
	case errors.Is(err, tensor.ErrCode) && !o.Packed:
		return fmt.Errorf("%w; --%s-packed says that a byte holds several", err, flag)
	case errors.Is(err, operands.ErrScaleFormat) && o.ScaleFormat != nil:
		return fmt.Errorf("%w: leave --%s-scale-format out", err, flag)
	case errors.Is(err, operands.ErrFloats):
		return fmt.Errorf("%w: octavo quantize makes them", err)
	case errors.Is(err, operands.ErrBlock):
		return fmt.Errorf("%w with --%s-block", err, flag)
	case errors.Is(err, operands.ErrScaleFormat):
		return fmt.Errorf("%w: add --%s-scale-format e8m0 or ue4m3", err, flag)
	case errors.Is(err, operands.ErrScales) && o.Scales == "":
		return fmt.Errorf("%w with --%s-scales", err, flag)
	case errors.Is(err, operands.ErrOuter) && o.Outer == "":
		return fmt.Errorf("%w: name them with --%s-outer", err, flag)
	case errors.Is(err, operands.ErrName) && o.Codes == flag && strings.Contains(err.Error(), strconv.Quote(flag)):
		return fmt.Errorf("%w: name another with --%s; octavo inspect lists the tensors", err, flag)
	case errors.Is(err, operands.ErrName):
		return Missing(p, err)
	}
	return err
}

// Missing adds how to find names, where there is a file to find them in.
func Missing(p *operands.Product, err error) error {
	if errors.Is(err, operands.ErrName) && len(p.Files) > 0 {
		return fmt.Errorf("%w: octavo inspect lists the tensors", err)
	}
	return err
}
