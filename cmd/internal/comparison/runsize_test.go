package comparison

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunTooLarge: a run that could not be read again is not written, so that an older
// checkpoint stays the last.
func TestRunTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), runFile)
	sum, err := writeRun(path, saved{})
	require.NoError(t, err)
	_, err = readRun(path, sum)
	require.NoError(t, err)

	before := maxRun
	t.Cleanup(func() { maxRun = before })
	maxRun = func() int64 { return 10 }
	other := filepath.Join(t.TempDir(), runFile)
	_, err = writeRun(other, saved{})
	require.ErrorContains(t, err, "choose a larger --telemetry-every")
	require.NoFileExists(t, other)
}
