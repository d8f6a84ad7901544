package power

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

const (
	bitRounds   = 2  // of flips, one in each row at a time
	bitProducts = 16 // that are lost
)

// Bits says which faults change a bit of the C of a, of shape [M, K], and b, of [N, K],
// by a kernel or, where its Model is the zero Model, by package gemm; old is the C to
// which the product is added, or nil. Where bits are demanded this is what is seen, by no
// statistics and with no false alarm: a change that the kernel's own roundings swallow
// has no effect, and no other goes unseen.
//
// It returns an error if a and b make no product, or none by that kernel, and when ctx
// ends, and if old or the bias is not of the right length ([gemm.ErrOperands]). Of o only Bias, Workers
// and Progress count. It takes the time of 21 products: give it some rows of each operand,
// and what shows in the elements of those is what shows at least.
func Bits[T gemm.Output](ctx context.Context, old []T, a, b *tensor.Tensor, kernel oracle.Kernel, o Options) ([]Sight, error) {
	size, err := gemm.CheckOperands(a, b)
	if err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	multiply := func(a, b *tensor.Tensor) ([]T, error) {
		c := make([]T, size.M*size.N)
		copy(c, old)
		options := oracle.Options{Bias: o.Bias, Accumulate: old != nil, Workers: o.Workers, Progress: o.Progress}
		if kernel.Model == (oracle.Model{}) {
			err = gemm.Multiply(ctx, c, a, b, options)
		} else {
			err = oracle.Predict(ctx, c, nil, a, b, kernel, options)
		}
		if err != nil {
			return nil, fmt.Errorf("power: %w", err)
		}
		return c, nil
	}
	if old != nil && len(old) != size.M*size.N {
		return nil, sentinel.Length(gemm.ErrOperands, "power: the old C", len(old), size.M*size.N)
	}
	right, err := multiply(a, b)
	if err != nil {
		return nil, err
	}
	lost := Sight{Fault: "product k of all elements lost"}
	for q := range min(bitProducts, size.K) {
		k := (2*q + 1) * size.K / (2 * min(bitProducts, size.K))
		c, err := multiply(edited(a, func(_ int, row []byte) { row[k] = 0 }), b)
		if err != nil {
			return nil, err
		}
		lost.count(!sameBits(c, right))
	}
	flips := [2]Sight{{Fault: "the lowest bit of one code of A flipped"}, {Fault: "the lowest bit of one code of B flipped"}}
	for round := range bitRounds * min(size.K, 1) {
		// A stride without a divisor in common with most K visits all of it.
		flip := func(i int, row []byte) { row[uint64(i*bitRounds+round)*0x9E3779B1%uint64(size.K)] ^= 1 }
		fromA, err := multiply(edited(a, flip), b)
		if err != nil {
			return nil, err
		}
		fromB, err := multiply(a, edited(b, flip))
		if err != nil {
			return nil, err
		}
		for i := range size.M {
			flips[0].count(!sameBits(fromA[i*size.N:(i+1)*size.N], right[i*size.N:(i+1)*size.N]))
		}
		for j := range size.N {
			flips[1].count(!sameBits(column(fromB, j, size.N), column(right, j, size.N)))
		}
	}
	return []Sight{lost, flips[0], flips[1]}, nil
}

// count counts a place that was tried.
func (s *Sight) count(seen bool) {
	s.Tried++
	if seen {
		s.Seen++
	}
}

// edited returns a copy of t with other codes.
func edited(t *tensor.Tensor, edit func(i int, row []byte)) *tensor.Tensor {
	u := *t
	u.Codes = slices.Clone(t.Codes)
	rows, _ := t.Dims()
	for i := range rows {
		edit(i, u.Row(i))
	}
	return &u
}

func column[T any](c []T, j, n int) (all []T) {
	for at := j; at < len(c); at += n {
		all = append(all, c[at])
	}
	return all
}

// sameBits compares all but the bits of NaN.
func sameBits[T gemm.Output](x, y []T) bool {
	return slices.EqualFunc(x, y, func(x, y T) bool {
		v, w := number.Float64(x), number.Float64(y)
		return math.Float64bits(v) == math.Float64bits(w) || v != v && w != w
	})
}
