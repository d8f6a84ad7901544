package gemm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// stretches are codes that are fetched: n times 256 bytes from index at of them on, step
// apart.
type stretches struct{ at, n, step int }

// prefetched returns what of some codes is fetched, nothing if n is 0.
func prefetched(f prefetch, codes []byte) stretches {
	if f.n == 0 {
		return stretches{}
	}
	return stretches{int(f.address - address(codes)), f.n, f.step}
}

// TestPrefetches has the codes that are fetched while a panel of an area is multiplied: 44
// rows from 100 on, 72 columns from 64 on, K of 1200 in rows 1210 apart.
func TestPrefetches(t *testing.T) {
	const k, stride = 1200, 1210
	p := part{product: product{m: 200, n: 200, k: k, block: 100}}
	p.a = operand{codes: make([]byte, 200*stride), stride: stride}
	r := area{100, 144, 64, 136}
	for _, test := range []struct {
		j, lo, hi    int
		rows, packed stretches // of B
		share        stretches // of A
	}{
		{j: 64, lo: 0, hi: 200, rows: stretches{96*stride + 0, 32, stride}, packed: stretches{3 * k * 32, 25, 256},
			share: stretches{100*stride + 200, 19, stride}},
		{j: 96, lo: 0, hi: 200, rows: stretches{128*stride + 0, 8, stride}, packed: stretches{4 * k * 32, 25, 256},
			share: stretches{119*stride + 200, 20, stride}},
		// The last panel, which is ragged: the first of the next step comes.
		{j: 128, lo: 0, hi: 200, rows: stretches{64*stride + 200, 32, stride}, packed: stretches{2*k*32 + 200*32, 25, 256},
			share: stretches{139*stride + 200, 5, stride}},
		{j: 128, lo: 600, hi: 1100, rows: stretches{64*stride + 1100, 32, stride}, packed: stretches{2*k*32 + 1100*32, 12, 256},
			share: stretches{139*stride + 1100, 5, stride}},
		{j: 64, lo: 200, hi: 700, rows: stretches{96*stride + 200, 32, stride}, packed: stretches{3*k*32 + 200*32, 62, 256},
			share: stretches{100*stride + 700, 19, stride}},
		// The last step.
		{j: 64, lo: 1100, hi: 1200, rows: stretches{96*stride + 1100, 32, stride}, packed: stretches{3*k*32 + 1100*32, 12, 256}},
		{j: 128, lo: 1100, hi: 1200},
	} {
		t.Run(fmt.Sprintf("%d/%d", test.j, test.lo), func(t *testing.T) {
			st := step{lo: test.lo, hi: test.hi}
			p.b = operand{codes: p.a.codes, stride: stride}
			require.Equal(t, test.rows, prefetched(p.prefetchPanel(r, test.j, st), p.b.codes))
			require.Equal(t, test.share, prefetched(p.prefetchShare(r, test.j, st), p.a.codes))

			p.b = operand{packed: true, depth: k, panels: make([]byte, 7*32*k)}
			require.Equal(t, test.packed, prefetched(p.prefetchPanel(r, test.j, st), p.b.panels))
		})
	}
}

// TestPrefetchesOfFew has the codes that are fetched while a piece of 24 rows of B is
// multiplied with few rows of A: 72 columns from 64 on, in steps of 500 of K.
func TestPrefetchesOfFew(t *testing.T) {
	const k, stride = 1200, 1210
	p := part{product: product{m: 16, n: 200, k: k, block: 100}}
	p.b = operand{codes: make([]byte, 200*stride), stride: stride}
	r := area{0, 16, 64, 130}
	for _, test := range []struct {
		j, hi int // of the piece
		whole step
		want  stretches
	}{
		{64, 200, step{lo: 0, hi: 500}, stretches{64*stride + 200, 24, stride}},
		{64, 500, step{lo: 0, hi: 500}, stretches{88*stride + 0, 24, stride}},
		{88, 1000, step{lo: 500, hi: 1000}, stretches{112*stride + 500, 18, stride}},
		{112, 1000, step{lo: 500, hi: 1000}, stretches{64*stride + 1000, 24, stride}},
		{112, 1200, step{lo: 1000, hi: 1200}, stretches{}},
	} {
		require.Equal(t, test.want, prefetched(p.prefetchFew(r, test.j, test.hi, test.whole), p.b.codes), "%+v", test)
	}
}
