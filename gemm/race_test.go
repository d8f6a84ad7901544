//go:build race

package gemm_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestRace runs products in processes of their own, at every level of the machine,
// while another goroutine writes to what they read or touches what they write, and
// wants the race to be found: assembly is not seen by the detector.
func TestRace(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 1))
	const m, n, k = 40, 70, 256
	a := random(r, "a", fp8.E4M3, tile128, kind{}, m, k)
	b := random(r, "b", fp8.E4M3, tensor.Block{Rows: 2, Cols: 64}, kind{}, n, k) // of one scale to 2 rows
	row := random(r, "row", fp8.E4M3, tile128, kind{}, 1, k)
	squares, err := b.RowRange(0, 64)
	require.NoError(t, err)
	w, err := gemm.Pack(b)
	require.NoError(t, err)
	c, bias := make([]float32, m*n), make([]float32, n)
	multiply := func(o gemm.Options) func() { return func() { _ = gemm.Multiply(t.Context(), c, a, b, o) } }
	experts := []*tensor.Tensor{b, b}
	cases := map[string]struct{ product, touch func() }{
		"codes of A":              {multiply(gemm.Options{}), func() { a.Codes[m*k/2]++ }},
		"codes of B":              {multiply(gemm.Options{}), func() { b.Codes[n*k/2]++ }},
		"scales of A":             {multiply(gemm.Options{}), func() { a.Scales[m]++ }},
		"scales of B":             {multiply(gemm.Options{}), func() { b.Scales[len(b.Scales)/2]++ }},
		"bias":                    {multiply(gemm.Options{Bias: bias}), func() { bias[n/2]++ }},
		"C":                       {multiply(gemm.Options{}), func() { c[m*n/2]++ }},
		"C in whole squares":      {func() { _ = gemm.Multiply(t.Context(), c[:m*64], a, squares, gemm.Options{}) }, func() { c[m*32]++ }},
		"codes of B, one row":     {func() { _ = gemm.Multiply(t.Context(), c[:n], row, b, gemm.Options{}) }, func() { b.Codes[n*k/2]++ }},
		"codes of A, packed B":    {func() { _ = gemm.Multiply(t.Context(), c, a, w, gemm.Options{}) }, func() { a.Codes[m*k/2]++ }},
		"codes of what is packed": {func() { _, _ = gemm.Pack(b) }, func() { b.Codes[n*k/2]++ }},
		"codes of an expert": {func() { _ = gemm.GroupedRows(t.Context(), c, a, experts, []int{m / 2, m / 2}, gemm.Options{}) },
			func() { b.Codes[n*k/2]++ }},
	}
	levels := slices.DeleteFunc(kernels.Levels("gemm.Multiply"), func(l cpu.Level) bool { return !slices.Contains(cpu.Levels(), l) })
	for _, l := range levels {
		for name, test := range cases {
			t.Run(l.String()+"/"+name, func(t *testing.T) {
				if os.Getenv("OCTAVO_RACE") != "" {
					defer force(t, l)()
					touchDuring(test.touch, test.product)
					return
				}
				again := exec.Command(os.Args[0], "-test.run=^TestRace$/^"+l.String()+"$/^"+strings.ReplaceAll(name, " ", "_")+"$")
				again.Env = append(os.Environ(), "OCTAVO_RACE=1")
				out, _ := again.CombinedOutput()
				require.Contains(t, string(out), "DATA RACE")
			})
		}
	}
}

// touchDuring runs touch, then product, with nothing that orders them but time. The
// goroutine of touch goes on until the end: the detector forgets what one did whose
// place another has taken.
func touchDuring(touch, product func()) {
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		touch()
		<-stop
		close(stopped)
	}()
	time.Sleep(50 * time.Millisecond)
	product()
	close(stop)
	<-stopped
}
