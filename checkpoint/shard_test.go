package checkpoint_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/progress"
)

// TestConvertShard converts the shards of a model backwards, two processes at once and after
// calls that were cut off, and compares all files with those of Convert. Other processes are
// other plans here, which share no memory.
func TestConvertShard(t *testing.T) {
	for _, test := range []struct{ from, layout string }{
		{"moe-bf16", "ct-nvfp4a16"}, {"llama-bf16", "ct-fp8"}, {"llama-bf16", "f32"},
	} {
		t.Run(test.from+" "+test.layout, func(t *testing.T) {
			source := golden(t, test.from)
			o := checkpoint.PlanOptions{Amax: readCalibration(t)}
			if test.from != "llama-bf16" {
				o.Amax = nil
			}
			p := planOf(t, source, test.layout, o)
			whole, dir := t.TempDir(), t.TempDir()
			_, err := checkpoint.Convert(t.Context(), p, whole, checkpoint.Options{})
			require.NoError(t, err)

			for i := len(p.Shards) - 1; i >= 0; i-- {
				_, err := checkpoint.Finish(t.Context(), planOf(t, source, test.layout, o), dir, checkpoint.Options{})
				require.ErrorIs(t, err, checkpoint.ErrPlan)
				require.ErrorContains(t, err, "it is not complete")
				cutOff(t, planOf(t, source, test.layout, o), dir, i)
				results := make([]*checkpoint.ShardResult, 2)
				errs := make([]error, 2)
				var wg sync.WaitGroup
				for k := range results {
					other := planOf(t, source, test.layout, o)
					wg.Go(func() {
						results[k], errs[k] = checkpoint.ConvertShard(t.Context(), other, dir, i, checkpoint.Options{})
					})
				}
				wg.Wait()
				require.Equal(t, []error{nil, nil}, errs)
				require.Equal(t, asText(t, results[0]), asText(t, results[1]))
				path := filepath.Join(dir, p.Shards[i].Name)
				before, err := os.Stat(path)
				require.NoError(t, err)
				again, err := checkpoint.ConvertShard(t.Context(), planOf(t, source, test.layout, o), dir, i, checkpoint.Options{})
				require.NoError(t, err)
				require.Equal(t, asText(t, results[0]), asText(t, again))
				after, err := os.Stat(path)
				require.NoError(t, err)
				require.True(t, os.SameFile(before, after), "it was written again")
				checkStats(t, source, again)
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				data[len(data)/2] ^= 1
				require.NoError(t, os.WriteFile(path, data, 0o666))
				again, err = checkpoint.ConvertShard(t.Context(), planOf(t, source, test.layout, o), dir, i, checkpoint.Options{})
				require.NoError(t, err)
				require.Equal(t, asText(t, results[0]), asText(t, again), "a bit was lost")
			}
			cert, err := checkpoint.Finish(t.Context(), planOf(t, source, test.layout, o), dir, checkpoint.Options{})
			require.NoError(t, err)
			require.Equal(t, test.layout == "f32", cert.Lossless)
			want, got := files(t, whole), files(t, dir)
			require.Len(t, got, len(want))
			for name, data := range want {
				require.True(t, data == got[name], name)
			}
		})
	}
}

// asText returns what can be compared: NaN is not equal to itself.
func asText(t *testing.T, r *checkpoint.ShardResult) string {
	t.Helper()
	data, err := json.Marshal(r)
	require.NoError(t, err)
	return string(data)
}

// cutOff stops a conversion of a shard at its second report of progress.
func cutOff(t *testing.T, p *checkpoint.Plan, dir string, shard int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := 0
	halt := progress.Func(func(string, int64, int64) {
		if heard++; heard == 2 {
			cancel()
		}
	})
	_, err := checkpoint.ConvertShard(ctx, p, dir, shard, checkpoint.Options{Progress: halt})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, filepath.Join(dir, p.Shards[shard].Name))
}

// checkStats compares counts with those of one pass over the values.
func checkStats(t *testing.T, source *checkpoint.Checkpoint, r *checkpoint.ShardResult) {
	t.Helper()
	require.Len(t, r.Stats, len(r.Tensors))
	for i, l := range r.Tensors {
		if l.Arithmetic == "" {
			require.Equal(t, fp8.Stats{}, r.Stats[i], l.Name)
			continue
		}
		values := make([]float32, l.Elements)
		require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), source.Weight(l.Name), 0, 0, values))
		amax, _ := fp8.Amax(values)
		require.Equal(t, float64(amax), r.Stats[i].Amax, l.Name)
		require.Equal(t, l.Elements, r.Stats[i].Elements, l.Name)
	}
}

func TestConvertShardRefuses(t *testing.T) {
	source, dir := golden(t, "tied-bf16"), t.TempDir()
	p := planOf(t, source, "bf16", checkpoint.PlanOptions{})
	for _, i := range []int{-1, 1} {
		_, err := checkpoint.ConvertShard(t.Context(), p, dir, i, checkpoint.Options{})
		require.ErrorContains(t, err, "the plan has 1")
	}
	_, err := checkpoint.ConvertShard(t.Context(), p, filepath.Join(dir, "absent"), 0, checkpoint.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = checkpoint.ConvertShard(t.Context(), p, dir, 0, checkpoint.Options{})
	require.NoError(t, err)
	lossy := planOf(t, golden(t, "llama-ct-nvfp4a16"), "bf16", checkpoint.PlanOptions{Lossless: true})
	_, err = checkpoint.ConvertShard(t.Context(), lossy, t.TempDir(), 0, checkpoint.Options{})
	require.ErrorIs(t, err, checkpoint.ErrLossy)
	other := planOf(t, source, "f32", checkpoint.PlanOptions{})
	_, err = checkpoint.ConvertShard(t.Context(), other, dir, 0, checkpoint.Options{})
	require.ErrorIs(t, err, checkpoint.ErrPlan)
	_, err = checkpoint.Finish(t.Context(), other, dir, checkpoint.Options{})
	require.ErrorIs(t, err, checkpoint.ErrPlan)
}
