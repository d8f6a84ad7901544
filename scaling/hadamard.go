package scaling

import (
	"context"
	"math"
	"unsafe"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/hadamard"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// NVIDIASigns are the signs that TransformerEngine uses by default (get_wgrad_sign_vector
// in pytorch/tensor/nvfp4_tensor.py), the same for all tensors.
const NVIDIASigns uint16 = 0xD7E8

// Hadamard is a random Hadamard transform of groups of 16 values,
//
//	y = (x∘signs)·H/4, where H[i][j] = (-1)^popcount(i&j).
//
// It is a rotation: where both operands of a product are transformed along the dimension
// that is summed, the product is what it was. A value that is far larger than the other 15
// spreads over all 16, so that the block's scale leaves them more codes; NVIDIA's recipe
// for NVFP4 does so to the operands of the weight gradient (arXiv 2509.25149).
// The zero value changes no sign and transforms along rows.
type Hadamard struct {
	Signs   uint16 // value i of each group changes its sign where bit i is set
	Columns bool   // groups are 16 rows of a column, not 16 neighbours in a row
	Inverse bool   // x = (y·H/4)∘signs
	Workers int    // goroutines; 0: GOMAXPROCS. Results do not depend on it.
}

// RandomHadamard returns a transform whose signs are drawn from a seed.
func RandomHadamard(seed uint64) Hadamard {
	return Hadamard{Signs: uint16(random.Mix(seed))}
}

// factors returns what values are multiplied by before and after the sums.
func (h Hadamard) factors() *hadamard.Factors {
	f := new(hadamard.Factors)
	for i := range f.Before {
		f.Before[i], f.After[i] = 0.25, 1
		if h.Signs>>i&1 == 0 {
			continue
		}
		if h.Inverse {
			f.After[i] = -1
		} else {
			f.Before[i] = -0.25
		}
	}
	return f
}

// HadamardTransform transforms src, a matrix [rows, cols], to dst, which may be src but
// must not overlap it otherwise. At the end of a row, or a column, up to 15 values that
// fill no group stay as they are.
//
// The arithmetic is float32, in one order: each value times ±1/4; then for the distances
// 8, 4, 2 and 1 in turn, each two values a and b of the group so far apart become a+b and
// a-b. Each operation rounds, and a NaN becomes the canonical one. The results of BFloat16
// are rounded to it once, to nearest even. The order in which a GPU adds is not defined;
// where every sum is exact it gives the same.
//
// It returns an error, [tensor.ErrShape], and writes nothing, if a slice is not of that
// size. If ctx ends meanwhile it returns an error that wraps its cause; dst is then
// unspecified.
func HadamardTransform[T float32 | fp8.BFloat16](ctx context.Context, dst, src []T, rows, cols int, h Hadamard) error {
	if rows < 0 || cols < 0 || cols > 0 && rows > math.MaxInt/cols {
		return sentinel.Errorf(tensor.ErrShape, "scaling: there is no matrix of shape [%d, %d] to transform", rows, cols)
	}
	if err := sentinel.Length(tensor.ErrShape, "scaling: the source of the transform", len(src), rows*cols); err != nil {
		return err
	}
	if err := sentinel.Length(tensor.ErrShape, "scaling: the destination of the transform", len(dst), rows*cols); err != nil {
		return err
	}
	switch dst := any(dst).(type) {
	case []float32:
		return transform(ctx, dst, any(src).([]float32), rows, cols, h)
	case []fp8.BFloat16:
		return transform(ctx, asBits(dst), asBits(any(src).([]fp8.BFloat16)), rows, cols, h)
	}
	return nil
}

func transform[T hadamard.Element](ctx context.Context, dst, src []T, rows, cols int, h Hadamard) error {
	if len(src) == 0 { // of however many rows or columns
		return meter.Err(ctx)
	}
	f, groupRows := h.factors(), 1
	if h.Columns {
		groupRows = hadamard.Size
	}
	const grain = 1 << 15 // values
	perPart := max(grain/(groupRows*max(cols, 1)), 1)
	whole := rows / groupRows
	parallel.For(whole, perPart, h.Workers, func(lo, hi int) {
		for ; lo < hi && ctx.Err() == nil; lo += perPart {
			from, to := lo*groupRows*cols, min(lo+perPart, hi)*groupRows*cols
			if h.Columns {
				transformColumns(dst[from:to], src[from:to], cols, f)
			} else {
				transformRows(dst[from:to], src[from:to], cols, f)
			}
		}
	})
	copy(dst[whole*groupRows*cols:], src[whole*groupRows*cols:])
	return meter.Err(ctx)
}

// transformRows transforms groups of neighbours in rows of cols values.
func transformRows[T hadamard.Element](dst, src []T, cols int, f *hadamard.Factors) {
	if cols%hadamard.Size == 0 {
		hadamard.Rows(dst, src, f)
		return
	}
	for whole := cols - cols%hadamard.Size; len(src) > 0; dst, src = dst[cols:], src[cols:] {
		hadamard.Rows(dst[:whole], src[:whole], f)
		copy(dst[whole:cols], src[whole:cols])
	}
}

// transformColumns transforms groups of 16 rows of cols values.
func transformColumns[T hadamard.Element](dst, src []T, cols int, f *hadamard.Factors) {
	for n := hadamard.Size * cols; len(src) > 0; dst, src = dst[n:], src[n:] {
		hadamard.Columns(dst, cols, src, cols, cols, f)
	}
}

// asBits returns BFloat16 as their bits.
func asBits(s []fp8.BFloat16) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.SliceData(s)), len(s))
}
