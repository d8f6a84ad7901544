// Package asmtable reads and writes the instructions that the assembly of this module
// needs and Go's assembler lacks: some of arm64's, by their classes, AMX, and dot
// products of AVX-VNNI and AVX512_BF16. Its tests hold each WORD and each row of BYTEs in the assembly against the
// text beside it, and both against objdump.
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
	element              // v3.s[2], whose number has its own bits
	group                // v3.4b[2], likewise: four bytes
	zero                 // #0, without a field
	eight                // #8, likewise
)

// lanes is how a register's elements are written.
var lanes = map[kind]string{element: "v%d.s[%d]", group: "v%d.4b[%d]"}

var (
	threeSame   = class{0x4E200400, 11, []operand{{0, register}, {5, register}, {16, register}}}
	twoMisc     = class{0x4E200800, 12, []operand{{0, register}, {5, register}}}
	lowMisc     = class{0x0E200800, 12, []operand{{0, register}, {5, register}}} // on lower halves
	compareZero = class{0x4E200800, 12, []operand{{0, register}, {5, register}, {0, zero}}}
	longShift   = class{0x0E200800, 12, []operand{{0, register}, {5, register}, {0, eight}}}     // of all of a lane
	lowLong     = class{0x0E200000, 12, []operand{{0, register}, {5, register}, {16, register}}} // three different
	topLong     = class{0x4E200000, 12, []operand{{0, register}, {5, register}, {16, register}}}
	byElement   = class{0x4F000000, 12, []operand{{0, register}, {5, register}, {16, element}}}
	byGroup     = class{0x4F000000, 12, []operand{{0, register}, {5, register}, {16, group}}}
)

// form is an instruction without its operands.
type form struct {
	name   string
	class  *class
	u      uint32
	opcode uint32
	sizes  map[string]uint32 // the field size of each arrangement
	source map[string]string // by that, the arrangement of all but the first, where it is another
}

// The field size of integers, of the two groups of floats, and of those that become
// longer or shorter, which have that of the shorter.
var (
	integers   = map[string]uint32{"16b": 0, "8h": 1, "4s": 2}
	floatLow   = map[string]uint32{"4s": 0, "2d": 1}
	floatHigh  = map[string]uint32{"4s": 2, "2d": 3}
	singles    = map[string]uint32{"4s": 2}
	fromHalf   = map[string]uint32{"4s": 0}
	longer     = map[string]uint32{"4s": 1, "2d": 2}
	bytesLow   = map[string]uint32{"8b": 0}
	bytesHigh  = map[string]uint32{"16b": 0}
	wide       = map[string]uint32{"8h": 0}
	narrowLow  = map[string]uint32{"4h": 0, "2s": 1}
	narrowHigh = map[string]uint32{"8h": 0, "4s": 1}

	fromBytes       = map[string]string{"8h": "8b"}
	fromQuads       = map[string]string{"4s": "16b"}
	fromHalves      = map[string]string{"8b": "8h", "16b": "8h"}
	fromWider       = map[string]string{"4h": "4s", "2s": "2d", "8h": "4s", "4s": "2d"}
	fromNarrower    = map[string]string{"4s": "4h", "2d": "2s"}
	fromNarrowerTop = map[string]string{"4s": "8h", "2d": "4s"}
)

