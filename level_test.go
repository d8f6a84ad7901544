package octavo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const childVariable = "OCTAVO_LEVEL_CHILD"

// TestMain is a program that uses the library where childVariable says so.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	level, err := octavo.Level()
	fmt.Println(level, errors.Is(err, octavo.ErrLevel), err)
	x := &tensor.Tensor{Shape: []int{1, 2}}
	if err := scaling.Quantize(context.Background(), x, []float32{1, 2}, scaling.Quantizer{Recipe: scaling.Default(scaling.Input)}); err != nil {
		panic(err)
	}
	c := make([]float32, 1)
	if err := gemm.Multiply(context.Background(), c, x, x, gemm.Options{}); err != nil {
		panic(err)
	}
	fmt.Println(c[0])
}

func child(t *testing.T, level string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1", "OCTAVO_LEVEL="+level)
	out, err := cmd.CombinedOutput()
	testutil.NoProcess(t, err)
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestLevel starts programs with every level of this machine, and with levels that
// cannot be met, which is an error to ask for and nothing worse.
func TestLevel(t *testing.T) {
	levels := octavo.Levels()
	require.Equal(t, "generic", levels[0])
	for _, l := range levels {
		require.Equal(t, l+" false <nil>\n5\n", child(t, l))
	}
	highest := levels[len(levels)-1]
	require.Equal(t, highest+" false <nil>\n5\n", child(t, ""))
	require.Equal(t, highest+` true OCTAVO_LEVEL: unknown level "sse9": want one of generic, neon, avx2, avx512, avx512bf16, amx`+"\n5\n", child(t, "sse9"))
	for l := cpu.Generic; l < cpu.NumLevels; l++ {
		if !slices.Contains(levels, l.String()) {
			require.Equal(t, fmt.Sprintf("%s true OCTAVO_LEVEL: this machine has no level %v: it has %v\n5\n", highest, l, levels), child(t, l.String()))
		}
	}
}

func TestFeatures(t *testing.T) {
	if slices.Contains(octavo.Levels(), "avx2") {
		require.Contains(t, octavo.Features(), "avx2")
	}
}

func Example() {
	if level, err := octavo.Level(); err != nil {
		fmt.Printf("%v; level %s is used instead\n", err, level)
	}
	// Output:
}
