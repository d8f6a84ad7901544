package audit

import (
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// Faults lists what Run tries for a C of type t: all that product p could have, whole, the product left out
// altogether so that only bias and old C remain, all elements too large or too small by
// one in a hundred, and what is not written in one element, one row, one column and one
// tile of C. It returns nil for operands that make no product.
func Faults(t fault.Type, p fault.Product) []fault.Fault {
	all := fault.All(t, p)
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil || len(all) == 0 {
		return nil
	}
	add := func(f fault.Fault) {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	add(fault.Fault{Kind: "k-lost", To: size.K})
	for _, factor := range []float64{0.5, 0.99, 1.01, 2, -1} {
		add(fault.Fault{Kind: "scaled", Factor: factor})
	}
	i, j := size.M/2, size.N/2
	regions := []fault.Region{
		{FromRow: i, ToRow: i + 1, FromCol: j, ToCol: j + 1},
		{FromRow: i, ToRow: i + 1},
		{FromCol: j, ToCol: j + 1},
	}
	if size.M > tileSide && size.N > tileSide {
		regions = append(regions, fault.Region{ToRow: tileSide, ToCol: tileSide})
	}
	for _, where := range regions {
		add(fault.Fault{Kind: "unwritten", Where: where})
	}
	return all
}

// tileSide is the side of the tile that is not written.
const tileSide = 16
