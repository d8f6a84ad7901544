package checkpoint_test

import (
	"bytes"
	"context"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/progress"
)

// files returns the content of all files of a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(data)
	}
	return all
}

func planOf(t *testing.T, c *checkpoint.Checkpoint, name string, o checkpoint.PlanOptions) *checkpoint.Plan {
	t.Helper()
	p, err := checkpoint.NewPlan(c, layout(t, name), o)
	require.NoError(t, err)
	return p
}

// TestConvertCutOff stops conversions at every report of progress, with and without damage to
// what is there, and compares what comes of going on with what comes of one piece.
func TestConvertCutOff(t *testing.T) {
	source := golden(t, "llama-bf16")
	for _, name := range []string{"fp8", "f32"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			reports := 0
			var ops []string
			count := progress.Func(func(op string, done, total int64) {
				reports++
				require.LessOrEqual(t, done, total)
				if len(ops) == 0 || ops[len(ops)-1] != op {
					ops = append(ops, op)
				}
			})
			o := checkpoint.PlanOptions{}
			_, err := checkpoint.Convert(t.Context(), planOf(t, source, name, o), dir, checkpoint.Options{Strip: 1 << 12, Progress: count})
			require.NoError(t, err)
			require.Equal(t, "convert", ops[0])
			require.Equal(t, name == "f32", len(ops) > 1, "what loses nothing is compared: %v", ops)
			want := files(t, dir)
			names := planOf(t, source, name, o).Files()
			require.Len(t, want, len(names))
			resumed, stops := 0, 60
			if testing.Short() {
				stops = 8
			}
			for stop := 1; stop < reports; stop += 1 + reports/stops {
				dir := t.TempDir()
				ctx, cancel := context.WithCancel(t.Context())
				heard := 0
				halt := progress.Func(func(string, int64, int64) {
					if heard++; heard == stop {
						cancel()
					}
				})
				p := planOf(t, source, name, o)
				_, err := checkpoint.Convert(ctx, p, dir, checkpoint.Options{Strip: 1 << 12, Workers: 3, Progress: halt})
				cancel()
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
					require.NoFileExists(t, filepath.Join(dir, checkpoint.CertificateName))
				}
				done, err := p.Done(dir)
				require.NoError(t, err)
				resumed += done
				if done > 0 && stop%3 == 0 { // a bit, or the end, of a shard is lost
					path := filepath.Join(dir, p.Shards[0].Name)
					data, err := os.ReadFile(path)
					require.NoError(t, err)
					data[len(data)/2] ^= 1
					require.NoError(t, os.WriteFile(path, data[:len(data)-stop%2], 0o666))
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, ".octavo-left"), nil, 0o666)) // as a kill leaves it
				again := planOf(t, source, name, o)
				_, err = checkpoint.Convert(t.Context(), again, dir, checkpoint.Options{Strip: 1 << 12})
				require.NoError(t, err)
				for name, data := range files(t, dir) {
					require.True(t, want[name] == data, "stop %d: %s", stop, name)
				}
				require.Len(t, files(t, dir), len(want))
			}
			require.Greater(t, resumed, stops/6)
		})
	}
}

// TestConvertElsewhere refuses a directory that has something of another plan.
func TestConvertElsewhere(t *testing.T) {
	source, dir := golden(t, "tied-bf16"), t.TempDir()
	first := planOf(t, source, "ct-fp8-dynamic", checkpoint.PlanOptions{})
	cert, err := checkpoint.Convert(t.Context(), first, dir, checkpoint.Options{})
	require.NoError(t, err)
	again, err := checkpoint.Convert(t.Context(), first, dir, checkpoint.Options{})
	require.NoError(t, err)
	require.Equal(t, cert.Files, again.Files)
	for _, o := range []checkpoint.PlanOptions{
		{Arithmetic: "modelopt-fp8"},
		{Except: func(name string) bool { return strings.Contains(name, "up_proj") }},
	} {
		_, err = checkpoint.Convert(t.Context(), planOf(t, source, "ct-fp8-dynamic", o), dir, checkpoint.Options{})
		require.ErrorIs(t, err, checkpoint.ErrPlan)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.CertificateName), []byte("{"), 0o666))
	_, err = checkpoint.Convert(t.Context(), first, dir, checkpoint.Options{})
	require.ErrorContains(t, err, "it is no certificate")
}

