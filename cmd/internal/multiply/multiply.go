// Package multiply is what octavo gemm does: it writes a product of two tensors to a
// safetensors file.
package multiply

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// Product is A·Bᵀ on its way to a file. C is computed in bands of rows, so that
// memory does not grow with M*N.
type Product struct {
	A, B     *tensor.Tensor
	Bias     []float32         // as in gemm.Options
	Old      *operands.Tensor  // the C that the product is added to, of the type of C; nil: none
	Workers  int               // as in gemm.Options
	Progress progress.Reporter // hears of elements of C; nil: silent

	// Once C is written:
	NonFinite     *telemetry.NonFinite // its first value that is not finite
	NaN, Infinite int                  // how many are
	Elapsed       time.Duration        // multiplying, without reading and writing

	band int // elements of C that are computed at once, about; 0: bandElements
}

// bandElements is how much of C is computed at once.
const bandElements = 1 << 24

// Shape returns that of C.
func (p *Product) Shape() []int {
	m, _ := p.A.Dims()
	n, _ := p.B.Dims()
	return []int{m, n}
}

// WriteFile writes the product as tensor c of the file at path, which is left as it
// was if there is an error.
func (p *Product) WriteFile(ctx context.Context, path string, dtype safetensors.DType) error {
	info := safetensors.Info{Name: "c", DType: dtype, Shape: p.Shape()}
	return safetensors.WriteFileFunc(path, []safetensors.Info{info}, nil, func(file *safetensors.Writer) error {
		if err := file.Next(info.Name); err != nil {
			return err
		}
		le := binary.LittleEndian
		switch dtype {
		case safetensors.BF16:
			return writeBands(ctx, file, p, func(b []byte, x fp8.BFloat16) []byte { return le.AppendUint16(b, uint16(x)) })
		case safetensors.F16:
			return writeBands(ctx, file, p, func(b []byte, x float16.Float16) []byte { return le.AppendUint16(b, x.Bits()) })
		}
		return writeBands(ctx, file, p, func(b []byte, x float32) []byte { return le.AppendUint32(b, math.Float32bits(x)) })
	})
}

// writeBands writes each element of C in the bytes that put appends.
func writeBands[T gemm.Output](ctx context.Context, w io.Writer, p *Product, put func([]byte, T) []byte) error {
	m, n := p.Shape()[0], p.Shape()[1]
	step := min(max(cmp.Or(p.band, bandElements)/max(n, 1), 1), m)
	c := make([]T, step*n)
	if step == m {
		return writeBand(ctx, w, p, p.A, c, 0, put)
	}
	if err := p.A.CheckScales(); err != nil {
		return err // names the block in the whole of A
	}
	a := scaledByRow(p.A)
	for lo := 0; lo < m; lo += step {
		rows := min(step, m-lo)
		band, err := a.RowRange(lo, lo+rows)
		if err == nil {
			err = writeBand(ctx, w, p, band, c[:rows*n], lo*n, put)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeBand computes and writes rows of C, c, from those rows of A; first is
// the index of c[0] in C.
func writeBand[T gemm.Output](ctx context.Context, w io.Writer, p *Product, a *tensor.Tensor, c []T, first int, put func([]byte, T) []byte) error {
	if ctx.Err() != nil {
		return fmt.Errorf("multiply: %w", context.Cause(ctx))
	}
	if p.Old != nil {
		if err := safetensors.ReadElements(p.Old.File, p.Old.Name, int64(first), c); err != nil {
			return err
		}
	}
	recorder := telemetry.New()
	o := gemm.Options{
		Bias: p.Bias, Accumulate: p.Old != nil, Workers: p.Workers,
		Reporter: recorder, Name: "c", Progress: p.progressFrom(first),
	}
	begin := time.Now()
	if err := gemm.Multiply(ctx, c, a, p.B, o); err != nil {
		return err
	}
	p.Elapsed += time.Since(begin)
	if found, ok := recorder.FirstNonFinite(); ok {
		if p.NonFinite == nil {
			found.Index += first
			p.NonFinite = &found
		}
		p.count(c)
	}
	data := make([]byte, 0, 4*len(c))
	for _, x := range c {
		data = put(data, x)
	}
	_, err := w.Write(data)
	return err
}

// progressFrom reports a band, which begins at the given element of C, as a part of
// the whole.
func (p *Product) progressFrom(first int) progress.Reporter {
	if p.Progress == nil {
		return nil
	}
	m, _ := p.A.Dims()
	n, _ := p.B.Dims()
	return progress.Func(func(_ string, done, _ int64) {
		p.Progress.Progress("multiplying", int64(first)+done, int64(m)*int64(n))
	})
}

// scaledByRow returns a tensor whose rows can be cut anywhere: where a scale
// belongs to several rows, but not to all, each row gets its own.
func scaledByRow(t *tensor.Tensor) *tensor.Tensor {
	rows, cols := t.Dims()
	extent, _ := t.Block.Extents(rows, cols)
	if extent == 1 || extent == rows {
		return t
	}
	v := *t
	v.Block.Rows, v.Scales = 1, nil
	for i := range rows {
		v.Scales = append(v.Scales, t.ScaleRow(i/extent)...)
	}
	return &v
}
