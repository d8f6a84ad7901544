package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// golden opens a golden checkpoint.
func golden(t *testing.T, name string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(testutil.Shared(t, "golden", "checkpoints", name))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// manifest is what golden/checkpoints/manifest.json says of every checkpoint.
type manifest struct {
	Checkpoints map[string]struct {
		TotalSize int64 `json:"total_size"`
		Tensors   map[string]struct {
			DType  string
			Shape  []int
			File   string
			SHA256 string
		}
	}
	MoE map[string]string `json:"moe-dequant-bf16-sha256"`
}

func readManifest(t *testing.T) (m manifest) {
	t.Helper()
	data, err := os.ReadFile(testutil.Shared(t, "golden", "checkpoints", "manifest.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &m))
	return m
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// memory is a sink that keeps what is written, and counts it.
type memory struct {
	mu      sync.Mutex
	data    map[string][]byte
	written map[string]int
}

func newMemory(infos []safetensors.Info) *memory {
	m := &memory{data: map[string][]byte{}, written: map[string]int{}}
	for _, info := range infos {
		m.data[info.Name] = make([]byte, info.Bytes())
	}
	return m
}

func (m *memory) WriteAt(name string, p []byte, off int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.data[name]
	if off < 0 || off+int64(len(p)) > int64(len(data)) {
		return fmt.Errorf("%s: %d bytes at %d of %d", name, len(p), off, len(data))
	}
	m.written[name] += copy(data[off:], p)
	return nil
}

// whole fails unless as many bytes were written as there are.
func (m *memory) whole(t *testing.T) {
	t.Helper()
	for name, data := range m.data {
		require.Len(t, data, m.written[name], name)
	}
}

// convert returns what a plan writes, by name.
func convert(t *testing.T, p *checkpoint.Plan, o checkpoint.Options) (map[string]safetensors.Tensor, []checkpoint.Result) {
	t.Helper()
	all := map[string]safetensors.Tensor{}
	var results []checkpoint.Result
	for _, s := range p.Shards {
		m := newMemory(s.Infos())
		r, err := checkpoint.Write(t.Context(), s.Targets, m, o)
		require.NoError(t, err)
		m.whole(t)
		results = append(results, r...)
		for _, info := range s.Infos() {
			all[info.Name] = safetensors.Tensor{Info: info, Data: m.data[info.Name]}
		}
	}
	return all, results
}

func readCalibration(t *testing.T) (amax map[string]float32) {
	data, err := os.ReadFile(testutil.Shared(t, "golden", "checkpoints", "llama-fp8-static", "calibration.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &amax))
	return amax
}

// conversions are the golden checkpoints and what they come of.
var conversions = []struct {
	from, layout, to string
	arithmetic       checkpoint.Arithmetic
	calibrated       bool
}{
	{from: "llama-bf16", layout: "deepseek-v3", to: "llama-deepseek-fp8"},
	{from: "moe-bf16", layout: "deepseek-v3", to: "moe-deepseek-fp8"},
	{from: "moe-bf16", layout: "deepseek-v3-ue8m0", to: "moe-layer1-deepseek-fp8-ue8m0"},
	{from: "moe-bf16", layout: "deepseek-v4", to: "moe-experts-v4style-fp4"},
	{from: "llama-bf16", layout: "fp8", to: "llama-fp8-static", calibrated: true},
	{from: "llama-bf16", layout: "fp8", to: "llama-layer0-fp8-static-f32", arithmetic: "deepgemm"},
	{from: "llama-bf16", layout: "ct-fp8-dynamic", to: "llama-ct-fp8-dynamic"},
	{from: "tied-bf16", layout: "ct-fp8-dynamic", to: "tied-ct-fp8-dynamic"},
	{from: "llama-bf16", layout: "ct-fp8-block", to: "llama-layer0-ct-fp8-block"},
	{from: "llama-bf16", layout: "ct-mxfp8", to: "llama-layer0-ct-mxfp8"},
	{from: "llama-bf16", layout: "ct-mxfp4", to: "llama-ct-mxfp4"},
	{from: "llama-bf16", layout: "ct-nvfp4a16", to: "llama-ct-nvfp4a16"},
	{from: "moe-bf16", layout: "ct-nvfp4a16", to: "moe-ct-nvfp4a16"},
	{from: "llama-deepseek-fp8", layout: "bf16", to: "llama-dequant-bf16"},
}

// TestConversions converts the golden sources and compares every byte with what the libraries
// made of them.
func TestConversions(t *testing.T) {
	for _, c := range conversions {
		t.Run(c.to, func(t *testing.T) {
			source, want := golden(t, c.from), golden(t, c.to)
			layout, err := checkpoint.ParseLayout(c.layout)
			require.NoError(t, err)
			o := checkpoint.PlanOptions{Arithmetic: c.arithmetic}
			if c.to == "llama-layer0-fp8-static-f32" || c.to == "moe-experts-v4style-fp4" {
				o.Only = func(name string) bool { return want.Weight(name) != nil }
			}
			if c.calibrated {
				o.Amax = readCalibration(t)
			}
			plan, err := checkpoint.NewPlan(source, layout, o)
			require.NoError(t, err)
			got, _ := convert(t, plan, checkpoint.Options{Strip: 1 << 10, Workers: 3})
			for _, e := range want.Entries() {
				data := make([]byte, e.Bytes())
				require.NoError(t, want.ReadBytes(e, 0, data))
				own, ok := got[e.Name]
				require.True(t, ok, "there is no %s", e.Name)
				require.Equal(t, e.DType, own.DType, e.Name)
				require.Equal(t, append([]int{}, e.Shape...), append([]int{}, own.Shape...), e.Name)
				require.Equal(t, -1, firstDifference(data, own.Data), "%s: %d bytes differ", e.Name, differences(data, own.Data))
			}
			if want.Config.Model == nil {
				return // a part of a model
			}
			require.Len(t, got, len(want.Entries()))
			documents := plan.Documents()
			config, err := os.ReadFile(filepath.Join(want.Dir(), checkpoint.ConfigName))
			require.NoError(t, err)
			require.JSONEq(t, string(config), string(documents[checkpoint.ConfigName]))
			if want.Index == nil {
				require.NotContains(t, documents, checkpoint.IndexName)
				return
			}
			index := new(checkpoint.Index)
			require.NoError(t, json.Unmarshal(documents[checkpoint.IndexName], index))
			require.Equal(t, want.Index.TotalSize, index.TotalSize)
			require.Len(t, index.Files, len(want.Index.Files))
		})
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

func differences(a, b []byte) (n int) {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			n++
		}
	}
	return n
}

// TestDequantizeMoE compares what is read of experts, whose scales are in another shard, with
// the checksums of what fp8_cast_bf16.py computes.
func TestDequantizeMoE(t *testing.T) {
	want := readManifest(t).MoE
	require.Len(t, want, 28)
	plan, err := checkpoint.NewPlan(golden(t, "moe-deepseek-fp8"), checkpoint.Layouts()[0], checkpoint.PlanOptions{})
	require.NoError(t, err)
	got, _ := convert(t, plan, checkpoint.Options{Strip: 1 << 12})
	for name, hash := range want {
		require.Equal(t, hash, sum(got[name].Data), name)
	}
}

// TestManifest reads every tensor of every golden checkpoint and compares it with the
// manifest; a part of a quantized weight is read as a tensor and written again.
func TestManifest(t *testing.T) {
	for name, want := range readManifest(t).Checkpoints {
		t.Run(name, func(t *testing.T) {
			c := golden(t, name)
			require.Empty(t, c.Problems())
			require.Equal(t, want.TotalSize, c.TotalSize())
			require.Len(t, c.Entries(), len(want.Tensors))
			for _, w := range c.Weights() {
				for role, part := range w.Parts {
					if part.Name == "" {
						continue
					}
					said, ok := want.Tensors[part.Name]
					require.True(t, ok, part.Name)
					require.Equal(t, said.File, part.File)
					require.Equal(t, said.DType, string(part.DType))
					require.Equal(t, said.SHA256, sum(again(t, c, w, checkpoint.Role(role))), part.Name)
				}
			}
		})
	}
}

// again returns the bytes of a part of a weight: by way of a tensor, in strips, where it is
// quantized.
func again(t *testing.T, c *checkpoint.Checkpoint, w *checkpoint.Weight, role checkpoint.Role) (data []byte) {
	t.Helper()
	part := w.Parts[role]
	if w.Scheme == nil || role == checkpoint.Input {
		data = make([]byte, part.Bytes())
		require.NoError(t, c.ReadBytes(part, 0, data))
		return data
	}
	var r checkpoint.Reader
	matrices, rows, _ := w.Dims()
	step := max(w.Block.Rows, 1)
	if w.Block.Rows == 0 || role == checkpoint.Outer {
		step = rows
	}
	for m := range matrices {
		for lo := 0; lo < rows; lo += step {
			strip, err := r.Tensor(w, m, lo, min(lo+step, rows))
			require.NoError(t, err)
			require.NoError(t, strip.Check())
			require.NoError(t, strip.CheckCodes())
			data, err = w.Scheme.AppendPart(data, role, part.DType, strip)
			require.NoError(t, err)
		}
	}
	return data
}

// TestDetect names the layout of every golden checkpoint, of complete ones also without their
// configuration.
func TestDetect(t *testing.T) {
	for _, c := range append(slices.Clone(conversions), struct {
		from, layout, to string
		arithmetic       checkpoint.Arithmetic
		calibrated       bool
	}{layout: "bf16", to: "moe-bf16"}) {
		t.Run(c.to, func(t *testing.T) {
			found, err := golden(t, c.to).Detect()
			require.NoError(t, err)
			require.NotEmpty(t, found)
			require.Equal(t, c.layout, found[0].Name)
			bare := t.TempDir()
			from := testutil.Shared(t, "golden", "checkpoints", c.to)
			for _, file := range golden(t, c.to).Files() {
				require.NoError(t, os.Symlink(filepath.Join(from, file), filepath.Join(bare, file)))
			}
			without, err := checkpoint.Open(bare)
			require.NoError(t, err)
			defer without.Close()
			found, err = without.Detect()
			require.NoError(t, err)
			require.NotEmpty(t, found)
			require.Equal(t, c.layout, found[0].Name, "without a configuration")
		})
	}
}

// TestValues compares a value of every scheme with its definition, worked out from the bytes.
func TestValues(t *testing.T) {
	for _, name := range []string{"llama-ct-nvfp4a16", "llama-ct-mxfp4", "moe-experts-v4style-fp4", "llama-ct-fp8-dynamic", "llama-fp8-static"} {
		t.Run(name, func(t *testing.T) {
			c := golden(t, name)
			from := "llama-bf16"
			if strings.HasPrefix(name, "moe") {
				from = "moe-bf16"
			}
			source := golden(t, from)
			compared := 0
			for _, w := range c.Weights() {
				if w.Scheme == nil {
					continue
				}
				compared++
				_, rows, cols := w.Dims()
				got, want := make([]float32, rows*cols), make([]float32, rows*cols)
				require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), w, 0, 0, got))
				require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), source.Weight(w.Name), 0, 0, want))
				var d fp8.Detail
				for i, x := range want {
					d.Add(float64(x), float64(got[i]))
				}
				if d.SquaredSum > 0 {
					require.Greater(t, d.SQNR(), 9.0, w.Name)
				}
			}
			require.Positive(t, compared)
		})
	}
}

