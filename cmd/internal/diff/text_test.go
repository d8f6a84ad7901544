package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestSentences: what is said of two checkpoints is not said where it does not hold.
func TestSentences(t *testing.T) {
	file := func(tensors ...safetensors.Tensor) string { return filetest.Write(t, nil, tensors...) }
	one, other := filetest.F32("w", []int{2}, 1, 2), filetest.F32("w", []int{2}, 1, 2.0001)
	half := filetest.Raw("w", safetensors.BF16, []int{2}, 0x80, 0x3F, 0, 0x40)
	zero, minus := filetest.F32("w", []int{1}, 0), filetest.Raw("w", safetensors.F32, []int{1}, 0, 0, 0, 0x80)
	packed, repacked := filetest.Raw("q.qweight", safetensors.I32, []int{1, 1}, 1, 2, 3, 4), filetest.Raw("q.qweight", safetensors.I32, []int{1, 1}, 2, 1, 3, 4)
	all := []string{
		"      1  the same bytes", "      1  the same values\n", "      1  the same values once", "      1  different",
		"      1  in one alone, or not to be compared", "the same in BF16", "it is only in the first",
		"not judged but by bytes: 1 tensors", "not judged: GPTQ or AWQ is not read, and its bytes are not the same",
	}
	for name, c := range map[string]struct {
		a, b      string
		tolerance checkpoint.Tolerance
		failure   string // "" where they are the same
		says      []int
	}{
		"same bytes":         {file(one), file(one), checkpoint.Tolerance{}, "", []int{0}},
		"same values":        {file(zero), file(minus), checkpoint.Tolerance{}, "", []int{1}},
		"rounded":            {file(other), file(half), checkpoint.Tolerance{}, "1 of 1 tensors differ", []int{2, 5}},
		"rounded, allowed":   {file(other), file(half), checkpoint.Tolerance{Rounded: true}, "", []int{2, 5}},
		"different":          {file(one), file(other), checkpoint.Tolerance{}, "1 of 1 tensors differ", []int{3}},
		"more than allowed":  {file(one), file(other), checkpoint.Tolerance{Largest: 1e-6}, "1 of 1 tensors differ by more than is allowed", []int{3}},
		"in one alone":       {file(one, zero2), file(one), checkpoint.Tolerance{}, "1 of 2 tensors differ", []int{0, 4, 6}},
		"not judged, same":   {file(packed), file(packed), checkpoint.Tolerance{}, "", []int{0, 7}},
		"not judged":         {file(packed), file(repacked), checkpoint.Tolerance{SQNR: 1}, "1 of 1 tensors are not judged", []int{4, 7, 8}},
		"not judged, differ": {file(packed, one), file(repacked, other), checkpoint.Tolerance{}, "1 of 2 tensors differ, 1 of 2 tensors are not judged", []int{3, 4, 7, 8}},
	} {
		r, err := (&Job{A: c.a, B: c.b, Tolerance: c.tolerance}).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.failure == "", r.Same, name)
		require.Equal(t, c.failure, r.Failure(), name)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text, 0))
		for i, sentence := range all {
			said := strings.Contains(text.String(), sentence) || strings.Contains(strings.Join(strings.Fields(text.String()), " "), sentence)
			require.Equal(t, slices.Contains(c.says, i), said, "%s: %q in\n%s", name, sentence, text.String())
		}
	}
}

var zero2 = filetest.F32("z", []int{1}, 0)
