// Package asmtable has the instructions that the assembly of this module needs
// and Go's assembler lacks: a table of arm64's with an encoder for their classes,
// and an encoder for AMX. Its tests hold each WORD and each row of BYTEs in the
// assembly against the text beside it.
package asmtable

// Instruction is an instruction and its encoding.
type Instruction struct {
	Text string
	Word uint32
}

// Table has every instruction that is written as a WORD.
var Table = []Instruction{
	{"mul v14.4s, v14.4s, v28.4s", 0x4EBC9DCE},
	{"mul v14.4s, v14.4s, v29.4s", 0x4EBD9DCE},
	{"ushl v12.4s, v12.4s, v13.4s", 0x6EAD458C},
	{"ushl v15.4s, v12.4s, v15.4s", 0x6EAF458F},
	{"cmhi v14.4s, v15.4s, v14.4s", 0x6EAE35EE},
	{"fabs v12.4s, v0.4s", 0x4EA0F80C},
	{"fabs v13.4s, v1.4s", 0x4EA0F82D},
	{"fabs v14.4s, v2.4s", 0x4EA0F84E},
	{"fabs v15.4s, v3.4s", 0x4EA0F86F},
	{"fmul v4.4s, v12.4s, v8.4s", 0x6E28DD84},
	{"fmul v5.4s, v13.4s, v9.4s", 0x6E29DDA5},
	{"fmul v6.4s, v14.4s, v10.4s", 0x6E2ADDC6},
	{"fmul v7.4s, v15.4s, v11.4s", 0x6E2BDDE7},
	{"ushl v12.8h, v12.8h, v22.8h", 0x6E76458C},
	{"ushl v13.8h, v13.8h, v22.8h", 0x6E7645AD},
	{"uqxtn v4.8b, v4.8h", 0x2E214884},
	{"uqxtn2 v4.16b, v6.8h", 0x6E2148C4},
	{"cmhi v13.16b, v23.16b, v4.16b", 0x6E2436ED},
	{"cmhi v13.16b, v4.16b, v24.16b", 0x6E38348D},
	{"cmeq v14.16b, v4.16b, #0", 0x4E20988E},
	{"fdiv v4.4s, v12.4s, v8.4s", 0x6E28FD84},
	{"fdiv v5.4s, v13.4s, v9.4s", 0x6E29FDA5},
	{"fdiv v6.4s, v14.4s, v10.4s", 0x6E2AFDC6},
	{"fdiv v7.4s, v15.4s, v11.4s", 0x6E2BFDE7},
	{"fabs v0.4s, v0.4s", 0x4EA0F800},
	{"fabs v1.4s, v1.4s", 0x4EA0F821},
	{"fabs v2.4s, v2.4s", 0x4EA0F842},
	{"fabs v3.4s, v3.4s", 0x4EA0F863},
	{"cmeq v5.4s, v0.4s, #0", 0x4EA09805},
	{"cmeq v6.4s, v1.4s, #0", 0x4EA09826},
	{"cmeq v7.4s, v2.4s, #0", 0x4EA09847},
	{"cmeq v13.4s, v3.4s, #0", 0x4EA0986D},
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
	{"fcvtl v0.4s, v4.4h", 0x0E217880},
	{"fcvtl2 v1.4s, v4.8h", 0x4E217881},
	{"fcvtl v2.4s, v5.4h", 0x0E2178A2},
	{"fcvtl2 v3.4s, v5.8h", 0x4E2178A3},
}
