package audit

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	floating "github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/tensor"
)

// Proposal is a better test: operands, each with a tolerance that is derived for them. A
// kernel passes if it passes with all of them.
type Proposal struct {
	Sets []Set `json:"sets"`
	// Faults are those that were tried, those that no set catches first.
	Faults []Proposed `json:"faults"`
	// Caught counts faults that some set catches. Rounding counts those of which each C
	// could be a correct kernel's, and Unchanged those that change nothing, with any set. A
	// fault that makes a C that no correct kernel computes is caught.
	Caught    int `json:"caught"`
	Rounding  int `json:"rounding"`
	Unchanged int `json:"unchanged"`
	// FalseFailures counts correct kernels of the claim that fail with some set.
	FalseFailures int `json:"falseFailures"`
}

// Set is operands and what is demanded of their product.
type Set struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Bits says that C must be Exact, or the model's that is claimed, bit for bit.
	// Otherwise each element must be within its bound; Atol is the largest of these.
	Bits bool          `json:"bits"`
	Atol oracle.Number `json:"atol"`
	// Caught is the number of faults that it catches, of those that were tried with it: the
	// second set is tried with those that the first does not catch.
	Caught int `json:"caught"`
	Tried  int `json:"tried"`
	// Flat is the number of faults that it catches and that one and the same atol for all
	// elements, Atol, with an rtol of 0, would let pass.
	Flat int `json:"flat"`
	// Honest are correct kernels of the claim.
	Honest []Honest `json:"honest"`

	a, b *tensor.Tensor
	bias []float32
	old  []float32
}

// Operands returns the operands of the set, its bias and its old C.
func (s *Set) Operands() (a, b *tensor.Tensor, bias, old []float32) { return s.a, s.b, s.bias, s.old }

// Proposed is a fault and which sets catch it.
type Proposed struct {
	Fault   fault.Fault `json:"fault"`
	Text    string      `json:"text"`
	Outcome Outcome     `json:"verdict"`
	By      []string    `json:"by,omitempty"` // names of sets that catch it
}

// propose makes sets of operands and tries all faults with them. The report has those
// with the operands as they are, of which nothing else is kept: there may be room for one set.
func propose[T gemm.Output](ctx context.Context, p fault.Product, faults []fault.Fault, r *Report, o Options) (*Proposal, error) {
	claim := p.Accumulation.Kernel.Model
	if claim == (oracle.Model{}) {
		claim = p.Kernel.Model
	}
	sets := []Set{singleProducts(p, typeOf[T](), o.Seed), {Name: "given", Text: "the operands as they are", Bits: p.Bits, a: p.A, b: p.B, bias: p.Bias, old: p.Old}}
	if r.K <= mostExact {
		sets = slices.Insert(sets, 0, exactSums[T](p, o.Seed))
		sets[0].Bits = p.Bits || claim == (oracle.Model{})
	}
	all := &Proposal{Sets: sets}
	seen := map[fault.Fault]*Proposed{}
	for i := range sets {
		set := &sets[i]
		outcomes := r.Faults
		set.Atol = r.Bound
		set.Honest = slices.DeleteFunc(slices.Clone(r.Honest), func(h Honest) bool { return !h.Claimed })
		if set.Name != "given" {
			q, quiet := p, o
			quiet.Progress = nil // of what is done in no time
			q.A, q.B, q.Bias, q.Old = set.a, set.b, set.bias, set.old
			subject, err := newSubject[T](ctx, q, nil, quiet)
			if err != nil {
				return nil, err
			}
			if set.Bits {
				subject.bound = nil
			}
			subject.reference = subject.right
			if set.Honest, err = subject.honestKernels(ctx, q, true, quiet); err != nil {
				return nil, err
			}
			set.Atol, _ = subject.size(subject.bound)
			left := slices.DeleteFunc(slices.Clone(faults), func(f fault.Fault) bool { return seen[f] != nil && seen[f].Outcome == Caught })
			if outcomes, err = subject.try(ctx, q, left, o, "a better test on "+set.Name); err != nil {
				return nil, err
			}
		}
		set.Tried = len(outcomes)
		for j := range set.Honest {
			h := &set.Honest[j]
			h.Pass, h.Values = h.Outside == 0, nil
			if !h.Pass {
				all.FalseFailures++
			}
		}
		for j := range outcomes {
			set.count(seen, &outcomes[j])
		}
	}
	all.count(faults, seen)
	return all, nil
}

// count adds what became of a fault.
func (s *Set) count(seen map[fault.Fault]*Proposed, out *Trial) {
	f := seen[out.Fault]
	if f == nil {
		f = &Proposed{Fault: out.Fault, Text: out.Text, Outcome: Unchanged}
		seen[out.Fault] = f
	}
	switch {
	case out.Outside > 0:
		f.By = append(f.By, s.Name)
		f.Outcome = Caught
		s.Caught++
		if out.flat {
			s.Flat++
		}
	case out.Different > 0 && f.Outcome == Unchanged:
		f.Outcome = Rounding
	}
}

// count lists faults in their order, those that are caught last.
func (p *Proposal) count(faults []fault.Fault, seen map[fault.Fault]*Proposed) {
	p.Faults = make([]Proposed, 0, len(seen))
	for _, verdict := range []Outcome{Rounding, Unchanged, Caught} {
		n := len(p.Faults)
		for _, f := range faults {
			if found := seen[f]; found != nil && found.Outcome == verdict {
				p.Faults = append(p.Faults, *found)
				delete(seen, f)
			}
		}
		n = len(p.Faults) - n
		switch verdict {
		case Rounding:
			p.Rounding = n
		case Unchanged:
			p.Unchanged = n
		case Caught:
			p.Caught = n
		}
	}
}

