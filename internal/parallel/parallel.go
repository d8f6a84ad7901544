// Package parallel splits index ranges over goroutines.
package parallel

import (
	"runtime"
	"sync"
)

// Workers returns n, or GOMAXPROCS where n is not positive.
func Workers(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// For calls f on consecutive ranges [lo, hi) that cover [0, n), on at most
// Workers(workers) goroutines, and returns when all have. Ranges other than the
// last are multiples of grain, which must be positive. f must be safe for
// concurrent calls; which goroutine gets which range is not specified.
func For(n, grain, workers int, f func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grains := (n + grain - 1) / grain
	w := min(Workers(workers), grains)
	if w == 1 {
		f(0, n)
		return
	}
	step := (grains + w - 1) / w * grain
	var wait sync.WaitGroup
	for lo := step; lo < n; lo += step {
		wait.Go(func() { f(lo, min(lo+step, n)) })
	}
	f(0, min(step, n))
	wait.Wait()
}
