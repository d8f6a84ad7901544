package bench

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// PeakMultiply measures for some milliseconds how many GFLOP/s so many processors
// can do at a level together: with vectors in registers alone, with tiles in squares
// of 2x2 that are loaded from the nearest cache; 0 where there is no kernel.
func PeakMultiply(l cpu.Level, workers int) float64 { return peakMultiply(l, workers, timesOfPeak) }

// timesOfPeak is how often a peak is measured, of which the best counts.
const timesOfPeak = 9

func peakMultiply(l cpu.Level, workers, times int) float64 {
	var products atomic.Int64
	seconds := fastest(times, workers, func() { products.Store(spin(l)) })
	return 2 * float64(products.Load()) * float64(workers) / seconds / 1e9
}

// PeakRead measures how many GB/s so many processors can read together of
// memory, which must have been written to: a system may have all pages that never
// were share one. It returns 0 where there is no kernel that measures it.
func PeakRead(memory []byte, workers int) float64 { return peakRead(memory, workers, timesOfPeak) }

func peakRead(memory []byte, workers, times int) float64 {
	part := len(memory) / workers &^ 255
	if !canRead() || part == 0 {
		return 0
	}
	var lock sync.Mutex
	next := 0
	seconds := fastest(times, workers, func() {
		lock.Lock()
		first := next % (part * workers)
		next += part
		lock.Unlock()
		read(&memory[first], part)
	})
	return float64(part*workers) / seconds / 1e9
}

// fastest returns the seconds that so many goroutines take for f, at best.
func fastest(times, workers int, f func()) float64 {
	best := time.Hour
	for range times {
		var wait sync.WaitGroup
		start := time.Now()
		for range workers - 1 {
			wait.Go(f)
		}
		f()
		wait.Wait()
		best = min(best, time.Since(start))
	}
	return best.Seconds()
}
