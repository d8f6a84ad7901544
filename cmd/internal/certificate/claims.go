package certificate

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/checkpoint"
)

// claims are what was claimed to lose nothing.
type claims struct {
	All    int
	Blocks int64
	Reach  int // the largest of those that hold, and its limit
	Limit  int
	Broken []checkpoint.WeightLoss
}

func newClaims(c *checkpoint.Certificate) (a claims) {
	for _, t := range c.Tensors {
		v := t.Claim
		if v == nil {
			continue
		}
		a.All++
		a.Blocks += v.Blocks
		switch {
		case !v.Holds:
			a.Broken = append(a.Broken, t)
		case a.Limit == 0 || v.Limit-v.Reach < a.Limit-a.Reach:
			a.Reach, a.Limit = v.Reach, v.Limit
		}
	}
	return a
}

// String says in words how many claims hold, and why.
func (a claims) String() string {
	held := a.All - len(a.Broken)
	text := fmt.Sprintf("Codes under scales that are powers of two: "+
		"%d of %d weights keep all their values.", held, a.All)
	if held > 0 {
		text += fmt.Sprintf(" In each of their blocks the highest bit of a value is at most %d above "+
			"the lowest bit of one, of the %d that their new type allows under one scale, "+
			"and the scale is one that can be stored.", a.Reach, a.Limit)
	}
	if len(a.Broken) > 0 {
		text += " Of the others this is the first block that keeps them from it:"
	}
	return text
}

// Advice says what to do about claims that do not hold; "" for nothing.
func (a claims) Advice() string {
	chosen := func(t checkpoint.WeightLoss) bool { return t.Claim.Chosen }
	switch {
	case len(a.Broken) == 0:
		return ""
	case slices.ContainsFunc(a.Broken, chosen):
		return "Where there is a scale that loses nothing, --recipe te-block-pow2 finds it."
	}
	return "To keep them, leave them out with --except, or convert to a layout of values, " +
		"such as bf16."
}

// reason says which block breaks a claim, and why.
func reason(v *checkpoint.ProofSummary) string {
	return fmt.Sprintf("block [%d, %d] of matrix %d: %s", v.Block[1], v.Block[2], v.Block[0], v.Why)
}
