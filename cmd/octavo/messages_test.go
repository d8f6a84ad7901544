package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestMessage checks which names of packages a message loses, and that names of files and
// tensors stay.
func TestMessage(t *testing.T) {
	inner := errors.New("safetensors: no header")
	for want, err := range map[string]error{
		"no header":                            inner,
		"model: no header":                     fmt.Errorf("model: %w", inner),
		"no header: name another":              fmt.Errorf("gemm: %w: name another", inner),
		`tensor "gemm: x": element 1 is NaN`:   errors.New(`tensor "gemm: x": element 1 is NaN`),
		"invalid value: no header":             usageError{fmt.Errorf("invalid value: %w", inner)},
		"no header\nmodel: wrong":              errors.Join(inner, errors.New("model: wrong")),
		"train: holds a run":                   errors.New("train: holds a run"),
		"train: open x: is a directory":        errors.New("train: open x: is a directory"),
		"nothing":                              errors.New("nothing"),
		"gemm: x.safetensors has no tensors":   errors.New("gemm: x.safetensors has no tensors"),
		"y.safetensors has no tensors":         errors.New("gemm: y.safetensors has no tensors"),
		"open safetensors: no such file":       errors.New("open safetensors: no such file"),
		"model.safetensors: it has no tensors": errors.New("model.safetensors: it has no tensors"),
	} {
		cmd := &cobra.Command{}
		cmd.Flags().String("out", "", "")
		require.NoError(t, cmd.ParseFlags([]string{"--out", "train", "gemm: x.safetensors"}))
		require.Equal(t, want, message(cmd, err))
	}
	require.Equal(t, "holds a run", message(&cobra.Command{}, errors.New("train: holds a run")))
	require.Equal(t, "holds a run", message(nil, errors.New("train: holds a run")))
}

// TestPackages checks that no package of the library is missing.
func TestPackages(t *testing.T) {
	root := filepath.Join("..", "..")
	folders, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, f := range folders {
		sources, err := filepath.Glob(filepath.Join(root, f.Name(), "*.go"))
		require.NoError(t, err)
		_, err = os.Stat(filepath.Join(root, f.Name(), "go.mod"))
		if nested := err == nil; len(sources) > 0 && !nested { // a module of its own is not in octavo
			require.Contains(t, packages, f.Name())
		}
	}
}

func TestWarningNamesNoPackage(t *testing.T) {
	var out strings.Builder
	warn(&out, "%v", fmt.Errorf("train: checkpoint-1 cannot be used: %w", errors.New("safetensors: no header")))
	require.Equal(t, "octavo: warning: checkpoint-1 cannot be used: no header\n", out.String())
}
