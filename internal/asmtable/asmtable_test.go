package asmtable

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range Table {
		w, err := Encode(in.Text)
		require.NoError(t, err)
		require.Equalf(t, in.Word, w, "%s: table has %08X, encoder %08X", in.Text, in.Word, w)
		text, err := Decode(in.Word)
		require.NoError(t, err)
		require.Equal(t, in.Text, text)
		require.Falsef(t, seen[in.Text], "%s: twice", in.Text)
		seen[in.Text] = true
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "fadd", "fadd v1.4s, v2.4s", "fadd v1.4s, v2.4s, v32.4s", "fadd v1.4s, v2.8h, v3.4s",
		"fadd v1.16b, v2.16b, v3.16b", "fadd v1.4s, v2.4s, v3.4s ", "fadd v1.4s,v2.4s,v3.4s",
		"fadd v01.4s, v2.4s, v3.4s", "cmeq v1.4s, v2.4s, #1", "cmeq v1.4s, v2.4s, v3.4s",
		"fcvtl v1.4s, v2.4s", "fcvtl v1.4s, v2.8h", "fcvtl2 v1.4s, v2.4h", "fcvtl v1.2d, v2.2s", "uqxtn v1.8b, v2.4h",
		"uqxtn v1.16b, v2.8h", "uqxtn2 v1.8b, v2.8h", "cmeq v1.4s, v2.4s, #0, #0", "fmla v1.4s, v2.4s, v3.4s",
	} {
		_, err := Encode(text)
		require.Errorf(t, err, "%q", text)
	}
	_, err := Decode(0x4E33CC82) // fmla
	require.Error(t, err)
}

var wordLine = regexp.MustCompile(`^(?:\t|#define \w+ )WORD \$0x([0-9A-F]{8}) // (.+)$`)

// TestSources decodes every WORD of the module's assembly.
func TestSources(t *testing.T) {
	words := map[string]uint32{}
	for _, in := range Table {
		words[in.Text] = in.Word
	}
	used := map[string]bool{}
	raw := regexp.MustCompile(`\b(WORD|LONG|BYTE)\b`)
	check := func(path string, line int, s string) {
		m := wordLine.FindStringSubmatch(s)
		require.NotNilf(t, m, "%s:%d: want WORD $0x........ // instruction: %s", path, line, s)
		n, err := strconv.ParseUint(m[1], 16, 32)
		require.NoError(t, err)
		text, err := Decode(uint32(n))
		require.NoErrorf(t, err, "%s:%d", path, line)
		require.Equalf(t, m[2], text, "%s:%d: the word is not the instruction beside it", path, line)
		want, ok := words[text]
		require.Truef(t, ok, "%s:%d: %s is not in the table", path, line, text)
		require.EqualValuesf(t, want, n, "%s:%d: %s", path, line, text)
		used[text] = true
	}
	for _, pattern := range []string{"../*/*_arm64.s", "../../*/*_arm64.s"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			for i, s := range strings.Split(string(source), "\n") {
				code, _, _ := strings.Cut(s, "//")
				if raw.MatchString(code) {
					check(path, i+1, s)
				}
			}
		}
	}
	for _, in := range Table {
		require.Truef(t, used[in.Text], "%s: in the table, but no longer in use", in.Text)
	}
}
