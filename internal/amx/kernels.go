package amx

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// The types of kernels. Each keeps no pointer.
type (
	// multiplyFunc is [Multiply] for positive numbers of chunks, blocks and strips. With
	// resume or hold there is one block, and p has sums for each strip: with resume the
	// block goes on from them, with hold it leaves them there and c as it is. With fresh
	// c is taken for zeros.
	multiplyFunc func(c *float32, stride int, a, b *uint16, sa, sb *float32, chunks, blocks, strips int, p *float32, resume, hold, fresh bool)

	// packRowsFunc is [PackRows] without zeros for missing rows.
	packRowsFunc func(dst *uint16, codes *byte, stride, rows, n int, c *Decoder)

	// packColumnsFunc is [PackColumns] of n rows.
	packColumnsFunc func(dst *uint16, codes *byte, n int, c *Decoder)

	// packTransposedFunc is [PackTransposed] of 32 columns along a positive number of
	// chunks.
	packTransposedFunc func(dst *uint16, codes *byte, stride, chunks int, c *Decoder)

	// copyRowsFunc is [CopyRows] for a positive number of rows. With stream dst and stride
	// are whole cache lines.
	copyRowsFunc func(dst *float32, stride int, c *float32, rows int, stream bool)
)

const noKernel = "amx: this build has no kernel"

// kernel returns the implementation of an operation.
func kernel[F any](o *kernels.Operation[F]) F {
	f, ok := o.For(cpu.AMX)
	if !ok {
		panic(noKernel)
	}
	return f
}
