package diff

import (
	"math"
	"regexp"
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
		"the same in BF16", "it is only in A",
		"not judged but by bytes: 1 tensor:", "not judged: GPTQ or AWQ is not read, and its bytes are not the same",
		"it is only in B",
	}
	summaries := map[string]string{
		"same bytes":         "Of 1 tensor 1 is equal.",
		"same values":        "Of 1 tensor 1 is equal in values but not in bytes.",
		"rounded":            "Of 1 tensor 1 is equal once rounded to the narrower type. The worst of what was compared is w: an SQNR of 87.00 dB, and errors up to 9.99e-05: errors of 0.0045% of the values, as roots of mean squares.",
		"rounded, allowed":   "Of 1 tensor 1 is equal once rounded to the narrower type. The worst of what was compared is w: an SQNR of 87.00 dB, and errors up to 9.99e-05: errors of 0.0045% of the values, as roots of mean squares. What differs is allowed.",
		"different":          "Of 1 tensor 1 differs. The worst of what was compared is w: an SQNR of 87.00 dB, and errors up to 9.99e-05: errors of 0.0045% of the values, as roots of mean squares. Whether that is too much is not judged: --sqnr says how much is allowed.",
		"more than allowed":  "Of 1 tensor 1 differs. The worst of what was compared is w: an SQNR of 87.00 dB, and errors up to 9.99e-05: errors of 0.0045% of the values, as roots of mean squares. Not within what is allowed: 1.",
		"in one alone":       "Of 2 tensors 1 is equal, 1 is only in A.",
		"in the other":       "Of 2 tensors 1 is equal, 1 is only in B.",
		"not judged, same":   "Of 1 tensor 1 is equal.",
		"not judged":         "Of 1 tensor 1 is not judged. Not within what is allowed: 1.",
		"not judged, differ": "Of 2 tensors 1 differs, 1 is not judged. The worst of what was compared is w: an SQNR of 87.00 dB, and errors up to 9.99e-05: errors of 0.0045% of the values, as roots of mean squares. Whether that is too much is not judged: --sqnr says how much is allowed.",
		"nothing":            "Neither has a tensor: nothing was compared.",
		"all":                "All 2 tensors are equal.",
		"all that is chosen": "Of 1 tensor that --only chooses 1 is equal.",
		"what is left":       "Of 1 tensor that --except leaves 1 is equal.",
		"both":               "Of 1 tensor that --only and --except choose 1 is equal.",
		"ruined":             "Of 1 tensor 1 differs. The worst of what was compared is w: an SQNR of -6.02 dB, and errors up to 4: zeros would be nearer to A, so B's is unrelated or ruined.",
		"shapes":             "All 2 tensors are incomparable.",
		"a NaN":              "All 2 tensors differ. The worst of what was compared is w: 1 of 2 elements NaN or infinite in one alone.",
		"zeros":              "Of 1 tensor 1 differs. The worst of what was compared is z: an SQNR of -inf dB, and errors up to 1, and in A it is all zeros.",
		"input":              "Of 1 tensor 1 differs. The worst of what was compared is m.weight: the scale of its input is 1 and 2. Not within what is allowed: 1.",
		"same, tolerant":     "Of 1 tensor 1 is equal.",
		"whole numbers":      "Of 1 tensor 1 differs. The worst of what was compared is i: 1 of 1 elements are others.",
	}
	for name, c := range map[string]struct {
		a, b      string
		tolerance checkpoint.Tolerance
		failure   string // "" where they are the same
		says      []int
		choice    string // of --only and --except, with a / between
	}{
		"same bytes":         {file(one), file(one), checkpoint.Tolerance{}, "", nil, ""},
		"same values":        {file(zero), file(minus), checkpoint.Tolerance{}, "", nil, ""},
		"rounded":            {file(other), file(half), checkpoint.Tolerance{}, "1 of 1 tensors are not equal", []int{0}, ""},
		"rounded, allowed":   {file(other), file(half), checkpoint.Tolerance{Rounded: true}, "", []int{0}, ""},
		"different":          {file(one), file(other), checkpoint.Tolerance{}, "1 of 1 tensors are not equal", nil, ""},
		"more than allowed":  {file(one), file(other), checkpoint.Tolerance{Largest: 1e-6}, "1 of 1 tensors differ by more than is allowed", nil, ""},
		"in one alone":       {file(one, zero2), file(one), checkpoint.Tolerance{}, "1 of 2 tensors are not equal", []int{1}, ""},
		"not judged, same":   {file(packed), file(packed), checkpoint.Tolerance{}, "", []int{2}, ""},
		"not judged":         {file(packed), file(repacked), checkpoint.Tolerance{SQNR: 1}, "1 of 1 tensors are not judged", []int{2, 3}, ""},
		"not judged, differ": {file(packed, one), file(repacked, other), checkpoint.Tolerance{}, "1 of 2 tensors are not equal, 1 of 2 tensors are not judged", []int{2, 3}, ""},
		"in the other":       {file(one), file(one, zero2), checkpoint.Tolerance{}, "1 of 2 tensors are not equal", []int{4}, ""},
		"nothing":            {file(), file(), checkpoint.Tolerance{}, "", nil, ""},
		"all":                {file(one, zero2), file(one, zero2), checkpoint.Tolerance{}, "", nil, ""},
		"all that is chosen": {file(one, zero2), file(one), checkpoint.Tolerance{}, "", nil, "w/"},
		"what is left":       {file(one, zero2), file(one), checkpoint.Tolerance{}, "", nil, "/z"},
		"both":               {file(one, zero2), file(one), checkpoint.Tolerance{}, "", nil, "w/z"},
		"ruined":             {file(one), file(filetest.F32("w", []int{2}, 3, 6)), checkpoint.Tolerance{}, "1 of 1 tensors are not equal", nil, ""},
		"shapes":             {file(one, zero2), file(long("w"), long("z")), checkpoint.Tolerance{}, "2 of 2 tensors are not equal", nil, ""},
		"a NaN":              {file(one, zero2), file(filetest.F32("w", []int{2}, 1, nan), filetest.F32("z", []int{1}, 1)), checkpoint.Tolerance{}, "2 of 2 tensors are not equal", nil, ""},
		"zeros":              {file(zero2), file(filetest.F32("z", []int{1}, 1)), checkpoint.Tolerance{}, "1 of 1 tensors are not equal", nil, ""},
		"input":              {file(scaled(1)...), file(scaled(2)...), checkpoint.Tolerance{SQNR: 1}, "1 of 1 tensors differ by more than is allowed", nil, ""},
		"same, tolerant":     {file(one), file(one), checkpoint.Tolerance{SQNR: 1}, "", nil, ""},
		"whole numbers":      {file(whole(1)), file(whole(2)), checkpoint.Tolerance{}, "1 of 1 tensors are not equal", nil, ""},
	} {
		only, except, _ := strings.Cut(c.choice, "/")
		r, err := (&Job{A: c.a, B: c.b, Only: expression(only), Except: expression(except), Tolerance: c.tolerance}).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.failure == "", r.Same, name)
		require.Equal(t, c.failure, r.Failure(), name)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text, 0))
		first, _, _ := strings.Cut(text.String(), "\n\n")
		require.Equal(t, summaries[name], strings.Join(strings.Fields(first), " "), name)
		for i, sentence := range all {
			said := strings.Contains(text.String(), sentence) || strings.Contains(strings.Join(strings.Fields(text.String()), " "), sentence)
			require.Equal(t, slices.Contains(c.says, i), said, "%s: %q in\n%s", name, sentence, text.String())
		}
	}
}

var nan = float32(math.NaN())

// scaled is a weight of codes, whose input has a scale.
func scaled(input float32) []safetensors.Tensor {
	return []safetensors.Tensor{
		filetest.Raw("m.weight", safetensors.F8E4M3, []int{1, 2}, 1, 2), filetest.F32("m.weight_scale", []int{1}, 1), filetest.F32("m.input_scale", []int{1}, input),
	}
}

func long(name string) safetensors.Tensor { return filetest.F32(name, []int{3}, 1, 2, 3) }

func whole(n byte) safetensors.Tensor {
	return filetest.Raw("i", safetensors.I32, []int{1}, n, 0, 0, 0)
}

// expression is that of a flag, nil for "".
func expression(text string) *regexp.Regexp {
	if text == "" {
		return nil
	}
	return regexp.MustCompile(text)
}

var zero2 = filetest.F32("z", []int{1}, 0)
