package gemm

import "github.com/octavo-fp8/octavo/internal/microkernel"

// prefetch is codes that will be needed soon, to be fetched into the caches while
// others are multiplied: n times 256 bytes from an address on, step apart.
type prefetch struct {
	address uintptr
	n, step int
}

// prefetchPanel is the codes of the panel that comes after that of column j: the next,
// or the first of the next step.
func (p *part) prefetchPanel(r area, j int, st step) prefetch {
	k := st.lo
	if j += microkernel.PanelWidth; j >= r.j1 {
		j, k = r.j0, st.hi
	}
	n := min(st.hi-st.lo, p.k-k)
	switch {
	case n <= 0:
		return prefetch{}
	case p.b.packed:
		panel, size := p.b.panel(j/microkernel.PanelWidth), p.b.layout.size
		return prefetch{address(panel[size(k):]), size(n) / 256, 256}
	}
	return prefetch{address(p.b.codes[j*p.b.stride+k:]), min(microkernel.PanelWidth, r.j1-j), p.b.stride}
}

// prefetchRows is the codes of rows [i0, i1) of A for the next step.
func (p *part) prefetchRows(i0, i1 int, st step) prefetch {
	if i0 >= i1 || st.hi == p.k {
		return prefetch{}
	}
	return prefetch{address(p.a.codes[i0*p.a.stride+st.hi:]), i1 - i0, p.a.stride}
}

// prefetchShare is prefetchRows for a share of the rows of an area: as large as that of
// the panel of column j of its columns.
func (p *part) prefetchShare(r area, j int, st step) prefetch {
	rows, columns := r.i1-r.i0, r.j1-r.j0
	j -= r.j0
	return p.prefetchRows(r.i0+rows*j/columns, r.i0+rows*min(j+microkernel.PanelWidth, columns)/columns, st)
}