// TestStripsDoNotMatter converts in small strips by one goroutine and in large ones by four,
// from values and from codes in blocks.
func TestStripsDoNotMatter(t *testing.T) {
	for _, from := range []string{"llama-bf16", "llama-deepseek-fp8"} {
		source := golden(t, from)
		for i, l := range checkpoint.Layouts() {
			if testing.Short() && i%4 != 0 {
				continue
			}
			if l.Writable() && l.Name != "gpt-oss" { // which is for stacks of experts
				compareStrips(t, source, l)
			}
		}
	}
}

func compareStrips(t *testing.T, source *checkpoint.Checkpoint, l *checkpoint.Layout) {
	t.Helper()
	plan, err := checkpoint.NewPlan(source, l, checkpoint.PlanOptions{Amax: readCalibration(t)})
	require.NoError(t, err, l.Name)
	a, first := convert(t, plan, checkpoint.Options{Strip: 1 << 11, Workers: 1, Errors: true})
	b, second := convert(t, plan, checkpoint.Options{Workers: 4, Errors: true})
	for name := range a {
		require.True(t, bytes.Equal(a[name].Data, b[name].Data), "%s: %s", l, name)
	}
	for i := range first {
		require.Equal(t, first[i].Stats, second[i].Stats, first[i].Name)
		if e := first[i].Error; e != nil {
			require.Equal(t, e.Largest, second[i].Error.Largest)
			require.Equal(t, e.Where, second[i].Error.Where)
			require.InEpsilon(t, 1+e.Squared, 1+second[i].Error.Squared, 1e-12)
		}
	}
}
