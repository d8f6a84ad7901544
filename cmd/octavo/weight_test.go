package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandIsLight: these packages made the command half as large again. html/template calls methods by name, so that
// the linker keeps all of them.
func TestCommandIsLight(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	require.NoError(t, err, "%s", list)
	all := strings.Fields(string(list))
	require.Contains(t, all, "github.com/spf13/cobra")
	for _, heavy := range []string{"net/http", "crypto/tls", "html/template", "gonum.org/v1/plot"} {
		require.False(t, slices.Contains(all, heavy), heavy)
	}
}
