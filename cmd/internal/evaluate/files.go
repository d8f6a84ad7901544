package evaluate

import (
	"os"
	"path/filepath"
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
