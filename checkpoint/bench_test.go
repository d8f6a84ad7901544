package checkpoint_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
)

// nowhere is a sink that takes everything.
type nowhere struct{}

func (nowhere) WriteAt(string, []byte, int64) error { return nil }

// BenchmarkWrite converts a weight of 64 MiB of BF16, which the system has in memory, to
// each layout. Bytes are those of the source.
func BenchmarkWrite(b *testing.B) {
	dir := b.TempDir()
	v := random("model.layers.0.mlp.up_proj.weight", 1, 4096, 8192)
	require.NoError(b, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), []safetensors.Tensor{v}, nil))
	c, err := checkpoint.Open(dir)
	require.NoError(b, err)
	defer c.Close()
	for _, l := range checkpoint.Layouts() {
		if !l.Writable() {
			continue
		}
		b.Run(l.Name, func(b *testing.B) {
			p, err := checkpoint.NewPlan(c, l, checkpoint.PlanOptions{Amax: map[string]float32{"model.layers.0.mlp.up_proj": 1}})
			require.NoError(b, err)
			b.SetBytes(int64(len(v.Data)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := checkpoint.Write(b.Context(), p.Shards[0].Targets, nowhere{}, checkpoint.Options{})
				require.NoError(b, err)
			}
		})
	}
}
