package asmtable

import (
	"bytes"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// everyDot calls f with each of the instructions on registers.
func everyDot(f func(text string)) {
	for _, i := range dots {
		n := int(i.registers)
		for all := range n * n * n {
			f(fmt.Sprintf(i.text, all%n, all/n%n, all/n/n))
		}
	}
}

func TestEncodeDot(t *testing.T) {
	seen := map[string]string{}
	everyDot(func(text string) {
		code, err := EncodeDot(text)
		require.NoError(t, err)
		require.Empty(t, seen[string(code)], text)
		seen[string(code)] = text
	})
	for text, want := range map[string]string{
		"{vex} vpdpbusd ymm0,ymm12,ymm14": "C4 C2 1D 50 C6",
		"{vex} vpdpbusd ymm11,ymm5,ymm1":  "C4 62 55 50 D9",
		"vdpbf16ps zmm0,zmm26,zmm24":      "62 92 2E 40 52 C0",
		"vdpbf16ps zmm15,zmm2,zmm1":       "62 72 6E 48 52 F9",
	} {
		code, err := EncodeDot(text)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("% X", code))
	}
	for _, text := range []string{
		"", "vpdpbusd ymm0,ymm12,ymm14", "{vex} vpdpbusd ymm0,ymm12", "{vex} vpdpbusd ymm0,ymm12,ymm16", "{vex} vpdpbusd ymm0,ymm12,ymm014",
		"{vex} vpdpbusd xmm0,xmm12,xmm14", "{vex} vpdpbusds ymm0,ymm12,ymm14", "{vex} vpdpbusd ymm0,ymm12,ymm14 ", "{vex} vpdpbusd ymm-1,ymm1,ymm1",
		"vdpbf16ps zmm0,zmm32,zmm1", "vdpbf16ps ymm0,ymm1,ymm1", "{vex} vdpbf16ps zmm0,zmm1,zmm1",
	} {
		_, err := EncodeDot(text)
		require.Errorf(t, err, "%q", text)
	}
}

// TestDotObjdump compares with a disassembler that knows the instructions.
func TestDotObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		testutil.Lacking(t, "objdump is absent: the encoder of dot products not compared with it")
	}
	var code []byte
	var want []string
	everyDot(func(text string) {
		one, err := EncodeDot(text)
		require.NoError(t, err)
		code, want = append(code, one...), append(want, text)
	})
	file := filepath.Join(t.TempDir(), "code")
	require.NoError(t, os.WriteFile(file, code, 0o644))
	out, err := exec.Command("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "-w", "--no-show-raw-insn", file).Output()
	if err != nil || !strings.Contains(string(out), "{vex} vpdpbusd") || !strings.Contains(string(out), "vdpbf16ps") {
		testutil.Lacking(t, "this objdump knows no AVX-VNNI or no AVX512_BF16: %v", err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(line, ":\t"); ok {
			got = append(got, strings.Join(strings.Fields(text), " "))
		}
	}
	require.Equal(t, want, got)
}

var byteMacro = regexp.MustCompile(`^#define \w+\(([a-z, ]+)\) (BYTE .+) // (.+)$`)

// checkByteMacro returns an error unless a macro has, for registers d, n and m, the bytes of
// the instruction beside it.
func checkByteMacro(line string) error {
	match := byteMacro.FindStringSubmatch(line)
	if match == nil {
		return fmt.Errorf("want #define NAME(parameters) BYTE $...; BYTE $... // instruction: %s", line)
	}
	last := 15
	if strings.Contains(match[3], "zmm") {
		last = 31
	}
	for n := range 64 {
		values := map[string]string{"d": fmt.Sprint(n & last), "n": fmt.Sprint((n*7 + n>>4) & last), "m": fmt.Sprint((n*11 + 5) & last)}
		formula, text := match[2], match[3]
		for name := range strings.SplitSeq(match[1], ", ") {
			value, ok := values[name]
			if !ok {
				return fmt.Errorf("parameters are d, n and m: %s", line)
			}
			formula = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(formula, value)
			text = regexp.MustCompile(`\b([yz]mm)`+name+`\b`).ReplaceAllString(text, "${1}"+value)
		}
		want, err := EncodeDot(text)
		if err != nil {
			return err
		}
		var code []byte
		for part := range strings.SplitSeq(formula, "; ") {
			number, err := types.Eval(token.NewFileSet(), nil, token.NoPos, strings.TrimPrefix(part, "BYTE $"))
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			b, ok := constant.Uint64Val(number.Value)
			if !ok || b > 255 {
				return fmt.Errorf("%s is no byte: %s", part, line)
			}
			code = append(code, byte(b))
		}
		if !bytes.Equal(code, want) {
			return fmt.Errorf("% X is not %s, which is % X: %s", code, text, want, line)
		}
	}
	return nil
}

func TestByteMacro(t *testing.T) {
	const right = "#define DOT(m, n, d) BYTE $0xC4; BYTE $(0xE2 ^ (((d)&8)<<4) ^ (((m)&8)<<2)); BYTE $(0x7D ^ (n)<<3); BYTE $0x50; BYTE $(0xC0 | (((d)&7)<<3) | ((m)&7)) // {vex} vpdpbusd ymmd,ymmn,ymmm"
	require.NoError(t, checkByteMacro(right))
	for _, wrong := range []string{
		strings.Replace(right, "0xE2", "0xE3", 1), strings.Replace(right, "<<4", "<<5", 1), strings.Replace(right, "(n)<<3", "(m)<<3", 1),
		strings.Replace(right, "0x50", "0x52", 1), strings.Replace(right, "(d)&7", "(d)&3", 1), strings.Replace(right, "ymmd,ymmn", "ymmn,ymmd", 1),
		strings.Replace(right, "(m, n", "(q, n", 1), strings.Replace(right, "{vex} ", "", 1), strings.Replace(right, "; BYTE $0x50", "", 1),
		strings.Replace(right, "$0x50", "$0x150", 1), strings.Replace(right, "0x50", "0x", 1), "\tBYTE $0x90 // nop",
	} {
		require.Error(t, checkByteMacro(wrong), wrong)
	}
}
