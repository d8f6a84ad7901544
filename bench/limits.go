package bench

import "github.com/octavo-fp8/octavo/internal/cpu"

// Limits are what the machine can do, at best of several measurements during a
// run. What cannot be measured is not among them.
type Limits struct {
	FMA  []FMALimit  `json:"fma"`
	Read []ReadLimit `json:"read"`
}

// FMALimit is the rate of fused multiply-adds in registers alone.
type FMALimit struct {
	Level   string  `json:"level"`
	Workers int     `json:"workers"`
	Rate    float64 `json:"gflops"`
}

// ReadLimit is the rate of reading so much memory again and again: from the caches
// that hold it, or from behind them.
type ReadLimit struct {
	Bytes   int     `json:"bytes"`
	Workers int     `json:"workers"`
	Rate    float64 `json:"gigabytesPerSecond"`
}

// measure measures everything once more.
func (l *Limits) measure(levels []cpu.Level, workers []int, memory []byte, sizes []int) {
	for _, w := range workers {
		for _, level := range levels {
			l.addFMA(FMALimit{level.String(), w, PeakMultiply(level, w)})
		}
		for _, size := range sizes {
			l.addRead(ReadLimit{size, w, PeakRead(memory[:size], w)})
		}
	}
}

func (l *Limits) addFMA(m FMALimit) {
	if m.Rate == 0 {
		return
	}
	for i := range l.FMA {
		if old := &l.FMA[i]; old.Level == m.Level && old.Workers == m.Workers {
			old.Rate = max(old.Rate, m.Rate)
			return
		}
	}
	l.FMA = append(l.FMA, m)
}

func (l *Limits) addRead(m ReadLimit) {
	if m.Rate == 0 {
		return
	}
	for i := range l.Read {
		if old := &l.Read[i]; old.Bytes == m.Bytes && old.Workers == m.Workers {
			old.Rate = max(old.Rate, m.Rate)
			return
		}
	}
	l.Read = append(l.Read, m)
}

// Roof returns the GFLOP/s that a product of some arithmetic intensity can have at
// most: those of its level's arithmetic, or those of the fastest reading where that
// is less; 0 if there is no measurement of the level.
func (l *Limits) Roof(level string, workers int, intensity float64) float64 {
	roof := 0.0
	for _, m := range l.FMA {
		if m.Level == level && m.Workers == workers {
			roof = m.Rate
		}
	}
	if fastest := l.fastestRead(workers); fastest > 0 {
		roof = min(roof, intensity*fastest)
	}
	return roof
}

func (l *Limits) fastestRead(workers int) (rate float64) {
	for _, m := range l.Read {
		if m.Workers == workers {
			rate = max(rate, m.Rate)
		}
	}
	return rate
}
