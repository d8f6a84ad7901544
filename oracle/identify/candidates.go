package identify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Candidate is a kernel that the answers were compared with.
type Candidate struct {
	Name string `json:"name"`

	// Kernel predicts its bits; nil where package oracle does not describe it.
	Kernel *oracle.Kernel `json:"kernel,omitempty"`

	// Old says where the old C enters, if the setup has one: "the first step", of the first
	// chain, "the first of the sums" of chains, or "the end".
	Old string `json:"old,omitempty"`

	// Evidence says what of it hardware, a specification or nothing pins, as that of an
	// [oracle.Model]; "" of what is no tensor core.
	Evidence string `json:"evidence,omitempty"`

	// Measured says that its parameters are those that were measured.
	Measured bool `json:"measured"`

	// Differ of Of elements of C that were compared have other bits. Zeros are equal
	// whatever their signs, and so is every NaN.
	Differ int `json:"differ"`
	Of     int `json:"of"`

	multiply func(ctx context.Context, t safetensors.DType, p *Product) ([]float32, error)
}

// String is such as "hopper-wgmma, promoted every 128, product-then-fma".
func (c Candidate) String() string { return c.Name }

// kernelName describes a kernel.
func kernelName(k oracle.Kernel, withScales bool) string {
	name := k.Model.Name
	if k.Promote > 0 {
		name += fmt.Sprintf(", promoted every %d", k.Promote)
	}
	if withScales {
		name += ", " + k.Scales.String()
	}
	return name
}

// newCandidate is a kernel of package oracle.
func newCandidate(k oracle.Kernel, withScales bool) Candidate {
	return Candidate{Name: kernelName(k, withScales), Kernel: &k, Evidence: k.Model.Evidence,
		multiply: func(ctx context.Context, t safetensors.DType, p *Product) ([]float32, error) {
			c, o := p.result()
			var err error
			if p.AFloats != nil {
				err = oracle.PredictFloats(ctx, c, nil, p.AFloats, p.BFloats, k, o)
			} else {
				err = oracle.Predict(ctx, c, nil, p.A, p.B, k, o)
			}
			return rounded(t, c), err
		}}
}

// result is a C to be computed, which is the old one where the product has one.
func (p *Product) result() ([]float32, oracle.Options) {
	m, n, _ := p.Size()
	c := make([]float32, m*n)
	copy(c, p.Old)
	return c, oracle.Options{Accumulate: p.Old != nil}
}

// exact is the exact product, rounded once to T.
func exact[T gemm.Output](ctx context.Context, p *Product) ([]T, error) {
	m, n, _ := p.Size()
	c := make([]T, m*n)
	number.Narrow(c, p.Old)
	o := oracle.Options{Accumulate: p.Old != nil}
	if p.AFloats != nil {
		return c, oracle.ExactFloats(ctx, c, p.AFloats, p.BFloats, o)
	}
	return c, oracle.Exact(ctx, c, p.A, p.B, o)
}

func widened[T fp8.BFloat16 | float16.Float16](c []T, err error) ([]float32, error) {
	wide := make([]float32, len(c))
	for i, x := range c {
		wide[i] = number.Float32(x)
	}
	return wide, err
}

// rounded rounds values to the type, in place.
func rounded(t safetensors.DType, c []float32) []float32 {
	for i, x := range c {
		c[i] = formats[t].Round(x)
	}
	return c
}

// others are candidates that are no tensor cores.
func (s Setup) others() []Candidate {
	all := []Candidate{
		{Name: "octavo gemm: float32 in the canonical order", multiply: func(ctx context.Context, t safetensors.DType, p *Product) ([]float32, error) {
			c, o := p.result()
			err := gemm.Multiply(ctx, c, p.A, p.B, o)
			return rounded(t, c), err
		}},
		{Name: "the exact product, rounded once", multiply: func(ctx context.Context, t safetensors.DType, p *Product) ([]float32, error) {
			switch t {
			case safetensors.BF16:
				return widened(exact[fp8.BFloat16](ctx, p))
			case safetensors.F16:
				return widened(exact[float16.Float16](ctx, p))
			}
			return exact[float32](ctx, p)
		}},
		sums("float32, one product after the other", aThenB, inOrder),
		sums("float32, in pairs", aThenB, pairwise),
	}
	if s.Float != oracle.NoFloat {
		return all[1:] // gemm is of FP8
	}
	if amx, _ := oracle.ParseModel("amx-fp8"); !s.NVFP4 && amx.Takes(s.Format) && amx.Takes(s.formatB()) {
		all = append(all, s.amxReadings()...)
	}
	return all
}

// sums are float32 sums of a block's products, under scales that are applied in a known
// order.
func sums(name string, order scaling, add func(products []float32) float32) Candidate {
	return Candidate{Name: name, multiply: func(ctx context.Context, t safetensors.DType, p *Product) ([]float32, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, n, k := p.Size()
		a, b := p.values()
		block := p.blockK()
		c, _ := p.result()
		products := make([]float32, block)
		for i := range m {
			for j := range n {
				var total float32
				for lo := 0; lo < k; lo += block {
					hi := min(lo+block, k)
					for x := lo; x < hi; x++ {
						products[x-lo] = a[i*k+x] * b[j*k+x]
					}
					sa, sb := p.scales(i, j, lo)
					total = order.add(add(products[:hi-lo]), sa, sb, total)
				}
				c[i*n+j] = formats[t].Round(total + c[i*n+j])
			}
		}
		return c, nil
	}}
}

