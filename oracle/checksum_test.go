package oracle

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

func someBlock(r *rand.Rand, m, n int) (a, b *tensor.Tensor, q int) {
	a, b = pair(r, m, n, 1+r.IntN(200), kind{})
	p, _ := newProduct(a, b)
	return a, b, r.IntN(p.blocks())
}

// TestChecksumsAgree has every format, and sums that overflow 64 bits.
func TestChecksumsAgree(t *testing.T) {
	r := source(70)
	for range rounds(300) {
		m, n := 1+r.IntN(40), 1+r.IntN(20)
		a, b, q := someBlock(r, m, n)
		s, err := NewChecksums(t.Context(), a, b, q)
		require.NoError(t, err)
		partials := make([]uint64, m*n)
		require.NoError(t, Partials(t.Context(), partials, a, b, q, Options{Workers: 1 + r.IntN(3)}))
		require.Empty(t, s.Locate(partials), describe(a, b))

		// One partial sum, in real numbers.
		i, j := r.IntN(m), r.IntN(n)
		p, _ := newProduct(a, b)
		lo, hi := p.span(q)
		if unit(a.Format)+unit(b.Format) >= -25 {
			sum := 0.0
			for k := lo; k < hi; k++ {
				sum += float64(a.Format.Float32(a.Row(i)[k])) * float64(b.Format.Float32(b.Row(j)[k]))
			}
			if math.Abs(sum) < math.Ldexp(1, 53+PartialUnit(a, b)) {
				require.Equal(t, math.Ldexp(sum, -PartialUnit(a, b)), float64(int64(partials[i*n+j])))
			}
		}

		delta := r.Uint64() | 1
		partials[i*n+j] += delta
		require.Equal(t, []WrongSum{{Row: i, Col: j, Delta: delta}}, s.Locate(partials), "a single error is located")
		found, err := s.Find(t.Context(), partials, a, b, q)
		require.NoError(t, err)
		require.Equal(t, []WrongSum{{i, j, delta, true}}, found)
	}
}

func guess(row, col int, delta uint64) WrongSum { return WrongSum{Row: row, Col: col, Delta: delta} }

func TestChecksumsLocate(t *testing.T) {
	a, b := bell(72, "a", tensor.Block{Rows: 1, Cols: 64}, 9, 128), bell(73, "b", tensor.Block{Rows: 1, Cols: 64}, 7, 128)
	s, err := NewChecksums(t.Context(), a, b, 1)
	require.NoError(t, err)
	right := make([]uint64, 63)
	require.NoError(t, Partials(t.Context(), right, a, b, 1, Options{}))
	for _, test := range []struct {
		name   string
		errors map[int]uint64 // by index
		want   []WrongSum
	}{
		{"a row", map[int]uint64{7: 1, 9: 5}, []WrongSum{guess(1, 0, 1), guess(1, 2, 5)}},
		{"a column", map[int]uint64{7: 1, 21: 1}, []WrongSum{guess(1, 0, 1), guess(3, 0, 1)}},
		{"errors that differ", map[int]uint64{0: 1, 8: 2, 16: 3}, []WrongSum{guess(0, 0, 1), guess(1, 1, 2), guess(2, 2, 3)}},
		{"equal errors", map[int]uint64{0: 1, 8: 1}, []WrongSum{{0, -1, 1, true}, {1, -1, 1, true}, {-1, 0, 1, true}, {-1, 1, 1, true}}},
		{"rows alike, one column too", map[int]uint64{0: 1, 8: 3, 9: ^uint64(1)}, []WrongSum{{0, -1, 1, true}, {1, -1, 1, true}, {-1, 0, 1, true}, {-1, 1, 3, true}, {-1, 2, ^uint64(1), true}}},
		{"a row's cancel", map[int]uint64{7: 1, 8: ^uint64(0)}, []WrongSum{{-1, 0, 1, true}, {-1, 1, ^uint64(0), true}}},
		{"errors that cancel in a column", map[int]uint64{0: 7, 1: 5, 8: ^uint64(4)}, []WrongSum{guess(0, 0, 12), guess(1, 0, ^uint64(4))}},
		{"a row's add up to another column's", map[int]uint64{0: 1, 1: 2, 9: 4, 16: ^uint64(0)}, []WrongSum{guess(0, 2, 3), {1, -1, 4, true}, {2, -1, ^uint64(0), true}, {-1, 0, 1, true}, {-1, 1, 2, true}}},
		{"a rectangle's cancel", map[int]uint64{0: 1, 1: ^uint64(0), 7: ^uint64(0), 8: 1}, nil},
	} {
		got := append([]uint64(nil), right...)
		for i, d := range test.errors {
			got[i] += d
		}
		require.Equal(t, test.want, s.Locate(got), test.name)

		found, err := s.Find(t.Context(), got, a, b, 1)
		require.NoError(t, err)
		var right []WrongSum
		for i := range got {
			if d := test.errors[i]; d != 0 && test.want != nil {
				right = append(right, WrongSum{i / 7, i % 7, d, true})
			}
		}
		require.Equal(t, right, found, test.name)
	}
	// A wrong code of an operand shows in a whole row.
	other := *a
	other.Codes = append([]byte(nil), a.Codes...)
	other.Codes[128*3+70] ^= 1
	wrong := make([]uint64, 63)
	require.NoError(t, Partials(t.Context(), wrong, &other, b, 1, Options{}))
	for _, f := range s.Locate(wrong) {
		require.Equal(t, 3, f.Row)
	}
	require.NotEmpty(t, s.Locate(wrong))
}

func TestChecksumsRefuse(t *testing.T) {
	a := bell(74, "a", tensor.Block{}, 3, 8)
	b := bell(75, "b", tensor.Block{}, 2, 8)
	_, err := NewChecksums(t.Context(), a, b, 1)
	require.ErrorContains(t, err, "there are 1 along K")
	require.ErrorContains(t, Partials(t.Context(), nil, a, b, -1, Options{}), "block -1")
	require.ErrorIs(t, Partials(t.Context(), nil, a, b, 0, Options{}), gemm.ErrOperands)
	b.Row(1)[3] = fp8.E4M3.NaNCode()
	_, err = NewChecksums(t.Context(), a, b, 0)
	require.ErrorContains(t, err, `tensor "b": code 0x7f at row 1, column 3`)
	require.ErrorIs(t, err, ErrNonFinite)
	require.Error(t, Partials(t.Context(), make([]uint64, 6), a, b, 0, Options{}))
	_, err = NewChecksums(t.Context(), b, a, 0)
	require.ErrorContains(t, err, `tensor "b"`)
	_, err = NewChecksums(t.Context(), a, bell(76, "c", tensor.Block{}, 2, 9), 0)
	require.ErrorContains(t, err, "differ")
	require.PanicsWithValue(t, wrongC, func() { Checksums{}.Locate(make([]uint64, 1)) })
	require.ErrorIs(t, second(Checksums{}.Find(t.Context(), nil, a, a, 0)), gemm.ErrOperands)
	_, err = Checksums{}.Find(t.Context(), nil, a, a, 7)
	require.ErrorContains(t, err, "block 7")
}
