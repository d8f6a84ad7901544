package integer

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// Table is what codes become.
type Table struct {
	values [256]byte
	narrow bool // codes whose last six bits agree have the same value
	linear bool // a value is its code, but for the bits of flip
	flip   byte
}

// NewTable returns the table of a function of codes.
func NewTable(value func(code byte) byte) *Table {
	t := &Table{narrow: true, linear: true, flip: value(0)}
	for i := range t.values {
		code := byte(i)
		t.values[i] = value(code)
		t.narrow = t.narrow && t.values[i] == t.values[i%64]
		t.linear = t.linear && t.values[i] == code^t.flip
	}
	return t
}

// Nibbles returns the values of codes 0 to 15.
func (t *Table) Nibbles() *[16]byte { return (*[16]byte)(t.values[:16]) }

// Lookup writes the values of codes to dst, which may be codes.
func (t *Table) Lookup(dst, codes []byte) {
	dst = dst[:len(codes)]
	done := 0
	switch {
	case t.narrow:
		if lookup, ok := lookups.For(cpu.Current()); ok && len(codes) >= 32 {
			done = len(codes) &^ 31
			lookup(&dst[0], &codes[0], done, (*[64]byte)(t.values[:64]))
		}
	case t.linear:
		flip := uint64(t.flip) * 0x0101_0101_0101_0101
		for ; done+8 <= len(codes); done += 8 {
			binary.LittleEndian.PutUint64(dst[done:], binary.LittleEndian.Uint64(codes[done:])^flip)
		}
	}
	for i, c := range codes[done:] {
		dst[done+i] = t.values[c]
	}
}

// lookupFunc is [Table.Lookup] of n codes, a multiple of 32, by the table of their last
// six bits.
type lookupFunc func(dst, codes *byte, n int, table *[64]byte)

// PackQuads writes n codes each of up to [PanelWidth] rows, a stride apart, to a panel of
// quads: row i of src becomes column i. What there is no code for is not written.
func PackQuads(dst, src []byte, stride, rows, n int) {
	wholeRows, whole := 0, 0
	if pack, ok := quads.For(cpu.Current()); ok && rows >= 8 && n >= 32 {
		wholeRows, whole = rows&^7, n&^31
		pack(&dst[0], &src[0], stride, wholeRows, whole/32)
	}
	for i := range rows {
		first := 0
		if i < wholeRows {
			first = whole
		}
		codes, at := src[i*stride:][first:n], first*PanelWidth+i*Quad
		for ; len(codes) >= Quad; codes = codes[Quad:] {
			binary.LittleEndian.PutUint32(dst[at:], binary.LittleEndian.Uint32(codes))
			at += Quad * PanelWidth
		}
		for q, c := range codes {
			dst[at+q] = c
		}
	}
}

// quadsFunc is [PackQuads] of a multiple of 8 rows and of n times 32 codes.
type quadsFunc func(dst, src *byte, stride, rows, n int)

// octet is what eight k of a panel take in nibbles.
const octet = Quad * PanelWidth

// PackNibbles writes a panel of quads, of whole octets of codes below 16, in nibbles.
func PackNibbles(dst, panel []byte) {
	for ; len(panel) > 0; dst, panel = dst[octet:], panel[2*octet:] {
		for i := range octet {
			dst[i] = panel[i]&15 | panel[octet+i]<<4
		}
	}
}

// SplitNibbles writes nibbles as a panel of quads, of codes.
func SplitNibbles(dst, nibbles []byte) {
	if split, ok := splits.For(cpu.Current()); ok && len(nibbles) > 0 {
		_ = dst[2*len(nibbles)-1]
		split(&dst[0], &nibbles[0], len(nibbles)/octet*octet)
		return
	}
	for ; len(nibbles) > 0; dst, nibbles = dst[2*octet:], nibbles[octet:] {
		for i, c := range nibbles[:octet] {
			dst[i], dst[octet+i] = c&15, c>>4
		}
	}
}

