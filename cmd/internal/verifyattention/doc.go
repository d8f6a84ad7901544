// Package verifyattention reads what a flash attention kernel made of a problem, or makes
// up both, and judges it.
package verifyattention
