package asmtable

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// everyAMX calls f with each instruction, with every pair of registers in memory
// operands and with offsets about where their length changes.
func everyAMX(f func(AMX)) {
	tiles := func(operands string, use func(r, b, v int)) {
		count := func(operand string) int {
			if strings.Contains(operands, operand) {
				return 8
			}
			return 1
		}
		for r := range count("r") {
			for b := range count("b") {
				for v := range count("v") {
					use(r, b, v)
				}
			}
		}
	}
	for _, form := range amxForms {
		tiles(form.operands, func(r, b, v int) {
			in := AMX{Name: form.name, Reg: r, RM: b, V: v}
			if !form.hasMemory() {
				if in.check() == nil {
					f(in)
				}
				return
			}
			if testing.Short() && r%7 != 0 {
				return
			}
			for i := range 16 * 16 {
				for n, disp := range []int32{0, 1, 64, 127, 128, 1024, -128, -129, math.MaxInt32, math.MinInt32} {
					m := Memory{Base: i & 15, Index: i >> 4, Scale: 1 << ((i + n) & 3), Disp: disp}
					if m.Index == stackPointer {
						m.Scale = 1
					}
					if in.Memory = m; in.check() == nil {
						f(in)
					}
				}
			}
		})
	}
}

func TestAMX(t *testing.T) {
	n := 0
	everyAMX(func(in AMX) {
		code := in.Bytes()
		got, length, err := DecodeAMX(append(code, 0xC3))
		if err != nil || got != in || length != len(code) {
			t.Fatalf("%s: % X is read as %s of %d bytes: %v", in, code, got, length, err)
		}
		if got, err = ParseAMX(in.String()); err != nil || got != in {
			t.Fatalf("%s is read as %s: %v", in, got, err)
		}
		for cut := range code {
			if _, _, err = DecodeAMX(code[:cut]); err == nil {
				t.Fatalf("%s: %d bytes of % X are read", in, cut, code)
			}
		}
		n++
	})
	require.Greater(t, n, 3*2*16*15*10)
}

// TestAMXKnown has encodings that were run on a processor with AMX, or read off
// the manual.
func TestAMXKnown(t *testing.T) {
	for text, want := range map[string]string{
		"ldtilecfg [rax]":                     "C4 E2 78 49 00",
		"tilerelease":                         "C4 E2 78 49 C0",
		"tilezero tmm3":                       "C4 E2 7B 49 D8",
		"tileloadd tmm4,[rsi+r8*1]":           "C4 A2 7B 4B 24 06",
		"tileloaddt1 tmm7,[r13+rax*1]":        "C4 C2 79 4B 7C 05 00",
		"tilestored [rdi+rcx*1-0x40],tmm0":    "C4 E2 7A 4B 44 0F C0",
		"tileloadd tmm0,[r12+r12*4+0x400]":    "C4 82 7B 4B 84 A4 00 04 00 00",
		"tdpbf16ps tmm0,tmm4,tmm6":            "C4 E2 4A 5C C4",
		"tdpbssd tmm0,tmm4,tmm6":              "C4 E2 4B 5E C4",
		"ldtilecfg [rax-0x80]":                "C4 E2 78 49 40 80",
		"ldtilecfg [rsp+0x8]":                 "C4 E2 78 49 44 24 08",
		"tilestored [rsp+r15*8-0x12345],tmm5": "C4 A2 7A 4B AC FC BB DC FE FF",
	} {
		in, err := ParseAMX(text)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("% X", in.Bytes()), text)
	}
}

func TestAMXRefuses(t *testing.T) {
	for _, text := range []string{
		"", "tile", "tilezero", "tilezero tmm8", "tilezero tmm-1", "tilezero tmm0,tmm1", "tilezero  tmm0", "tilerelease tmm0",
		"tileloadd tmm0,[rax]", "tileloadd tmm0", "tileloadd tmm0,[rax+rsp*1]", "tileloadd tmm0,[eax+rcx*1]",
		"tileloadd tmm0,[rax+rcx*3]", "tileloadd [rax+rcx*1],tmm0", "tdpbf16ps tmm1,tmm1,tmm2", "tdpbf16ps tmm1,tmm2,tmm2",
		"tdpbf16ps tmm1,tmm2,tmm1", "tdpbf16ps tmm0,tmm1", "ldtilecfg rax", "ldtilecfg [rax+0x123456789]", "ldtilecfg [rax+0x00]",
	} {
		_, err := ParseAMX(text)
		require.Errorf(t, err, "%q", text)
	}
	for _, code := range [][]byte{
		nil,
		{0x0F, 0x0B},
		{0xC4, 0xE2, 0x7C, 0x49, 0xC0},             // 256 bits
		{0xC4, 0xE2, 0xF8, 0x49, 0xC0},             // W 1
		{0xC4, 0xE1, 0x78, 0x49, 0xC0},             // another map
		{0xC4, 0x62, 0x7B, 0x49, 0xC0},             // tile 8
		{0xC4, 0xE2, 0x7B, 0x49, 0xC1},             // tilezero with a second operand
		{0xC4, 0xE2, 0x70, 0x49, 0xC0},             // tilerelease with one
		{0xC4, 0xE2, 0x7B, 0x4B, 0x00},             // tileloadd without an index
		{0xC4, 0xE2, 0x7B, 0x4B, 0x04, 0x20},       // likewise
		{0xC4, 0xE2, 0x7B, 0x4B, 0x44, 0x01, 0x00}, // an offset of 0
		{0xC4, 0xE2, 0x78, 0x49, 0x08},             // another instruction
		{0xC4, 0xE2, 0x4A, 0x5C, 0xC0},             // one tile twice
	} {
		_, _, err := DecodeAMX(code)
		require.Errorf(t, err, "% X", code)
	}
}

