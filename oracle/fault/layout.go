package fault

import "github.com/octavo-fp8/octavo/internal/enum"

// GridLayout is the order of a grid of scales in memory, for row r (of the operand's
// blocks) and column c (block of K).
type GridLayout uint8

const (
	// RowMajor has the columns of a row beside each other.
	RowMajor GridLayout = iota
	// columnMajor has the rows of a column beside each other.
	columnMajor
	// aligned is columnMajor with columns that begin at multiples of four scales, as TMA
	// wants float32 scales (DeepGEMM).
	aligned
	// packed has words of four columns, the first in the lowest byte; words of rows are
	// beside each other, and columns of words begin at multiples of four words
	// (DeepGEMM's packed UE8M0).
	packed
	// packedReversed is packed with the first column in the highest byte.
	packedReversed
	// Tiles128x4 has tiles of 128 rows and four columns, along rows first; scale (r, c) of
	// a tile is number r%32*16 + r/32*4 + c (cuBLASLt).
	Tiles128x4
	// tiles8x4 has tiles of eight rows and four columns, each row-major, along rows first
	// (TensorRT-LLM).
	tiles8x4
	// padded is RowMajor with rows that are filled up to four columns.
	padded
)

// layoutTable has how layouts are named and put in words, to what numbers of rows and
// columns they are filled up, and where a scale is in a grid of that many rows and columns.
var layoutTable = [...]struct {
	name, in   string
	rows, cols int
	index      func(r, c, rows, cols int) int
}{
	RowMajor:    {"row-major", "row-major", 1, 1, func(r, c, _, cols int) int { return r*cols + c }},
	columnMajor: {"column-major", "column-major", 1, 1, func(r, c, rows, _ int) int { return c*rows + r }},
	aligned: {"aligned", "column-major with columns aligned to four (TMA)", 4, 1,
		func(r, c, rows, _ int) int { return c*rows + r }},
	packed: {"packed", "packed UE8M0, four to a word", 4, 4,
		func(r, c, rows, _ int) int { return (c/4*rows+r)*4 + c%4 }},
	packedReversed: {"packed-reversed", "packed UE8M0, four to a word, in reverse", 4, 4,
		func(r, c, rows, _ int) int { return (c/4*rows+r)*4 + 3 - c%4 }},
	Tiles128x4: {"128x4", "tiles of 128x4", 128, 4,
		func(r, c, _, cols int) int { return (r/128*(cols/4)+c/4)*512 + r%32*16 + r%128/32*4 + c%4 }},
	tiles8x4: {"8x4", "tiles of 8x4", 8, 4,
		func(r, c, _, cols int) int { return (r/8*(cols/4)+c/4)*32 + r%8*4 + c%4 }},
	padded: {"padded", "row-major with rows padded to four columns", 1, 4, func(r, c, _, cols int) int { return r*cols + c }},
}

var layouts = enum.Enum[GridLayout]{Type: "GridLayout", What: "layout of scales", Prefix: "fault", Names: layoutNames()}

func layoutNames() (names []string) {
	for _, l := range layoutTable {
		names = append(names, l.name)
	}
	return names
}

// String returns a name such as "128x4". UnmarshalText takes it in any case.
func (l GridLayout) String() string                   { return layouts.String(l) }
func (l GridLayout) MarshalText() ([]byte, error)     { return layouts.MarshalText(l) }
func (l *GridLayout) UnmarshalText(text []byte) error { return layouts.UnmarshalText(l, text) }

// in says how people write a layout.
func (l GridLayout) in() string {
	if !layouts.Valid(l) {
		return l.String()
	}
	return layoutTable[l].in
}

// Index returns where the scale of row r and column c is, in a grid of the given size.
// It panics for an unknown layout.
func (l GridLayout) Index(r, c, rows, cols int) int {
	t := &layoutTable[l]
	return t.index(r, c, roundUp(rows, t.rows), roundUp(cols, t.cols))
}

// size is the number of places of a grid, gaps included.
func (l GridLayout) size(rows, cols int) int {
	return roundUp(rows, layoutTable[l].rows) * roundUp(cols, layoutTable[l].cols)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
