package identify

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write MODELS.md anew")

// modelTable is the table of MODELS.md.
type modelTable struct{ strings.Builder }

const modelHead = `# Models

What is recovered of each kernel from its own answers in float32. Written by
"go test ./oracle/identify -run TestModels -update", and checked by that test.

Products of FP8 have one float32 scale for each operand, but blackwell-mxfp8 has E8M0
scales of 1x32; scales are applied b-then-a. Each model answers alone, its sums in one
chain, and promoted to float32 every 64 products.

- fused: how many products were measured to be added in a step;
- fraction bits: how many of them are kept of each product, and of a step's result;
- what gives all answers: all kernels, of those tried, that do. Where there are
  several the probes cannot tell them apart; "x = y" is one arithmetic under two names.

| kernel | operands | fused | fraction bits | what gives all answers |
|---|---|---|---|---|
`

// add adds what was found out about a kernel.
func (b *modelTable) add(operands, kernel string, r *Report) {
	m := &r.Measured
	fused, bits := "sums of two", fmt.Sprintf("%s; %s", keptOf(m.Aligned), keptOf(m.Result))
	if m.Fused >= 2 {
		fused = fmt.Sprint(m.Fused)
	} else {
		bits = keptOf(m.Result)
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", kernel, operands, fused, bits, strings.Join(names(r), "; "))
}

func keptOf(bits int) string {
	if bits < 0 {
		return "all seen"
	}
	return fmt.Sprint(bits)
}

// check compares the table with that of the file, or writes it.
func (b *modelTable) check(t *testing.T) {
	t.Helper()
	const path = "MODELS.md"
	text := modelHead + b.String()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(file), "\r\n", "\n"), text, "%s is not what was found: run it with -update", path)
}
