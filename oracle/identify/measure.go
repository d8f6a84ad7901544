package identify

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
)

var roundings = enum.Enum[Rounding]{Type: "Rounding", What: "rounding", Prefix: "identify",
	Names: []string{"none seen", "toward zero", "nearest even", "nearest away", "down", "up", "toward zero or nearest even", "other"}}

// String returns the name, such as "toward zero".
func (r Rounding) String() string                   { return roundings.String(r) }
func (r Rounding) MarshalText() ([]byte, error)     { return roundings.MarshalText(r) }
func (r *Rounding) UnmarshalText(text []byte) error { return roundings.UnmarshalText(r, text) }

// Measured is what the answers say without any model.
type Measured struct {
	// Odd answers to the probes of order are neither the small product nor zero: not of
	// a sum of the products that were asked for. Nothing else is measured then.
	Odd int `json:"odd"`
	Of  int `json:"of"`

	// Silent says that all answers are 0, as if C had not been written: all are odd.
	Silent bool `json:"silent,omitempty"`

	// Fused is the number of products that a step adds at once, and Groups which they
	// are, for the steps of the first chain: "0-15" or "0-1,4-5". It is 1 where no three
	// are lost beside each other: sums of two, as of float32.
	Fused  int      `json:"fused"`
	Groups []string `json:"groups,omitempty"`

	// Carried says that the sum so far is one more term of a step. Otherwise a step's
	// sum, from zero, is added to it.
	Carried bool `json:"carried"`

	// Aligned is the number of fraction bits, below the exponent of the largest product,
	// that are kept of the others, and AlignedRounding what happens to more. -1: at
	// least 29 are, more than the probes see.
	Aligned         int      `json:"aligned"`
	AlignedRounding Rounding `json:"alignedRounding"`

	// Normalized says that the largest exponent is that of the product and not the sum
	// of those of its operands.
	Normalized bool `json:"normalized"`

	// Result is the number of fraction bits of a step's result, -1 where they are more
	// than those of the terms or of C.
	Result         int      `json:"result"`
	ResultRounding Rounding `json:"resultRounding"`

	// Chain is the number of products after which a chain of steps begins anew, and
	// Outer after how many products sums of chains do; 0: not within K; -1: no chain.
	Chain int `json:"chain"`
	Outer int `json:"outer"`

	// Promoted is the number of fraction bits of sums of chains.
	Promoted         int      `json:"promoted"`
	PromotedRounding Rounding `json:"promotedRounding"`

	// Scales lists the orders of scales that the answers have.
	Scales []string `json:"scales"`

	// Old says where an old C enters, as of a [Candidate], or is "elsewhere". "": there is
	// none. OldBits is the number of its fraction bits that are kept beside what it is
	// added to, or, at the end, of a smaller sum of products beside it, -1 where the type
	// of C hides them.
	Old         string   `json:"old,omitempty"`
	OldBits     int      `json:"oldBits,omitempty"`
	OldRounding Rounding `json:"oldRounding,omitempty"`
}

// measure reads the parameters.
func (p *Probes) measure(a *Answers) (m Measured) {
	order := p.Product("order")
	_, n, _ := order.Size()
	l, odd := p.order.read(a.C[order.Name], n)
	m.Odd, m.Of = odd, len(p.order.pairs)*len(p.order.places)
	m.Aligned, m.Result, m.Promoted = -1, -1, -1
	if m.Silent = a.silent(); m.Silent {
		m.Odd = m.Of
	}
	if m.Odd > 0 {
		return m
	}
	s := p.order.analyse(l)
	m.Carried, m.Chain, m.Outer = s.carried, s.inner, s.outer

	product := p.Product("rounding")
	_, n, _ = product.Size()
	relations := p.rounding.relations(p.rounding.read(a.C[product.Name], n))
	m.terms(&s, relations, p.Setup.width())
	m.promotion(&s, relations)

	product = p.Product("output")
	_, n, _ = product.Size()
	bits, how := p.output.read(a.C[product.Name], n)
	m.result(bits, how, a.Type, p.output.size.deepest)
	if old := p.Product("old"); old != nil {
		_, n, _ := old.Size()
		m.Old, m.OldBits, m.OldRounding = p.old.read(a.C[old.Name], n, s.inner)
		if m.Old == oldEnd && a.Type != safetensors.F32 {
			m.OldBits, m.OldRounding = -1, noRounding
		}
	}
	if scales := p.Product("scales"); scales != nil {
		m.Scales = scaleOrders(a, scales)
	}
	return m
}

