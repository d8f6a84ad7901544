// Package bench measures octavo and compares it with its peers: matrix products
// and conversions at each level of this machine, beside what the machine can do.
// It is a module of its own, so that what it needs is not what the library needs.
//
// A [Suite] is a set of measurements and makes a [Report]; octavo bench prints
// and plots one. A [PeerSuite] lets octavo and a program of OpenBLAS and oneDNN, which
// the folder peers builds, take turns, and makes a [PeerReport] of ratios with their
// spread. The same operands are behind the benchmarks:
//
//	go test -bench . ./bench
//
// Their names are key=value pairs that benchstat understands.
//
// Rates of conversions count the bytes of the float32 side; GFLOP/s count
// 2·M·N·K. A rate is compared with its roof: what the processors can do in
// registers alone, or can read at the product's arithmetic intensity, measured in
// the same run. Where machines are shared, compare figures of one run, and quote
// ratios.
package bench
