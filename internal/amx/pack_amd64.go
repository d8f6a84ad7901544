//go:build !purego

package amx

// packRows is [PackRows] without zeros for missing rows.
//
//go:noescape
func packRows(dst *uint16, codes *byte, stride, rows, n int, c *Decoder)

// packColumns is [PackColumns] of n rows.
//
//go:noescape
func packColumns(dst *uint16, codes *byte, n int, c *Decoder)

// gatherRow is [GatherRow] for a positive n.
//
//go:noescape
func gatherRow(dst, c *float32, n, stride int)

// prefetch is [Prefetch] for a positive n.
func prefetch(address uintptr, n, step int)
