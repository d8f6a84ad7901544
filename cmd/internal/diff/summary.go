package diff

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Summary says how many of the tensors that were compared are equal, which is the worst, and whether
// all are within the tolerance.
func (r *Report) Summary() string {
	all := textout.Count(len(r.differences), "tensor") + r.chosen
	if len(r.differences) == 0 {
		return "Neither has a tensor: nothing was compared."
	}
	var onlyA, onlyB, unlike, unjudged int
	var worst *checkpoint.Difference
	for i := range r.differences {
		switch d := &r.differences[i]; {
		case d.Same != checkpoint.Incomparable:
			if worst == nil && d.Same < checkpoint.SameValues {
				worst = d
			}
		case d.Unread != "":
			unjudged++
		case d.B == nil:
			onlyA++
		case d.A == nil:
			onlyB++
		default:
			unlike++
		}
	}
	text := ""
	for _, part := range []struct {
		n         int
		one, more string
	}{
		{r.Counts.Bytes, "is equal", "are equal"},
		{r.Counts.Values, "is equal in values but not in bytes", "are equal in values but not in bytes"},
		{r.Counts.Rounded, "is equal once rounded to the narrower type", "are equal once rounded to the narrower type"},
		{r.Counts.Different, "differs", "differ"},
		{onlyA, "is only in A", "are only in A"},
		{onlyB, "is only in B", "are only in B"},
		{unlike, "is incomparable", "are incomparable"},
		{unjudged, "is not judged", "are not judged"},
	} {
		switch {
		case part.n == 0:
		case part.n == 1:
			text += ", 1 " + part.one
		case part.n == len(r.differences):
			text = fmt.Sprintf("All %s %s.", all, part.more)
		default:
			text += fmt.Sprintf(", %d %s", part.n, part.more)
		}
	}
	if rest, ok := strings.CutPrefix(text, ","); ok {
		text = "Of " + all + rest + "."
	}
	if worst != nil {
		text += fmt.Sprintf(" The worst of what was compared is %s: %s.", textout.Name(worst.Name), howFar(worst))
	}
	switch {
	case worst != nil && !r.tolerant && worst.Same == checkpoint.Different && worst.NonFinite == 0 && worst.SQNR() >= 0 && worst.Differ > 0:
		text += " Whether that is too much is not judged: --sqnr says how much is allowed."
	case !r.tolerant || r.Counts.Bytes+r.Counts.Values == len(r.differences):
	case r.Outside == 0:
		text += " What differs is allowed."
	default:
		text += fmt.Sprintf(" Not within what is allowed: %d.", r.Outside)
	}
	return text
}

// howFar says by how much a tensor differs.
func howFar(d *checkpoint.Difference) string {
	switch {
	case d.NonFinite > 0:
		return fmt.Sprintf("%d of %d elements NaN or infinite in one alone", d.NonFinite, d.Elements)
	case d.Differ == 0: // but for the scale of the input
		return fmt.Sprintf("the scale of its input is %v and %v", d.InputA, d.InputB)
	case math.IsNaN(d.SQNR()):
		return fmt.Sprintf("%d of %d elements are others", d.Differ, d.Elements)
	}
	text := fmt.Sprintf("an SQNR of %s dB, and errors up to %.4g", decibels(d), d.Error.Largest)
	switch x := d.SQNR(); {
	case math.IsInf(x, -1):
		return text + ", and in A it is all zeros"
	case x < 0:
		return text + ": zeros would be nearer to A, so B's is unrelated or ruined"
	default:
		return text + fmt.Sprintf(": errors of %.2g%% of the values, as roots of mean squares", 100*math.Pow(10, -x/20))
	}
}
