package textout

import "strconv"

// Rate returns a rate with three digits, or with those before the point.
func Rate(x float64) string {
	decimals := 2
	switch {
	case x >= 99.95:
		decimals = 0
	case x >= 9.995:
		decimals = 1
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}
