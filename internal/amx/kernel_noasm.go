//go:build purego || !amd64

package amx

const noKernel = "amx: this build has no kernel"

func kernel(c *float32, stride int, a, b *uint16, sa, sb *float32, chunks, blocks int, p *float32, resume, hold bool) {
	panic(noKernel)
}

func packRows(dst *uint16, codes *byte, stride, rows, n int, c *Codes) { panic(noKernel) }

func packColumns(dst *uint16, codes *byte, n int, c *Codes) { panic(noKernel) }

func row(dst, c *float32, n, stride int) { panic(noKernel) }

func fetch(address uintptr, n, step int) { panic(noKernel) }
