// Package bench measures octavo and compares it with its peers. It is a module
// of its own, so that what it needs is not what the library needs.
//
//	go test -bench . ./bench
//
// Names are key=value pairs that benchstat understands. Rates of conversions
// count the bytes of the float32 side; GFLOP/s count 2·M·N·K. These machines are
// shared: compare figures of one run, and quote ratios.
package bench
