package asmtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// AMX is an x86 instruction of AMX. Its fields are those of the encoding; an
// instruction has some of them.
type AMX struct {
	Name   string
	Reg    int // a tile: ModRM.reg
	RM     int // a tile: ModRM.r/m
	V      int // a tile: VEX.vvvv
	Memory Memory
}

// Memory is a memory operand. Registers have the numbers of the encoding, 0 to
// 15: AX, CX, DX, BX, SP, BP, SI, DI, R8 and so on.
type Memory struct {
	Base  int
	Index int // SP stands for none
	Scale int // 1, 2, 4 or 8
	Disp  int32
}

const (
	stackPointer = 4
	basePointer  = 5
)

var generalRegisters = []string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

// amxForm is an instruction without its operands: those are letters, in the order
// of the text. All are of the map 0F38, with 128 bits and W 0.
type amxForm struct {
	name     string
	prefix   byte // VEX.pp: 0 none, 1 66, 2 F3, 3 F2
	opcode   byte
	operands string // r, b, v: the tiles Reg, RM, V; c memory; m memory with an index
}

var amxForms = []amxForm{
	{"ldtilecfg", 0, 0x49, "c"},
	{"tilerelease", 0, 0x49, ""},
	{"tilezero", 3, 0x49, "r"},
	{"tileloadd", 3, 0x4B, "rm"},
	{"tileloaddt1", 1, 0x4B, "rm"},
	{"tilestored", 2, 0x4B, "mr"},
	{"tdpbf16ps", 2, 0x5C, "rbv"},
	{"tdpbssd", 3, 0x5E, "rbv"},
	{"tdpbsud", 2, 0x5E, "rbv"},
	{"tdpbusd", 1, 0x5E, "rbv"},
	{"tdpbuud", 0, 0x5E, "rbv"},
}

func (f *amxForm) hasMemory() bool { return strings.ContainsAny(f.operands, "cm") }

