// Package attention gives the verdict on what a flash attention kernel computed: whether
// it is within the bounds that follow from the operands and from what is claimed of the
// kernel, whether it has the bits of a kernel that has a name, and which fault explains
// what is wrong.
//
// [Check] takes problems, what the kernel made of each, and a [Claim], and returns a
// [Verdict], which writes itself as text, as JSON and as a page with a map of the errors.
// Where a bound says nothing, or where the result is right under sums that nobody claimed,
// the verdict is undecided. In tests, oracletest.CheckAttention says the same in a line.
package attention
