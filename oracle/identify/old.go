package identify

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
)

// oldProbes have an old C that is small beside two large products that cancel, within
// each of some cells or the first in the first cell and the second in the last, and one
// that is large beside a small product.
type oldProbes struct {
	size  *magnitudes
	pairs []pair // the cells' in ascending order, and then that of two cells
}

// oldUnits is the large C in units, and stays in its binade.
const oldUnits = 1.5

func (o *oldProbes) make(s Setup) Product {
	o.size = s.magnitudes()
	cells := s.places() / cell
	last := cells - 1
	o.pairs = []pair{{first(0), first(0) + 1}}
	for q := 1; q < last; q *= 2 {
		o.pairs = append(o.pairs, pair{first(q), first(q) + 1})
	}
	o.pairs = append(o.pairs, pair{first(last), first(last) + 1}, pair{first(0), first(last)})
	a, b := newRows(s), newRows(s)
	var old []float32
	each := func(add func(e int, v float32)) {
		for _, e := range o.size.sizesA {
			for _, v := range variants {
				add(e, v)
			}
		}
	}
	for _, pair := range o.pairs {
		each(func(e int, v float32) {
			a.add(func(row []float32) {
				row[pair.i], row[pair.j] = o.size.largeA, -o.size.largeA
			})
			for _, f := range o.size.sizesB {
				old = append(old, o.size.variant(v, e)*exp2(f))
			}
		})
	}
	small := first(0) + 2
	each(func(e int, v float32) {
		a.add(func(row []float32) { row[small] = o.size.variant(v, e) })
		for range o.size.sizesB {
			old = append(old, oldUnits*float32(o.size.unit))
		}
	})
	for _, e := range o.size.sizesB {
		b.add(func(row []float32) {
			for q := range cells {
				row[first(q)], row[first(q)+1] = o.size.largeB, o.size.largeB
			}
			row[small] = exp2(e)
		})
	}
	p := s.product("old", "an old C that is small beside two large products that cancel, and large beside a small one: where it enters, and what is kept of it", a, b)
	// Rows and columns that were added to both operands have an old C of 0.
	m, n, _ := p.Size()
	p.Old = make([]float32, m*n)
	columns := len(o.size.sizesB)
	for i := range len(old) / columns {
		copy(p.Old[i*n:], old[i*columns:(i+1)*columns])
	}
	return p
}

// Places where an old C enters.
const (
	oldStep = "the first step"
	oldSums = "the first of the sums"
	oldEnd  = "the end"
	oldElse = "elsewhere"
)

// read says where the old C enters, how many fraction bits of it are kept beside large
// products there, or of a small sum of products beside it, and how they are rounded.
// chain is the number of products after which a chain begins anew, 0 for none.
func (o *oldProbes) read(c []float32, n, chain int) (place string, bits int, how Rounding) {
	var lost []bool
	var kept []int
	var rounded []Rounding
	for x := range o.pairs {
		l := o.size.ladder(c, n, x*o.size.perA(), 0, 0)
		bits, how := l.kept()
		lost = append(lost, bits < o.size.deepest)
		kept, rounded = append(kept, bits), append(rounded, how)
	}
	l := o.size.ladder(c, n, len(o.pairs)*o.size.perA(), 0, oldUnits*o.size.unit)
	bits, how = l.kept()
	last := len(o.pairs) - 1
	switch {
	case !slices.Contains(lost, true):
		return oldEnd, bits, how
	case !slices.Contains(lost[:last], true):
		return oldSums, kept[last], rounded[last]
	}
	for x, pair := range o.pairs[:last] {
		if inside := chain <= 0 || pair.i < chain; inside != lost[x] {
			return oldElse, bits, how
		}
	}
	return oldStep, kept[0], rounded[0]
}

// withOld are the kernels of a candidate by where the old C enters.
func (c *Candidate) withOld(s Setup) []Candidate {
	if !s.Old {
		return []Candidate{*c}
	}
	end := *c
	end.setOld(oldEnd)
	all := []Candidate{end}
	if c.Kernel == nil || s.scaled() && s.blockK() < s.k() && !c.Kernel.Model.ScalesInside() {
		return all
	}
	all = append(all, c.beginning(oldStep))
	if c.Kernel.Promote > 0 {
		all = append(all, c.beginning(oldSums))
	}
	return all
}

func (c *Candidate) setOld(place string) {
	c.Old = place
	c.Name += "; the old C enters at " + place
}

// beginning is a candidate whose chains of instructions, or sums of chains, begin with
// the old C. All scales are 1.
func (c *Candidate) beginning(place string) Candidate {
	k, plain := *c.Kernel, c.multiply
	with := *c
	with.setOld(place)
	with.multiply = func(ctx context.Context, t safetensors.DType, p *Product) ([]float32, error) {
		if p.Old == nil {
			return plain(ctx, t, p)
		}
		m, n, length := p.Size()
		step := length
		if k.Promote > 0 {
			step = k.Promote
		}
		result, _ := p.result()
		for i := range m {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			for j := range n {
				sum := &result[i*n+j]
				for lo := 0; lo < length; lo += step {
					hi := min(lo+step, length)
					if lo == 0 && place == oldStep {
						*sum = p.dot(&k.Model, i, j, lo, hi, *sum)
					} else {
						*sum += p.dot(&k.Model, i, j, lo, hi, 0)
					}
				}
			}
		}
		return rounded(t, result), nil
	}
	return with
}

// dot is a chain of instructions for products [lo, hi) of element (i, j).
func (p *Product) dot(m *oracle.Model, i, j, lo, hi int, c float32) float32 {
	_, _, k := p.Size()
	if p.AFloats != nil {
		return m.DotFloats(p.AFloats.Values[i*k+lo:i*k+hi], p.BFloats.Values[j*k+lo:j*k+hi], c)
	}
	return m.Dot(p.A.Codes[i*k+lo:i*k+hi], p.B.Codes[j*k+lo:j*k+hi], p.A.Format, p.B.Format, c)
}
