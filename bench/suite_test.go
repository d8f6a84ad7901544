package bench

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// small is a suite that takes no time.
func small() Suite {
	return Suite{
		Shapes:   []Shape{{M: 3, N: 40, K: 200, Experts: 1}, {M: 4, N: 33, K: 130, Experts: 2}},
		Levels:   Levels(),
		Workers:  []int{1, 2},
		Elements: 1024,
		Reads:    []int{4096, 8192},
		Time:     time.Microsecond,
	}
}

func TestSuite(t *testing.T) {
	restore, err := cpu.Force(cpu.Generic) // which is not that of the last case
	if err != nil {
		t.Fatal(err)
	}
	defer restore()
	workers := runtime.GOMAXPROCS(0)
	s := small()
	began := 0
	r, err := s.Run(t.Context(), func(Case) { began++ })
	if err != nil {
		t.Fatal(err)
	}
	if cpu.Current() != cpu.Generic || runtime.GOMAXPROCS(0) != workers {
		t.Error("level and GOMAXPROCS are not what they were")
	}
	if r.Cases != s.Cases() || r.Done != r.Cases || began != r.Cases {
		t.Errorf("%d of %d cases done, %d began", r.Done, r.Cases, began)
	}
	levels := len(s.Levels)
	if products, conversions := 2*(4*levels+2), 2+20*levels; len(r.Products) != products || len(r.Conversions) != conversions {
		t.Errorf("%d products and %d conversions, want %d and %d", len(r.Products), len(r.Conversions), products, conversions)
	}
	for _, p := range r.Products {
		if !(p.Best >= p.Median && p.Median > 0) || math.IsInf(p.Best, 0) || p.Runs < 1 {
			t.Errorf("%+v: rates make no sense", p)
		}
		_, measured := peakOf(r, p)
		if (p.Roof > 0) != measured || (p.OfRoof() > 0) != measured {
			t.Errorf("%+v: a roof without a measurement, or the other way round", p)
		}
	}
	for _, c := range r.Conversions {
		if !(c.Best >= c.Median && c.Median > 0) || math.IsInf(c.Best, 0) || c.Runs < 1 {
			t.Errorf("%+v: rates make no sense", c)
		}
	}
}

func peakOf(r *Report, p Product) (rate float64, ok bool) {
	for _, m := range r.Limits.FMA {
		if m.Level == p.Level && m.Workers == p.Workers {
			return m.Rate, true
		}
	}
	return 0, false
}

// TestSuiteStops ends a run before each of its cases.
func TestSuiteStops(t *testing.T) {
	s := small()
	for stop := range s.Cases() {
		ctx, cancel := context.WithCancel(t.Context())
		if stop == 0 {
			cancel()
		}
		began := 0
		r, err := s.Run(ctx, func(Case) {
			if began++; began == stop {
				cancel()
			}
		})
		cancel()
		if err != nil || r.Done != stop || len(r.Products)+len(r.Conversions) != stop {
			t.Fatalf("%d cases done, want %d: %v", r.Done, stop, err)
		}
	}
}

func TestRoof(t *testing.T) {
	l := Limits{
		FMA:  []FMALimit{{"avx2", 1, 100}, {"avx2", 2, 190}},
		Read: []ReadLimit{{1 << 20, 1, 10}, {1 << 30, 1, 5}},
	}
	for _, c := range []struct {
		level           string
		workers         int
		intensity, want float64
	}{
		{"avx2", 1, 2, 20}, {"avx2", 1, 10, 100}, {"avx2", 1, 50, 100},
		{"avx2", 2, 2, 190}, // reading by two is not measured
		{"avx2", 3, 2, 0}, {"generic", 1, 2, 0}, {"", 1, 2, 0},
	} {
		if got := l.Roof(c.level, c.workers, c.intensity); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	l.addFMA(FMALimit{"avx2", 1, 90})
	l.addFMA(FMALimit{"avx2", 2, 200})
	l.addRead(ReadLimit{1 << 20, 1, 11})
	if l.FMA[0].Rate != 100 || l.FMA[1].Rate != 200 || l.Read[0].Rate != 11 || len(l.FMA) != 2 || len(l.Read) != 2 {
		t.Errorf("not the best of each: %+v", l)
	}
}

func TestShape(t *testing.T) {
	for _, c := range []struct {
		shape       Shape
		name        string
		flop, bytes float64
	}{
		{Shape{M: 1, N: 256, K: 384, Experts: 1}, "1x256x384", 2 * 256 * 384, 384 + 256*384 + 4*(3+2*3) + 4*256},
		{Shape{M: 6, N: 129, K: 129, Experts: 3}, "3 of 2x129x129", 2 * 6 * 129 * 129, 6*129 + 3*129*129 + 4*(6*2+3*4) + 4*6*129},
	} {
		if got := c.shape.String(); got != c.name {
			t.Errorf("%s, want %s", got, c.name)
		}
		if f, b := c.shape.FLOP(), c.shape.Bytes(); f != c.flop || b != c.bytes || c.shape.Intensity() != f/b {
			t.Errorf("%v: %v FLOP and %v bytes, want %v and %v", c.shape, f, b, c.flop, c.bytes)
		}
	}
}

func TestTiming(t *testing.T) {
	runs := 0
	c := Case{Level: cpu.Generic, Workers: 1, Run: func() error { runs++; time.Sleep(time.Millisecond); return nil }}
	once, err := c.Measure(0)
	if err != nil || runs != 1 || once.Runs != 1 || once.Best != once.Median || once.Best < time.Millisecond {
		t.Errorf("%d runs, %+v, %v", runs, once, err)
	}
	more, err := c.Measure(20 * time.Millisecond)
	if err != nil || more.Runs != runs-2 || more.Runs < 1 || more.Median < more.Best {
		t.Errorf("%d runs, %+v, %v", runs, more, err)
	}
	if best, median := (Timing{3, 2 * time.Second, 4 * time.Second}).Rates(8e9); best != 4 || median != 2 {
		t.Errorf("%v and %v GFLOP/s", best, median)
	}
}

// TestPeers compares the peers' products with the definition.
func TestPeers(t *testing.T) {
	for _, s := range []Shape{{M: 1, N: 40, K: 50, Experts: 1}, {M: 70, N: 80, K: 90, Experts: 1}} {
		f := newFloats(s)
		f.gonum()
		f.compare(t, "gonum", func(j, k int) float32 { return f.b[j*s.K+k] })
		f.vek()
		f.compare(t, "vek", func(j, k int) float32 { return f.b[k*s.N+j] })
	}
}

func (f *floats) compare(t *testing.T, name string, b func(j, k int) float32) {
	for i := range f.shape.M {
		for j := range f.shape.N {
			sum := 0.0
			for k := range f.shape.K {
				sum += float64(f.a[i*f.shape.K+k]) * float64(b(j, k))
			}
			if got := float64(f.c[i*f.shape.N+j]); math.Abs(got-sum) > 1e-3 {
				t.Fatalf("%s, %v: C[%d, %d] is %v, want %v", name, f.shape, i, j, got, sum)
			}
		}
	}
}
