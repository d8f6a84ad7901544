package main

import (
	"os"
	"strings"
	"testing"
)

func Example() {
	main()
	// Output:
	// relative error of the product: 0.0367
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
