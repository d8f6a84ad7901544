package judge

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/oracle"
)

// Claim is what a kernel is said to compute. The zero value is the exact product, as
// near as float32 sums in any order come to it.
type Claim struct {
	Want Want `json:"want"`
	// Kernel says whose bits they are, where Want is Predicted.
	Kernel oracle.Kernel `json:"kernel,omitzero"`
	// Accumulation is what is known of the kernel's sums, from which the bound
	// follows, where Want is Exact.
	Accumulation oracle.Accumulation `json:"accumulation,omitzero"`
	// Alarms says what comes of a statistical alarm, where Want is Exact.
	Alarms Alarms `json:"alarms"`
}

// Want is the kind of a claim.
type Want uint8

const (
	// Exact is the exact product, rounded once, within a derived bound.
	Exact Want = iota
	// Canonical is the product of package gemm, bit for bit.
	Canonical
	// Predicted is what a model of a GPU says, bit for bit.
	Predicted
)

var wants = enum.Enum[Want]{Type: "Want", What: "kind of claim", Prefix: "judge", Names: []string{"exact", "canonical", "predicted"}}

// String returns a name such as "canonical". UnmarshalText takes it in any case.
func (w Want) String() string                   { return wants.String(w) }
func (w Want) MarshalText() ([]byte, error)     { return wants.MarshalText(w) }
func (w *Want) UnmarshalText(text []byte) error { return wants.UnmarshalText(w, text) }

// Check returns an error unless the kind and what comes of alarms are known and its kernel, if it has one, is one
// that package oracle has a model of.
func (c Claim) Check() error {
	if err := wants.Check(c.Want); err != nil {
		return err
	}
	if err := alarms.Check(c.Alarms); err != nil {
		return err
	}
	kernel := c.Kernel
	if c.Want != Predicted {
		if kernel = c.accumulation().Kernel; kernel.Model == (oracle.Model{}) {
			return nil
		}
	}
	if err := kernel.Check(); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	return nil
}

// accumulation is what the bound follows from.
func (c *Claim) accumulation() oracle.Accumulation {
	switch c.Want {
	case Canonical:
		return oracle.Accumulation{Scales: oracle.AThenB}
	case Predicted:
		return oracle.Accumulation{Kernel: c.Kernel}
	}
	return c.Accumulation
}
