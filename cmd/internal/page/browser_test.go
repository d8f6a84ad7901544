//go:build !js

package page

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/browsertest"
)

func TestAtlasInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	var html bytes.Buffer
	require.NoError(t, New("atlas", `<h1>Charts of all kinds</h1>{{range .}}{{chart .}}{{end}}`, nil).Write(&html, "Charts of all kinds", atlas()))
	file := filepath.Join(t.TempDir(), "atlas.html")
	require.NoError(t, os.WriteFile(file, html.Bytes(), 0o666))
	b.Check(t, "charts", file)
}