func inOrder(products []float32) (sum float32) {
	for _, p := range products {
		sum += p
	}
	return sum
}

func pairwise(products []float32) float32 {
	switch len(products) {
	case 0:
		return 0
	case 1:
		return products[0]
	}
	half := len(products) / 2
	return pairwise(products[:half]) + pairwise(products[half:])
}

// values returns both operands without their scales.
func (p *Product) values() (a, b []float32) {
	if p.AFloats != nil {
		return p.AFloats.Values, p.BFloats.Values
	}
	a, b = make([]float32, len(p.A.Codes)), make([]float32, len(p.B.Codes))
	fp8.Decode(a, p.A.Codes, p.A.Format)
	fp8.Decode(b, p.B.Codes, p.B.Format)
	return a, b
}

// scales returns those of product k of element (i, j).
func (p *Product) scales(i, j, k int) (sa, sb float32) {
	if p.AFloats != nil {
		return 1, 1
	}
	return p.A.Scale(i, k), p.B.Scale(j, k)
}

// blockK is the number of products that share a pair of scales.
func (p *Product) blockK() int {
	_, _, k := p.Size()
	s := Setup{K: k}
	if p.A != nil {
		s.BlockA, s.BlockB = p.A.Block, p.B.Block
	}
	return s.blockK()
}

// kernels are all models under all promotions and orders of scales, without those that
// are one arithmetic under two names, which share a candidate.
func (s Setup) kernels(promotions []int) (all []Candidate) {
	orders := s.orders()
	seen := map[oracle.Model]int{}
	for _, m := range oracle.Models() {
		if s.NVFP4 && m.Unit == oracle.Grouped && m != oracle.BlackwellMXFP4() {
			all = append(all, newCandidate(oracle.Kernel{Model: m}, false))
		}
		takes := m.Takes(s.Format) && m.Takes(s.formatB())
		if s.Float != oracle.NoFloat {
			takes = m.Float == s.Float
		}
		if s.NVFP4 || !takes || m.ScalesInside() && !s.E8M0 {
			continue
		}
		plain := m
		plain.Name, plain.Evidence = "", ""
		at, known := seen[plain]
		if !known {
			seen[plain] = len(all)
		}
		for _, p := range promotions {
			if p >= s.blockK() && !m.ScalesInside() {
				continue
			}
			for _, order := range orders {
				k := oracle.Kernel{Model: m, Promote: p, Scales: order}
				if !known {
					all = append(all, newCandidate(k, s.scaled() && !s.E8M0))
					continue
				}
				all[at].Name = m.Name + " = " + all[at].Name
				at++
			}
		}
	}
	return all
}

// orders are those of scales to try.
func (s Setup) orders() []oracle.ScaleOrder {
	if s.E8M0 || !s.scaled() {
		return []oracle.ScaleOrder{oracle.AnyOrder} // products with powers of two are exact
	}
	return []oracle.ScaleOrder{oracle.ProductThenFMA, oracle.AThenB, oracle.BThenA}
}

// promotions are intervals to try, besides one that was measured.
func (s Setup) promotions(measured int) []int {
	most := s.blockK()
	if s.E8M0 && s.scaled() {
		most = s.K // chains of models that apply scales go on from block to block
	}
	all := []int{0}
	for p := 16; p < most; p *= 2 {
		all = append(all, p)
	}
	if measured > 0 && measured < most {
		all = append(all, measured)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// compare counts the elements of the products, rows of A limited to some unless 0, in
// which the answers differ from the candidate's. A candidate that does not multiply such
// operands differs everywhere. Zeros are equal whatever their signs: no vectors of real
// hardware pin them.
func (c *Candidate) compare(ctx context.Context, a *Answers, products []*Product, limit int) error {
	c.Differ, c.Of = 0, 0
	for _, p := range products {
		part := *p
		if m, _, _ := p.Size(); limit > 0 && limit < m {
			if err := part.limit(limit); err != nil {
				return err
			}
		}
		m, n, _ := part.Size()
		c.Of += m * n
		want, err := c.multiply(ctx, a.Type, &part)
		switch {
		case errors.Is(err, oracle.ErrModel):
			c.Differ += m * n
			continue
		case err != nil:
			return fmt.Errorf("identify: %w", err)
		}
		for i, got := range a.C[p.Name][:m*n] {
			if got != want[i] && (got == got || want[i] == want[i]) {
				c.Differ++
			}
		}
	}
	return nil
}

// limit leaves so many rows of A.
func (p *Product) limit(rows int) (err error) {
	if p.Old != nil {
		_, n, _ := p.Size()
		p.Old = p.Old[:rows*n]
	}
	if p.AFloats != nil {
		top := *p.AFloats
		top.Rows, top.Values = rows, top.Values[:rows*top.K]
		p.AFloats = &top
		return nil
	}
	p.A, err = p.A.RowRange(0, rows)
	return err
}