// terms sets what is known of a step, of places of some products.
func (m *Measured) terms(s *structure, relations []relation, width int) {
	m.Fused = 1
	if s.exact {
		for _, r := range relations { // of neighbours of every residue
			if 2*r.stride < s.fused && slices.Contains(r.lost[:], true) {
				m.Chain, m.Carried = -1, false
				return
			}
		}
		m.Fused = s.fused * width
		m.Chain, m.Outer = max(m.Chain*width, -1), max(m.Outer*width, -1)
		return
	}
	for _, r := range relations {
		if !r.fused() {
			continue
		}
		m.Fused = s.fused * width
		m.Aligned, m.AlignedRounding = r.bits[0], r.how[0]
		if !same(r.bits[:]) || !same(r.how[:]) {
			m.AlignedRounding = otherRounding
		}
		m.Normalized = r.square >= 0 && r.square < r.bits[0]
		break
	}
	if m.Fused == 1 {
		return
	}
	m.Chain, m.Outer = max(m.Chain*width, -1), max(m.Outer*width, -1)
	chain := s.inner
	for _, products := range s.steps {
		if chain <= 0 || products[len(products)-1] < chain {
			m.Groups = append(m.Groups, ranges(products, width))
		}
		if len(m.Groups) == 4 {
			break
		}
	}
}

func same[T comparable](x []T) bool {
	return !slices.ContainsFunc(x, func(y T) bool { return y != x[0] })
}

// promotion sets what is kept where three chains meet.
func (m *Measured) promotion(s *structure, relations []relation) {
	if s.inner <= 0 {
		return
	}
	for _, r := range relations {
		if r.stride >= s.inner && r.lost[1] {
			m.Promoted, m.PromotedRounding = r.bits[1], r.how[1]
			return
		}
	}
}

// result sets what is known of the result of a step from what is kept beside one, two
// and three large products: the bits of the terms as long as the result has more. Three
// large products have two bits above one.
func (m *Measured) result(bits [3]int, how Rounding, t safetensors.DType, deepest int) {
	last := bits[2]
	hidden := t != safetensors.F32 && last+2 >= formats[t].Mantissa // by the rounding of C
	if last < 0 || last == deepest || m.Aligned >= 0 && last >= m.Aligned || hidden {
		return
	}
	m.Result, m.ResultRounding = last+2, how
}

// ranges writes places in order, of some products each, as "0-3,8".
func ranges(numbers []int, width int) (text string) {
	for lo := 0; lo < len(numbers); {
		hi := lo
		for hi+1 < len(numbers) && numbers[hi+1] == numbers[hi]+1 {
			hi++
		}
		if text != "" {
			text += ","
		}
		text += fmt.Sprint(numbers[lo] * width)
		if last := numbers[hi]*width + width - 1; last > numbers[lo]*width {
			text += fmt.Sprintf("-%d", last)
		}
		lo = hi + 1
	}
	return text
}

// kernel returns the kernel that has these parameters, if package oracle can describe
// it: a chain of fused steps of consecutive products, or steps of interleaved ones whose
// sum is added to float32 sums.
func (m *Measured) kernel(s Setup, steps [][]int) (oracle.Kernel, bool) {
	const most = 23
	k := oracle.Kernel{Scales: m.order()}
	k.Model = oracle.Model{Name: "measured", L: m.Fused, K: m.Fused, F: m.Aligned, Keep: m.Result, Evidence: "measured"}
	if k.Model.Keep < 0 {
		k.Model.Keep = most
	}
	if !s.NVFP4 && m.Aligned < 0 && m.Fused >= 2 && m.Result == most && m.ResultRounding == nearestEven && m.Chain >= 0 {
		k.Model.Unit, k.Model.F, k.Model.Float = oracle.SingleRounding, most+1, s.Float
		k.Model.Last, k.Model.E8M0, k.Promote = !m.Carried, s.E8M0, m.Chain
		return k, m.Outer == 0 && k.Check() == nil
	}
	if s.NVFP4 || m.Odd > 0 || m.Chain < 0 || m.Outer < 0 || m.AlignedRounding != towardZero || m.Fused < 2 || m.Normalized ||
		m.ResultRounding != towardZero && m.ResultRounding != noRounding {
		return k, false
	}
	k.Model.Float = s.Float
	k.Promote = m.Chain
	switch {
	case m.Chain > 0 && (m.Outer > 0 || len(m.Groups) > 0 && !consecutive(steps[0])):
		if m.Chain > 32 {
			return k, false
		}
		k.Model.Unit, k.Model.K, k.Promote = oracle.Emulated, m.Chain, m.Outer
		for _, i := range steps[0] {
			k.Model.First |= 1 << i
		}
	case len(steps) > 0 && !consecutive(steps[0]):
		return k, false
	}
	return k, k.Check() == nil
}

func consecutive(numbers []int) bool { return numbers[len(numbers)-1]-numbers[0] == len(numbers)-1 }

// order is the order of scales, if package oracle has it.
func (m *Measured) order() oracle.ScaleOrder {
	for _, name := range m.Scales {
		if order, err := oracle.ParseScaleOrder(name); err == nil {
			return order
		}
	}
	return oracle.AnyOrder
}
