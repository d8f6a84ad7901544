package inspect

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// pageOf writes the page of some files.
func pageOf(t *testing.T, v View, paths ...string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "inspect.html")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, run(t, Job{Inputs: inputs(t, paths...)}).WritePage(f, v, "octavo inspect model", "octavo v1, go1.25, linux/amd64"))
	require.NoError(t, f.Close())
	return file
}

// troubled is a directory of two files with tensors of every risk and with names that are
// odd or long.
func troubled(t *testing.T) (dir string) {
	dir = t.TempDir()
	nan := float32(math.NaN())
	outlier := make([]float32, 256)
	for i := range outlier {
		outlier[i] = float32(i+1) * 1e-6
	}
	outlier[7] = 3e4
	for name, tensors := range map[string][]safetensors.Tensor{
		"model-00001-of-00002.safetensors": {
			filetest.F32("model.layers.0.mlp.down_proj.weight", []int{2, 2}, 1, nan, 2, 3),
			filetest.F32("outlier", []int{2, 128}, outlier...), filetest.F32("zeros", []int{2, 2}, 0, 0, 0, 0),
			filetest.F32("<script>alert(1)</script>", []int{1, 2}, 1, 1.06),
		},
		"model-00002-of-00002.safetensors": {
			filetest.F32(strings.Repeat("a.very.long.name.", 20), []int{1, 2}, 1.9, 0.1),
			filetest.Raw("codes", safetensors.F8E4M3, []int{1, 2}, 0x7E, 0x01),
		},
	} {
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, name), tensors, nil))
	}
	return dir
}

// thousand is a file of a thousand tensors.
func thousand(t *testing.T) (path string) {
	var all []safetensors.Tensor
	for i := range 1200 {
		values := []float32{1, 0.3, float32(i) * 1e-5, 7}
		all = append(all, filetest.F32(fmt.Sprintf("model.layers.%d.mlp.up_proj.weight", i), []int{2, 2}, values...))
	}
	return filetest.Write(t, nil, all...)
}

func TestPageIsBounded(t *testing.T) {
	text, err := os.ReadFile(pageOf(t, View{Sort: ByRisk}, thousand(t)))
	require.NoError(t, err)
	require.Less(t, len(text), 3<<20)
	require.Contains(t, string(text), "<h2>1000 of 1200 tensors, the riskiest first</h2>")
	require.Equal(t, 1, strings.Count(string(text), "<summary>988 tensors more</summary>"))
	require.Equal(t, 12+1, strings.Count(string(text), "<figure"))
}

// TestPageSaysTies: what is not told apart is said as help says it.
func TestPageSaysTies(t *testing.T) {
	help, err := os.ReadFile("../../octavo/help/inspect.txt")
	require.NoError(t, err)
	said := regexp.MustCompile(`Recipes are tied,.* told apart\.`).FindString(strings.Join(strings.Fields(string(help)), " "))
	require.NotEmpty(t, said)
	text, err := os.ReadFile(pageOf(t, View{Sort: ByRisk}, troubled(t)))
	require.NoError(t, err)
	require.Contains(t, string(text), said)
}

func TestPageEscapes(t *testing.T) {
	text, err := os.ReadFile(pageOf(t, View{Sort: ByName}, troubled(t)))
	require.NoError(t, err)
	require.NotContains(t, string(text), "<script>alert")
	require.Contains(t, string(text), "&lt;script&gt;alert")
	require.Contains(t, string(text), "NaN or infinite: 1 value in 1 tensor.")
	require.Contains(t, string(text), "Tensors, by name")
}
