// Package asmtable has the arm64 instructions that the assembly of this module
// needs and Go's assembler lacks, and an encoder for their classes. Its test
// holds each WORD in the assembly against the text beside it.
package asmtable

// Instruction is an instruction and its encoding.
type Instruction struct {
	Text string
	Word uint32
}

// Table has every instruction that is written as a WORD.
var Table = []Instruction{
	{"fabs v1.4s, v0.4s", 0x4EA0F801},
	{"fmul v2.4s, v0.4s, v16.4s", 0x6E30DC02},
	{"fdiv v2.4s, v0.4s, v16.4s", 0x6E30FC02},
	{"fabs v3.4s, v2.4s", 0x4EA0F843},
	{"cmeq v0.4s, v1.4s, #0", 0x4EA09820},
	{"ushl v4.4s, v3.4s, v19.4s", 0x6EB34464},
	{"ushl v4.4s, v4.4s, v19.4s", 0x6EB34484},
	{"cmhi v1.4s, v17.4s, v3.4s", 0x6EA33621},
	{"fadd v5.4s, v3.4s, v18.4s", 0x4E32D465},
	{"cmhi v0.4s, v4.4s, v21.4s", 0x6EB53480},
	{"cmhi v0.4s, v22.4s, v4.4s", 0x6EA436C0},
	{"cmeq v0.4s, v4.4s, #0", 0x4EA09880},
	{"ushl v0.4s, v3.4s, v31.4s", 0x6EBF4460},
	{"fmul v5.4s, v3.4s, v18.4s", 0x6E32DC65},
	{"fcvtzs v6.4s, v5.4s", 0x4EA1B8A6},
	{"scvtf v6.4s, v6.4s", 0x4E21D8C6},
	{"fsub v5.4s, v5.4s, v6.4s", 0x4EA6D4A5},
	{"fcvtzu v5.4s, v5.4s, #32", 0x6F20FCA5},
	{"mul v5.4s, v5.4s, v28.4s", 0x4EBC9CA5},
	{"mul v5.4s, v5.4s, v29.4s", 0x4EBD9CA5},
	{"cmhi v0.4s, v0.4s, v5.4s", 0x6EA53400},
	{"sshl v4.4s, v4.4s, v16.4s", 0x4EB04484},
	{"sshl v5.4s, v5.4s, v16.4s", 0x4EB044A5},
	{"sshl v6.4s, v6.4s, v16.4s", 0x4EB044C6},
	{"sshl v7.4s, v7.4s, v16.4s", 0x4EB044E7},
	{"fmul v4.4s, v4.4s, v18.4s", 0x6E32DC84},
	{"fmul v5.4s, v5.4s, v18.4s", 0x6E32DCA5},
	{"fmul v6.4s, v6.4s, v18.4s", 0x6E32DCC6},
	{"fmul v7.4s, v7.4s, v18.4s", 0x6E32DCE7},
	{"fmul v4.4s, v4.4s, v19.4s", 0x6E33DC84},
	{"fmul v5.4s, v5.4s, v19.4s", 0x6E33DCA5},
	{"fmul v6.4s, v6.4s, v19.4s", 0x6E33DCC6},
	{"fmul v7.4s, v7.4s, v19.4s", 0x6E33DCE7},
	{"cmhi v22.16b, v22.16b, v20.16b", 0x6E3436D6},
}
