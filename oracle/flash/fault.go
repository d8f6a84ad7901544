package flash

import (
	"context"
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

// ErrNotHere is of a [Fault] that a problem and a kernel cannot have.
var ErrNotHere = errors.New("flash: the kernel cannot have this fault")

// Fault is one thing that a flash kernel gets wrong. Which fields count depends on Kind;
// the others are 0. The zero Fault is none. Faults are comparable.
type Fault struct {
	Kind Kind `json:"kind"`
	// Of says whose scales or codes are misread.
	Of Side `json:"of,omitzero"`
	// By is a distance or a size: keys, heads, columns, or the number of a split.
	By int `json:"by,omitempty"`
	// Factor is the value of what should be -Inf.
	Factor float64 `json:"factor,omitempty"`
	// Format is what codes are read as.
	Format fp8.Format `json:"format,omitzero"`
}

// Side is an operand.
type Side uint8

// Operands that faults are of.
const (
	noSide Side = iota
	ofQ
	OfK
	OfV
	OfKV // both K and V
)

var sides = enum.Enum[Side]{Type: "Side", What: "operand", Err: ErrNotHere, Prefix: "flash",
	Names: []string{"", "Q", "K", "V", "K and V"}}

// String returns a name such as "K and V". UnmarshalText takes it in any case.
// An unknown side is an [ErrNotHere].
func (s Side) String() string                   { return sides.String(s) }
func (s Side) MarshalText() ([]byte, error)     { return sides.MarshalText(s) }
func (s *Side) UnmarshalText(text []byte) error { return sides.UnmarshalText(s, text) }

// Kind is a kind of fault: the name of a row of the table, such as "rescale-dropped".
// [Kinds] has all. The zero Kind is None.
type Kind string

// None is the kind of an honest kernel.
const None Kind = ""

// Kinds returns all kinds but None.
func Kinds() []Kind { return table.Kinds() }

// Known lists the kinds of fault that [Explain] looks for, in words.
func Known() []explain.Known {
	return table.Known(func(e *entry) explain.Known { return explain.Known{Kind: e.name, Text: e.text, Reports: e.seen} })
}

// String returns a name such as "rescale-dropped"; that of None is "none".
// UnmarshalText takes names in any case. An unknown kind is an [ErrNotHere].
func (k Kind) String() string                   { return table.String(k) }
func (k Kind) MarshalText() ([]byte, error)     { return table.MarshalText(k) }
func (k *Kind) UnmarshalText(text []byte) error { return table.UnmarshalText(k, text) }

// Seen returns the public issues in which the fault was seen, as owner/name#number.
func (k Kind) Seen() []string { return table.Of(k).seen }

// String returns what the kernel does, as a clause: "scales are not applied (of K)".
func (f Fault) String() string {
	row, err := table.Row(f.Kind)
	switch {
	case err != nil:
		return f.Kind.String()
	case f.Kind == wrongFormat:
		return fmt.Sprintf("%s: %s (of %s)", row.text, f.Format, f.Of)
	case f.Kind == scaleOfOther:
		other := OfK + OfV - f.Of
		return fmt.Sprintf("%s is read with the scales of %s", f.Of, other)
	case f.Of != noSide && f.By != 0:
		return fmt.Sprintf("%s (by %d, of %s)", row.text, f.By, f.Of)
	case f.Of != noSide:
		return fmt.Sprintf("%s (of %s)", row.text, f.Of)
	case f.Kind == finiteMax:
		return fmt.Sprintf("%s (%v)", row.text, f.Factor)
	case f.Kind == splitLost:
		return fmt.Sprintf("%s (split %d)", row.text, f.By)
	case f.By != 0:
		return fmt.Sprintf("%s (by %d)", row.text, f.By)
	}
	return row.text
}

// Faults lists the faults that a kernel could have of the problem, each sort of parameters
// once: what is worth injecting. It returns nil for a problem that is none.
func Faults(p *attention.Problem, k Kernel) (all []Fault) {
	if checkProblem(p) != nil {
		return nil
	}
	for _, kind := range Kinds() {
		row, _ := table.Row(kind)
		for _, f := range row.faults(newChange(p, k)) {
			f.Kind = kind
			if _, err := f.change(p, k); err == nil {
				all = append(all, f)
			}
		}
	}
	return all
}

// Inject returns what a kernel that has fault f and is k otherwise returns for p, bit for
// bit, as [Predict] does for an honest one. Errors are those of Predict, and [ErrNotHere]
// where such a problem or kernel cannot have the fault.
func Inject(ctx context.Context, p *attention.Problem, k Kernel, f Fault, o Options) (*Prediction,
	error) {
	m, err := newFaulty(p, k, f)
	if err != nil {
		return nil, err
	}
	return m.predict(ctx, o)
}

// newFaulty is the model of a kernel with a fault.
func newFaulty(p *attention.Problem, k Kernel, f Fault) (*model, error) {
	if err := checkProblem(p); err != nil {
		return nil, err
	}
	c, err := f.change(p, k)
	if err != nil {
		return nil, err
	}
	m, err := newModel(c.p, c.k)
	if err != nil {
		return nil, err
	}
	m.fault, m.tail = f, c.tail
	return m, nil
}

func notHere(f Fault, why string) error {
	return sentinel.Errorf(ErrNotHere, "flash: fault %q: %s", f.Kind, why)
}
