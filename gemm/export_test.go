package gemm

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/canonical"
)

// FMA32 is canonical.FMA, for tests against exact arithmetic.
var FMA32 = canonical.FMA

// AMXFloats has level AMX take tiles of bfloat16, where it takes tiles and formats and blocks
// allow it, until restore is called.
func AMXFloats() (restore func()) {
	before := floatsFrom
	floatsFrom = integerThresholds{rows: 1, block: math.MaxInt}
	return func() { floatsFrom = before }
}

// AMXAlways has level AMX take tiles for all products, and write all results past the
// caches, until restore is called.
func AMXAlways() (restore func()) {
	from, integers, results := amxFrom, amxIntegersFrom, streamFrom
	amxFrom, amxIntegersFrom, streamFrom = thresholds{1, 1, 1, 1}, integerThresholds{1, 1, 1}, 0
	return func() { amxFrom, amxIntegersFrom, streamFrom = from, integers, results }
}
