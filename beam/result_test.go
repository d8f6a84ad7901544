package beam

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// someResults returns results of shards with random events, many of them of the same layers.
func someResults(n int) (all []Result) {
	r := rand.New(rand.NewPCG(17, 7))
	for i := range n {
		one := Result{Shards: []Shard{{Number: i}}}
		for _, layer := range []string{"a", "b", "c"} {
			if r.IntN(3) > 0 {
				one.Events = append(one.Events, telemetry.Event{Summary: telemetry.Summary{
					Tensor: layer, Op: "convert",
					Stats: fp8.Stats{
						Elements: r.Int64N(100), Amax: r.ExpFloat64(), Smallest: r.Float64() * 1e-3, SaturatedPos: r.Int64N(9),
						Flushed: r.Int64N(9), NaN: r.Int64N(2), PosInf: r.Int64N(2),
					},
				}})
			}
		}
		all = append(all, one)
	}
	return all
}

func encoded(t *testing.T, r Result) string {
	t.Helper()
	data, err := encodeResult(r)
	require.NoError(t, err)
	return string(data)
}

// TestMerge merges in random orders and groupings, through the coder as runners do.
func TestMerge(t *testing.T) {
	all := someResults(12)
	var want string
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		parts := slices.Clone(all)
		for len(parts) > 1 {
			random.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
			sum, err := new(Merge).MergeAccumulators(parts[0], parts[1])
			require.NoError(t, err)
			again, err := decodeResult([]byte(encoded(t, sum)))
			require.NoError(t, err)
			require.Equal(t, encoded(t, sum), encoded(t, again))
			parts = append(parts[2:], again)
		}
		got := encoded(t, parts[0])
		if want == "" {
			want = got
		}
		require.Equal(t, want, got)
	}
	sum, err := decodeResult([]byte(want))
	require.NoError(t, err)
	require.Len(t, sum.Shards, 12)
	for _, e := range sum.Events {
		var elements, nan int64
		largest, smallest := 0.0, 1.0
		for _, r := range all {
			for _, o := range r.Events {
				if o.Tensor == e.Tensor {
					elements += o.Stats.Elements
					nan += o.Stats.NaN
					largest, smallest = max(largest, o.Stats.Amax), min(smallest, o.Stats.Smallest)
				}
			}
		}
		require.Equal(t, []float64{largest, smallest}, []float64{e.Stats.Amax, e.Stats.Smallest})
		require.Equal(t, []int64{elements, nan}, []int64{e.Stats.Elements, e.Stats.NaN})
	}
	_, err = new(Merge).MergeAccumulators(sum, all[3])
	require.ErrorContains(t, err, "counted twice")
	empty, err := new(Merge).MergeAccumulators(Result{}, sum)
	require.NoError(t, err)
	require.Equal(t, want, encoded(t, empty))
}

// TestStatistics compares the statistics of layers with their weights: in this model a layer
// lies in two files.
func TestStatistics(t *testing.T) {
	job := newJob(t, "llama-bf16", "ct-fp8-dynamic")
	job.Statistics = filepath.Join(t.TempDir(), "statistics.jsonl")
	require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
	data, err := os.ReadFile(job.Statistics)
	require.NoError(t, err)
	got := map[string]fp8.Stats{}
	for e, err := range telemetry.ReadJSONLines(bytes.NewReader(data)) {
		require.NoError(t, err)
		got[e.Tensor] = e.Stats
	}
	cert, err := checkpoint.ReadCertificate(job.Out)
	require.NoError(t, err)
	source, err := checkpoint.Open(job.Source)
	require.NoError(t, err)
	defer source.Close()
	elements, amax, spread := map[string]int64{}, map[string]float64{}, map[string]map[string]bool{}
	for _, l := range cert.Tensors {
		if l.Arithmetic == "" {
			continue
		}
		layer := l.Name[:len("model.layers.0")]
		values := make([]float32, l.Elements)
		require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), source.Weight(l.Name), 0, 0, values))
		largest, _ := fp8.Amax(values)
		elements[layer] += l.Elements
		amax[layer] = max(amax[layer], float64(largest))
		if spread[layer] == nil {
			spread[layer] = map[string]bool{}
		}
		spread[layer][l.File] = true
	}
	require.Len(t, got, 2)
	divided := 0
	for layer, st := range got {
		require.Equal(t, elements[layer], st.Elements)
		require.Equal(t, amax[layer], st.Amax)
		divided += len(spread[layer]) - 1
	}
	require.Positive(t, divided, "no layer lies in two files")
}

func TestLayerOf(t *testing.T) {
	for weight, want := range map[string]string{
		"model.layers.3.mlp.experts.17.up_proj.weight": "model.layers.3",
		"model.layers.12.mlp.experts.gate_up_proj":     "model.layers.12",
		"layers.0.weight":           "layers.0",
		"lm_head.weight":            "lm_head",
		"model.embed_tokens.weight": "model.embed_tokens",
		"h.2":                       "h.2",
	} {
		require.Equal(t, want, layerOf(weight))
	}
}
