//go:build !js

package browsertest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// axeVariable names the environment variable with the path of axe.min.js of axe-core,
// which is no part of the repository.
const axeVariable = "OCTAVO_AXE"

// axeSum is the SHA-256 of axe.min.js of axe-core 4.14.1.
const axeSum = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

func readAxe(t *testing.T) string {
	t.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		return ""
	}
	script, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(script)
	require.Equal(t, axeSum, hex.EncodeToString(sum[:]), "%s: want axe.min.js of axe-core 4.14.1", path)
	return string(script)
}

// runAxe returns the rules that the page breaks, and where.
const runAxe = `axe.run(document, { resultTypes: ['violations'] }).then(result => result.violations.flatMap(rule =>
	rule.nodes.slice(0, 5).map(node => rule.id + ': ' + node.target.join(' ') + ': ' + node.failureSummary.replace(/\s+/g, ' '))))`

// rules returns what the rules of axe-core find.
func (o *tab) rules(t *testing.T, b *Browser) []string {
	t.Helper()
	if b.axe == "" {
		skipAxe(t)
	}
	evaluate[any](t, o, b.axe+"\ntrue")
	return evaluate[[]string](t, o, runAxe)
}

func skipAxe(t *testing.T) {
	t.Helper()
	testutil.Lacking(t, "contrast and other rules of accessibility are not checked: %s names no axe.min.js", axeVariable)
}
