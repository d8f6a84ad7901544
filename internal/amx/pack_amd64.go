//go:build !purego

package amx

// packRows is [PackRows] without zeros for missing rows.
//
//go:noescape
func packRows(dst *uint16, codes *byte, stride, rows, n int, c *Codes)

// packColumns is [PackColumns] of n rows.
//
//go:noescape
func packColumns(dst *uint16, codes *byte, n int, c *Codes)

// row is [Row] for a positive n.
//
//go:noescape
func row(dst, c *float32, n, stride int)

// fetch is [Fetch] for a positive n.
func fetch(address uintptr, n, step int)
