package tensor

import (
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Block is the number of rows and columns of the matrix that share a scale. An
// extent of 0 is the whole of the matrix, so the zero Block is one scale for
// the tensor and Block{Rows: 1} is one for each row. An extent larger than the
// matrix is allowed and means the same as the whole.
type Block struct{ Rows, Cols int }

// String returns the block as [ParseBlock] reads it.
func (b Block) String() string {
	switch {
	case b == Block{}:
		return "tensor"
	case b == Block{Rows: 1}:
		return "row"
	}
	return extentString(b.Rows) + "x" + extentString(b.Cols)
}

func extentString(n int) string {
	if n == 0 {
		return "all"
	}
	return strconv.Itoa(n)
}

// ParseBlock reads "tensor", "row" (1 x all columns) or "RxC" such as
// "128x128"; R and C may be "all".
func ParseBlock(s string) (Block, error) {
	switch s {
	case "tensor":
		return Block{}, nil
	case "row":
		return Block{Rows: 1}, nil
	}
	rows, cols, ok := strings.Cut(s, "x")
	r, okRows := parseExtent(rows)
	c, okCols := parseExtent(cols)
	if !ok || !okRows || !okCols {
		return Block{}, sentinel.Errorf(ErrShape, "tensor: block %q: want tensor, row, or RxC such as 128x128", s)
	}
	return Block{Rows: r, Cols: c}, nil
}

// MarshalText implements [encoding.TextMarshaler] by [Block.String].
func (b Block) MarshalText() ([]byte, error) {
	if b.Rows < 0 || b.Cols < 0 {
		return nil, sentinel.Errorf(ErrShape, "tensor: block %dx%d has a negative extent", b.Rows, b.Cols)
	}
	return []byte(b.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] by [ParseBlock].
func (b *Block) UnmarshalText(text []byte) error {
	parsed, err := ParseBlock(string(text))
	if err == nil {
		*b = parsed
	}
	return err
}

func parseExtent(s string) (n int, ok bool) {
	if s == "all" {
		return 0, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && strconv.Itoa(n) == s
}

// Transposed returns the block of the transposed matrix.
func (b Block) Transposed() Block { return Block{Rows: b.Cols, Cols: b.Rows} }

// Extents returns the block's extents in a matrix of the given size, the whole
// of it where the block says so. They are at least 1. It panics if the block has a
// negative extent; see [Tensor.CheckShape].
func (b Block) Extents(rows, cols int) (r, c int) {
	if b.Rows < 0 || b.Cols < 0 {
		panic(negativeBlock)
	}
	return clip(b.Rows, rows), clip(b.Cols, cols)
}

const negativeBlock = "tensor: block has a negative extent"

func clip(extent, size int) int {
	if extent == 0 || extent > size {
		return max(size, 1)
	}
	return extent
}

// Grid returns the number of blocks along the rows and columns of a matrix of
// the given size. It panics as [Block.Extents] does.
func (b Block) Grid(rows, cols int) (r, c int) {
	br, bc := b.Extents(rows, cols)
	return ceilDiv(rows, br), ceilDiv(cols, bc)
}

func ceilDiv(a, b int) int {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1 // a+b-1 may overflow
}
