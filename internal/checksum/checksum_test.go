package checksum

import (
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func bytesOf(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// want is the CRC-32C of p by its definition, bit by bit.
func want(p []byte) uint32 {
	sum := ^uint32(0)
	for _, b := range p {
		sum ^= uint32(b)
		for range 8 {
			odd := sum & 1
			if sum >>= 1; odd != 0 {
				sum ^= 0x82F63B78
			}
		}
	}
	return ^sum
}

func TestOf(t *testing.T) {
	require.Equal(t, uint32(0xE3069283), Of([]byte("123456789")), "which the catalogue of CRCs has")
	p := bytesOf(rand.New(rand.NewPCG(1, 1)), 1000)
	require.Equal(t, want(p), Of(p))
	require.Equal(t, want(p), Update(Of(p[:300]), p[300:]))
}

func TestJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := bytesOf(r, r.IntN(3000))
		at := r.IntN(len(p) + 1)
		require.Equal(t, want(p), Join(want(p[:at]), want(p[at:]), int64(len(p)-at)))
	}
	// Zeros, more than there is memory for: x^8n is that of n0, squared 21 times.
	zeros := make([]byte, 3<<12)
	sum := crc32.Checksum(zeros, castagnoli)
	long, n := sum, int64(len(zeros))
	for range 21 {
		long, n = Join(long, long, n), 2*n
	}
	again, size := uint32(0), int64(0)
	for size < n {
		piece := n / 4
		quarter := sum
		for m := int64(len(zeros)); m < piece; m *= 2 {
			quarter = Join(quarter, quarter, m)
		}
		again, size = Join(again, quarter, piece), size+piece
	}
	require.Equal(t, long, again)
}

// disk takes what is written to its length, and fails then.
type disk []byte

var errFull = errors.New("full")

func (d disk) WriteAt(p []byte, off int64) (int, error) {
	n := copy(d[min(off, int64(len(d))):], p)
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestWriter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 100 {
		p := bytesOf(r, r.IntN(2000))
		var cuts [][2]int
		for at := 0; at < len(p); {
			n := 1 + r.IntN(min(len(p)-at, 300))
			cuts = append(cuts, [2]int{at, at + n})
			at += n
		}
		r.Shuffle(len(cuts), func(i, j int) { cuts[i], cuts[j] = cuts[j], cuts[i] })
		d := make(disk, len(p))
		w := &Writer{WriterAt: d}
		for i, c := range cuts {
			_, _, whole := w.Sum()
			require.Equal(t, i == 0 || allFromStart(cuts[:i]), whole)
			n, err := w.WriteAt(p[c[0]:c[1]], int64(c[0]))
			require.NoError(t, err)
			require.Equal(t, c[1]-c[0], n)
		}
		size, sum, ok := w.Sum()
		require.True(t, ok)
		require.Equal(t, int64(len(p)), size)
		require.Equal(t, want(p), sum)
		require.Equal(t, p, []byte(d))
	}
}

// allFromStart reports whether pieces are all of the first bytes.
func allFromStart(cuts [][2]int) bool {
	most, all := 0, 0
	for _, c := range cuts {
		most, all = max(most, c[1]), all+c[1]-c[0]
	}
	return most == all
}

func TestWriterInParts(t *testing.T) {
	d := make(disk, 5)
	w := &Writer{WriterAt: d}
	n, err := w.WriteAt([]byte("octavo"), 0)
	require.Equal(t, 5, n)
	require.Equal(t, errFull, err)
	size, sum, ok := w.Sum()
	require.True(t, ok, "of what was written")
	require.Equal(t, int64(5), size)
	require.Equal(t, want([]byte("octav")), sum)
	_, err = w.WriteAt([]byte("av"), 3)
	require.NoError(t, err)
	_, _, ok = w.Sum()
	require.False(t, ok, "twice")

	w = &Writer{WriterAt: d, pieces: make([]piece, mostPieces)}
	_, err = w.WriteAt([]byte("o"), 0)
	require.NoError(t, err)
	_, _, ok = w.Sum()
	require.False(t, ok)
}
