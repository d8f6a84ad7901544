package fault

import (
	"fmt"
	"math"
)

func applyTransposed(_ Fault, p *problem, c *change) error {
	c.from = func(i, j int, add func(i, j int)) {
		at := i*p.n + j
		add(at%p.m, at/p.m)
	}
	return nil
}

// applyTilesTransposed leaves tiles that are cut off by the end as they are.
func applyTilesTransposed(f Fault, p *problem, c *change) error {
	if f.By < 2 || f.By > min(p.m, p.n) {
		return notHere("tiles of side %d in C of %dx%d", f.By, p.m, p.n)
	}
	c.from = func(i, j int, add func(i, j int)) {
		i0, j0 := i/f.By*f.By, j/f.By*f.By
		if i0+f.By <= p.m && j0+f.By <= p.n {
			i, j = i0+j-j0, j0+i-i0
		}
		add(i, j)
	}
	return nil
}

func (s Side) lines(n int) string {
	if s == B {
		return plural(n, "column")
	}
	return plural(n, "row")
}

func textOfResultsOff(f Fault) string {
	if f.By < 0 {
		return fmt.Sprintf("C is written %s too far", f.Of.lines(-f.By))
	}
	return fmt.Sprintf("C is written %s too early", f.Of.lines(f.By))
}

func listResultsOff(p *problem, _ bool) (all []Fault) {
	for _, s := range []Side{B, A} {
		for _, n := range []int{1, -1} {
			if p.extent(s) > 1 {
				all = append(all, Fault{Kind: ResultsOff, Of: s, By: n})
			}
		}
	}
	return all
}

// applyResultsOff moves what is in memory: what is before the beginning or beyond the end
// is not known, or 0.
func applyResultsOff(f Fault, p *problem, c *change) error {
	by := f.By
	if f.Of == A {
		by *= p.n
	}
	c.from = func(i, j int, add func(i, j int)) {
		if at := i*p.n + j + by; at >= 0 && at < p.m*p.n {
			add(at/p.n, at%p.n)
		}
	}
	c.unknown = func(i, j int) bool {
		at := i*p.n + j + by
		return at < 0 || at >= p.m*p.n
	}
	return nil
}

func textOfResultsExchanged(f Fault) string {
	return fmt.Sprintf("neighbouring tiles of %s of C are exchanged", f.Of.lines(f.By))
}

func applyResultsExchanged(f Fault, p *problem, c *change) error {
	if f.By < 1 || f.By >= p.extent(f.Of) {
		return notHere("tiles of %s", f.Of.lines(f.By))
	}
	c.from = func(i, j int, add func(i, j int)) {
		at := &i
		if f.Of == B {
			at = &j
		}
		if to := exchange(*at, f.By); to < p.extent(f.Of) {
			*at = to
		}
		add(i, j)
	}
	return nil
}

// exchange returns the number that changes places with n, where tiles of a size do.
func exchange(n, size int) int {
	tile := n / size
	return n + ((tile^1)-tile)*size
}

func textOfStale(text string) func(Fault) string {
	return func(f Fault) string { return text + " " + f.Of.lines(f.By) + " before" }
}

func applyStale(f Fault, p *problem, c *change) error {
	if f.By < 1 || f.By >= p.extent(f.Of) || f.Of == Both || f.Of == Neither {
		return notHere("tiles of %s", f.Of.lines(f.By))
	}
	c.from = func(i, j int, add func(i, j int)) {
		add(i, j)
		for range p.extent(f.Of) {
			if f.Of == A {
				i -= f.By
			} else {
				j -= f.By
			}
			if i < 0 || j < 0 {
				return
			}
			add(i, j)
			if f.Kind == Stale {
				return
			}
		}
	}
	return nil
}

func applyUnwritten(_ Fault, _ *problem, c *change) error {
	c.from = func(_, _ int, _ func(i, j int)) {}
	c.bias, c.old = 0, 0
	return nil
}

func applyOld(f Fault, p *problem, c *change) error {
	if p.Old == nil {
		return notHere("there is no old C")
	}
	switch f.Kind {
	case OldKept:
		c.from = func(_, _ int, _ func(i, j int)) {}
		c.bias = 0
	case OldLost:
		c.old = 0
	case OldTwice:
		c.old = 2
	}
	return nil
}

