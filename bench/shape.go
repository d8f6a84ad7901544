package bench

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/tensor"
)

// Shape is that of a product C = A·Bᵀ, with A of [M, K], B of [N, K] and C of
// [M, N]. With several experts there are as many matrices B, and each is
// multiplied with the next M / Experts rows of A.
type Shape struct {
	M       int `json:"m"`
	N       int `json:"n"`
	K       int `json:"k"`
	Experts int `json:"experts"` // at least 1, of which M is a multiple

	Recipe Recipe `json:"recipe,omitempty"` // of the operands
}

// Shapes are those that are always measured: squares, thin ones as in decoding a
// token or a few, and 64 experts beside one product of the same work; and of each narrow
// recipe a square and one token.
func Shapes() []Shape {
	shapes := []Shape{
		{M: 512, N: 512, K: 512, Experts: 1}, {M: 1024, N: 1024, K: 1024, Experts: 1}, {M: 2048, N: 2048, K: 2048, Experts: 1},
		{M: 1, N: 4096, K: 4096, Experts: 1}, {M: 16, N: 4096, K: 4096, Experts: 1}, {M: 128, N: 4096, K: 4096, Experts: 1},
		{M: 2048, N: 2048, K: 1024, Experts: 1}, {M: 2048, N: 2048, K: 1024, Experts: 64},
	}
	for _, r := range NarrowRecipes() {
		shapes = append(shapes, Shape{M: 1024, N: 1024, K: 1024, Experts: 1, Recipe: r}, Shape{M: 1, N: 4096, K: 4096, Experts: 1, Recipe: r})
	}
	return shapes
}

// LargeShapes are those that take long.
func LargeShapes() []Shape {
	return []Shape{{M: 2048, N: 7168, K: 2048, Experts: 1}, {M: 4096, N: 4096, K: 4096, Experts: 1}}
}

// String returns MxNxK, after the recipe, if it is not FP8, and the number of experts, if
// there are several.
func (s Shape) String() string {
	text := fmt.Sprintf("%dx%dx%d", s.M/s.Experts, s.N, s.K)
	if s.Experts > 1 {
		text = fmt.Sprintf("%d of %s", s.Experts, text)
	}
	if s.Recipe != "" {
		text = string(s.Recipe) + " " + text
	}
	return text
}

// hasPeers reports whether the peers compute such a product beside it: not where it is
// grouped, and of narrow recipes they have that in FP8.
func (s Shape) hasPeers() bool { return s.Experts == 1 && s.Recipe == "" }

// FLOP returns the number of operations: a multiplication and an addition for
// every element of every sum.
func (s Shape) FLOP() float64 { return 2 * float64(s.M) * float64(s.N) * float64(s.K) }

// Bytes returns how much a product must move at least: codes and scales in, and C
// in float32 out, each once. Codes take as many bits as their format has.
func (s Shape) Bytes() float64 {
	m, n, k, experts := float64(s.M), float64(s.N), float64(s.K), float64(s.Experts)
	of := s.Recipe.of()
	codes := (m*k + experts*n*k) * float64(of.input.Format.Bits()) / 8
	scales := (blocks(of.input.Block, s.M, s.K) + experts*blocks(of.weight.Block, s.N, s.K)) * of.scaleBytes
	return codes + scales + 4*m*n
}

func blocks(b tensor.Block, rows, cols int) float64 {
	down, across := b.Grid(rows, cols)
	return float64(down) * float64(across)
}

// Intensity returns the arithmetic intensity, in FLOP per byte.
func (s Shape) Intensity() float64 { return s.FLOP() / s.Bytes() }

// ParseShape reads what [Shape.String] writes.
func ParseShape(text string) (Shape, error) {
	recipe, product, err := parseRecipe(text)
	if err != nil {
		return Shape{}, err
	}
	s := Shape{Experts: 1, Recipe: recipe}
	if experts, rest, ok := strings.Cut(product, " of "); ok {
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

var errShape = fmt.Errorf("want MxNxK, or E of MxNxK, after mxfp8, mxfp6, mxfp4, nvfp4 or nothing, of whole numbers from 1 to %d; E times M is one, too, and E times N times K is at most %d", mostExtent, mostWeights)

func parseExtent(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 1 || n > mostExtent {
		return 0, errShape
	}
	return int(n), nil
}
