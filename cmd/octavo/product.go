package main

import (
	"context"
	"encoding/binary"
	"io"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// product is A·Bᵀ on its way to a file. C is computed in bands of rows, so that
// memory does not grow with M*N.
type product struct {
	a, b      *tensor.Tensor
	workers   int
	band      int                  // elements of C that are computed at once, about
	nonFinite *telemetry.NonFinite // the first one in C, if any
}

func (p *product) shape() []int {
	m, _ := p.a.Dims()
	n, _ := p.b.Dims()
	return []int{m, n}
}

// writeFile writes the product as tensor c of the file at path.
func (p *product) writeFile(ctx context.Context, path string, dtype safetensors.DType) error {
	info := safetensors.Info{Name: "c", DType: dtype, Shape: p.shape()}
	err := safetensors.WriteFileFunc(path, []safetensors.Info{info}, nil, func(file *safetensors.Writer) error {
		if err := file.Next(info.Name); err != nil {
			return err
		}
		w, le := contextWriter{ctx, file}, binary.LittleEndian
		switch dtype {
		case safetensors.BF16:
			return writeBands(w, p, func(b []byte, x fp8.BFloat16) []byte { return le.AppendUint16(b, uint16(x)) })
		case safetensors.F16:
			return writeBands(w, p, func(b []byte, x float16.Float16) []byte { return le.AppendUint16(b, x.Bits()) })
		}
		return writeBands(w, p, func(b []byte, x float32) []byte { return le.AppendUint32(b, math.Float32bits(x)) })
	})
	return unwritten(path, err)
}

// writeBands writes each element of C in the bytes that put appends.
func writeBands[T gemm.Output](w io.Writer, p *product, put func([]byte, T) []byte) error {
	m, n := p.shape()[0], p.shape()[1]
	step := min(max(p.band/max(n, 1), 1), m)
	if step == m {
		return writeBand(w, p, p.a, make([]T, m*n), 0, put)
	}
	if err := p.a.CheckScales(); err != nil {
		return err // names the block in the whole of A
	}
	a, c := scaledByRow(p.a), make([]T, step*n)
	for lo := 0; lo < m; lo += step {
		rows := min(step, m-lo)
		band, err := a.RowRange(lo, lo+rows)
		if err == nil {
			err = writeBand(w, p, band, c[:rows*n], lo*n, put)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeBand computes and writes rows of C, c, from those rows of A; first is
// the index of c[0] in C.
func writeBand[T gemm.Output](w io.Writer, p *product, a *tensor.Tensor, c []T, first int, put func([]byte, T) []byte) error {
	recorder := telemetry.New()
	if err := gemm.Multiply(c, a, p.b, gemm.Options{Workers: p.workers, Reporter: recorder, Name: "c"}); err != nil {
		return err
	}
	if found, ok := recorder.FirstNonFinite(); ok && p.nonFinite == nil {
		found.Index += first
		p.nonFinite = &found
	}
	data := make([]byte, 0, 4*len(c))
	for _, x := range c {
		data = put(data, x)
	}
	_, err := w.Write(data)
	return err
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
