package gemm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/geometry"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// TestAreas checks that areas cover a result once, in whole tiles and panels.
func TestAreas(t *testing.T) {
	for _, l := range cpu.Levels() {
		if k := microkernel.For(l); k != nil {
			require.Zero(t, vectorBackend{k}.blocking().mcStep%k.MR)
			testAreas(t, vectorBackend{k})
			restore := geometry.Force(geometry.Geometry{Depth: 128, Rows: 60, Cols: 640}) // 640, 320, 160, 128
			testAreas(t, vectorBackend{k})
			restore()
		}
	}
	require.Zero(t, amxBackend{}.blocking().mcStep%amx.Size)
	for _, w := range []backend{genericBackend{}, amxBackend{}} {
		testAreas(t, w)
	}
}

func testAreas(t *testing.T, w backend) {
	rowStep := w.blocking().mcStep
	sizes := []int{0, 1, 31, 32, 33, 127, 128, 129, 383, 384, 385, 512, 513, 640, 641, 1000, 2000}
	for _, m := range sizes {
		for _, n := range sizes {
			for _, workers := range []int{1, 2, 7, 60} {
				p := part{product: product{m: m, n: n, k: 1 << 12}, backend: w}
				areas, covered := p.cut(workers, 1), 0
				require.GreaterOrEqual(t, areas, min(workers, ceilDiv(m, rowStep)*ceilDiv(n, microkernel.PanelWidth), m*n/(areaWork/p.k)))
				little := part{product: product{m: m, n: n, k: 1}, backend: w}
				little.cut(workers, 1) // which is not worth more areas than there are of whole width
				require.LessOrEqual(t, little.areas, max(ceilDiv(n, w.blocking().minNC), m*n/areaWork))
				if workers == 1 && areas > 0 {
					require.Equal(t, ceilDiv(m, w.blocking().mc)*ceilDiv(n, w.blocking().nc), areas)
				}
				for i := range areas {
					a := p.area(i)
					require.Less(t, a.i0, a.i1)
					require.Less(t, a.j0, a.j1)
					require.True(t, a.i0%rowStep == 0 && a.j0%microkernel.PanelWidth == 0)
					require.True(t, a.i1 <= m && a.j1 <= n)
					covered += (a.i1 - a.i0) * (a.j1 - a.j0)
				}
				require.Equal(t, m*n, covered)
			}
		}
	}
}

// TestManyWorkers has numbers of areas with tiles for machines of many cores.
func TestManyWorkers(t *testing.T) {
	for _, test := range []struct{ m, n, k, workers, parts, want int }{
		{1024, 1024, 1024, 1, 1, 2},
		{1024, 1024, 1024, 2, 1, 8},
		{1024, 1024, 1024, 16, 1, 16},
		{1024, 1024, 1024, 60, 1, 64}, // of 128x128
		{128, 4096, 4096, 60, 1, 64},
		{512, 4096, 4096, 60, 1, 64},
		{256, 256, 256, 60, 1, 16}, // as there is no more to do
		{64, 64, 64, 60, 1, 1},
		{1024, 1024, 1024, 60, 30, 8}, // one of thirty
	} {
		p := part{product: product{m: test.m, n: test.n, k: test.k}, backend: amxBackend{}}
		require.Equal(t, test.want, p.cut(test.workers, test.parts), "%+v", test)
	}
}

// TestSteps checks that steps cover K once, and that blocks start and end where
// they should.
func TestSteps(t *testing.T) {
	for _, depth := range []int{32, 64, 256} {
		for k := 0; k < 300; k += 7 {
			for _, block := range []int{1, 2, 3, 5, 16, 31, 32, 33, 64, 100, 128, 257, 300} {
				p := product{k: k, block: block}
				for at := 0; at < k; {
					s := p.step(at, depth)
					n, padded := s.length(pairDepth)
					require.Equal(t, at, s.lo)
					require.True(t, s.hi > s.lo && s.hi <= k && s.hi-s.lo <= depth)
					require.Equal(t, s.hi-s.lo, n*s.blocks)
					require.Equal(t, (n+1)/2*2, padded)
					require.Equal(t, s.first, s.lo%block == 0)
					require.Equal(t, s.last, s.hi%block == 0 || s.hi == k)
					if s.blocks > 1 || s.first && s.last && s.hi < k {
						require.Equal(t, block, n)
					}
					if !s.last {
						require.Zero(t, n%32)
					}
					at = s.hi
				}
			}
		}
	}
}

// TestPieces checks that the pieces of a step, cut as few rows cut them, cover it once.
func TestPieces(t *testing.T) {
	for block := 1; block <= 600; block++ {
		for _, k := range []int{skinnyPieceDepth, skinnyDepth, 9000, 2*skinnyDepth + 1} {
			p := product{k: k, block: block}
			for lo := 0; lo < k; {
				whole := p.step(lo, skinnyDepth)
				at, blocks := lo, 0
				for at < whole.hi {
					st := p.piece(whole, at, skinnyPieceDepth)
					require.True(t, st.lo == at && st.hi > at && st.hi <= whole.hi)
					require.LessOrEqual(t, st.hi-st.lo, skinnyPieceDepth)
					if at = st.hi; st.last {
						blocks += st.blocks
					}
				}
				if whole.last {
					require.Equal(t, whole.blocks, blocks)
				}
				lo = whole.hi
			}
		}
	}
}

// TestPacked checks how much of K is packed at once, with the zeros behind blocks.
func TestPacked(t *testing.T) {
	step := 37
	if testing.Short() {
		step = 185
	}
	for k := 1; k < 1300; k += step {
		for block := 1; block <= k; block++ {
			p := product{k: k, block: block}
			for at := 0; at < k; {
				st := p.step(at, p.packedAtOnce())
				count, n := st.pieces()
				require.Equal(t, st.hi-st.lo, count*n)
				require.True(t, n%amx.Chunk == 0 || count == st.blocks)
				chunks := count * ceilDiv(n, amx.Chunk)
				require.LessOrEqual(t, chunks, packDepth/amx.Chunk)
				if st.last && k-st.hi >= block { // one more would be too much
					require.Greater(t, chunks+ceilDiv(block, amx.Chunk), packDepth/amx.Chunk)
				}
				at = st.hi
			}
		}
	}
}
