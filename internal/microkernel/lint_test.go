package microkernel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Legacy SSE instructions among VEX ones cost hundreds of cycles, R15 is not free
// where code is linked dynamically, and registers' upper halves must be clean at
// the end.
func TestNoLegacySSE(t *testing.T) {
	files, err := filepath.Glob("*_amd64.[hs]")
	require.NoError(t, err)
	vector := regexp.MustCompile(`\b[XYZ]\d`)
	macro := regexp.MustCompile(`^([A-Z]+[0-9]*\(|OP )`)
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
			if vector.MatchString(code) && !strings.HasPrefix(code, "V") && !macro.MatchString(code) {
				t.Errorf("%s:%d: %s is not a VEX or EVEX instruction", file, i+1, code)
			}
			require.NotContains(t, code, "R15", "%s:%d", file, i+1)
			if code == "RET" {
				returns++
				require.Equal(t, "VZEROUPPER", before, "%s:%d", file, i+1)
			}
			before = code
		}
	}
	require.GreaterOrEqual(t, returns, 6)
}
