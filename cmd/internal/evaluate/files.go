package evaluate

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
)

// Dir returns the directory of a model that is named by its path.
func Dir(path string) string {
	if stat, err := os.Stat(path); err == nil && !stat.IsDir() {
		return filepath.Dir(path)
	}
	return path
}

// Files returns the files of a model that may be read.
func Files(path string) (files []string) {
	entries, _ := os.ReadDir(Dir(path)) // a path that is wrong is complained about later
	for _, e := range entries {
		if kind := filepath.Ext(e.Name()); kind == ".safetensors" || kind == ".json" {
			files = append(files, filepath.Join(Dir(path), e.Name()))
		}
	}
	return append(files, path)
}

// Stored returns the formats that the matrices of a model are stored in, such as "E4M3 and BF16",
// that of the most values first.
func Stored(c *checkpoint.Checkpoint) string {
	values := map[string]int64{}
	for _, w := range c.Weights() {
		if len(w.Shape) < 2 {
			continue
		}
		name := string(w.Parts[checkpoint.Codes].DType)
		if w.Scheme != nil {
			name = w.Scheme.Format.String()
		}
		values[name] += w.Len()
	}
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
	return strings.Join(names, " and ")
}

// InputScales returns how many weights of a model have a static scale of their input.
func InputScales(c *checkpoint.Checkpoint) (n int) {
	for _, w := range c.Weights() {
		if w.Has(checkpoint.Input) {
			n++
		}
	}
	return n
}