func applyBias(f Fault, p *problem, c *change) error {
	if p.Bias == nil {
		return notHere("there is no bias")
	}
	switch f.Kind {
	case BiasLost:
		c.bias = 0
	case BiasTwice:
		c.bias = 2
	case BiasByRow:
		if p.m > p.n {
			return notHere("a bias of %d elements for %d rows", p.n, p.m)
		}
		c.biasAt = func(i, _ int) int { return i }
	}
	return nil
}

func textOfScaled(f Fault) string {
	return fmt.Sprintf("each element is %.6g times the right one", f.Factor)
}

func applyScaled(f Fault, _ *problem, c *change) error {
	if f.Factor == 0 || math.IsInf(f.Factor, 0) || f.Factor != f.Factor {
		return notHere("results times %v", f.Factor)
	}
	c.factor, c.slack, c.fitted = f.Factor, 0x1p-22, true
	return nil
}

func textOfClamped(f Fault) string {
	return fmt.Sprintf("results are cut to at most %.6g in magnitude", f.Factor)
}

func listClamped(p *problem, _ bool) (all []Fault) {
	for _, most := range []float64{448, 240, 57344, 65504} {
		all = append(all, Fault{Kind: Clamped, Factor: most})
	}
	return all
}

func applyClamped(f Fault, _ *problem, c *change) error {
	if !(f.Factor > 0) {
		return notHere("results of at most %v", f.Factor)
	}
	most := float32(f.Factor)
	c.after = func(v float32, _, _ int) float32 { return max(-most, min(most, v)) }
	return nil
}

func textOfRounded(what string) func(Fault) string {
	return func(f Fault) string { return fmt.Sprintf("results are "+what+" on their way", f.Type) }
}

func listRounded(k Kind) func(*problem, bool) []Fault {
	return func(*problem, bool) []Fault {
		return []Fault{{Kind: k, Type: BFloat16}, {Kind: k, Type: Float16}}
	}
}

func applyRounded(f Fault, p *problem, c *change) error {
	if f.Type != BFloat16 && f.Type != Float16 || f.Kind == Rounded && f.Type == p.out {
		return notHere("results rounded to %v", f.Type)
	}
	c.rounded = f.Type
	c.cut = f.Kind == Truncated
	c.after = func(v float32, _, _ int) float32 {
		if f.Kind == Truncated {
			return f.Type.cut(v)
		}
		return f.Type.narrow(v)
	}
	return nil
}

// cut rounds toward zero.
func (t Type) cut(x float32) float32 {
	v := t.narrow(x)
	if v != v || math.Abs(float64(v)) <= math.Abs(float64(x)) {
		return v
	}
	if _, _, most := t.parameters(); math.Abs(float64(v)) > most { // rounded to infinity
		return float32(math.Copysign(most, float64(x)))
	}
	return float32(float64(v) - math.Copysign(t.place(math.Abs(float64(v))*(1-0x1p-12)), float64(v)))
}

func textOfGarbage(f Fault) string {
	return fmt.Sprintf("what is beyond the last full tile of %s is garbage", f.Of.lines(f.By))
}

// edge returns where the rows or columns beyond the last full tile begin.
func (p *problem) edge(f Fault) int { return p.extent(f.Of) / max(f.By, 1) * max(f.By, 1) }

func applyGarbage(f Fault, p *problem, c *change) error {
	first := p.edge(f)
	if f.By < 1 || first == p.extent(f.Of) || first == 0 || f.Of != A && f.Of != B {
		return notHere("there is nothing beyond the last full tile of %s", f.Of.lines(f.By))
	}
	beyond := func(i, j int) bool { return f.Of == A && i >= first || f.Of == B && j >= first }
	c.unknown = beyond
	c.after = func(v float32, i, j int) float32 {
		if !beyond(i, j) {
			return v
		}
		// Some number of the usual range, the same each time.
		h := uint64(i*p.n+j+1) * 0x9E3779B97F4A7C15
		h ^= h >> 29
		return math.Float32frombits(uint32(h>>40)&(1<<23-1) | uint32(112+h>>59)<<23 | uint32(h&1)<<31)
	}
	return nil
}
