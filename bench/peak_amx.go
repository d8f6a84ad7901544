package bench

import "sync/atomic"

// PeakTiles measures for some milliseconds how many GFLOP/s so many processors can do
// together with tiles of AMX in registers; 0 where there are none. Products of four
// tiles that are loaded from the nearest cache reach five sixths of it.
func PeakTiles(workers int) float64 { return peakTiles(workers, timesOfPeak) }

func peakTiles(workers, times int) float64 {
	var products atomic.Int64
	seconds := fastest(times, workers, func() { products.Store(spinInTiles()) })
	return 2 * float64(products.Load()) * float64(workers) / seconds / 1e9
}
