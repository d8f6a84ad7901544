package textout

import (
	"math"
	"strconv"
)

// Decibels writes a ratio; "exact" where nothing is lost and "-" where there is none.
func Decibels(x float64) string {
	switch {
	case x != x:
		return "-"
	case math.IsInf(x, 1):
		return "exact"
	case math.IsInf(x, -1):
		return "NaN"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// LossOrder orders tensors by what they lost: those with values that became NaN or infinite
// first, then by SQNR in decibels; those that had nothing to lose, of which that is NaN, last.
func LossOrder(becameNonFinite int64, sqnr float64) float64 {
	switch {
	case becameNonFinite > 0:
		return math.Inf(-1)
	case sqnr != sqnr:
		return math.Inf(1)
	}
	return sqnr
}

// Percent writes a share in two digits.
func Percent(n, of int64) string {
	switch {
	case n == 0:
		return "0"
	case n == of:
		return "100%"
	}
	share := 100 * float64(n) / float64(of)
	switch {
	case share < 0.001:
		return "<0.001%"
	case share > 99:
		return strconv.FormatFloat(min(share, 99.9), 'f', 1, 64) + "%"
	}
	if text := strconv.FormatFloat(share, 'f', 3, 64); share < 0.01 {
		return text + "%"
	}
	return strconv.FormatFloat(share, 'g', 2, 64) + "%"
}
