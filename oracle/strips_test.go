package oracle

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/dots"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestManyBlocks demands that sums of very many blocks of K are not kept, and are those
// that would be: of rows whose sums are exact in float64 and of others.
func TestManyBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 0))
	const k = 2*mostKept + 1
	draw := func(name string, rows int) *tensor.Tensor {
		x := &tensor.Tensor{Name: name, Format: fp8.E5M2, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 2}, Codes: make([]byte, rows*k)}
		for i := range x.Codes {
			if x.Codes[i] = byte(r.IntN(124)); i < k {
				x.Codes[i] = 60 + byte(r.IntN(4))
			}
		}
		for range rows * (mostKept + 1) {
			x.Scales = append(x.Scales, 0.5+r.Float32())
		}
		return x
	}
	a, b := draw("a", 3), draw("b", 5)
	p, err := newProduct(a, b)
	require.NoError(t, err)
	tables := [2][256]float64{magnitudes(a.Format, false), magnitudes(b.Format, false)}
	tile := tile{i1: 3, j1: 5}
	for _, tables := range []*[2][256]float64{nil, &tables} {
		s := p.strips(&tile, tables)
		require.False(t, s.kept)
		other := *s
		other.kept, other.panelB.values, other.sums, other.absolute, other.y = true, nil, nil, nil, nil
		other.keep(tables, (3+dots.Group-1)/dots.Group*dots.Group)
		exact := 0
		for i := range 3 {
			for j := range 5 {
				want, sure := other.sum(i, j)
				got, is := s.sum(i, j)
				require.Equal(t, sure, is)
				require.Equal(t, want, got)
				if sure {
					exact++
				}
				for q := 0; tables != nil && q <= mostKept; q++ {
					if want, got := other.magnitude(i, j, q), s.magnitude(i, j, q); want != got {
						t.Fatalf("block %d of element (%d, %d): %v, want %v", q, i, j, got, want)
					}
				}
			}
		}
		require.Positive(t, exact)
		require.Less(t, exact, 15)
	}
}

// TestTame demands that an element of a tame tile has the bound and the result that it has
// block by block, and that tiles whose scales may overflow or vanish are not tame.
func TestTame(t *testing.T) {
	const rows, k = 16, 320
	for _, c := range []struct {
		name     string
		tame     bool
		format   fp8.Format
		scale    func(r *rand.Rand) float32
		opposite bool
	}{
		{"random", true, fp8.E4M3, func(r *rand.Rand) float32 { return 0.01 + r.Float32() }, false},
		{"powers of two", true, fp8.E4M3, func(r *rand.Rand) float32 { return float32(int(1) << r.IntN(20)) }, false},
		{"with zeros", true, fp8.E4M3, func(r *rand.Rand) float32 { return float32(r.IntN(2)) / 3 }, false},
		{"cancel", true, fp8.E4M3, func(r *rand.Rand) float32 { return 0.3 }, true},
		{"wide codes", true, fp8.E5M2, func(r *rand.Rand) float32 { return r.Float32() + 1 }, false},
		{"tiny", false, fp8.E4M3, func(r *rand.Rand) float32 { return 0x1p-80 * (1 + r.Float32()) }, false},
		{"large", false, fp8.E4M3, func(r *rand.Rand) float32 { return 0x1p100 * (1 + r.Float32()) }, false},
	} {
		r := rand.New(rand.NewPCG(35, 7))
		draw := func(name string, cancel bool) *tensor.Tensor {
			x := &tensor.Tensor{Name: name, Format: c.format, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 50}, Codes: make([]byte, rows*k)}
			for i := range x.Codes {
				x.Codes[i] = byte(r.IntN(120)) | byte(r.IntN(2))<<7
				if cancel && i%k >= k/2 && i%k < k-8 { // the second half takes nearly all of the first away
					x.Codes[i] = x.Codes[i-k/2] ^ 0x80
				}
			}
			for range rows * ((k + 49) / 50) {
				x.Scales = append(x.Scales, c.scale(r))
			}
			return x
		}
		a, b := draw("a", false), draw("b", c.opposite)
		if c.opposite {
			for i := range a.Codes {
				if i%k >= k/2 && i%k < k-8 {
					a.Codes[i] = a.Codes[i-k/2]
				}
			}
		}
		p, err := newProduct(a, b)
		require.NoError(t, err, c.name)
		for _, out := range []layout{layout32, layoutB16} {
			d := newDerivation(&p, Accumulation{}, Options{}, out)
			tables := [2][256]float64{magnitudes(a.Format, false), magnitudes(b.Format, false)}
			s := p.strips(&tile{i1: rows, j1: rows}, &tables)
			require.Equal(t, c.tame, d.tame(s), c.name)
			certain := 0
			for i := range rows {
				for j := range rows {
					e := ending{bias: float32(i-j) / 7}
					s.tame = false
					want, _, _ := d.element(s, i, j, e)
					s.tame = c.tame
					got, sum, sure := d.element(s, i, j, e)
					require.Equal(t, want, got, "%s: bound of (%d, %d)", c.name, i, j)
					sum.addEnding(e)
					if bits, ok := sum.bits(out); sure && ok {
						require.Equal(t, out.nearest(s.total(i, j, e)), bits, "%s: (%d, %d)", c.name, i, j)
						certain++
					} else if c.name == "random" {
						require.Fail(t, "the sum is not sure")
					}
				}
			}
			if c.tame && c.format == fp8.E4M3 { // sums of E5M2 have more bits: none need be sure
				require.Positive(t, certain, "%s: sums that are sure", c.name)
			}
		}
	}
}
