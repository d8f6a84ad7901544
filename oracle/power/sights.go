package power

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// Sight is a fault and whether it would have been seen: how many of the places where it
// was tried would have raised the alarm, with the errors that this result has besides,
// and with a probability of 99 in 100.
type Sight struct {
	Fault string `json:"fault"`
	Seen  int    `json:"seen"`
	Tried int    `json:"tried"` // places that were tried; 0: the operands have none
	// Least is the smallest fault that would have been seen, in the unit of the next
	// field; 0 where nothing of the kind is measured.
	Least oracle.Number `json:"least,omitempty"`
	Unit  string        `json:"unit,omitempty"`
}

// String describes the sight in a line.
func (s *Sight) String() string {
	switch {
	case s.Tried == 0 && s.Unit == "":
		return "these operands have none"
	case s.Unit != "":
		return fmt.Sprintf("seen if it is %.2g of %s or more", float64(s.Least), s.Unit)
	}
	return fmt.Sprintf("seen in %d of %d places", s.Seen, s.Tried)
}

// effect is a fault as one statistic sees it: the sums of w·d and of its square, d being
// what f changes by, and what is allowed; and the largest change of an element, in its σ.
type effect struct{ signal, squares, allowed, largest float64 }

// add takes in a change of element at. In a narrow result it takes the element to the
// next number as often as it is part of the distance to that.
func (e *effect) add(p *population, at int, change float64) {
	d := change / p.spread[at]
	e.signal += d
	e.squares += float64(d * max(d, math.Abs(p.ties.step[at])))
	e.largest = max(e.largest, (change-p.blind(at))/p.sigma[at])
}

// blind is what an element may be off by, in a narrow type, for reasons of rounding: twice
// the unit roundoff or, of subnormals, the distance to the next number.
func (p *population) blind(at int) float64 {
	narrow := math.Sqrt(max(float64(p.spread[at]*p.spread[at])-float64(p.sigma[at]*p.sigma[at]), 0))
	step := math.Abs(p.ties.step[at]) * p.spread[at]
	return max(2*narrow, step) + u*math.Abs(float64(p.exact[at]))
}

// chance99 is the normal quantile of 99 in 100.
const chance99 = 2.33

// seen reports whether the statistic exceeds λ although the errors of a correct kernel,
// of the given square in all, are in the way, or that an element by itself does.
func (e *effect) seen(noise, lambda, one float64) bool {
	if e.largest > one+chance99 {
		return true
	}
	left := e.signal - e.allowed - chance99*math.Sqrt(noise)
	return left > 0 && left > lambda*math.Sqrt(noise+e.squares)
}

const (
	triedProducts = 16
	triedCodes    = 128
)

// sights says what would have been seen.
func (p *population) sights(s *scores, rate float64) []Sight {
	n := p.norms(s.deviations)
	all := []Sight{p.oneElement(s, rate), p.shrinking(s, n, rate), p.lostProducts(n, rate)}
	for _, x := range []struct {
		t, other *tensor.Tensor
		name     string
		column   bool
	}{{p.a, p.b, "A", false}, {p.b, p.a, "B", true}} {
		all = append(all, p.flippedBits(n, rate, x.t, x.other, x.name, x.column))
	}
	return all
}

// oneElement is the error of one element, of the usual σ and rounding.
func (p *population) oneElement(s *scores, rate float64) Sight {
	least, count := 0.0, 0
	lambda := limit(s.elements, rate)
	squares := 0.0
	for i, x := range p.sigma {
		if x == 0 {
			continue
		}
		least += float64(lambda*x) + p.blind(i)
		squares += float64(p.exact[i]) * float64(p.exact[i])
		count++
	}
	sight := Sight{Fault: "an error of one element", Unit: "the mean |C|"}
	if squares > 0 {
		rms := math.Sqrt(squares / float64(count))
		sight.Unit = "the root mean square of C"
		sight.Least = oracle.Number(least / float64(count) / rms)
	}
	return sight
}

