package main

import (
	"math"
	"os"
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

// TestReadme wants the Go code of README.md to be that of this program.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, block := range strings.Split(string(readme), "```go\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(program), code) {
			t.Errorf("README.md shows code that is not in main.go:\n%s", code)
		}
		shown++
	}
	if shown == 0 {
		t.Error("README.md shows no code")
	}
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
