package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// Shape is that of a product C = A·Bᵀ, with A of [M, K], B of [N, K] and C of
// [M, N]. With several experts there are as many matrices B, and each is
// multiplied with the next M / Experts rows of A.
type Shape struct {
	M       int `json:"m"`
	N       int `json:"n"`
	K       int `json:"k"`
	Experts int `json:"experts"` // at least 1, of which M is a multiple
}

// Shapes are those that are always measured: squares, thin ones as in decoding a
// token or a few, and 64 experts beside one product of the same work.
func Shapes() []Shape {
	return []Shape{
		{512, 512, 512, 1}, {1024, 1024, 1024, 1}, {2048, 2048, 2048, 1},
		{1, 4096, 4096, 1}, {16, 4096, 4096, 1}, {128, 4096, 4096, 1},
		{2048, 2048, 1024, 1}, {2048, 2048, 1024, 64},
	}
}

// LargeShapes are those that take long.
func LargeShapes() []Shape {
	return []Shape{{2048, 7168, 2048, 1}, {4096, 4096, 4096, 1}}
}

// String returns MxNxK, after the number of experts if there are several.
func (s Shape) String() string {
	if s.Experts > 1 {
		return fmt.Sprintf("%d of %dx%dx%d", s.Experts, s.M/s.Experts, s.N, s.K)
	}
	return fmt.Sprintf("%dx%dx%d", s.M, s.N, s.K)
}

// FLOP returns the number of operations: a multiplication and an addition for
// every element of every sum.
func (s Shape) FLOP() float64 { return 2 * float64(s.M) * float64(s.N) * float64(s.K) }

// Bytes returns how much a product must move at least: codes and scales in, and C
// in float32 out, each once.
func (s Shape) Bytes() float64 {
	m, n, k, experts := float64(s.M), float64(s.N), float64(s.K), float64(s.Experts)
	blocks := float64((s.K + scaleBlock - 1) / scaleBlock)
	blocksOfB := float64((s.N+scaleBlock-1)/scaleBlock) * blocks
	codes := m*k + experts*n*k
	scales := 4 * (m*blocks + experts*blocksOfB)
	return codes + scales + 4*m*n
}

// scaleBlock is the extent of blocks that share a scale: 1x128 of A and 128x128 of
// B.
const scaleBlock = 128

// Intensity returns the arithmetic intensity, in FLOP per byte.
func (s Shape) Intensity() float64 { return s.FLOP() / s.Bytes() }

// ParseShape reads what [Shape.String] writes.
func ParseShape(text string) (Shape, error) {
	s := Shape{Experts: 1}
	product := text
	if experts, rest, ok := strings.Cut(text, " of "); ok {
		n, err := parseExtent(experts)
		if err != nil {
			return Shape{}, err
		}
		s.Experts, product = n, rest
	}
	extents := strings.Split(product, "x")
	if len(extents) != 3 {
		return Shape{}, errShape
	}
	for i, extent := range []*int{&s.M, &s.N, &s.K} {
		n, err := parseExtent(extents[i])
		if err != nil {
			return Shape{}, err
		}
		*extent = n
	}
	s.M *= s.Experts
	if s.M > mostExtent || s.Experts*s.N > mostWeights/s.K {
		return Shape{}, errShape
	}
	return s, nil
}

// mostExtent and mostWeights keep the number of a matrix's elements, and of all experts'
// weights, within an int of 32 bits.
const (
	mostExtent  = 1 << 15
	mostWeights = 1 << 30
)

var errShape = fmt.Errorf("want MxNxK, or E of MxNxK, of whole numbers from 1 to %d; E times M is one, too, and E times N times K is at most %d", mostExtent, mostWeights)

func parseExtent(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 1 || n > mostExtent {
		return 0, errShape
	}
	return int(n), nil
}
