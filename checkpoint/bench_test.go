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
	write(b, dir, "model.safetensors", v)
	c, err := checkpoint.Open(dir)
	require.NoError(b, err)
	defer c.Close()
	for _, l := range checkpoint.Layouts() {
		if !l.Writable() {
			continue
		}
		b.Run(l.Name, func(b *testing.B) {
			p, err := checkpoint.NewPlan(c, l, checkpoint.PlanOptions{Amax: map[string]float32{"model.layers.0.mlp.up_proj": 1}})
			if err != nil {
				b.Skip(err) // it is for stacks of experts
			}
			b.SetBytes(int64(len(v.Data)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := checkpoint.Write(b.Context(), p.Shards[0].Targets, nowhere{}, checkpoint.Options{Errors: true})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkDequantize converts the same weight back to BF16. Bytes are those that are written.
func BenchmarkDequantize(b *testing.B) {
	from := b.TempDir()
	v := random("model.layers.0.mlp.up_proj.weight", 1, 4096, 8192)
	write(b, from, "model.safetensors", v)
	source, err := checkpoint.Open(from)
	require.NoError(b, err)
	defer source.Close()
	for _, name := range []string{"deepseek-v3", "ct-fp8-dynamic", "ct-mxfp4", "ct-nvfp4a16"} {
		b.Run(name, func(b *testing.B) {
			l, err := checkpoint.ParseLayout(name)
			require.NoError(b, err)
			p, err := checkpoint.NewPlan(source, l, checkpoint.PlanOptions{})
			require.NoError(b, err)
			path := filepath.Join(b.TempDir(), "model.safetensors")
			s := p.Shards[0]
			require.NoError(b, safetensors.WriteFileAtFunc(path, s.Infos(), nil, func(w *safetensors.WriterAt) error {
				_, err := checkpoint.Write(b.Context(), s.Targets, w, checkpoint.Options{})
				return err
			}))
			c, err := checkpoint.Open(path)
			require.NoError(b, err)
			defer c.Close()
			back, err := checkpoint.NewPlan(c, checkpoint.Layouts()[0], checkpoint.PlanOptions{})
			require.NoError(b, err)
			b.SetBytes(int64(len(v.Data)))
			for b.Loop() {
				_, err := checkpoint.Write(b.Context(), back.Shards[0].Targets, nowhere{}, checkpoint.Options{Errors: true})
				require.NoError(b, err)
			}
		})
	}
}
