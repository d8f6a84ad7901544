package fault

import "math"

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

func applyResultsExchanged(f Fault, p *problem, c *change) error {
	if f.By < 1 || f.By >= p.extent(f.Of) {
		return notHere("tiles of %s", f.fill("{lines}"))
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

// applyStale adds the results of up to most tiles before.
func applyStale(most int) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		if f.By < 1 || f.By >= p.extent(f.Of) {
			return notHere("tiles of %s", f.fill("{lines}"))
		}
		c.from = func(i, j int, add func(i, j int)) {
			add(i, j)
			for range min(most, p.extent(f.Of)) {
				if f.Of == A {
					i -= f.By
				} else {
					j -= f.By
				}
				if i < 0 || j < 0 {
					return
				}
				add(i, j)
			}
		}
		return nil
	}
}

func fromNothing(_, _ int, _ func(i, j int)) {}

func applyUnwritten(_ Fault, _ *problem, c *change) error {
	c.from, c.bias, c.old = fromNothing, 0, 0
	return nil
}

// applyOld applies a fault of the old C.
func applyOld(do func(c *change)) func(Fault, *problem, *change) error {
	return func(_ Fault, p *problem, c *change) error {
		if p.Old == nil {
			return notHere("there is no old C")
		}
		do(c)
		return nil
	}
}

// applyBias applies a fault of the bias.
func applyBias(do func(c *change)) func(Fault, *problem, *change) error {
	return func(_ Fault, p *problem, c *change) error {
		if p.Bias == nil {
			return notHere("there is no bias")
		}
		do(c)
		return nil
	}
}

func applyBiasByRow(f Fault, p *problem, c *change) error {
	if p.Bias != nil && p.m > p.n {
		return notHere("a bias of %d elements for %d rows", p.n, p.m)
	}
	return applyBias(func(c *change) { c.biasAt = func(i, _ int) int { return i } })(f, p, c)
}

func applyScaled(f Fault, _ *problem, c *change) error {
	if f.Factor == 0 || math.IsInf(f.Factor, 0) || f.Factor != f.Factor {
		return notHere("results times %v", f.Factor)
	}
	c.factor, c.slack, c.fitted = f.Factor, 0x1p-22, true
	return nil
}

func applyClamped(f Fault, _ *problem, c *change) error {
	if !(f.Factor > 0) {
		return notHere("results of at most %v", f.Factor)
	}
	most := float32(f.Factor)
	c.after = func(v float32, _, _ int) float32 { return max(-most, min(most, v)) }
	return nil
}

// applyRounded rounds results to another type, or cuts them to it.
func applyRounded(cut bool) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		if f.Type != BFloat16 && f.Type != Float16 || !cut && f.Type == p.out {
			return notHere("results rounded to %v", f.Type)
		}
		c.rounded, c.cut = f.Type, cut
		c.after = func(v float32, _, _ int) float32 {
			if cut {
				return f.Type.cut(v)
			}
			return f.Type.narrow(v)
		}
		return nil
	}
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

// edge returns where the rows or columns beyond the last full tile begin.
func (p *problem) edge(f Fault) int { return p.extent(f.Of) / max(f.By, 1) * max(f.By, 1) }

func applyGarbage(f Fault, p *problem, c *change) error {
	first := p.edge(f)
	if f.By < 1 || first == p.extent(f.Of) || first == 0 {
		return notHere("there is nothing beyond the last full tile of %s", f.fill("{lines}"))
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
