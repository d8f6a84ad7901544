package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
)

func Example() {
	main()
	// Output:
	// relative error of the product: 0.0362
	// activations: amax 4.637973308563232, saturated 0, flushed to zero 0 of 8192
}

// TestReadme wants the Go code of README.md to be that of this program, and the code of
// the guides in docs to be that of some example.
func TestReadme(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shows := map[string]int{}
	for _, page := range append(pages, "../../README.md") {
		programs := "../*/*.go"
		if filepath.Base(page) == "README.md" {
			programs = "main.go"
		}
		code := read(t, programs)
		for _, block := range strings.Split(read(t, page), "```go\n")[1:] {
			block, _, _ := strings.Cut(block, "```")
			if !strings.Contains(code, block) {
				t.Errorf("%s shows code that is not in %s:\n%s", page, programs, block)
			}
			shows[filepath.Base(page)]++
		}
	}
	if shows["README.md"] == 0 || shows["kernels.md"] == 0 || shows["training.md"] == 0 {
		t.Errorf("pages that should show code show none: %v", shows)
	}
}

// read returns the text of the files of a pattern, one after another.
func read(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestDeepSeek wants what README.md says: scales are amax/448, as in DeepSeek-V3's
// inference/kernel.py, and no powers of two. Of a tile of 3 and 1 the latter becomes
// 144 times 3/448.
func TestDeepSeek(t *testing.T) {
	activations, weights := make([]float32, tokens*in), make([]float32, out*in)
	activations[0], activations[1], weights[1] = 3, 1, 1
	y, err := linear(t.Context(), activations, weights, make([]float32, out), &fp8.Stats{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 144 * 3.0 / 448; math.Abs(float64(y[0])-want) > 1e-6 {
		t.Errorf("1 beside 3 is %v in E4M3: want %v", y[0], want)
	}
}
