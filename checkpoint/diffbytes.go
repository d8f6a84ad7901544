package checkpoint

import (
	"bytes"

	"github.com/octavo-fp8/octavo/safetensors"
)

// compareBytes compares what is stored alike, until a byte differs.
func (j *comparing) compareBytes() error {
	var pieces []span
	for i, p := range j.pairs {
		if p.Why != "" || !p.alike {
			continue
		}
		for r := range roles {
			size := int64(0)
			if p.A.Has(r) {
				size = p.A.Parts[r].Bytes()
			}
			step := wholeElements(j.o.strip(), p.A.Parts[r].DType)
			for at := int64(0); at < size; at += step {
				n := min(step, size-at)
				pieces = append(pieces, span{target: i, part: int(r), from: at, size: 2 * n})
			}
		}
	}
	tallies := make([]tally, len(pieces))
	err := eachStrip(j.ctx, j.o, "bytes", pieces, func(s *scratch, i int) error {
		x := pieces[i]
		p := j.pairs[x.target]
		if p.numbers && p.unlike.Load() {
			return nil
		}
		s.bytes = grow(s.bytes, int(x.size))
		one, other := s.bytes[:x.size/2], s.bytes[x.size/2:]
		if err := p.A.from.ReadBytes(p.A.Parts[x.part], x.from, one); err != nil {
			return err
		}
		if err := p.B.from.ReadBytes(p.B.Parts[x.part], x.from, other); err != nil {
			return err
		}
		if !bytes.Equal(one, other) {
			p.unlike.Store(true)
		}
		if !p.numbers {
			tallies[i] = tallyBytes(one, other, x.from, p.A.Parts[Codes].DType)
		}
		return nil
	})
	for i, x := range pieces {
		if p := j.pairs[x.target]; !p.numbers {
			p.merge(&tallies[i])
		}
	}
	return err
}

// wholeElements returns the number of bytes, at most so many if possible, that whole elements
// fill.
func wholeElements(strip int, d safetensors.DType) int64 {
	unit := 1
	for unit*8%elementBits(d) != 0 {
		unit++
	}
	return int64(max(strip-strip%unit, unit))
}

// elementBits is the width of an element; of types that are not known, bytes are compared.
func elementBits(d safetensors.DType) int {
	if bits := d.Bits(); bits > 0 {
		return bits
	}
	return 8
}

// tallyBytes counts elements of a type that differ in their bits, the first of which begins at
// byte from. The first element in a byte is in its low bits.
func tallyBytes(a, b []byte, from int64, d safetensors.DType) tally {
	t := tally{first: -1, firstNonFinite: -1}
	if bytes.Equal(a, b) {
		return t
	}
	bits := elementBits(d)
	for i := range len(a) * 8 / bits {
		if sameBits(a, b, i*bits, bits) {
			continue
		}
		if t.differ++; t.first < 0 {
			t.first = from*8/int64(bits) + int64(i)
		}
	}
	return t
}

// sameBits compares elements of whole bytes, or of less than one.
func sameBits(a, b []byte, at, bits int) bool {
	if bits%8 == 0 {
		return bytes.Equal(a[at/8:][:bits/8], b[at/8:][:bits/8])
	}
	for i := at; i < at+bits; i++ {
		if (a[i/8]^b[i/8])>>(i%8)&1 != 0 {
			return false
		}
	}
	return true
}