// splitFunc is [SplitNibbles] of n bytes, whole octets.
type splitFunc func(dst, nibbles *byte, n int)

// Columns writes a panel of quads K-major: all columns of one k lie together.
func Columns(dst, panel []byte) {
	if f, ok := columns.For(cpu.Current()); ok && len(panel) > 0 {
		_ = dst[len(panel)-1]
		f(&dst[0], &panel[0], len(panel)/octet*octet)
		return
	}
	for ; len(panel) > 0; dst, panel = dst[octet:], panel[octet:] {
		for i, c := range panel[:octet] {
			dst[i%Quad*PanelWidth+i/Quad] = c
		}
	}
}

// columnsFunc is [Columns] of n bytes, whole quads.
type columnsFunc func(dst, panel *byte, n int)

// Powers writes the values of scales in E8M0: 2^(code-127), and NaN for FF.
func Powers(dst []float32, codes []byte) {
	dst = dst[:len(codes)]
	done := 0
	if f, ok := powers.For(cpu.Current()); ok && len(codes) >= 8 {
		done = len(codes) &^ 7
		f(&dst[0], &codes[0], done)
	}
	for i, c := range codes[done:] {
		bits := max(uint32(c)<<23, 1<<22)
		if c == 0xFF {
			bits = 0x7FC00000
		}
		dst[done+i] = math.Float32frombits(bits)
	}
}

// powersFunc is [Powers] of n codes, a multiple of 8.
type powersFunc func(dst *float32, codes *byte, n int)

var (
	columns = kernels.New("integer.Columns", columnsKernels...)
	powers  = kernels.New("integer.Powers", powersKernels...)
	lookups = kernels.New("integer.Lookup", lookupKernels...)
	quads   = kernels.New("integer.PackQuads", quadsKernels...)
	splits  = kernels.New("integer.SplitNibbles", splitKernels...)
	starts  = kernels.New("integer.Starts", startsKernels...)
)

// Starts writes what the sums of rows of A begin from, for each of some blocks of n values:
// start less bias times the sum of the row's values in the block. The rows
// are stride values apart. dst has all rows for a block, then those for the next.
func Starts(dst []int32, values []int8, stride, rows, blocks, n int, start, bias int32) {
	done := 0
	if f, ok := starts.For(cpu.Current()); ok && rows >= 8 && n > 0 && n%Octet == 0 {
		done = rows &^ 7
		_, _ = dst[blocks*rows-1], values[(rows-1)*stride+blocks*n-1]
		all := start + 128*int32(n)*bias // values are 128 more in the kernel
		f(&dst[0], 4*rows, &values[0], stride, done, blocks, n/Octet, all, bias)
	}
	for i := done; i < rows; i++ {
		row := values[i*stride:][:blocks*n]
		for b := range blocks {
			dst[b*rows+i] = start - bias*int32(Sum(row[b*n:][:n]))
		}
	}
}

// startsFunc is [Starts] of a multiple of 8 rows, of blocks of so many octets. Rows of dst
// are dstStride bytes apart. start is for values that are 128 more than they are.
type startsFunc func(dst *int32, dstStride int, values *int8, stride, rows, blocks, octets int, start, bias int32)

// Sum adds up integers, eight at a time where there are as many: as unsigned bytes in
// pairs of a word, which a multiplication then adds up in its upper sixteen bits.
func Sum(values []int8) (sum int) {
	const (
		signs = 0x8080_8080_8080_8080
		pairs = 0x00FF_00FF_00FF_00FF
		ones  = 0x0001_0001_0001_0001
	)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
	for ; len(bytes) >= 8; bytes = bytes[8:] {
		word := binary.LittleEndian.Uint64(bytes) ^ signs
		sum += int((word&pairs+word>>8&pairs)*ones>>48) - 8*128
	}
	for _, b := range bytes {
		sum += int(int8(b))
	}
	return sum
}
