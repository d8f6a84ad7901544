package identify

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/oracle"
)

// answer has a candidate compute the probes.
func answer(t testing.TB, p *Probes, c Candidate, typ Type) *Answers {
	t.Helper()
	a, err := p.Run(t.Context(), typ, func(ctx context.Context, product Product) ([]float32, error) {
		return c.multiply(ctx, typ, &product)
	})
	require.NoError(t, err)
	return a
}

func identify(t testing.TB, p *Probes, c Candidate, typ Type) *Report {
	t.Helper()
	r, err := Identify(t.Context(), p, answer(t, p, c, typ), Options{})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))
	t.Logf("%s:\n%s", c.Name, b.String())
	return r
}

// TestHopper is the way through files.
func TestHopper(t *testing.T) {
	p, err := New(Setup{K: 256})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "probes.safetensors")
	require.NoError(t, p.WriteFile(path))
	again, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, p, again)
	k := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.ProductThenFMA}
	c := newCandidate(k, true)
	a := answer(t, p, c, Float32)
	answers := filepath.Join(t.TempDir(), "answers.safetensors")
	require.NoError(t, a.WriteFile(answers, p))
	b, err := again.ReadAnswers(answers)
	require.NoError(t, err)
	require.Equal(t, a, b)
	r := identify(t, p, c, Float32)
	found, ok := r.Kernel()
	require.True(t, ok)
	require.Equal(t, k, found)
}
