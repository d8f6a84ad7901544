package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// layout is how codes lie in a panel of packed weights.
type layout uint8

const (
	kMajor  layout = iota // all columns of one k side by side
	quads                 // of four k at a time, each column's side by side, for integer kernels
	nibbles               // quads, the next four k's codes in the upper halves of the bytes
)

// layoutOf is the layout of a format's codes.
func layoutOf(f fp8.Format) layout {
	switch {
	case stepsOf[f].largest == 0:
		return kMajor
	case f.Bits() > 4:
		return quads
	}
	return nibbles
}

// depth is what a panel along so much of K has room for.
func (l layout) depth(k int) int {
	if l == kMajor {
		return roundUp(k, 2)
	}
	return roundUp(k, integer.Octet)
}

// size is how many bytes a panel takes along so much of K, which is its depth or a part.
func (l layout) size(depth int) int {
	if l == nibbles {
		return depth * microkernel.PanelWidth / 2
	}
	return depth * microkernel.PanelWidth
}

// code is the code of a k and a column.
func (l layout) code(panel []byte, k, column int) byte {
	const quad = integer.Quad * microkernel.PanelWidth
	at := column*integer.Quad + k%integer.Quad
	switch l {
	case quads:
		return panel[k/integer.Quad*quad+at]
	case nibbles:
		return panel[k/integer.Octet*quad+at] >> (k % integer.Octet / integer.Quad * 4) & 15
	}
	return panel[k*microkernel.PanelWidth+column]
}

// scaleBytes is the scales of packed weights as their format encodes them: panel by panel,
// of each block of K those of all columns.
type scaleBytes struct {
	codes  []byte
	format tensor.ScaleFormat
	blocks int // of K
}

// newScaleBytes encodes the scales of a tensor, of which each row has its own.
func newScaleBytes(t *tensor.Tensor) scaleBytes {
	const width = microkernel.PanelWidth
	rows, blocks := t.Grid()
	b := scaleBytes{make([]byte, roundUp(rows, width)*blocks), t.ScaleFormat, blocks}
	for i := range rows {
		for k, s := range t.ScaleRow(i) {
			b.codes[(i/width*blocks+k)*width+i%width] = encodeScale(s, t.ScaleFormat)
		}
	}
	return b
}

// encodeScale returns the code of a scale that has one.
func encodeScale(s float32, f tensor.ScaleFormat) byte {
	if f == tensor.UE4M3Scales {
		code, _ := fp8.UE4M3FromFloat32(s)
		return byte(code)
	}
	code, _ := fp8.E8M0FromFloat32(s)
	return byte(code)
}

// decode writes the scales of codes to dst.
func (b *scaleBytes) decode(dst []float32, codes []byte) {
	if b.format == tensor.UE4M3Scales {
		fp8.Decode(dst, codes, fp8.E4M3) // of which it is the half without a sign
	} else {
		integer.Powers(dst, codes)
	}
}

// at is the scale of row i in a block of K.
func (b *scaleBytes) at(i, block int) float32 {
	const width = microkernel.PanelWidth
	code := b.codes[(i/width*b.blocks+block)*width+i%width]
	if b.format == tensor.UE4M3Scales {
		return fp8.UE4M3(code).Float32()
	}
	return fp8.E8M0(code).Float32()
}

// panel writes the scales of a panel's columns at k, k+block and so on to dst, for scales
// that reach so far along K.
func (b *scaleBytes) panel(dst []float32, panel, k, block, extent int) {
	const width = microkernel.PanelWidth
	codes := b.codes[panel*b.blocks*width:]
	if block == extent {
		b.decode(dst, codes[k/extent*width:][:len(dst)])
		return
	}
	for ; len(dst) > 0; dst = dst[width:] {
		b.decode(dst[:width], codes[k/extent*width:][:width])
		k += block
	}
}