var forms = []form{
	{"cmhi", &threeSame, 1, 0b00110, integers, nil},
	{"sshl", &threeSame, 0, 0b01000, integers, nil},
	{"ushl", &threeSame, 1, 0b01000, integers, nil},
	{"smax", &threeSame, 0, 0b01100, integers, nil},
	{"smull", &lowLong, 0, 0b1100, longer, fromNarrower},
	{"smull2", &topLong, 0, 0b1100, longer, fromNarrowerTop},
	{"smlal", &lowLong, 0, 0b1000, longer, fromNarrower},
	{"smlal2", &topLong, 0, 0b1000, longer, fromNarrowerTop},
	{"mul", &threeSame, 0, 0b10011, integers, nil},
	{"fadd", &threeSame, 0, 0b11010, floatLow, nil},
	{"fsub", &threeSame, 0, 0b11010, floatHigh, nil},
	{"fmul", &threeSame, 1, 0b11011, floatLow, nil},
	{"fmlal", &threeSame, 0, 0b11101, fromHalf, fromNarrower},
	{"fmlal2", &threeSame, 1, 0b11001, fromHalf, fromNarrower},
	{"fmul", &byElement, 0, 0b1001, singles, nil},
	{"fmla", &byElement, 0, 0b0001, singles, nil},
	{"sdot", &byGroup, 0, 0b1110, singles, fromQuads},
	{"fcmeq", &threeSame, 0, 0b11100, floatLow, nil},
	{"fmax", &threeSame, 0, 0b11110, floatLow, nil},
	{"fmin", &threeSame, 0, 0b11110, floatHigh, nil},
	{"fdiv", &threeSame, 1, 0b11111, floatLow, nil},
	{"cmeq", &compareZero, 0, 0b01001, integers, nil},
	{"cmlt", &compareZero, 0, 0b01010, integers, nil},
	{"shll", &longShift, 1, 0b10011, wide, fromBytes},
	{"fabs", &twoMisc, 0, 0b01111, floatHigh, nil},
	{"fneg", &twoMisc, 1, 0b01111, floatHigh, nil},
	{"frintm", &twoMisc, 0, 0b11001, floatLow, nil},
	{"fcvtzs", &twoMisc, 0, 0b11011, floatHigh, nil},
	{"scvtf", &twoMisc, 0, 0b11101, floatLow, nil},
	{"fcvtl", &lowMisc, 0, 0b10111, floatLow, fromNarrower},
	{"fcvtl2", &twoMisc, 0, 0b10111, floatLow, fromNarrowerTop},
	{"fcvtn", &lowMisc, 0, 0b10110, narrowLow, fromWider},
	{"fcvtn2", &twoMisc, 0, 0b10110, narrowHigh, fromWider},
	{"uqxtn", &lowMisc, 1, 0b10100, bytesLow, fromHalves},
	{"uqxtn2", &twoMisc, 1, 0b10100, bytesHigh, fromHalves},
}

// word returns the instruction with all operands 0.
func (f *form) word(size uint32) uint32 {
	return f.class.fixed | f.u<<29 | size<<22 | f.opcode<<f.class.opcodeAt
}

// text returns the instruction of the given arrangement whose operands w has.
func (f *form) text(w uint32, arrangement string) string {
	var operands []string
	others := arrangement
	if f.source != nil {
		others = f.source[arrangement]
	}
	for _, o := range f.class.operands {
		field := w >> o.at & 31
		switch o.kind {
		case register:
			operands = append(operands, fmt.Sprintf("v%d.%s", field, arrangement))
			arrangement = others
		case element, group:
			operands = append(operands, fmt.Sprintf(lanes[o.kind], field, w>>21&1|w>>11&1<<1))
		case zero:
			operands = append(operands, "#0")
		case eight:
			operands = append(operands, "#8")
		}
	}
	return f.name + " " + strings.Join(operands, ", ")
}

// mask returns the bits of the operands.
func (c *class) mask() (m uint32) {
	for _, o := range c.operands {
		switch o.kind {
		case register:
			m |= 31 << o.at
		case element, group:
			m |= 31<<o.at | 1<<21 | 1<<11
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
			var n, lane uint32
			switch o.kind {
			case register:
				fmt.Sscanf(operands[i], "v%d", &n)
			case element, group:
				fmt.Sscanf(operands[i], lanes[o.kind], &n, &lane)
			}
			w |= n&31<<o.at | lane&1<<21 | lane>>1&1<<11
		}
		// What was not understood does not come back the same.
		if f.text(w, arrangement) == text {
			return w, nil
		}
	}
	return 0, fmt.Errorf("asmtable: no encoding of %q", text)
}
