package statistics

import "slices"

// Quantile returns the value below which a share of sorted values lies, between
// two of them in proportion; 0 if there are none.
func Quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := share * float64(len(sorted)-1)
	below := min(int(at), len(sorted)-1)
	above := min(below+1, len(sorted)-1)
	part := at - float64(below)
	return float64(sorted[below]*(1-part)) + float64(sorted[above]*part)
}

// ShareAbove returns which share of sorted values is above a limit; 0 if there are
// none.
func ShareAbove(sorted []float64, limit float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at, found := slices.BinarySearch(sorted, limit)
	for found && at < len(sorted) && sorted[at] == limit {
		at++
	}
	return float64(len(sorted)-at) / float64(len(sorted))
}
