package generate_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestFamilies generates with a model of each family what transformers does in float64: the logits
// behind a prompt, and the greedy tokens that follow with their probabilities.
func TestFamilies(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testutil.Shared(t, "models"), "*.golden.safetensors"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 16)
	for _, path := range paths {
		dir := strings.TrimSuffix(path, ".golden.safetensors")
		t.Run(filepath.Base(dir), func(t *testing.T) { testFamily(t, dir) })
	}
}

func testFamily(t *testing.T, dir string) {
	data, err := os.ReadFile(dir + ".json")
	require.NoError(t, err)
	var want struct {
		Prompts map[string]struct {
			IDs           []int32
			Tokens        []int32
			LogProbs      []float64
			ClosestSecond float64 `json:"closest_second"`
		}
	}
	require.NoError(t, json.Unmarshal(data, &want))
	golden, err := safetensors.Open(dir + ".golden.safetensors")
	require.NoError(t, err)
	defer golden.Close()
	source, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer source.Close()
	for _, o := range []struct {
		options generate.Options
		within  float64
	}{{generate.Options{Cache: generate.CacheF32}, 1e-5}, {generate.Options{Cache: generate.CacheBF16}, 0.05}} {
		unread, err := hf.Open(t.Context(), source, hf.Options{})
		require.NoError(t, err)
		o.options.Read = unread.Read
		g := generator(t, unread.Model, o.options)
		var batch generate.Batch
		var names []string
		for name, p := range want.Prompts {
			logits, err := safetensors.Elements[float64](golden, name+".logits")
			require.NoError(t, err)
			got, err := g.Prefill(t.Context(), []*generate.Sequence{sequence(t, g)}, [][]int32{p.IDs})
			require.NoError(t, err)
			far := 0.0
			for i, x := range logits {
				far = max(far, math.Abs(float64(got[i])-x))
			}
			t.Logf("%v cache, %s: logits off by %.2g", o.options.Cache, name, far)
			require.Less(t, far, o.within)
			names = append(names, name)
			batch.Requests = append(batch.Requests, generate.Request{Prompt: p.IDs, Tokens: len(p.Tokens), LogProbs: true})
		}
		results, _, err := g.GenerateBatch(t.Context(), batch)
		require.NoError(t, err)
		for i, r := range results {
			p := want.Prompts[names[i]]
			if p.ClosestSecond > 2*o.within {
				require.Equal(t, p.Tokens, r.Tokens, names[i])
			}
			for j, token := range r.Tokens {
				if token != p.Tokens[j] {
					break // another choice as likely, after which all differs
				}
				require.InDelta(t, p.LogProbs[j], float64(r.LogProbs[j]), o.within)
			}
		}
	}
}
