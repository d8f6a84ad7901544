package gemm

// FMA32 is fma32, for tests against exact arithmetic.
var FMA32 = fma32

// AMXAlways has level AMX take tiles for all products, until restore is called.
func AMXAlways() (restore func()) {
	before := amxFrom
	amxFrom = thresholds{1, 1, 1, 1}
	return func() { amxFrom = before }
}