func formOf(name string) *amxForm {
	i := slices.IndexFunc(amxForms, func(f amxForm) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &amxForms[i]
}

// String returns the instruction as objdump -M intel writes it:
// tileloadd tmm4,[rsi+r8*1+0x400].
func (in AMX) String() string {
	var operands []string
	for _, o := range formOf(in.Name).operands {
		switch o {
		case 'r':
			operands = append(operands, fmt.Sprintf("tmm%d", in.Reg))
		case 'b':
			operands = append(operands, fmt.Sprintf("tmm%d", in.RM))
		case 'v':
			operands = append(operands, fmt.Sprintf("tmm%d", in.V))
		default:
			operands = append(operands, in.Memory.String())
		}
	}
	return strings.TrimSpace(in.Name + " " + strings.Join(operands, ","))
}

func (m Memory) String() string {
	s := "[" + generalRegisters[m.Base]
	if m.Index != stackPointer {
		s += fmt.Sprintf("+%s*%d", generalRegisters[m.Index], m.Scale)
	}
	if m.Disp != 0 {
		s += fmt.Sprintf("%+#x", m.Disp)
	}
	return s + "]"
}

// Bytes returns the shortest encoding of the instruction.
func (in AMX) Bytes() []byte {
	f, m := formOf(in.Name), in.Memory
	// VEX has R, X, B and vvvv inverted: all ones where there is no such operand.
	vex := []byte{0xC4, 0xE2, 0x78 | f.prefix, f.opcode}
	vex[2] ^= byte(in.V) << 3
	if !f.hasMemory() {
		return append(vex, 0xC0|byte(in.Reg)<<3|byte(in.RM))
	}
	vex[1] ^= byte(m.Index>>3)<<6 | byte(m.Base>>3)<<5

	mod, disp := byte(0), []byte(nil)
	switch {
	case m.Disp == 0 && m.Base&7 != basePointer: // BP and R13 without one mean another thing
	case m.Disp == int32(int8(m.Disp)):
		mod, disp = 1, []byte{byte(m.Disp)}
	default:
		mod, disp = 2, binary.LittleEndian.AppendUint32(nil, uint32(m.Disp))
	}
	modRM := mod<<6 | byte(in.Reg)<<3
	if m.Index == stackPointer && m.Base&7 != stackPointer {
		return append(append(vex, modRM|byte(m.Base&7)), disp...)
	}
	scale := byte(slices.Index([]int{1, 2, 4, 8}, m.Scale))
	sib := scale<<6 | byte(m.Index&7)<<3 | byte(m.Base&7)
	return append(append(vex, modRM|stackPointer, sib), disp...)
}

// DecodeAMX returns the instruction at the start of code and its length. It is an
// error if code starts with none, or with one that is longer than need be.
func DecodeAMX(code []byte) (in AMX, length int, err error) {
	// What follows the longest instruction does not matter, and may be absent.
	var b [11]byte
	copy(b[:], code)
	mod, sib := b[4]>>6, b[5]
	for i := range amxForms {
		f := &amxForms[i]
		if b[3] != f.opcode || b[2]&3 != f.prefix || (mod == 3) == f.hasMemory() {
			continue
		}
		in = AMX{Name: f.name, Reg: int(b[4] >> 3 & 7), V: int(^b[2] >> 3 & 15)}
		if f.hasMemory() {
			in.Memory = Memory{Base: int(b[4] & 7), Index: stackPointer, Scale: 1}
			at := 5
			if in.Memory.Base == stackPointer {
				in.Memory = Memory{Base: int(sib & 7), Index: int(sib>>3&7 | ^b[1]>>6&1<<3), Scale: 1 << (sib >> 6)}
				at = 6
			}
			in.Memory.Base |= int(^b[1] >> 5 & 1 << 3)
			switch mod {
			case 1:
				in.Memory.Disp = int32(int8(b[at]))
			case 2:
				in.Memory.Disp = int32(binary.LittleEndian.Uint32(b[at:]))
			}
		} else {
			in.RM = int(b[4] & 7)
		}
		// What was not understood does not come back the same.
		if again := in.Bytes(); in.check() == nil && bytes.HasPrefix(code, again) {
			return in, len(again), nil
		}
	}
	return AMX{}, 0, fmt.Errorf("asmtable: no AMX instruction % X", code)
}

// check returns an error if there is no such instruction.
func (in AMX) check() error {
	f := formOf(in.Name)
	has := func(operand string) bool { return strings.Contains(f.operands, operand) }
	for operand, tile := range map[string]int{"r": in.Reg, "b": in.RM, "v": in.V} {
		if tile < 0 || tile > 7 || tile != 0 && !has(operand) {
			return fmt.Errorf("asmtable: %s: no tile %d there", in, tile)
		}
	}
	switch {
	case has("v") && (in.Reg == in.RM || in.Reg == in.V || in.RM == in.V):
		return fmt.Errorf("asmtable: %s: one tile twice", in)
	case has("m") && in.Memory.Index == stackPointer:
		return fmt.Errorf("asmtable: %s: no index", in)
	}
	return nil
}

var memoryText = regexp.MustCompile(`^\[(\w+)(?:\+(\w+)\*([1248]))?([+-]0x[0-9a-f]+)?\]$`)

// ParseAMX returns the instruction of the given text, as [AMX.String] writes it.
func ParseAMX(text string) (in AMX, err error) {
	refused := fmt.Errorf("asmtable: no AMX instruction %q", text)
	name, rest, _ := strings.Cut(text, " ")
	f, operands := formOf(name), strings.Split(rest, ",")
	if f == nil || len(operands) < len(f.operands) {
		return in, refused
	}
	in = AMX{Name: name}
	for i, operand := range operands[:len(f.operands)] {
		tile, _ := strconv.Atoi(strings.TrimPrefix(operand, "tmm"))
		switch f.operands[i] {
		case 'r':
			in.Reg = tile
		case 'b':
			in.RM = tile
		case 'v':
			in.V = tile
		default:
			m := memoryText.FindStringSubmatch(operand)
			if m == nil {
				return in, refused
			}
			in.Memory = Memory{Base: slices.Index(generalRegisters, m[1]), Index: stackPointer, Scale: 1}
			if m[2] != "" {
				in.Memory.Index = slices.Index(generalRegisters, m[2])
				in.Memory.Scale, _ = strconv.Atoi(m[3])
			}
			disp, _ := strconv.ParseInt(m[4], 0, 32)
			in.Memory.Disp = int32(disp)
			if in.Memory.Base < 0 || in.Memory.Index < 0 {
				return in, refused
			}
		}
	}
	if in.String() != text {
		return in, refused
	}
	return in, in.check()
}
