package law

import "github.com/octavo-fp8/octavo/lab/report"

// once names an arm on the whole text.
func once(name string) string { return name + ", once" }

func (s *sweep) goals() []report.Goal {
	return []report.Goal{
		declared().Judge("fp4-fp8", s.over(fp4, fp8, trained)),
		declared().Judge("fp4-fp6", s.over(fp4, fp6, trained)),
		declared().Judge("fp4-bf16", s.over(fp4, bf16, trained)),
		declared().Judge("fp6-fp8", s.over(fp6, fp8, trained)),
		declared().Judge("fp8-bf16", s.over(fp8, bf16, trained)),
		declared().Judge("bf16-fp32", s.over(bf16, full[32], trained)),
		declared().Judge("layouts-of-6", s.over(fp6m, fp6, trained)),

		declared().Judge("effective-fp4", s.effective(fp4Forward)),
		declared().Judge("effective-fp4-weights", s.effective(fp4Weights)),
		declared().Judge("effective-fp4-sun", s.effective(fp4Weights)),
		declared().Judge("effective-fp6", s.effective(fp6)),
		declared().Judge("effective-fp8", s.effective(fp8)),
		declared().Judge("trained-out", s.gain()),

		declared().Judge("once-fp4-fp8", s.over(once(fp4), once(fp8), heldOut)),
		declared().Judge("once-fp6-fp8", s.over(once(fp6), once(fp8), heldOut)),
		declared().Judge("once-fp8-bf16", s.over(once(fp8), once(bf16), heldOut)),
		declared().Judge("once-bf16-fp32", s.over(once(bf16), once(full[32]), heldOut)),

		declared().Judge("half-the-parameters", s.over(full[16], full[8], trained)),
		declared().Judge("three-bits", s.over(threeBits, fp4, trained)),
	}
}
