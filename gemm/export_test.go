package gemm

// FMA32 is fma32, for tests against exact arithmetic.
var FMA32 = fma32

// TilesAlways has level AMX take tiles for all products, until restore is called.
func TilesAlways() (restore func()) {
	before := tilesFrom
	tilesFrom = thresholds{1, 1, 1}
	return func() { tilesFrom = before }
}
