package oracle

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

const (
	// groupLength is the number of products that a Grouped model adds exactly.
	groupLength = 16
	mostGroups  = 8 // of an instruction
)

// groupProducts are the products of two E2M1 codes, in units of a quarter: of code a and
// code b at 16·a + b.
var groupProducts = makeGroupProducts()

func makeGroupProducts() (products [256]int16) {
	for a := range 16 {
		for b := range 16 {
			products[16*a+b] = int16(4 * fp8.E2M1.Float32(byte(a)) * fp8.E2M1.Float32(byte(b)))
		}
	}
	return products
}

// scaleFormat returns the format in which a Grouped model reads the scales of both
// operands: the one that they say, or which has all of their values.
func (m *Model) scaleFormat(a, b *tensor.Tensor) (f tensor.ScaleFormat, err error) {
	formats := []tensor.ScaleFormat{tensor.UE4M3Scales, tensor.E8M0Scales}
	for _, t := range []*tensor.Tensor{a, b} {
		if t.ScaleFormat.Encoded() {
			formats = []tensor.ScaleFormat{t.ScaleFormat}
		}
	}
	if a.ScaleFormat.Encoded() && b.ScaleFormat.Encoded() && a.ScaleFormat != b.ScaleFormat {
		return 0, sentinel.Errorf(ErrModel, "tensor %q with scales in %v and tensor %q with scales in %v: model %q needs both in one format",
			a.Name, a.ScaleFormat, b.Name, b.ScaleFormat, m.Name)
	}
	for _, f = range formats {
		if err = m.checkScaleValues(a, f); err == nil {
			err = m.checkScaleValues(b, f)
		}
		if err == nil {
			return f, nil
		}
	}
	return 0, err
}

// scaleElement is a scale as a datapath sees it, with three fraction bits.
func scaleElement(s float32, f tensor.ScaleFormat) element {
	switch {
	case s != s:
		return element{Exponent: specialExponent}
	case f == tensor.E8M0Scales:
		return element{Significand: 1 << 3, Exponent: int16(exponentOf(s))}
	}
	return elementTables[fp8.E4M3][fp8.EncodeOne(s, fp8.E4M3, fp8.Policy{})]
}

// groupScales are the scales of the groups of some rows.
type groupScales struct {
	groups   int // of a row
	elements []element
}

// decode reads rows [lo, hi).
func (g *groupScales) decode(s *scales, f tensor.ScaleFormat, k, lo, hi int) {
	g.groups = (k + groupLength - 1) / groupLength
	g.elements = grow(g.elements, (hi-lo)*g.groups)
	for i := range hi - lo {
		for q := range g.groups {
			g.elements[i*g.groups+q] = scaleElement(s.at(lo+i, q*groupLength), f)
		}
	}
}

func (g *groupScales) row(i int) []element { return g.elements[i*g.groups:][:g.groups] }

// groupedRow is prediction.row of a Grouped model.
func (s *prediction) groupedRow(i int, totals []running) {
	m, p, results := &s.k.Model, s.p, s.strands.results
	x, sa := p.a.Row(i), s.groupsA.row(i-s.i0)
	done := 0
	for lo := 0; lo < p.k; lo += m.K {
		hi := min(lo+m.K, p.k)
		for j := range results {
			sum := m.groups(x[lo:hi], p.b.Row(s.tile.j0 + j)[lo:hi],
				sa[lo/groupLength:], s.groupsB.row(j)[lo/groupLength:], newAddend(results[j].bits, layout32))
			s.strands.finish(j, m.round(sum, layout32))
		}
		if done += hi - lo; s.k.Promote > 0 && done >= s.k.Promote {
			s.promote(totals)
			done = 0
		}
	}
	s.promoteRest(totals)
}

// groups adds c and up to 128 products: p·sα·sβ of a group has the exponents of its
// scales, whatever p is.
func (m *Model) groups(a, b []byte, sa, sb []element, c addend) fused {
	var products [mostGroups]int64
	var exponents [mostGroups]int
	for i, v := range a {
		products[i/groupLength] += int64(groupProducts[v&15<<4|b[i]&15])
	}
	special, top := c.special, c.exponent
	groups := (len(a) + groupLength - 1) / groupLength
	for g := range groups {
		x, y := sa[g], sb[g]
		exponents[g] = int(x.Exponent) + int(y.Exponent)
		if exponents[g] >= specialFrom {
			special = nan
		}
		products[g] *= int64(x.Significand) * int64(y.Significand)
		top = max(top, exponents[g])
	}
	if special != finite {
		return fused{special: special}
	}
	const fraction = 2 + 3 + 3 // of a product of two codes and two scales
	sum := fused{unit: top - m.F}.plus(c)
	for g := range groups {
		t, lost := align(products[g], m.F-fraction+exponents[g]-top)
		sum.value += t
		sum.cut += lost
	}
	return sum
}

// dotGroups is dot under scales of 1.
func (m *Model) dotGroups(a, b []byte, c uint64) uint64 {
	var ones [mostGroups]element
	for g := range ones {
		ones[g] = scaleElement(1, tensor.E8M0Scales)
	}
	for lo := 0; lo < len(a); lo += m.K {
		hi := min(lo+m.K, len(a))
		sum := m.groups(a[lo:hi], b[lo:hi], ones[:], ones[:], newAddend(c, layout32))
		c = m.round(sum, layout32).bits
	}
	return c
}

// groupUnit is what a step may lose of its groups and of c, in units of the power of two
// by which they are aligned.
func (m *Model) groupUnit() float64 { return float64(m.K/groupLength+1) * power2(-m.F) }

// groupErrors is what element (i, j) may lose in all steps because groups are aligned by
// their scales, whatever their sums are.
func (p *product) groupErrors(k *Kernel, i, j int) (err float64) {
	m := &k.Model
	f, _ := m.scaleFormat(p.a, p.b) // which was checked
	for lo := 0; lo < p.k; lo += m.K {
		top := zeroExponent
		for at := lo; at < min(lo+m.K, p.k); at += groupLength {
			x, y := scaleElement(p.scalesA.at(i, at), f), scaleElement(p.scalesB.at(j, at), f)
			if e := int(x.Exponent) + int(y.Exponent); e < specialFrom {
				top = max(top, e)
			}
		}
		err += float64(m.groupUnit() * power2(max(top, -1000)))
	}
	return err
}
