// Package judge gives the verdict on one result of a kernel that multiplies FP8
// matrices: whether it is what the kernel is claimed to compute, how far it is from the
// exact result, where it went wrong first, and what explains it.
//
// [Check] takes C as the kernel left it, the operands and a [Claim], and returns a
// [Verdict], which writes itself as text, as JSON and as a page with a map of the
// errors:
//
//	v, err := judge.Check(ctx, got, nil, a, b, judge.Claim{}, judge.Options{})
//	if err == nil && !v.Pass {
//		err = v.WriteText(os.Stderr)
//	}
//
// The claim is checked as package oracle can: exactly, or under a bound that is derived
// and not guessed. Errors that the bound allows one by one are tested together by
// package power, whose alarm fails the result unless [Claim].Alarms says otherwise. Where a
// bound says nothing of an element that is not the exact one, the verdict is undecided. In
// tests, package oracletest says the same in a line.
package judge