// TestAMXObjdump compares with an assembler's tools that know AMX.
func TestAMXObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		testutil.Lacking(t, "objdump is absent: the encoder of AMX not compared with it")
	}
	var code []byte
	var want []string
	n := 0
	everyAMX(func(in AMX) {
		if n++; n%7 == 0 || !formOf(in.Name).hasMemory() {
			code, want = append(code, in.Bytes()...), append(want, in.String())
		}
	})
	file := filepath.Join(t.TempDir(), "code")
	require.NoError(t, os.WriteFile(file, code, 0o644))
	out, err := exec.Command("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "-w", "--no-show-raw-insn", file).Output()
	if err != nil || !strings.Contains(string(out), "tile") {
		testutil.Lacking(t, "this objdump knows no AMX: %v", err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(line, ":\t"); ok {
			got = append(got, strings.Join(strings.Fields(text), " "))
		}
	}
	require.Len(t, got, len(want))
	for i := range want {
		if strings.Replace(got[i], "+0x0]", "]", 1) != want[i] {
			t.Fatalf("%s: objdump reads %s", want[i], got[i])
		}
	}
}

var byteLine = regexp.MustCompile(`^(?:\t|#define \w+ )(BYTE \$0x[0-9A-F]{2}(?:; BYTE \$0x[0-9A-F]{2})*) // (.+)$`)

// checkByteLine returns an error if a line with BYTEs does not have the bytes of
// the instruction beside them.
func checkByteLine(line string) error {
	m := byteLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("want BYTE $0x..; BYTE $0x.. // instruction: %s", line)
	}
	in, err := ParseAMX(m[2])
	if err != nil {
		return err
	}
	var code []byte
	for part := range strings.SplitSeq(m[1], "; ") {
		b, _ := strconv.ParseUint(strings.TrimPrefix(part, "BYTE $0x"), 16, 8)
		code = append(code, byte(b))
	}
	if got, length, err := DecodeAMX(code); err != nil || got != in || length != len(code) {
		want := fmt.Sprintf("BYTE $0x%s", strings.ReplaceAll(fmt.Sprintf("% X", in.Bytes()), " ", "; BYTE $0x"))
		return fmt.Errorf("the bytes are not the instruction beside them: want %s // %s", want, in)
	}
	return nil
}

func TestByteLine(t *testing.T) {
	const right = "#define ZERO0 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xC0 // tilezero tmm0"
	require.NoError(t, checkByteLine(right))
	for _, wrong := range []string{
		strings.Replace(right, "0xC4", "0xC5", 1), strings.Replace(right, "0xE2", "0xC2", 1),
		strings.Replace(right, "0x7B", "0x7A", 1), strings.Replace(right, "0x49", "0x4B", 1),
		strings.Replace(right, "0xC0", "0xC8", 1), strings.Replace(right, "; BYTE $0xC0", "", 1),
		strings.Replace(right, "tmm0", "tmm1", 1), strings.Replace(right, "// tilezero tmm0", "", 1),
		strings.Replace(right, " // ", "; BYTE $0x90 // ", 1), strings.Replace(right, "tilezero", "TILEZERO", 1),
	} {
		require.Error(t, checkByteLine(wrong), wrong)
	}
}

// TestSourcesAMD64 decodes the BYTEs of the assembly, that of the benchmarks
// included.
func TestSourcesAMD64(t *testing.T) {
	raw := regexp.MustCompile(`\b(WORD|LONG|QUAD|BYTE)\b`)
	lines := map[string]int{}
	for _, pattern := range []string{"../*/*_amd64.[sh]", "../*/*/*_amd64.[sh]", "../../*/*_amd64.[sh]"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			for i, line := range strings.Split(string(source), "\n") {
				if code, _, _ := strings.Cut(line, "//"); raw.MatchString(code) {
					lines[filepath.ToSlash(path)]++
					check := checkByteLine
					if byteMacro.MatchString(line) {
						check = checkByteMacro
					}
					require.NoErrorf(t, check(line), "%s:%d", path, i+1)
				}
			}
		}
	}
	for _, path := range []string{"../amx/multiply_amd64.s", "../amxemu/probe/probe_amd64.s", "../microkernel/vectors_avx512_amd64.h", "../../bench/peak_amd64.s"} {
		require.NotZero(t, lines[path], "%s: no BYTEs found", path)
	}
}
