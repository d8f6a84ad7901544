package audit

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	floating "github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// TestProposal tries the proposal again: with its operands and tolerances correct kernels
// pass, and each fault fails that is said to be caught, by an exact product in float64.
func TestProposal(t *testing.T) {
	t.Run("float32", testProposal[float32])
	t.Run("bfloat16", testProposal[fp8.BFloat16])
	t.Run("float16", func(t *testing.T) { testProposal[float16.Float16](t) })
}

func testProposal[T gemm.Output](t *testing.T) {
	p := random(t, 40, 36, 160)
	p.Bias, p.Old = make([]float32, 36), make([]float32, 40*36)
	for i := range p.Old {
		p.Old[i] = float32(i % 3)
	}
	p.Bias[1] = 1
	r, err := Run[T](t.Context(), p, Test{Criteria: []Criterion{{Rtol: 10}}}, Options{Seed: 3})
	require.NoError(t, err)
	require.Len(t, r.Proposal.Sets, 3)
	require.Zero(t, r.Proposal.FalseFailures)
	require.Len(t, r.Proposal.Faults, r.Proposal.Caught+r.Proposal.Rounding+r.Proposal.Unchanged)
	verdict := map[fault.Fault]Proposed{}
	for _, f := range r.Proposal.Faults {
		verdict[f.Fault] = f
	}
	for i := range r.Proposal.Sets {
		s := &r.Proposal.Sets[i]
		if s.Name == "given" {
			require.False(t, s.Bits)
			require.Equal(t, flatByHand[T](t, p, float64(s.Atol)), s.Flat)
			continue
		}
		require.True(t, s.Bits)
		require.Len(t, s.Honest, 3)
		q := p
		q.A, q.B, q.Bias, q.Old = s.Operands()
		right := make([]T, len(p.Old))
		for j, v := range byHand(q) {
			narrow(right[j:j+1], []float32{float32(v)})
			require.True(t, v != v || float64(float32(v)) == v, "%v has more than 24 bits", v)
		}
		c := make([]T, len(right))
		for _, f := range Faults(typeOf[T](), p) {
			if fault.Inject(t.Context(), c, f, q, fault.Options{}) != nil {
				continue // its operands cannot have the fault
			}
			changed := false
			for j := range c {
				g, w := floating.Float32(c[j]), floating.Float32(right[j])
				changed = changed || math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w)
			}
			if changed {
				require.Equal(t, Caught, verdict[f].Outcome, "%s: %v", s.Name, f)
			}
		}
	}
	require.Less(t, r.Proposal.Unchanged+r.Proposal.Rounding, 12, "%v", unseen(r.Proposal))
}

// flatByHand counts faults that leave their bounds and are nowhere farther than atol from
// the exact product.
func flatByHand[T gemm.Output](t *testing.T, p fault.Product, atol float64) (n int) {
	t.Helper()
	c, want := make([]T, len(p.Old)), make([]T, len(p.Old))
	require.NoError(t, exact(t.Context(), want, p, 1))
	bound, err := bounds[T](t.Context(), p, 1)
	require.NoError(t, err)
	for _, f := range Faults(typeOf[T](), p) {
		if fault.Inject(t.Context(), c, f, p, fault.Options{}) != nil {
			continue
		}
		outside, far := false, false
		for i := range c {
			e := math.Abs(floating.Float64(c[i]) - floating.Float64(want[i]))
			outside = outside || !(e <= bound[i])
			far = far || !(e <= atol)
		}
		if outside && !far {
			n++
		}
	}
	return n
}

// unseen lists what no set catches.
func unseen(p *Proposal) (all []string) {
	for _, f := range p.Faults {
		if f.Outcome != Caught {
			all = append(all, fmt.Sprint(f.Outcome, ": ", f.Text))
		}
	}
	return all
}

// TestSingleProducts checks that each element is one product and that every block of K and
// the last product are among them.
func TestSingleProducts(t *testing.T) {
	p := random(t, 20, 48, 200)
	s := singleProducts(p, fault.Float32, 1)
	seen := map[int]bool{}
	for j := range 48 {
		var at []int
		for k, c := range s.b.Row(j) {
			if s.b.Format.Float32(c) != 0 {
				at = append(at, k)
			}
		}
		require.NotEmpty(t, at)
		if j < 47 { // the last row has a NaN besides
			require.Len(t, at, 1)
			seen[at[0]/32] = true
		}
	}
	require.Len(t, seen, 7, "every block of K")
	require.NotZero(t, s.b.Row(0)[199], "the last product")
	require.False(t, powersOfTwo(s.a.Scales))
	for i := range p.A.Scales {
		p.A.Scales[i] = 0.5
	}
	for i := range p.B.Scales {
		p.B.Scales[i] = 2
	}
	s = singleProducts(p, fault.Float32, 1)
	require.True(t, powersOfTwo(s.a.Scales))
}
