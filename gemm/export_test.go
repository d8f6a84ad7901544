package gemm

import "github.com/octavo-fp8/octavo/internal/canonical"

// FMA32 is canonical.FMA, for tests against exact arithmetic.
var FMA32 = canonical.FMA

// AMXAlways has level AMX take tiles for all products, and write all results past the
// caches, until restore is called.
func AMXAlways() (restore func()) {
	from, integers, results := amxFrom, amxIntegersFrom, streamFrom
	amxFrom, amxIntegersFrom, streamFrom = thresholds{1, 1, 1, 1}, integerThresholds{1, 1, 1}, 0
	return func() { amxFrom, amxIntegersFrom, streamFrom = from, integers, results }
}
