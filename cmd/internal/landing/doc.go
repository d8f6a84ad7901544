// Package landing keeps what a run leaves when it stops: the operands of the operator that
// was the first to go wrong, and what is known of how it came to that; and computes that
// operator again.
package landing
