package vectors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/safetensors"
)

// set returns a set of seed 1, of whose files nothing may be changed.
var set = sync.OnceValue(func() map[string][]byte {
	files, err := Make(context.Background(), 1, nil)
	if err != nil {
		panic(err)
	}
	all := make(map[string][]byte)
	for _, f := range files {
		all[f.Name] = f.Data
	}
	return all
})

func makeSet(t *testing.T, seed uint64) map[string][]byte {
	files, err := Make(t.Context(), seed, nil)
	require.NoError(t, err)
	set := make(map[string][]byte)
	for _, f := range files {
		set[f.Name] = f.Data
	}
	require.Len(t, set, 10)
	return set
}

// sumOfSeed1 pins the set of seed 1 on every machine.
const sumOfSeed1 = "9a145bef1151fc613f39e0bb7b8ef71b3df5d72b115b1d6f65c90ee611245f74"

// TestReproducible makes the set at every level, and demands the same bytes, and
// those that are pinned.
func TestReproducible(t *testing.T) {
	want := makeSet(t, 1)
	for _, l := range cpu.Levels() {
		restore, err := cpu.Force(l)
		require.NoError(t, err)
		got := makeSet(t, 1)
		restore()
		for name := range want {
			require.True(t, bytes.Equal(want[name], got[name]), "%s at level %v", name, l)
		}
	}
	sum := sha256.Sum256(want["SHA256SUMS"])
	require.Equal(t, sumOfSeed1, hex.EncodeToString(sum[:]), "the set of seed 1 has changed:\n%s", want["SHA256SUMS"])
	other := makeSet(t, 2)
	for _, s := range sections {
		require.NotEqual(t, want[s.name+".safetensors"], other[s.name+".safetensors"], s.name)
	}
}

func TestSize(t *testing.T) {
	total := 0
	set := makeSet(t, 1)
	require.ElementsMatch(t, Names(), slices.Collect(maps.Keys(set)))
	for name, data := range set {
		t.Logf("%s: %d bytes", name, len(data))
		total += len(data)
	}
	require.Less(t, total, 10_000_000)
}

// tensorsOf reads a file of a set.
func tensorsOf(t *testing.T, set map[string][]byte, name string) *safetensors.File {
	data := set[name+".safetensors"]
	file, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return file
}

// TestNames demands that JSON names every tensor, and tensors that there are, and
// that README.md names every key.
func TestNames(t *testing.T) {
	set := makeSet(t, 3)
	for _, s := range sections {
		file := tensorsOf(t, set, s.name)
		require.Equal(t, map[string]string{"octavo.vectors": s.name}, file.Metadata())
		var index any
		require.NoError(t, json.Unmarshal(set[s.name+".json"], &index))
		strings := make(map[string]bool)
		collect(index, strings, func(key string) {
			if !regexp.MustCompile(`^\d+$`).MatchString(key) {
				require.Contains(t, string(readme), "`"+key+"`", "key of %s.json", s.name)
			}
		})
		for _, info := range file.Tensors() {
			require.True(t, strings[info.Name], "%s.json does not name %s", s.name, info.Name)
			delete(strings, info.Name)
			require.Zero(t, info.Offset%int64(info.DType.Size()), "%s is not aligned", info.Name)
		}
		for text := range strings {
			require.NotContains(t, []string{"codes.", "x.", "scale."}, text[:min(len(text), 6)], "%s.json names %s", s.name, text)
		}
	}
}

// collect gathers strings and keys.
func collect(v any, strings map[string]bool, key func(string)) {
	switch v := v.(type) {
	case string:
		strings[v] = true
	case []any:
		for _, x := range v {
			collect(x, strings, key)
		}
	case map[string]any:
		for k, x := range v {
			key(k)
			collect(x, strings, key)
		}
	}
}

// TestNothingPrivate looks for paths and dates.
func TestNothingPrivate(t *testing.T) {
	home, err := os.Getwd()
	require.NoError(t, err)
	for name, data := range makeSet(t, 1) {
		require.NotContains(t, string(data), home, name)
		if filepath.Ext(name) == ".json" || filepath.Ext(name) == ".md" {
			require.NotRegexp(t, `20[0-9][0-9]-[01][0-9]|/(home|tmp|root)/`, string(data), name)
		}
	}
}

func TestSums(t *testing.T) {
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty\n", string(sums([]outdir.File{{Name: "empty"}})))
}
