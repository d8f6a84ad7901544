package main

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// result is what a command line gave.
type result struct {
	status         int
	stdout, stderr string
}

func octavo(stdin io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	args = append([]string{"--progress=none"}, args...) // there is no telling how long a test takes
	status := run(args, stdin, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// succeed runs a command line that must succeed without a word on stderr.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := octavo(strings.NewReader(""), args...)
	require.Equal(t, 0, r.status, r.stderr)
	require.Empty(t, r.stderr)
	return r.stdout
}

// fail runs a command line that must fail with the given status and one line
// on stderr that contains text.
func fail(t *testing.T, status int, text string, args ...string) {
	t.Helper()
	r := octavo(strings.NewReader(""), args...)
	require.Equal(t, status, r.status, r.stderr)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, text)
	require.True(t, strings.HasPrefix(r.stderr, "octavo: "), r.stderr)
	requireNoPackage(t, r.stderr)
	require.Equal(t, len(r.stderr)-1, strings.Index(r.stderr, "\n"), "want one line: %q", r.stderr)
	if status == exitUsage {
		require.Regexp(t, ` \(see octavo.* --help\)\n$`, r.stderr)
	}
}

var nan = float32(math.NaN())

func inf(sign int) float32 { return float32(math.Inf(sign)) }

// requireNoPackage checks that messages say nothing of packages.
func requireNoPackage(t *testing.T, stderr string) {
	t.Helper()
	require.NotRegexp(t, `(^|: )(`+strings.Join(packages, "|")+`): `, stderr)
}
