package convert

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Instructions with legacy SSE encodings between VEX and EVEX ones, and a return
// with dirty upper halves, cost hundreds of cycles.
func TestNoLegacySSE(t *testing.T) {
	files, err := filepath.Glob("*_amd64.[sh]")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	files = append(files, "../amx/multiply_amd64.s", "../amx/pack_amd64.s", "../../bench/peak_amd64.s")
	vector := regexp.MustCompile(`\b[XYZ]\d`)
	returns := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		before := ""
		for i, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			code = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(code), "\\"))
			if code == "" || strings.HasPrefix(code, "#") {
				continue
			}
			if vector.MatchString(code) && !strings.HasPrefix(code, "V") && !regexp.MustCompile(`^[A-Z0-9_]+\(`).MatchString(code) && !regexp.MustCompile(`^OP(\.BCST)? `).MatchString(code) {
				t.Errorf("%s:%d: %s is not a VEX or EVEX instruction", file, i+1, code)
			}
			if code == "RET" {
				returns++
				require.Equal(t, "VZEROUPPER", before, "%s:%d", file, i+1)
			}
			before = code
		}
	}
	require.GreaterOrEqual(t, returns, 10)
}
