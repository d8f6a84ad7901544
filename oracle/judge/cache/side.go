package cache

import (
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// ErrSide is of what cannot be judged: parts that do not fit together, or a claim that is not
// for them.
var ErrSide = errors.New("cache: the parts do not fit together")

// Side is K or V: what was to be written, what was written and what was read back. Arrays are
// [Tokens, Heads, columns]; of what an engine has fewer or more tokens than the input, those
// that both have are judged.
type Side struct {
	Tokens, Heads, Dim int
	Input              []float32
	InputBits          int // mantissa bits that the input has: 7, 10 or 23

	// What was written: the first Cols columns as codes, the others as bfloat16. Codes are one
	// a byte, nil where there are none to judge; value = decode(code) * scale, times Outer.
	Codes       []byte
	Cols        int
	Format      fp8.Format
	Scales      []float32 // row-major over Grid
	ScaleFormat tensor.ScaleFormat
	Grid        Grid
	Outer       *float32
	Divides     bool      // Outer is a divisor
	Wide        []float32 // columns from Cols on; nil: not judged

	Read   []float32 // nil: not judged
	ReadAs ReadType
}

// Grid is how many tokens, heads and columns share a scale, of which those of the first come
// first.
type Grid struct{ Tokens, Heads, Cols int }

// ReadType is the type of what was read.
type ReadType uint8

// Types of what is read.
const (
	BFloat16 ReadType = iota
	Float16
	Float32
)

func (r ReadType) String() string { return [...]string{"BF16", "F16", "F32"}[r] }

// coord is a scale's place: in units of a grid. side is 1 for the other of K and V.
type coord struct{ token, head, tile, side int }

// grid is the number of scales along each dimension.
func (s *Side) grid() coord {
	up := func(n, by int) int { return (n + by - 1) / by }
	return coord{up(s.Tokens, s.Grid.Tokens), up(s.Heads, s.Grid.Heads), up(s.Cols, s.Grid.Cols), 0}
}

// group is the number of the scale of a tile of a token's head.
func (s *Side) group(t, h, tile int) int {
	g := s.grid()
	return (t/s.Grid.Tokens*g.head+h/s.Grid.Heads)*g.tile + tile
}

// coordOf is the place of scale number g.
func (s *Side) coordOf(g int) coord {
	n := s.grid()
	return coord{g / n.tile / n.head, g / n.tile % n.head, g % n.tile, 0}
}

// numberOf is the number of the scale at a place.
func (s *Side) numberOf(u coord) int {
	n := s.grid()
	return (u.token*n.head+u.head)*n.tile + u.tile
}

// row is the input of a token's head, as far as there are codes of it.
func (s *Side) row(t, h int) []float32 { return s.Input[(t*s.Heads+h)*s.Dim:][:s.Cols] }

// codes are those of a token's head.
func (s *Side) codes(t, h int) []byte { return s.Codes[(t*s.Heads+h)*s.Cols:][:s.Cols] }

// tile is the columns that a scale is of.
func (s *Side) tile(c int) (lo, hi int) { return c * s.Grid.Cols, min((c+1)*s.Grid.Cols, s.Cols) }

// perRow reports whether each token has scales of its own.
func (s *Side) perRow() bool { return s.Grid.Tokens == 1 }

// written is how many tokens were written, of which more are not judged.
func (s *Side) written() int { return min(s.Tokens, len(s.Codes)/(s.Heads*s.Cols)) }

// read is how many tokens were read.
func (s *Side) read() int { return min(s.Tokens, len(s.Read)/(s.Heads*s.Dim)) }

func (s *Side) check(name string) error {
	bad := func(format string, args ...any) error {
		return sentinel.Errorf(ErrSide, "cache: %s: "+format, append([]any{name}, args...)...)
	}
	rows := s.Tokens * s.Heads
	if s.Tokens < 1 || s.Heads < 1 || s.Dim < 1 || len(s.Input) != rows*s.Dim {
		return bad("%d elements are not %d tokens of %d heads of %d columns", len(s.Input), s.Tokens, s.Heads, s.Dim)
	}
	if len(s.Read)%(s.Heads*s.Dim) != 0 {
		return bad("%d elements that were read are no whole tokens", len(s.Read))
	}
	if s.Codes == nil {
		return nil
	}
	g := s.Grid
	switch {
	case !s.Format.Valid():
		return bad("unknown format %d", s.Format)
	case s.Cols < 1 || s.Cols > s.Dim || len(s.Codes)%(s.Heads*s.Cols) != 0:
		return bad("%d codes are no whole tokens of %d heads of %d of %d columns", len(s.Codes), s.Heads, s.Cols, s.Dim)
	case len(s.Wide)%(s.Heads*max(s.Dim-s.Cols, 1)) != 0:
		return bad("%d elements that are not codes are no whole tokens", len(s.Wide))
	case g.Tokens < 1 || g.Heads < 1 || g.Cols < 1:
		return bad("scales are for %d tokens, %d heads, %d columns", g.Tokens, g.Heads, g.Cols)
	}
	n := s.grid()
	if each := n.head * n.tile; len(s.Scales) < (s.written()+g.Tokens-1)/g.Tokens*each {
		return bad("there are %d scales, and want %d for each of %d", len(s.Scales), each, n.token)
	}
	if s.Outer != nil && !(*s.Outer > 0 && *s.Outer-*s.Outer == 0) {
		return bad("the outer scale is %v", *s.Outer)
	}
	return nil
}

// granularity puts the grid in words.
func (s *Side) granularity() string {
	g := s.Grid
	tokens, heads := g.Tokens >= s.Tokens, g.Heads >= s.Heads
	var text string
	switch {
	case tokens && heads:
		text = "the tensor"
	case tokens:
		text = "each head"
	case g.Tokens == 1 && heads:
		text = "each token"
	case g.Tokens == 1:
		text = "each token and head"
	case heads:
		text = fmt.Sprintf("each page of %d tokens", g.Tokens)
	default:
		text = fmt.Sprintf("each page of %d tokens and head", g.Tokens)
	}
	if g.Tokens == 1 && s.Tokens == 1 && s.Heads == 1 {
		text = "the tensor"
	}
	if g.Cols < s.Cols {
		text += fmt.Sprintf(", %d columns", g.Cols)
	}
	return text
}
