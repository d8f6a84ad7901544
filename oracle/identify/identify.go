package identify

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Report is what was found out about a kernel.
type Report struct {
	Setup Setup             `json:"setup"`
	Type  safetensors.DType `json:"type"`

	Measured Measured `json:"measured"`

	// Kernels give every answer, bit for bit but for signs of zeros, which models do not
	// pin, and bits of NaN. They cannot be told apart by these probes.
	// Where there are none, Nearest are those that differ in the fewest.
	Kernels []Candidate `json:"kernels"`
	Nearest []Candidate `json:"nearest,omitempty"`
	Tried   int         `json:"tried"`

	// Described says that a kernel of the measured parameters gives every answer. Where
	// no other does it is the only one of Kernels.
	Described bool `json:"described"`

	// Neighbours are changes of one parameter of the first kernel, if a model describes
	// it, and how many answers each changes: none where the parameter is not pinned.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// Neighbour is a kernel that differs in one parameter or rule.
type Neighbour struct {
	Change string `json:"change"` // such as "fraction bits = 14" or "c added last"
	Differ int    `json:"differ"`
	Of     int    `json:"of"`
}

// Options of [Identify].
type Options struct {
	// Progress, unless nil, hears how many candidates were compared, as operation
	// "identify".
	Progress progress.Reporter
}

// tasteRows are the rows of A that every candidate is compared on first.
const tasteRows = 8

// Identify says what the answers to the probes tell of the kernel that gave them. It
// returns an error, an [ErrFile], if there is not one answer for every element, and when
// ctx ends.
func Identify(ctx context.Context, p *Probes, a *Answers, o Options) (*Report, error) {
	if err := a.check(p); err != nil {
		return nil, err
	}
	r := &Report{Setup: p.Setup, Type: a.Type, Measured: p.measure(a), Kernels: []Candidate{}}
	measured, described := p.measuredKernel(a, &r.Measured)
	candidates := p.Setup.kernels(p.Setup.promotions(measured.Promote))
	candidates = append(candidates, p.Setup.others()...)
	if described {
		c := newCandidate(measured, p.Setup.scaled() && !p.Setup.E8M0)
		c.Name, c.Measured = "a kernel of the measured parameters, of which there is no model", true
		candidates = append(candidates, c)
	}
	r.Tried = len(candidates)
	if o.Progress != nil {
		defer o.Progress.Progress("identify", int64(len(candidates)), int64(len(candidates)))
	}
	var first, all []*Product
	for i := range p.Products {
		product := &p.Products[i]
		all = append(all, product)
		if product.Name == "products" || product.Name == "scales" {
			first = append(first, product)
		}
	}
	for i := range candidates {
		c := &candidates[i]
		if o.Progress != nil {
			o.Progress.Progress("identify", int64(i), int64(len(candidates)))
		}
		if err := c.compare(ctx, a, first, tasteRows); err != nil {
			return nil, err
		}
		if c.Differ > 0 {
			continue
		}
		variants := c.withOld(p.Setup)
		for v := range variants {
			if err := variants[v].compare(ctx, a, all, 0); err != nil {
				return nil, err
			}
			r.add(variants[v])
		}
		*c = slices.MinFunc(variants, func(x, y Candidate) int { return x.Differ - y.Differ })
	}
	if len(r.Kernels) == 0 {
		slices.SortStableFunc(candidates, func(x, y Candidate) int { return x.Differ*y.Of - y.Differ*x.Of })
		r.Nearest = candidates[:min(3, len(candidates))]
		return r, nil
	}
	return r, r.neighbours(ctx, a, all)
}

// add takes a candidate that was compared with all answers.
func (r *Report) add(c Candidate) {
	switch {
	case c.Differ > 0:
	case c.Measured: // the last: the same again as one that has a name
		if r.Described = true; len(r.Kernels) == 0 || r.Kernels[0].Measured {
			r.Kernels = append(r.Kernels, c)
		}
	default:
		r.Kernels = append(r.Kernels, c)
	}
}

// measuredKernel is the kernel of the measured parameters.
func (p *Probes) measuredKernel(a *Answers, m *Measured) (oracle.Kernel, bool) {
	order := p.Product("order")
	_, n, _ := order.Size()
	l, _ := p.order.read(a.C[order.Name], n)
	s := p.order.analyse(l)
	return m.kernel(p.Setup, s.steps)
}

// neighbours compares kernels with one parameter changed, of the first kernel that
// package oracle describes.
func (r *Report) neighbours(ctx context.Context, a *Answers, products []*Product) error {
	at := slices.IndexFunc(r.Kernels, func(c Candidate) bool { return c.Kernel != nil })
	if at < 0 {
		return nil
	}
	k := *r.Kernels[at].Kernel
	type change struct {
		name string
		made oracle.Kernel
	}
	var changes []change
	try := func(name string, changed oracle.Kernel) {
		if changed.Check() == nil && changed != k {
			changes = append(changes, change{name, changed})
		}
	}
	add := func(name string, value int, set func(k *oracle.Kernel, v int)) {
		changed := k
		set(&changed, value)
		try(fmt.Sprintf("%s = %d", name, value), changed)
	}
	m := k.Model
	for _, f := range []int{m.F - 1, m.F + 1} {
		add("fraction bits", f, func(k *oracle.Kernel, v int) { k.Model.F = v })
	}
	for _, keep := range []int{m.Keep - 1, m.Keep + 1} {
		add("fraction bits of a result", keep, func(k *oracle.Kernel, v int) { k.Model.Keep = v })
	}
	for _, l := range []int{m.L / 2, 2 * m.L} {
		if m.Unit == oracle.Fused || m.Unit == oracle.Scaled || m.Unit == oracle.SingleRounding {
			add("fused products", l, func(k *oracle.Kernel, v int) { k.Model.L, k.Model.K = v, max(v, k.Model.K) })
		}
	}
	other := k
	other.Model.Last = !m.Last
	try(map[bool]string{true: "c in the sum", false: "c added last"}[m.Last], other)
	other = k
	other.Model.Flush = !m.Flush
	try(map[bool]string{true: "subnormal sums kept", false: "subnormal sums flushed"}[m.Flush], other)
	for _, c := range changes {
		changed := newCandidate(c.made, false)
		for _, v := range changed.withOld(r.Setup) {
			if v.Old == r.Kernels[at].Old {
				changed = v
			}
		}
		if err := changed.compare(ctx, a, products[1:], 0); err != nil {
			return err
		}
		r.Neighbours = append(r.Neighbours, Neighbour{c.name, changed.Differ, changed.Of})
	}
	return nil
}

// Kernel returns the kernel that was found, of those that package oracle predicts.
func (r *Report) Kernel() (oracle.Kernel, bool) {
	for _, c := range r.Kernels {
		if c.Kernel != nil {
			return *c.Kernel, true
		}
	}
	return oracle.Kernel{}, false
}
