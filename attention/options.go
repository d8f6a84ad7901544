package attention

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Output is the set of types of results. A result of bfloat16 is that of float32 rounded.
type Output interface {
	float32 | fp8.BFloat16
}

// Options of [Forward]. The zero value keeps P in bfloat16, or float32 where V is, and uses all
// processors.
type Options struct {
	P       PFormat // what softmax's numerators are rounded to before they multiply V
	Splits  int     // parts that the keys are computed in and merged from; 0 is 1
	Workers int     // goroutines at most; 0 means GOMAXPROCS. No bits depend on it

	// LSE and Max, unless nil, get the natural logarithm of the sum of e to the scores, and
	// the largest score times log2 e (z of the order), of every query: [heads, queries].
	// Both are -Inf where a query sees no key. A sink is part of neither.
	LSE, Max []float32
}

// PFormat is a format of P, the numerators of the softmax. Those of 8 bits are multiplied by
// a power of two first, 2^offset, to use the format's range: P is 2^offset at most.
type PFormat uint8

const (
	PBFloat16 PFormat = iota // offset 0; of values in float32 P is not rounded
	PE4M3                    // offset 8
	PE5M2                    // offset 15
)

var pFormats = enum.Enum[PFormat]{
	Type: "PFormat", What: "format of P", Names: []string{"bf16", "e4m3", "e5m2"},
	Prefix: "attention",
}

// String returns the text of f, such as "e4m3".
func (f PFormat) String() string                   { return pFormats.String(f) }
func (f PFormat) MarshalText() ([]byte, error)     { return pFormats.MarshalText(f) }
func (f *PFormat) UnmarshalText(text []byte) error { return pFormats.UnmarshalText(f, text) }

// Offset is the exponent of the power of two that P is multiplied by.
func (f PFormat) Offset() float32 { return pNumbers[f].offset }

// pNumbers are what the formats of 8 bits have: an offset and their numbers, to which P is
// rounded, to nearest even.
var pNumbers = [...]struct {
	offset  float32
	lattice *rounding.Lattice
}{
	PBFloat16: {},
	PE4M3:     {8, lattice(number.E4M3)},
	PE5M2:     {15, lattice(number.E5M2)},
}

func lattice(f number.Format) *rounding.Lattice {
	l := f.Lattice()
	return &l
}

// check reports what is wrong with the options.
func (o *Options) check(rows int) error {
	if err := pFormats.Check(o.P); err != nil {
		return err
	}
	switch {
	case o.Splits < 0:
		return fmt.Errorf("attention: %d splits: want at least 0", o.Splits)
	case o.Workers < 0:
		return fmt.Errorf("attention: %d workers: want at least 0", o.Workers)
	case o.LSE != nil && len(o.LSE) != rows:
		return sentinel.Length(ErrShape, "attention: LSE", len(o.LSE), rows)
	case o.Max != nil && len(o.Max) != rows:
		return sentinel.Length(ErrShape, "attention: Max", len(o.Max), rows)
	}
	return nil
}
