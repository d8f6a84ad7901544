//go:build !purego

package amx

// multiply is [Multiply] for positive numbers of chunks and blocks. With resume the first
// block goes on from the sums in p, with hold the last one leaves them there and
// c as it is.
//
//go:noescape
func multiply(c *float32, stride int, a, b *uint16, sa, sb *float32, chunks, blocks int, p *float32, resume, hold bool)
