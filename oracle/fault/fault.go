package fault

import (
	"errors"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/oracle"
)

// ErrNotHere is of a fault that a product cannot have: operands of other shapes,
// parameters that are out of range, scales whose reciprocals are infinite.
var ErrNotHere = errors.New("fault: the product cannot have this fault")

// Fault is one thing that a kernel gets wrong. Which fields count depends on Kind;
// the others are 0. The zero Fault is none. Faults are comparable.
type Fault struct {
	Kind Kind `json:"kind"`
	// Of says whose codes or scales are misread or, in a fault of C, whether rows (A's)
	// or columns (B's) are concerned.
	Of Side `json:"of,omitzero"`
	// From and To are the products of K that are concerned.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
	// By is a distance or a size: rows, blocks or products.
	By int `json:"by,omitempty"`
	// Written and Read are layouts of a grid of scales.
	Written GridLayout `json:"written,omitzero"`
	Read    GridLayout `json:"read,omitzero"`
	// Format is what codes are taken for, in the kind "wrong-format".
	Format fp8.Format `json:"format,omitzero"`
	// Type is that of sums or results.
	Type Type `json:"type,omitzero"`
	// Factor is a factor or a limit.
	Factor float64 `json:"factor,omitempty"`
	// Values are numbers, separated by spaces: the order in which blocks are read, or factors
	// of scales.
	Values string `json:"values,omitempty"`
	// Model is the name of a model of tensor cores.
	Model string `json:"model,omitempty"`
	// Scales is the order in which scales are applied.
	Scales oracle.ScaleOrder `json:"scales,omitzero"`
	// Where says which elements of C have the fault. The zero Region is all.
	Where Region `json:"where,omitzero"`
}

// Side is an operand, or both.
type Side uint8

const (
	neither Side = iota
	A
	B
	Both
)

var sides = enum.Enum[Side]{Type: "Side", What: "operand", Prefix: "fault", Names: []string{"", "A", "B", "both"}}

// String returns "A", "B", "both" or, for neither, "". UnmarshalText takes these in any case.
func (s Side) String() string                   { return sides.String(s) }
func (s Side) MarshalText() ([]byte, error)     { return sides.MarshalText(s) }
func (s *Side) UnmarshalText(text []byte) error { return sides.UnmarshalText(s, text) }

// Type is a type of sums and results.
type Type uint8

const (
	Float32 Type = iota
	BFloat16
	Float16
)

var types = enum.Enum[Type]{Type: "Type", What: "type of sums", Prefix: "fault", Names: []string{"float32", "bfloat16", "float16"}}

// String returns a name such as "bfloat16". UnmarshalText takes it in any case.
func (t Type) String() string                   { return types.String(t) }
func (t Type) MarshalText() ([]byte, error)     { return types.MarshalText(t) }
func (t *Type) UnmarshalText(text []byte) error { return types.UnmarshalText(t, text) }

// String returns what the kernel does, as a clause: "the scales of A are ignored".
func (f Fault) String() string {
	row, err := table.Row(f.Kind)
	if err != nil {
		return f.Kind.String()
	}
	s := f.fill(row.text)
	if row.say != nil {
		s = row.say(f)
	}
	if f.Where != (Region{}) {
		s += ", " + f.Where.String()
	}
	return s
}

// K returns the products [from, to) of K that the fault names; from == to where it names
// none, as faults of the end of K, such as "k-tail-lost", which have a size only.
func (f Fault) K() (from, to int) { return f.From, f.To }
