//go:build purego || !amd64

package amx

func kernel(c *float32, stride int, a, b *uint16, sa, sb *float32, chunks, blocks int, p *float32, resume, hold bool) {
	panic("amx: this build has no kernel")
}
