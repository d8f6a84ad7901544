//go:build purego || !amd64

package amx

const noKernel = "amx: this build has no kernel"

func multiply(c *float32, stride int, a, b *uint16, sa, sb *float32, chunks, blocks int, p *float32, resume, hold bool) {
	panic(noKernel)
}

func packRows(dst *uint16, codes *byte, stride, rows, n int, c *Decoder) { panic(noKernel) }

func packColumns(dst *uint16, codes *byte, n int, c *Decoder) { panic(noKernel) }

func gatherRow(dst, c *float32, n, stride int) { panic(noKernel) }

func prefetch(address uintptr, n, step int) { panic(noKernel) }
