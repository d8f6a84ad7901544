package tensor

import (
	"encoding/binary"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// PackOrder is where in packed bytes the first of several codes lies.
type PackOrder uint8

const (
	// LowFirst puts the first code into the lowest bits, and what does not fit into the
	// lowest bits of the next byte: of two codes of 4 bits the first is the low nibble.
	// PyTorch's float4_e2m1fn_x2, safetensors files of torchao, compressed-tensors and
	// ModelOpt, and cuBLAS have it so.
	LowFirst PackOrder = iota

	// HighFirst puts the first code into the highest bits.
	HighFirst
)

var packOrders = enum.Enum[PackOrder]{
	Type: "PackOrder", What: "order of packed codes", Names: []string{"low-first", "high-first"}, Err: ErrCode, Prefix: "tensor",
}

// String returns the text of o, such as "low-first".
func (o PackOrder) String() string                   { return packOrders.String(o) }
func (o PackOrder) MarshalText() ([]byte, error)     { return packOrders.MarshalText(o) }
func (o *PackOrder) UnmarshalText(text []byte) error { return packOrders.UnmarshalText(o, text) }

const (
	notAWidth = "tensor: codes are of 1 to 8 bits"
	badCount  = "tensor: the number of codes is negative"
)

// PackedLen returns the number of bytes that n codes of the given number of bits take
// side by side: two codes of 4 bits a byte, four of 6 bits in three. The last byte may
// have bits to spare. It panics if n is negative or bits is not from 1 to 8.
func PackedLen(n, bits int) int {
	if bits < 1 || bits > 8 {
		panic(notAWidth)
	}
	if n < 0 {
		panic(badCount)
	}
	return n/8*bits + (n%8*bits+7)/8
}

// PackCodes writes codes, one a byte, to dst without gaps. Bits to spare in the last byte
// become 0. It returns an error, [ErrCode], that names the first code that has more than
// the given number of bits, if bits is not from 1 to 8, or the order is unknown, and
// [ErrShape] if dst is not of PackedLen(len(codes), bits) bytes, and then writes nothing.
// dst and codes must not overlap.
func PackCodes(dst, codes []byte, bits int, order PackOrder) error {
	if err := checkPack(dst, len(codes), bits, order); err != nil {
		return err
	}
	if i := firstWide(codes, bits); i >= 0 {
		return sentinel.Errorf(ErrCode, "tensor: code %#02x at %d has more than %d bits", codes[i], i, bits)
	}
	switch {
	case bits == 8:
		copy(dst, codes)
	case bits == 4:
		packNibbles(dst, codes, order)
	default:
		packBits(dst, codes, bits, order)
	}
	return nil
}

// UnpackCodes is the inverse of PackCodes: it writes len(dst) codes, one a byte. It
// returns an error, [ErrCode], if bits to spare in the last byte are not 0, and then
// writes nothing. Other errors are those of PackCodes, with the roles of the slices exchanged.
func UnpackCodes(dst, packed []byte, bits int, order PackOrder) error {
	if err := checkPack(packed, len(dst), bits, order); err != nil {
		return err
	}
	if spare := len(packed)*8 - len(dst)*bits; spare > 0 {
		last := packed[len(packed)-1]
		beyond := last >> (8 - spare)
		if order == HighFirst {
			beyond = last & (1<<spare - 1)
		}
		if beyond != 0 {
			return sentinel.Errorf(ErrCode, "tensor: packed byte %#02x at %d: %d codes of %d bits leave %d bits of it, which are not 0",
				last, len(packed)-1, len(dst), bits, spare)
		}
	}
	switch {
	case bits == 8:
		copy(dst, packed)
	case bits == 4:
		unpackNibbles(dst, packed, order)
	default:
		unpackBits(dst, packed, bits, order)
	}
	return nil
}

func checkPack(packed []byte, codes, bits int, order PackOrder) error {
	if bits < 1 || bits > 8 {
		return sentinel.Errorf(ErrCode, "tensor: codes of %d bits: they must be of 1 to 8", bits)
	}
	if err := packOrders.Check(order); err != nil {
		return err
	}
	if n := PackedLen(codes, bits); len(packed) != n {
		return sentinel.Errorf(ErrShape, "tensor: the packed codes have %d bytes: %d codes of %d bits have %d",
			len(packed), codes, bits, n)
	}
	return nil
}

func packNibbles(dst, codes []byte, order PackOrder) {
	first, second := 0, 4
	if order == HighFirst {
		first, second = 4, 0
	}
	for ; len(codes) >= 8; codes, dst = codes[8:], dst[4:] {
		x := binary.LittleEndian.Uint64(codes)
		if order == LowFirst {
			x |= x >> 4
		} else {
			x = x<<4 | x>>8
		}
		x &= 0x00FF00FF00FF00FF
		x = (x | x>>8) & 0x0000FFFF0000FFFF
		binary.LittleEndian.PutUint32(dst, uint32(x|x>>16))
	}
	pairs := len(codes) / 2
	for i := range pairs {
		pair := codes[2*i:][:2]
		dst[i] = pair[0]<<first | pair[1]<<second
	}
	if len(codes)%2 != 0 {
		dst[pairs] = codes[len(codes)-1] << first
	}
}

func unpackNibbles(dst, packed []byte, order PackOrder) {
	first, second := 0, 4
	if order == HighFirst {
		first, second = 4, 0
	}
	for ; len(dst) >= 8; dst, packed = dst[8:], packed[4:] {
		x := uint64(binary.LittleEndian.Uint32(packed))
		x = (x | x<<16) & 0x0000FFFF0000FFFF
		x = (x | x<<8) & 0x00FF00FF00FF00FF
		low, high := x&0x000F000F000F000F, x>>4&0x000F000F000F000F
		if order == LowFirst {
			x = low | high<<8
		} else {
			x = high | low<<8
		}
		binary.LittleEndian.PutUint64(dst, x)
	}
	pairs := len(dst) / 2
	for i := range pairs {
		b, pair := packed[i], dst[2*i:][:2]
		pair[0], pair[1] = b>>first&15, b>>second&15
	}
	if len(dst)%2 != 0 {
		dst[len(dst)-1] = packed[pairs] >> first & 15
	}
}

// packBits goes code by code; held are bits that are not a byte yet.
func packBits(dst, codes []byte, bits int, order PackOrder) {
	var held uint32
	n, at := 0, 0
	for _, c := range codes {
		if order == LowFirst {
			held |= uint32(c) << n
		} else {
			held = held<<bits | uint32(c)
		}
		if n += bits; n < 8 {
			continue
		}
		n -= 8
		if order == LowFirst {
			dst[at] = byte(held)
			held >>= 8
		} else {
			dst[at] = byte(held >> n)
		}
		at++
	}
	switch {
	case n == 0:
	case order == LowFirst:
		dst[at] = byte(held)
	default:
		dst[at] = byte(held << (8 - n))
	}
}

func unpackBits(dst, packed []byte, bits int, order PackOrder) {
	mask := uint32(1)<<bits - 1
	var held uint32
	n, at := 0, 0
	for i := range dst {
		if n < bits {
			if order == LowFirst {
				held |= uint32(packed[at]) << n
			} else {
				held = held<<8 | uint32(packed[at])
			}
			n += 8
			at++
		}
		n -= bits
		if order == LowFirst {
			dst[i] = byte(held & mask)
			held >>= bits
		} else {
			dst[i] = byte(held >> n & mask)
		}
	}
}

// firstWide returns the index of the first code with a bit above the given number of
// bits, or -1.
func firstWide(codes []byte, bits int) int {
	above := byte(0xFF) << bits
	done := 0
	for eight := 0x0101010101010101 * uint64(above); len(codes)-done >= 8; done += 8 {
		if binary.LittleEndian.Uint64(codes[done:])&eight != 0 {
			break
		}
	}
	for i, c := range codes[done:] {
		if c&above != 0 {
			return done + i
		}
	}
	return -1
}

// CheckCodes returns an error, [ErrCode], that names the first code with bits above those
// of t's format, as a file may hold that was unpacked in a wrong way. Elsewhere such bits
// are ignored. First it checks what [Tensor.Check] does.
func (t *Tensor) CheckCodes() error {
	if err := t.Check(); err != nil {
		return err
	}
	bits := t.Format.Bits()
	rows, cols := t.Dims()
	if bits == 8 || cols == 0 {
		return nil
	}
	for i := range rows {
		row := t.Row(i)
		if j := firstWide(row, bits); j >= 0 {
			return sentinel.Errorf(ErrCode, "tensor %q: code %#02x at (%d, %d) has more than the %d bits of %v", t.Name, row[j], i, j, bits, t.Format)
		}
	}
	return nil
}
