package vectors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/safetensors"
)

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
const sumOfSeed1 = "3cf303ce5c8ecbd354ccd25fadc99fe43ca40b1dbf908b67ff368a4734c637ce"

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

// TestEncodeVectors encodes again, by an independent search for the nearest code.
func TestEncodeVectors(t *testing.T) {
	set := makeSet(t, 1)
	file := tensorsOf(t, set, "encode")
	var index struct{ Encode []encodeCase }
	require.NoError(t, json.Unmarshal(set["encode.json"], &index))
	cases := 0
	for _, c := range index.Encode {
		if c.Rounding != "nearest-even" || c.Stored != 0 || !strings.HasPrefix(c.Input, "x.f32") || c.Overflow != "saturate" || c.Inf != "saturate" {
			continue
		}
		cases++
		f, err := fp8.ParseFormat(c.Format)
		require.NoError(t, err)
		x, err := file.Float32s(c.Input)
		require.NoError(t, err)
		codes, err := file.Bytes(c.Codes)
		require.NoError(t, err)
		require.EqualValues(t, len(x), c.Stats.Elements)
		for i, v := range x {
			if v == v {
				require.Equal(t, nearest(f, float64(v)), f.Float32(codes[i]), "%v of %v", f, v)
			} else {
				require.True(t, f.IsNaN(codes[i]))
			}
		}
	}
	require.Equal(t, 4*2, cases)
	policies := 0
	for _, c := range index.Encode {
		if strings.HasPrefix(c.Input, "x.f32") {
			policies++
		}
	}
	require.Equal(t, 4*24, policies)
}

// nearest returns the value nearest to x, ties to the code that is even.
func nearest(f fp8.Format, x float64) float32 {
	best, distance := byte(0), math.Inf(1)
	for c := range int(f.MaxCode()) + 1 {
		d := math.Abs(math.Min(math.Abs(x), float64(f.Max())) - float64(f.Float32(byte(c))))
		if d < distance || d == distance && c%2 == 0 {
			best, distance = byte(c), d
		}
	}
	return float32(math.Copysign(float64(f.Float32(best)), x)) + 0 // -0 is 0 in the FNUZ formats
}

// TestGemmVectors demands that what is canonical is within the bound, and that
// every model and format has its cases.
func TestGemmVectors(t *testing.T) {
	set := makeSet(t, 1)
	file := tensorsOf(t, set, "gemm")
	var index gemmIndex
	require.NoError(t, json.Unmarshal(set["gemm.json"], &index))
	models, formats := make(map[string]int), make(map[string]int)
	specials := 0
	for _, p := range index.Products {
		exact, err := file.Float32s(p.Exact["f32"])
		require.NoError(t, err)
		canonical, err := file.Float32s(p.Canonical["f32"])
		require.NoError(t, err)
		bound, err := safetensors.Elements[float64](file, p.Bound)
		require.NoError(t, err)
		for i, x := range exact {
			if x-x != 0 {
				specials++
			}
			if d := math.Abs(float64(x) - float64(canonical[i])); d > bound[i] {
				t.Errorf("%s, element %d: %v and %v are farther apart than %v", p.Name, i, x, canonical[i], bound[i])
			}
		}
		for _, m := range p.Models {
			models[m.Model]++
			result, err := file.Float32s(m.Result)
			require.NoError(t, err)
			bound, err := safetensors.Elements[float64](file, m.Bound)
			require.NoError(t, err)
			for i, x := range exact {
				if d := math.Abs(float64(x) - float64(result[i])); d > bound[i] {
					t.Errorf("%s, %s, element %d: %v and %v are farther apart than %v", p.Name, m.Model, i, x, result[i], bound[i])
				}
			}
		}
		formats[p.A.Format+p.B.Format]++
	}
	require.Len(t, models, 7)
	require.GreaterOrEqual(t, slices.Min(values(models)), 4, "%v", models)
	require.GreaterOrEqual(t, len(formats), 7, "%v", formats)
	require.Positive(t, specials)
	require.Equal(t, "nvfp4.blackwell-nvfp4", index.NVFP4.Result)
}

func values(m map[string]int) (all []int) {
	for _, n := range m {
		all = append(all, n)
	}
	return all
}

func TestSums(t *testing.T) {
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty\n", string(sums([]File{{"empty", nil}})))
}
