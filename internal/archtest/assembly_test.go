package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	vector = regexp.MustCompile(`\b[XYZ]\d`)
	macro  = regexp.MustCompile(`^([A-Za-z0-9_]+\(|OP(\.BCST)? )`)
	fused  = regexp.MustCompile(`^VFN?M(ADD|SUB)`)
)

// flaws returns what is wrong with assembly for amd64. Legacy SSE instructions among
// VEX and EVEX ones, and a return with dirty upper halves of registers, cost hundreds
// of cycles; R15 is not free where code is linked dynamically; and a fused
// multiply-add rounds once where Go code with the same bits rounds twice.
func flaws(text string, mayFuse bool) (list []string) {
	vectors := vector.MatchString(text)
	before := ""
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "//")
		code = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(code), "\\"))
		if code == "" || strings.HasPrefix(code, "#") {
			continue
		}
		if vector.MatchString(code) && !strings.HasPrefix(code, "V") && !macro.MatchString(code) {
			list = append(list, code+": not a VEX or EVEX instruction")
		}
		if strings.Contains(code, "R15") {
			list = append(list, code+": R15")
		}
		if !mayFuse && fused.MatchString(code) {
			list = append(list, code+": fused")
		}
		if code == "RET" && vectors && before != "VZEROUPPER" {
			list = append(list, "RET without VZEROUPPER")
		}
		before = code
	}
	return list
}

// TestAssembly checks all assembly for amd64, that of the nested modules included.
func TestAssembly(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name := filepath.Base(file)
		if err != nil || !strings.HasSuffix(name, "_amd64.s") && !strings.HasSuffix(name, "_amd64.h") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files++
		for _, flaw := range flaws(string(text), !strings.Contains(filepath.ToSlash(file), "internal/elementary/")) {
			t.Errorf("%s: %s", file, flaw)
		}
		return nil
	}))
	require.GreaterOrEqual(t, files, 15)
}

func TestFlaws(t *testing.T) {
	require.Empty(t, flaws("TEXT ·f(SB), $0\n\tVADDPS Y0, Y1, Y2 \\\n\tVFMADD231PS Y0, Y1, Y2\n\tOP.BCST (AX), Z1\n\tSUM(X0)\n\tVZEROUPPER\n\tRET\n", true))
	require.Empty(t, flaws("TEXT ·f(SB), $0\n\tRET\n", false))
	require.Equal(t, []string{"ADDPS X0, X1: not a VEX or EVEX instruction", "RET without VZEROUPPER"}, flaws("\tADDPS X0, X1\n\tRET\n", true))
	require.Equal(t, []string{"MOVQ R15, AX: R15"}, flaws("\tMOVQ R15, AX\n", true))
	require.Equal(t, []string{"VFNMADD231PS Y0, Y1, Y2: fused"}, flaws("\tVFNMADD231PS Y0, Y1, Y2\n", false))
}
