package gemm

// FMA32 is fma32, for tests against exact arithmetic.
var FMA32 = fma32

// AMXAlways has level AMX take tiles for all products, and write all results past the
// caches, until restore is called.
func AMXAlways() (restore func()) {
	from, results := amxFrom, streamFrom
	amxFrom, streamFrom = thresholds{1, 1, 1, 1}, 0
	return func() { amxFrom, streamFrom = from, results }
}