// shrinking is the relative error of all elements, toward zero or away from it.
func (p *population) shrinking(s *scores, n *norms, rate float64) Sight {
	sight := Sight{Fault: "all of C too small or too large", Unit: "C"}
	signal, steps, allowed := 0.0, 0.0, p.ties.allowed(p.ties.near[0], p.signAt)
	for i := range p.spread {
		if p.spread[i] > 0 {
			x := math.Abs(float64(p.exact[i])) / p.spread[i]
			allowed += p.shared[i]
			signal += x
			steps += float64(x * math.Abs(p.ties.step[i]))
		}
	}
	if signal > 0 {
		// The x that solves x·signal - allowed = λ·sqrt(n.all + x·steps).
		lambda := limit(2, rate) + chance99
		half := float64(allowed*signal) + float64(lambda*lambda*steps)/2
		rest := float64(half*half) - float64(signal*signal*(float64(allowed*allowed)-float64(lambda*lambda*n.all)))
		sight.Least = oracle.Number((half + math.Sqrt(max(rest, 0))) / float64(signal*signal))
	}
	return sight
}

// lostProducts tries to lose product k of all elements.
func (p *population) lostProducts(n *norms, rate float64) Sight {
	sight := Sight{Fault: "product k of all elements lost"}
	lambda := limit(p.k, rate)
	for q := range min(triedProducts, p.k) {
		k := (2*q + 1) * p.k / (2 * min(triedProducts, p.k))
		var e effect
		y := make([]float64, p.n)
		for j := range y {
			y[j] = magnitudeAt(p.b, j, k)
		}
		for i := range p.m {
			x := magnitudeAt(p.a, i, k)
			for j, y := range y {
				if at := i*p.n + j; p.spread[at] > 0 {
					e.add(p, at, float64(x*y))
				}
			}
		}
		if e.signal == 0 {
			continue
		}
		e.allowed = n.allAllowed + p.ties.allowed(p.ties.near[0], p.productWeight(k))
		sight.Tried++
		if e.seen(n.all, lambda, limit(p.m*p.n, rate)) {
			sight.Seen++
		}
	}
	return sight
}

// magnitudeAt is the magnitude of an element of an operand, 0 if it is not finite.
func magnitudeAt(t *tensor.Tensor, i, k int) float64 {
	v := math.Abs(float64(t.Format.Float32(t.Row(i)[k]))) * scaleOf(t, i, k)
	if !number.IsFinite(v) {
		return 0
	}
	return v
}

// flippedBits tries to flip the lowest bit of one code.
func (p *population) flippedBits(n *norms, rate float64, t, other *tensor.Tensor, name string, column bool) Sight {
	sight := Sight{Fault: "the lowest bit of one code of " + name + " flipped"}
	rows, _ := t.Dims()
	lambda := limit((p.m+p.n)*p.k, rate)
	total := rows * p.k
	for q := range min(triedCodes, total) {
		// A stride that has no divisor in common with most sizes goes over all rows.
		place := int(uint64(q) * 0x9E3779B1 % uint64(total))
		row, k := place/p.k, place%p.k
		c := t.Row(row)[k]
		change := math.Abs(float64(t.Format.Float32(c))-float64(t.Format.Float32(c^1))) * scaleOf(t, row, k)
		if !number.IsFinite(change) || change == 0 {
			continue
		}
		e := p.flipped(n, change, other, row, k, column)
		if e.signal == 0 {
			continue
		}
		noise := n.rows
		if column {
			noise = n.cols
		}
		sight.Tried++
		if e.seen(noise[row], lambda, limit(p.m*p.n, rate)) {
			sight.Seen++
		}
	}
	return sight
}

// flipped is the effect of a change of one element of an operand.
func (p *population) flipped(n *norms, change float64, other *tensor.Tensor, row, k int, column bool) (e effect) {
	count, _ := other.Dims()
	weight, near := p.codeWeight(top{at: row, k: k, column: column})
	e.allowed = p.ties.allowed(near, weight)
	if column {
		e.allowed += n.colsAllowed[row]
	} else {
		e.allowed += n.rowsAllowed[row]
	}
	for o := range count {
		i, j := row, o
		if column {
			i, j = o, row
		}
		at := i*p.n + j
		if p.spread[at] == 0 {
			continue
		}
		e.add(p, at, float64(change*magnitudeAt(other, o, k)))
	}
	return e
}
