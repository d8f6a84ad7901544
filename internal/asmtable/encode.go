package asmtable

import (
	"fmt"
	"strings"
)

// class is a group of instructions in the Arm manual's index of encodings: what
// it fixes and how its operands are written, each by the bit where its field of 5
// bits starts.
type class struct {
	fixed    uint32
	opcodeAt int
	operands []operand
}

type operand struct {
	at   int
	kind kind
}

type kind int

const (
	register kind = iota // v3.4s
	zero                 // #0, without a field
)

var (
	threeSame   = class{0x4E200400, 11, []operand{{0, register}, {5, register}, {16, register}}}
	twoMisc     = class{0x4E200800, 12, []operand{{0, register}, {5, register}}}
	lowMisc     = class{0x0E200800, 12, []operand{{0, register}, {5, register}}} // on lower halves
	compareZero = class{0x4E200800, 12, []operand{{0, register}, {5, register}, {0, zero}}}
)

// form is an instruction without its operands.
type form struct {
	name   string
	class  *class
	u      uint32
	opcode uint32
	sizes  map[string]uint32 // the field size of each arrangement
	source string            // the arrangement of all but the first, where it is another
}

// The field size of integers, and of the two groups of float32 instructions.
var (
	integers  = map[string]uint32{"16b": 0, "8h": 1, "4s": 2}
	floatLow  = map[string]uint32{"4s": 0}
	floatHigh = map[string]uint32{"4s": 2}
	bytesLow  = map[string]uint32{"8b": 0}
	bytesHigh = map[string]uint32{"16b": 0}
)

var forms = []form{
	{"cmhi", &threeSame, 1, 0b00110, integers, ""},
	{"sshl", &threeSame, 0, 0b01000, integers, ""},
	{"ushl", &threeSame, 1, 0b01000, integers, ""},
	{"mul", &threeSame, 0, 0b10011, integers, ""},
	{"fadd", &threeSame, 0, 0b11010, floatLow, ""},
	{"fmul", &threeSame, 1, 0b11011, floatLow, ""},
	{"fdiv", &threeSame, 1, 0b11111, floatLow, ""},
	{"cmeq", &compareZero, 0, 0b01001, integers, ""},
	{"fabs", &twoMisc, 0, 0b01111, floatHigh, ""},
	{"fcvtl", &lowMisc, 0, 0b10111, floatLow, "4h"},
	{"fcvtl2", &twoMisc, 0, 0b10111, floatLow, "8h"},
	{"uqxtn", &lowMisc, 1, 0b10100, bytesLow, "8h"},
	{"uqxtn2", &twoMisc, 1, 0b10100, bytesHigh, "8h"},
}

// word returns the instruction with all operands 0.
func (f *form) word(size uint32) uint32 {
	return f.class.fixed | f.u<<29 | size<<22 | f.opcode<<f.class.opcodeAt
}

// text returns the instruction of the given arrangement whose operands w has.
func (f *form) text(w uint32, arrangement string) string {
	var operands []string
	for _, o := range f.class.operands {
		field := w >> o.at & 31
		switch o.kind {
		case register:
			operands = append(operands, fmt.Sprintf("v%d.%s", field, arrangement))
			if f.source != "" {
				arrangement = f.source
			}
		case zero:
			operands = append(operands, "#0")
		}
	}
	return f.name + " " + strings.Join(operands, ", ")
}

// mask returns the bits of the operands.
func (c *class) mask() (m uint32) {
	for _, o := range c.operands {
		if o.kind != zero {
			m |= 31 << o.at
		}
	}
	return m
}

// Decode returns the text of w, an instruction of which Encode knows the name.
func Decode(w uint32) (string, error) {
	for i := range forms {
		f := &forms[i]
		for arrangement, size := range f.sizes {
			if w&^f.class.mask() == f.word(size) {
				return f.text(w, arrangement), nil
			}
		}
	}
	return "", fmt.Errorf("asmtable: unknown instruction %08X", w)
}

// Encode returns the word of an instruction, written as in the Arm manual with
// small letters: fadd v4.4s, v4.4s, v12.4s.
func Encode(text string) (uint32, error) {
	name, rest, _ := strings.Cut(text, " ")
	operands := strings.Split(rest, ", ")
	_, arrangement, _ := strings.Cut(operands[0], ".")
	for i := range forms {
		f := &forms[i]
		size, ok := f.sizes[arrangement]
		if f.name != name || !ok || len(operands) != len(f.class.operands) {
			continue
		}
		w := f.word(size)
		for i, o := range f.class.operands {
			var n uint32
			if o.kind == register {
				fmt.Sscanf(operands[i], "v%d", &n)
			}
			w |= n & 31 << o.at
		}
		// What was not understood does not come back the same.
		if f.text(w, arrangement) == text {
			return w, nil
		}
	}
	return 0, fmt.Errorf("asmtable: no encoding of %q", text)
}