// TestCertificate compares sums with those of the files, and errors with their definition.
func TestCertificate(t *testing.T) {
	source, dir := golden(t, "llama-bf16"), t.TempDir()
	made, err := checkpoint.Convert(t.Context(), planOf(t, source, "ct-mxfp4", checkpoint.PlanOptions{}), dir, checkpoint.Options{})
	require.NoError(t, err)
	cert, err := checkpoint.ReadCertificate(dir)
	require.NoError(t, err)
	require.Equal(t, made.Files, cert.Files)
	require.False(t, cert.Lossless)
	require.Empty(t, cert.Proof)
	for _, f := range cert.Files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		require.NoError(t, err)
		require.Len(t, data, int(f.Bytes))
		sum, err := strconv.ParseUint(f.CRC32, 16, 32)
		require.NoError(t, err)
		require.Equal(t, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)), uint32(sum))
	}
	after, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer after.Close()
	require.Len(t, cert.Tensors, len(source.Weights()))
	lost := 0
	for _, l := range cert.Tensors {
		before, now := source.Weight(l.Name), after.Weight(l.Name)
		require.Equal(t, now.Parts[checkpoint.Codes].File, l.File)
		require.Equal(t, before.Shape, l.Shape)
		require.Equal(t, now.Scheme == nil, l.Copied)
		x, y := make([]float32, before.Len()), make([]float32, before.Len())
		require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), before, 0, 0, x))
		require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), now, 0, 0, y))
		var noise, signal, largest float64
		where, flushed := -1, int64(0)
		for i := range x {
			d := math.Abs(float64(x[i]) - float64(y[i]))
			noise += d * d
			signal += float64(x[i]) * float64(x[i])
			if d > largest {
				largest, where = d, i
			}
			if x[i] != 0 && y[i] == 0 {
				flushed++
			}
		}
		require.Equal(t, noise == 0, l.Exact, l.Name)
		require.Equal(t, largest, float64(l.Largest))
		require.Equal(t, flushed, l.Flushed, l.Name)
		if noise > 0 {
			lost++
			require.InDelta(t, 10*math.Log10(signal/noise), float64(l.SQNR), 1e-9)
			cols := before.Shape[len(before.Shape)-1]
			require.Equal(t, []int{where / cols, where % cols}, l.Where)
		}
	}
	require.Greater(t, lost, 8)
}

// TestConvertLossless proves conversions that lose nothing, experts that are transposed among them.
func TestConvertLossless(t *testing.T) {
	experts := random("model.layers.0.mlp.experts.gate_up_proj", 1, 2, 64, 64)
	whole := t.TempDir()
	write(t, whole, "model.safetensors", experts)
	open := func(dir string) *checkpoint.Checkpoint {
		c, err := checkpoint.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	convert := func(c *checkpoint.Checkpoint, to string) (string, *checkpoint.Certificate) {
		dir := t.TempDir()
		cert, err := checkpoint.Convert(t.Context(), planOf(t, c, to, checkpoint.PlanOptions{}), dir, checkpoint.Options{Strip: 1 << 10})
		require.NoError(t, err)
		return dir, cert
	}
	packed, cert := convert(open(whole), "gpt-oss")
	require.False(t, cert.Lossless)
	require.Equal(t, []int{2, 64, 64}, cert.Tensors[0].Shape)
	values, cert := convert(open(packed), "bf16")
	require.True(t, cert.Lossless, "codes of four bits times powers of two")
	require.NotEmpty(t, cert.Proof)
	_, cert = convert(open(values), "gpt-oss")
	require.True(t, cert.Lossless)
	_, cert = convert(golden(t, "llama-ct-mxfp4"), "f32")
	require.True(t, cert.Lossless)
	_, cert = convert(golden(t, "llama-deepseek-fp8"), "bf16")
	require.False(t, cert.Lossless)
}

// TestCopiedFiles: what belongs to the tokenizer goes along, weights in other forms do not.
func TestCopiedFiles(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	from := testutil.Shared(t, "golden", "checkpoints", "tied-bf16")
	for name, data := range files(t, from) {
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(data), 0o666))
	}
	long := bytes.Repeat([]byte("x"), 3<<20)
	for name, data := range map[string][]byte{
		"tokenizer.json": long, "LICENSE": []byte("free"), "merges.txt": nil, ".gitattributes": nil, "pytorch_model.bin": nil,
		"octavo-run.json": nil, "certificate.json": nil, "hf_quant_config.json": []byte("{}"), "model.gguf": nil,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(source, name), data, 0o666))
	}
	require.NoError(t, os.Mkdir(filepath.Join(source, "original"), 0o777))
	c, err := checkpoint.Open(source)
	require.NoError(t, err)
	defer c.Close()
	p := planOf(t, c, "ct-fp8-dynamic", checkpoint.PlanOptions{})
	require.Equal(t, []string{"LICENSE", "merges.txt", "tokenizer.json"}, p.CopiedFiles())
	_, err = checkpoint.Convert(t.Context(), p, dir, checkpoint.Options{})
	require.NoError(t, err)
	got := files(t, dir)
	require.True(t, got["tokenizer.json"] == string(long))
	require.Equal(t, "free", got["LICENSE"])
	require.Len(t, got, 6) // with the model, its configuration and the certificate

	path := filepath.Join(source, c.Files()[0])
	one, err := checkpoint.Open(path)
	require.NoError(t, err)
	defer one.Close()
	require.Equal(t, p.CopiedFiles(), planOf(t, one, "ct-fp8-dynamic", checkpoint.PlanOptions{}).CopiedFiles())
	require.NoError(t, os.Remove(filepath.Join(source, checkpoint.ConfigName)))
	alone, err := checkpoint.Open(path)
	require.NoError(t, err)
	defer alone.Close()
	require.Empty(t, planOf(t, alone, "ct-fp8-dynamic", checkpoint.PlanOptions{}).CopiedFiles(),
		"what lies beside a file need not be of its model")
}
