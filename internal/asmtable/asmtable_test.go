package asmtable

import (
	"encoding/binary"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
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

// everyWord calls f with instructions of every form, among them all registers in each
// place and all elements.
func everyWord(f func(text string, word uint32)) {
	for i := range forms {
		form := &forms[i]
		for arrangement, size := range form.sizes {
			mask := form.class.mask()
			for n := range uint32(64) {
				operands := (n&31 | (n*7+3)&31<<5 | (n*11+5)&31<<16 | n&1<<21 | n>>5<<11) & mask
				w := form.word(size) | operands
				f(form.text(w, arrangement), w)
			}
		}
	}
}

func TestEncode(t *testing.T) {
	words, texts := map[string]uint32{}, map[uint32]string{}
	everyWord(func(text string, word uint32) {
		w, err := Encode(text)
		require.NoError(t, err)
		require.Equalf(t, word, w, "%s", text)
		back, err := Decode(w)
		require.NoError(t, err)
		require.Equal(t, text, back)
		if other, ok := words[text]; ok {
			require.Equal(t, other, w, text)
		}
		if other, ok := texts[w]; ok {
			require.Equal(t, other, text)
		}
		words[text], texts[w] = w, text
	})
}

// TestObjdump compares with a disassembler that knows arm64.
func TestObjdump(t *testing.T) {
	objdump, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		testutil.Lacking(t, "aarch64-linux-gnu-objdump is absent: the encoder of arm64 not compared with it")
	}
	var code []byte
	var want []string
	everyWord(func(text string, word uint32) {
		code, want = binary.LittleEndian.AppendUint32(code, word), append(want, text)
	})
	file := filepath.Join(t.TempDir(), "code")
	require.NoError(t, os.WriteFile(file, code, 0o644))
	out, err := exec.Command(objdump, "-D", "-b", "binary", "-m", "aarch64", "--no-show-raw-insn", file).Output()
	require.NoError(t, err)
	var got []string
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(line, ":\t"); ok {
			got = append(got, strings.Join(strings.Fields(text), " "))
		}
	}
	require.Equal(t, want, got)
}

func TestEncodeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "fadd", "fadd v1.4s, v2.4s", "fadd v1.4s, v2.4s, v32.4s", "fadd v1.4s, v2.8h, v3.4s",
		"fadd v1.16b, v2.16b, v3.16b", "fadd v1.4s, v2.4s, v3.4s ", "fadd v1.4s,v2.4s,v3.4s",
		"fadd v01.4s, v2.4s, v3.4s", "cmeq v1.4s, v2.4s, #1", "cmeq v1.4s, v2.4s, v3.4s",
		"fcvtl v1.4s, v2.4s", "fcvtl v1.4s, v2.8h", "fcvtl2 v1.4s, v2.4h", "fcvtl v1.2d, v2.4s", "fmla v1.4s, v2.4s, v3.s[4]", "fmla v1.2d, v2.2d, v3.s[1]", "uqxtn v1.8b, v2.4h",
		"uqxtn v1.16b, v2.8h", "uqxtn2 v1.8b, v2.8h", "cmeq v1.4s, v2.4s, #0, #0", "fmla v1.4s, v2.4s, v3.4s",
	} {
		_, err := Encode(text)
		require.Errorf(t, err, "%q", text)
	}
	_, err := Decode(0x4E33CC82) // fmla, all lanes
	require.Error(t, err)
}

var (
	wordLine  = regexp.MustCompile(`^(?:\t|#define \w+ )WORD \$0x([0-9A-F]{8}) // (.+)$`)
	wordMacro = regexp.MustCompile(`^#define \w+\(([a-z, ]+)\) WORD \$\((.+)\) // (.+)$`)
)

