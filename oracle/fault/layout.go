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
)

var layouts = enum.Enum[GridLayout]{Type: "GridLayout", What: "layout of scales", Prefix: "fault",
	Names: []string{"row-major", "column-major", "aligned", "packed", "packed-reversed", "128x4", "8x4"}}

// String returns a name such as "128x4".
func (l GridLayout) String() string { return layouts.String(l) }

// MarshalText returns the name, and an error for an unknown layout.
func (l GridLayout) MarshalText() ([]byte, error) { return layouts.MarshalText(l) }

// UnmarshalText takes a name in any case.
func (l *GridLayout) UnmarshalText(text []byte) error { return layouts.UnmarshalText(l, text) }

// in says how people write a layout.
func (l GridLayout) in() string {
	if !layouts.Valid(l) {
		return l.String()
	}
	return [...]string{
		"row-major", "column-major", "column-major with columns aligned to four (TMA)", "packed UE8M0, four to a word",
		"packed UE8M0, four to a word, in reverse", "tiles of 128x4", "tiles of 8x4",
	}[l]
}

// Index returns where the scale of row r and column c is, in a grid of the given size.
func (l GridLayout) Index(r, c, rows, cols int) int {
	switch l {
	case columnMajor:
		return c*rows + r
	case aligned:
		return c*roundUp(rows, 4) + r
	case packed:
		return (c/4*roundUp(rows, 4)+r)*4 + c%4
	case packedReversed:
		return (c/4*roundUp(rows, 4)+r)*4 + 3 - c%4
	case Tiles128x4:
		return (r/128*((cols+3)/4)+c/4)*512 + r%32*16 + r%128/32*4 + c%4
	case tiles8x4:
		return (r/8*((cols+3)/4)+c/4)*32 + r%8*4 + c%4
	}
	return r*cols + c
}

// size is the number of places of a grid, gaps included.
func (l GridLayout) size(rows, cols int) int {
	switch l {
	case aligned:
		return roundUp(rows, 4) * cols
	case packed, packedReversed:
		return roundUp(rows, 4) * roundUp(cols, 4)
	case Tiles128x4:
		return roundUp(rows, 128) * roundUp(cols, 4)
	case tiles8x4:
		return roundUp(rows, 8) * roundUp(cols, 4)
	}
	return rows * cols
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
