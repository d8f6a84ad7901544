package selftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
)

// output is one of the results of a check: elements of some bytes each.
type output struct {
	what  string
	size  int // of an element
	data  []byte
	names []string // of elements, if they have any
	n     int      // elements that are results; guards follow, which must stay as they are
}

// panicked is what an output with the text of a panic is called.
const panicked = "panic"

// failure returns the first difference between o, which is wanted, and got.
func (o output) failure(got output) *Failure {
	for i := 0; i < len(o.data); i += o.size {
		w, g := o.element(i), got.element(i)
		if string(w) == string(g) {
			continue
		}
		return &Failure{What: o.what, Place: o.place(i / o.size), Want: hex(w), Got: hex(g)}
	}
	return nil
}

// element returns the bytes of the element at byte i.
func (o output) element(i int) []byte { return o.data[i:min(i+o.size, len(o.data))] }

func (o output) place(i int) string {
	switch {
	case i < len(o.names):
		return o.names[i]
	case i >= o.n:
		return fmt.Sprintf("element %d of %d, behind the last", i, o.n)
	}
	return fmt.Sprintf("element %d of %d", i, o.n)
}

// hex returns a little-endian number as it is usually written.
func hex(b []byte) string {
	text := ""
	for _, x := range b {
		text = fmt.Sprintf("%02X", x) + text
	}
	return text
}

// brief says what an output is in a few words: a panic's own.
func (o output) brief() string {
	if o.what == panicked {
		return fmt.Sprintf("panic: %.80s", o.data)
	}
	return fmt.Sprintf("%s, %d bytes", o.what, len(o.data))
}

const (
	guard    = 32 // elements behind a result
	sentinel = 0xA5
)

// memory returns room for n elements at some alignment, and guards behind them,
// whose bits are those of the sentinel.
func memory[T any](r *rand.Rand, n int, filler T) (whole, room []T) {
	offset := r.IntN(16)
	whole = make([]T, offset+n+guard)
	for i := range whole {
		whole[i] = filler
	}
	whole = whole[offset:]
	return whole, whole[:n:n]
}

// codeMemory is memory for codes.
func codeMemory(r *rand.Rand, n int) (whole, room []byte) { return memory[byte](r, n, sentinel) }

func codeOutput(what string, whole []byte) output {
	return output{what: what, size: 1, data: whole, n: len(whole) - guard}
}

// number is a type of values.
type number interface {
	float32 | float64 | float16.Float16 | fp8.BFloat16
}

// numbers returns the bits of values; the last of them are guards.
func numbers[T number](what string, whole []T) output {
	o := output{what: what, n: len(whole) - guard}
	for _, x := range whole {
		o.data = appendBits(o.data, x)
	}
	o.size = len(o.data) / max(len(whole), 1)
	return o
}

func appendBits[T number](b []byte, x T) []byte {
	le := binary.LittleEndian
	switch x := any(x).(type) {
	case float32:
		return le.AppendUint32(b, math.Float32bits(x))
	case float64:
		return le.AppendUint64(b, math.Float64bits(x))
	case float16.Float16:
		return le.AppendUint16(b, x.Bits())
	case fp8.BFloat16:
		return le.AppendUint16(b, uint16(x))
	}
	return b
}

// filler is a value of T with the bits of the sentinel, or one like it.
func filler[T number]() (x T) {
	switch o := any(&x).(type) {
	case *float32:
		*o = math.Float32frombits(0xA5A5A5A5)
	case *float64:
		*o = math.Float64frombits(0xA5A5A5A5A5A5A5A5)
	case *float16.Float16:
		*o = 0xA5A5
	case *fp8.BFloat16:
		*o = 0xA5A5
	}
	return x
}

var statNames = []string{"Elements", "Amax", "Smallest", "SaturatedPos", "SaturatedNeg", "BecameNonFinite",
	"Flushed", "Subnormal", "Zeros", "NaN", "PosInf", "NegInf"}

// statsOutput is what happened while values were encoded.
func statsOutput(what string, s *fp8.Stats) output {
	o := output{what: what, size: 8, names: statNames, n: len(statNames)}
	for _, x := range []uint64{uint64(s.Elements), math.Float64bits(s.Amax), math.Float64bits(s.Smallest),
		uint64(s.SaturatedPos), uint64(s.SaturatedNeg), uint64(s.BecameNonFinite), uint64(s.Flushed),
		uint64(s.Subnormal), uint64(s.Zeros), uint64(s.NaN), uint64(s.PosInf), uint64(s.NegInf)} {
		o.data = binary.LittleEndian.AppendUint64(o.data, x)
	}
	return o
}
