package checkpoint_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/progress"
)

// spreads writes a model of MXFP4 with a weight for each spread: its first block has a scale so
// many powers of two above that of all others, and every code is in every block.
func spreads(t *testing.T, all map[string]int) (dir string) {
	t.Helper()
	every := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	dir = t.TempDir()
	for name, spread := range all {
		rows, scales := make([][][]byte, 130), make([][]byte, 130)
		for r := range rows {
			rows[r] = [][]byte{every, every, every, every, every}
			scales[r] = slices.Repeat([]byte{120}, 5)
		}
		scales[129][4] = byte(120 + spread) // in block [1, 1] of 128x128
		write(t, dir, name+".safetensors", mxfp4("model.layers."+name, rows, scales)...)
	}
	return dir
}

// TestCertificateOfClaims has the proof of each weight that keeps its values, and of one whose
// scales are one step too far apart the block that does not.
func TestCertificateOfClaims(t *testing.T) {
	dir := spreads(t, map[string]int{"0.mlp.up_proj": 14, "1.mlp.up_proj": 15})
	source, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer source.Close()
	convert := func(to string, o checkpoint.PlanOptions) map[string]checkpoint.WeightLoss {
		out := t.TempDir()
		_, err := checkpoint.Convert(t.Context(), planOf(t, source, to, o), out, checkpoint.Options{Strip: 1 << 12})
		require.NoError(t, err)
		cert, err := checkpoint.ReadCertificate(out)
		require.NoError(t, err)
		weights := map[string]checkpoint.WeightLoss{}
		for _, w := range cert.Tensors {
			weights[w.Name] = w
			require.NotNil(t, w.Claim)
			require.Equal(t, w.Claim.Holds, w.Exact, w.Name)
		}
		require.Equal(t, cert.Lossless, weights[name0].Exact && weights[name1].Exact)
		return weights
	}
	all := convert("deepseek-v3-ue8m0", checkpoint.PlanOptions{})
	require.Equal(t, &checkpoint.ProofSummary{Holds: true, Blocks: 4, Spread: 14, Reach: 17, Limit: 17}, all[name0].Claim)
	require.Equal(t, &checkpoint.ProofSummary{
		Blocks: 4, Spread: 15, Reach: 18, Limit: 17, Block: []int{0, 1, 1},
		Why: "from 1536 down to 2^-8 it spans 2^18: one scale of E4M3 allows 2^17; its scales differ by 2^15",
	}, all[name1].Claim)
	require.Positive(t, all[name1].Flushed+int64(len(all[name1].Where)))

	all = convert("deepseek-v3", checkpoint.PlanOptions{})
	require.True(t, all[name0].Claim.Chosen, "scales of amax/448 are no powers of two")
	require.Contains(t, all[name0].Claim.Why, "by deepgemm its scale is 0.0001046317: want a power of two from 2^-13 to 2^1")
	require.False(t, all[name1].Claim.Holds)
	all = convert("deepseek-v3", checkpoint.PlanOptions{Arithmetic: "te-block-pow2"})
	require.True(t, all[name0].Claim.Holds)

	all = convert("bf16", checkpoint.PlanOptions{})
	require.True(t, all[name0].Exact && all[name1].Exact)
	all = convert("f16", checkpoint.PlanOptions{})
	require.True(t, all[name1].Exact)
}

const (
	name0 = "model.layers.0.mlp.up_proj.weight"
	name1 = "model.layers.1.mlp.up_proj.weight"
)

// TestLosslessOrNothing writes nothing where something would be lost, and says what.
func TestLosslessOrNothing(t *testing.T) {
	source, err := checkpoint.Open(spreads(t, map[string]int{"0.mlp.up_proj": 14, "1.mlp.up_proj": 15}))
	require.NoError(t, err)
	defer source.Close()
	o := checkpoint.PlanOptions{Lossless: true}
	dir := t.TempDir()
	_, err = checkpoint.Convert(t.Context(), planOf(t, source, "deepseek-v3-ue8m0", o), dir, checkpoint.Options{})
	require.ErrorIs(t, err, checkpoint.ErrLossy)
	require.ErrorContains(t, err, `tensor "`+name1+`": block [1, 1] of matrix 0: from 1536 down to 2^-8`)
	require.Empty(t, files(t, dir))

	o.Except = func(name string) bool { return name == name1 } // which becomes BF16
	cert, err := checkpoint.Convert(t.Context(), planOf(t, source, "deepseek-v3-ue8m0", o), dir, checkpoint.Options{})
	require.NoError(t, err)
	require.True(t, cert.Lossless)

	o = checkpoint.PlanOptions{Lossless: true}
	_, err = checkpoint.NewPlan(golden(t, "llama-bf16"), layout(t, "fp8"), o)
	require.ErrorIs(t, err, checkpoint.ErrLossy)
	require.ErrorContains(t, err, "values of BF16 lose something in fp8-tensor")

	scaled, dir := golden(t, "llama-deepseek-fp8"), t.TempDir() // by scales that are no powers of two
	claims, err := planOf(t, scaled, "bf16", o).Claims()
	require.NoError(t, err)
	require.Less(t, len(claims), 2, "one happens to have scales that are powers of two")
	_, err = checkpoint.Convert(t.Context(), planOf(t, scaled, "bf16", o), dir, checkpoint.Options{})
	require.ErrorIs(t, err, checkpoint.ErrLossy)
	require.ErrorContains(t, err, "from fp8-block to BF16 the largest error is")
	require.NoFileExists(t, filepath.Join(dir, checkpoint.CertificateName))
	accepted := planOf(t, scaled, "bf16", checkpoint.PlanOptions{})
	_, err = checkpoint.Convert(t.Context(), accepted, dir, checkpoint.Options{})
	require.NoError(t, err)
	_, err = checkpoint.Convert(t.Context(), planOf(t, scaled, "bf16", o), dir, checkpoint.Options{})
	require.ErrorIs(t, err, checkpoint.ErrLossy, "the certificate that is there says so")
}

// TestSourceChanges changes a file of the source while it is read, in every way.
func TestSourceChanges(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"touched":   func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)) },
		"truncated": func(path string) error { return os.Truncate(path, 1000) },
		"grown": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.Write([]byte{0})
				f.Close()
			}
			return err
		},
		"replaced": func(path string) error {
			return os.Rename(filepath.Join(filepath.Dir(path), "1.mlp.up_proj.safetensors"), path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := spreads(t, map[string]int{"0.mlp.up_proj": 1, "1.mlp.up_proj": 2, "2.mlp.up_proj": 3})
			source, err := checkpoint.Open(dir)
			require.NoError(t, err)
			defer source.Close()
			path, out := filepath.Join(dir, "2.mlp.up_proj.safetensors"), t.TempDir()
			changed := false
			halfway := progress.Func(func(op string, done, total int64) {
				if !changed && op == "convert" && done > total/2 {
					changed = true
					require.NoError(t, change(path))
				}
			})
			p := planOf(t, source, "bf16", checkpoint.PlanOptions{})
			o := checkpoint.Options{Strip: 1 << 10, Workers: 1, Progress: halfway}
			_, err = checkpoint.Convert(t.Context(), p, out, o)
			require.ErrorIs(t, err, checkpoint.ErrChanged)
			require.ErrorContains(t, err, ".safetensors: it has changed since the conversion began")
			require.NoFileExists(t, filepath.Join(out, checkpoint.CertificateName))
			_, err = checkpoint.Convert(t.Context(), p, t.TempDir(), checkpoint.Options{})
			require.ErrorIs(t, err, checkpoint.ErrChanged, "since it was planned")
		})
	}
}
