package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOutside counts all ways in which coins can fall.
func TestOutside(t *testing.T) {
	for n := 1; n <= 18; n++ {
		// misses[c] are the falls of which at most c are heads.
		misses := make([]int, n+1)
		for falls := range 1 << n {
			heads := 0
			for coin := range n {
				heads += falls >> coin & 1
			}
			for c := heads; c <= n; c++ {
				misses[c]++
			}
		}
		want := 0
		for c := 1; 2*c < n; c++ {
			if 2*float64(misses[c])/float64(int(1)<<n) <= 1-confidence {
				want = c
			}
		}
		if got := outside(n); got != want {
			t.Errorf("of %d values %d are left out, want %d", n, got, want)
		}
		missed := 2 * float64(misses[outside(n)]) / float64(int(1)<<n)
		if known := (Ratio{Pairs: n}).Known(); known != (missed <= 1-confidence) {
			t.Errorf("%d pairs are known: %v, but the interval misses with %v", n, known, missed)
		}
	}
}

// TestRatioCovers draws from a distribution that is not symmetric and counts how often
// the interval holds its median.
func TestRatioCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{6, 13, 40} {
		const times = 4000
		held := 0
		for range times {
			pairs := make([]float64, n)
			for i := range pairs {
				pairs[i] = math.Exp(r.NormFloat64()) // whose median is 1
			}
			got := newRatio(pairs)
			if got.Low <= 1 && 1 <= got.High {
				held++
			}
		}
		// 95% less four standard deviations of the count
		if share := float64(held) / times; share < 0.95-4*math.Sqrt(0.95*0.05/times) {
			t.Errorf("%d pairs: the interval holds the median in %.1f%%", n, 100*share)
		}
	}
}

func TestNewRatio(t *testing.T) {
	for _, c := range []struct {
		pairs []float64
		want  Ratio
	}{
		{[]float64{3}, Ratio{3, 3, 3, 1}},
		{[]float64{4, 1}, Ratio{2.5, 1, 4, 2}},
		{[]float64{5, 1, 4, 2, 3}, Ratio{3, 1, 5, 5}},
		{[]float64{9, 1, 8, 2, 7, 3, 6, 4, 5}, Ratio{5, 2, 8, 9}},
	} {
		before := slices.Clone(c.pairs)
		if got := newRatio(c.pairs); got != c.want {
			t.Errorf("%v: got %+v, want %+v", c.pairs, got, c.want)
		}
		if !slices.Equal(c.pairs, before) {
			t.Error("it has changed what it was given")
		}
	}
	if got := (Ratio{4, 3, 5, 9}).Spread(); got != 0.25 {
		t.Errorf("spread %v", got)
	}
}

func TestChanges(t *testing.T) {
	entry := func(what, to string, low, median, high float64, pairs int) RatioEntry {
		return RatioEntry{what, 1, RatioTo{Level: "avx2", To: to, Ratio: Ratio{median, low, high, pairs}, Best: median}}
	}
	before := []RatioEntry{
		entry("a", "x", 0.8, 0.9, 1, 9), entry("b", "x", 0.8, 0.9, 1, 9), entry("c", "x", 0.8, 0.9, 1, 9),
		entry("d", "x", 0.8, 0.9, 1, 5), entry("e", "x", 0.8, 0.9, 1, 9), entry("gone", "x", 0.8, 0.9, 1, 9),
	}
	now := []RatioEntry{
		entry("a", "x", 0.7, 0.75, 0.79, 9), entry("b", "x", 0.7, 0.75, 0.8, 9), entry("c", "x", 1.1, 1.2, 1.3, 9),
		entry("d", "x", 0.1, 0.1, 0.1, 9), entry("e", "x", 0.1, 0.1, 0.1, 1), entry("a", "y", 0.1, 0.1, 0.1, 9),
	}
	worse, better, both := Changes(before, now, 0)
	if both != 3 || len(worse) != 1 || worse[0] != (Change{now[0], before[0].Ratio}) || len(better) != 1 || better[0].What != "c" {
		t.Errorf("of %d: worse %v, better %v", both, worse, better)
	}
	if worse, better, both := Changes(before, now, 0.02); both != 3 || len(worse) != 0 || len(better) != 1 {
		t.Errorf("of %d: worse %v, better %v, of intervals 1.25%% and 10%% apart", both, worse, better)
	}
	now[0].Best, now[2].Best = 0.95, 0.85
	if worse, better, _ := Changes(before, now, 0); len(worse)+len(better) != 0 {
		t.Errorf("worse %v, better %v, and the ratios of the best rates say the contrary", worse, better)
	}
	for i := range now { // of other workers, level and weights there is nothing
		now[i].Workers, now[i].Level, now[i].Packed = 1+i%2, []string{"avx2", "avx512"}[i/2%2], i > 3
	}
	now[0].Level = "avx512"
	now = append(now, entry("a", "x", 0.7, 0.75, 0.79, 9), entry("a", "x", 0.7, 0.75, 0.79, 9))
	now[len(now)-1].Core, now[len(now)-2].Format = "SkylakeX", "AB16b"
	if _, _, both := Changes(before, now, 0); both != 0 {
		t.Errorf("%d ratios are taken for others", both)
	}
}

func TestParseShape(t *testing.T) {
	for _, s := range append(append(Shapes(), LargeShapes()...), Shape{M: 6, N: 5, K: 4, Experts: 3}) {
		if got, err := ParseShape(s.String()); err != nil || got != s {
			t.Errorf("%v: got %v, %v", s, got, err)
		}
	}
	for _, text := range []string{
		"", "1", "1x2", "1x2x3x4", "0x1x1", "1x-1x1", "1x1x+1", "ax1x1", "of 1x1x1", "0 of 1x1x1", "1x1x40000", "1x99999999999999999999x1",
		"32769x1x1", "2 of 32768x1x1", "2 of 1x32768x32768", "32768 of 1x32768x32768", " 1x1x1",
	} {
		if s, err := ParseShape(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}