// mostExact is the largest K of which operands of exact sums can be made.
const mostExact = 1 << 24

// exactSums returns operands of which every sum is exact in float32, those of package
// power, with a bias and an old C that keep it so where the product has them.
func exactSums[T gemm.Output](p fault.Product, seed uint64) Set {
	m, k := p.A.Dims()
	n, _ := p.B.Dims()
	a, _ := power.Operands(m, n, k, p.A.Format, p.A.Block, seed)
	_, b := power.Operands(m, n, k, p.B.Format, p.B.Block, seed)
	likeScales(a, p.A)
	likeScales(b, p.B)
	s := Set{Name: "exact-sums", a: a, b: b,
		Text: "small integers with scales of 1 and 2: every sum is exact in float32, in any order"}
	// An eighth of the least sum of magnitudes of C, or less.
	unit := float64(p.A.Format.MinSubnormal()) * float64(p.B.Format.MinSubnormal())
	unit *= float64(a.Outer.Factor(0)) * float64(b.Outer.Factor(0))
	unit *= math.Ldexp(1, max(bits.Len(uint(k))-4, 0))
	if p.Bias != nil {
		s.bias = make([]float32, n)
		for j := range s.bias {
			s.bias[j] = float32(unit * float64(j%7-3))
		}
	}
	if p.Old != nil {
		s.old = make([]float32, m*n)
		for i := range s.old {
			s.old[i] = float32(unit * float64(i%5-2))
		}
		old := make([]T, m*n)
		narrow(old, s.old)
		for i, v := range old {
			s.old[i] = floating.Float32(v)
		}
	}
	return s
}

// singleProducts returns operands of which each element of C is one product, of 24
// significant bits: codes are powers of two, of all magnitudes, and scales have 12 bits
// or, if those of the product are all powers of two, are such.
func singleProducts(p fault.Product, t fault.Type, seed uint64) Set {
	m, k := p.A.Dims()
	n, _ := p.B.Dims()
	r := rand.New(rand.NewPCG(seed, 0x73696e676c65))
	s := Set{Name: "single-products", Bits: true,
		Text: "one product for each element, of codes that are powers of two with scales of 12 bits: exact in 24 bits"}
	plain := powersOfTwo(p.A.Scales) && powersOfTwo(p.B.Scales) || p.A.ScaleFormat.Encoded() || p.B.ScaleFormat.Encoded()
	if plain {
		s.Text = "one product for each element, of codes and scales that are powers of two: exact"
	}
	a := likeOf(p.A)
	for i := range a.Codes {
		a.Codes[i] = powerOfTwo(r, a.Format, t)
	}
	b := likeOf(p.B)
	step := max(k/max(n, 1), 1)
	for j := range n {
		if k > 0 {
			b.Codes[j*k+k-1-j*step%k] = powerOfTwo(r, b.Format, t)
		}
	}
	for _, x := range []*tensor.Tensor{a, b} {
		for i := range x.Scales {
			x.Scales[i] = float32(math.Ldexp(1, r.IntN(6)-3))
			if !plain {
				x.Scales[i] *= 1 + float32(1+2*r.IntN(1<<10))*0x1p-11
			}
		}
	}
	if nan, ok := codeOfNaN(a.Format); ok && m >= fewRows && n >= fewRows && k > 0 {
		a.Codes[0] = nan
	}
	if nan, ok := codeOfNaN(b.Format); ok && m >= fewRows && n >= fewRows && k > 0 {
		b.Codes[n*k-1] = nan
	}
	s.a, s.b = a, b
	return s
}

// fewRows is of how many rows and columns one may be NaN.
const fewRows = 8

// likeOf returns a tensor like t of zeros, with scales that are to be set.
func likeOf(t *tensor.Tensor) *tensor.Tensor {
	rows, cols := t.Dims()
	x := &tensor.Tensor{Name: t.Name, Format: t.Format, Shape: []int{rows, cols}, Block: t.Block, Codes: make([]byte, rows*cols)}
	likeScales(x, t)
	gridRows, gridCols := x.Grid()
	x.Scales = make([]float32, gridRows*gridCols)
	return x
}

// likeScales says that x keeps scales as t does, and gives it as many outer scales, which
// are 2.
func likeScales(x, t *tensor.Tensor) {
	x.ScaleFormat = t.ScaleFormat
	x.Outer = tensor.Outer{Rows: t.Outer.Rows, Divide: t.Outer.Divide}
	for range t.Outer.Scales {
		x.Outer.Scales = append(x.Outer.Scales, 2)
	}
}

func powersOfTwo(scales []float32) bool {
	for _, s := range scales {
		if f, _ := math.Frexp(float64(s)); f != 0.5 && s != 0 && s == s {
			return false
		}
	}
	return true
}

// powerOfTwo draws a code, of either sign: of any normal number or, for a C of float16, of
// those that do not overflow it.
func powerOfTwo(r *rand.Rand, f fp8.Format, t fault.Type) byte {
	_, least := math.Frexp(float64(f.MinNormal()))
	_, most := math.Frexp(float64(f.Max()))
	if t == fault.Float16 {
		least, most = max(least, -4), min(most, 5)
	}
	v := float32(math.Ldexp(0.5, least+r.IntN(most-least+1)))
	if r.IntN(2) == 0 {
		v = -v
	}
	return fp8.EncodeOne(v, f, fp8.Policy{})
}

func codeOfNaN(f fp8.Format) (code byte, ok bool) {
	for c := range 256 {
		if v := f.Float32(byte(c)); v != v {
			return byte(c), true
		}
	}
	return 0, false
}