// checkWordLine returns an error if a line with a WORD does not have the word of the
// instruction beside it. A macro has it for all registers d, n and m and elements lane
// that it is used with.
func checkWordLine(line string) error {
	if m := wordLine.FindStringSubmatch(line); m != nil {
		n, err := strconv.ParseUint(m[1], 16, 32)
		if err != nil {
			return err
		}
		return checkWord(uint32(n), m[2])
	}
	m := wordMacro.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("want WORD $0x........ // instruction, or #define NAME(parameters) WORD $(...) // instruction: %s", line)
	}
	for n := range 64 {
		values := map[string]string{
			"d": strconv.Itoa(n & 31), "n": strconv.Itoa((n*7 + 3) & 31), "m": strconv.Itoa((n*11 + 5) & 31), "lane": strconv.Itoa(n >> 4),
		}
		formula, text := m[2], m[3]
		for name := range strings.SplitSeq(m[1], ", ") {
			value, ok := values[name]
			if !ok {
				return fmt.Errorf("parameters are d, n, m and lane: %s", line)
			}
			formula = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(formula, value)
			text = regexp.MustCompile(`(\bv|\[)`+name+`(\b|\])`).ReplaceAllString(text, "${1}"+value+"${2}")
		}
		word, err := types.Eval(token.NewFileSet(), nil, token.NoPos, formula)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		w, ok := constant.Uint64Val(word.Value)
		if !ok || w > math.MaxUint32 {
			return fmt.Errorf("%s is no word: %s", formula, line)
		}
		if err := checkWord(uint32(w), text); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func checkWord(w uint32, text string) error {
	if want, err := Encode(text); err != nil || want != w {
		is, _ := Decode(w)
		return fmt.Errorf("%08X is %q, not the instruction beside it, %s, which is %08X (%v)", w, is, text, want, err)
	}
	return nil
}

func TestWordLine(t *testing.T) {
	for _, right := range []string{
		"\tWORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s",
		"#define MORE WORD $0x6EAE35EE // cmhi v14.4s, v15.4s, v14.4s",
		"#define FMUL(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.4s",
		"#define FABS(n, d) WORD $(0x4EA0F800 | (n)<<5 | (d)) // fabs vd.4s, vn.4s",
		"#define FMLALANE(m, lane, n, d) WORD $(0x4F801000 | (lane&1)<<21 | (lane>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmla vd.4s, vn.4s, vm.s[lane]",
	} {
		require.NoError(t, checkWordLine(right))
	}
	const macro = "#define FMLALANE(m, lane, n, d) WORD $(0x4F801000 | (lane&1)<<21 | (lane>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmla vd.4s, vn.4s, vm.s[lane]"
	for _, wrong := range []string{
		"\tWORD $0x6EBB375B // cmhi v26.4s, v26.4s, v27.4s", "\tWORD $0x6EBB375A", "\tWORD $0x4E33CC82 // fmla v2.4s, v4.4s, v19.4s",
		strings.Replace(macro, "0x4F801000", "0x4F809000", 1), strings.Replace(macro, "<<21", "<<20", 1), strings.Replace(macro, "lane>>1", "lane", 1),
		strings.Replace(macro, "(n)<<5", "(m)<<5", 1), strings.Replace(macro, "vn.4s", "vd.4s", 1), strings.Replace(macro, "(d))", "d", 1),
		strings.Replace(macro, "lane, ", "", 1), strings.Replace(macro, "(m, ", "(q, ", 1), strings.Replace(macro, "fmla", "fmls", 1),
	} {
		require.Error(t, checkWordLine(wrong), wrong)
	}
}

// TestSources checks every WORD of the module's assembly.
func TestSources(t *testing.T) {
	raw := regexp.MustCompile(`\b(WORD|LONG|BYTE)\b`)
	words := 0
	for _, pattern := range []string{"../*/*_arm64.[sh]", "../../*/*_arm64.[sh]"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			for i, s := range strings.Split(string(source), "\n") {
				if code, _, _ := strings.Cut(s, "//"); raw.MatchString(code) {
					require.NoErrorf(t, checkWordLine(s), "%s:%d", path, i+1)
					words++
				}
			}
		}
	}
	require.Greater(t, words, 40)
}
