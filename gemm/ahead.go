package gemm

import (
	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/tile"
)

// ahead is codes that will be needed soon, to be fetched into the caches while
// others are multiplied: n times 256 bytes from an address on, step apart.
type ahead struct {
	address uintptr
	n, step int
}

// panelAhead is the codes of the panel that comes after that of column j: the next,
// or the first of the next step.
func (p *part) panelAhead(r area, j int, st step) ahead {
	k := st.lo
	if j += tile.Columns; j >= r.j1 {
		j, k = r.j0, st.hi
	}
	n := min(st.hi-st.lo, p.k-k)
	switch {
	case n <= 0 || n > tileDepth:
		return ahead{}
	case p.b.packed:
		return ahead{address(p.b.panel(j / tile.Columns)[k*tile.Columns:]), n * tile.Columns / 256, 256}
	}
	return ahead{address(p.b.codes[j*p.b.stride+k:]), min(tile.Columns, r.j1-j), p.b.stride}
}

// rowsAhead is the codes of rows [i0, i1) of A for the next step.
func (p *part) rowsAhead(i0, i1 int, st step) ahead {
	if i0 >= i1 || st.hi == p.k {
		return ahead{}
	}
	return ahead{address(p.a.codes[i0*p.a.stride+st.hi:]), i1 - i0, p.a.stride}
}

// fetch fetches a share of what is left, one of so many.
func (a *ahead) fetch(shares int) {
	n := ceilDiv(a.n, shares)
	amx.Fetch(a.address, n, a.step)
	a.address, a.n = a.address+uintptr(n*a.step), a.n-n
}
