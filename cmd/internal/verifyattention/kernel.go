package verifyattention

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// Claim is what is known of a kernel. What is nil or "" is what Kernel has or, where that is
// nil, a default.
type Claim struct {
	Kernel    *flash.Kernel
	P         *flash.Cast
	Offset    *float64
	PScale    *float64
	Threshold *float64
	Tile      *int
	Splits    *int
	Sums      string // float32, exact or the name of a GPU model
	Promote   int    // products of a GPU model's sum of P·V; 0: it goes on from tile to tile
	Base2     bool
	Bits      bool // the result has to have the kernel's bits
}

// defaultTile is that of a kernel of which nothing is known.
const defaultTile = 64

// Sums returns the names of ways to add.
func Sums() []string {
	return append([]string{"float32", "exact"}, gpus()...)
}

func gpus() (names []string) {
	for _, m := range oracle.Models() {
		if m.Float == oracle.NoFloat && m.Takes(fp8.E4M3) {
			names = append(names, m.Name)
		}
	}
	return names
}

// kernel returns the kernel that is claimed of a problem, whose output is in a format.
func (c *Claim) kernel(p *attention.Problem, out flash.Cast) (flash.Kernel, error) {
	k := flash.Kernel{Tile: defaultTile, Scores: flash.Scores{Scaling: flash.InProduct}, P: flash.E4M3}
	if p.V.Codes == nil {
		k.P = flash.BFloat16
	}
	if c.P != nil {
		k.P = *c.P
	}
	k.Scores.Product.Order, k.Values.Order = flash.Contract, flash.Contract
	k.Offset = map[flash.Cast]float32{flash.E4M3: 8, flash.E5M2: 15}[k.P]
	if c.PScale != nil {
		k.Offset = 0
	}
	if c.Kernel != nil {
		k = *c.Kernel
	}
	if c.changed() {
		k.Name = ""
	}
	if c.P != nil {
		k.P = *c.P
	}
	for _, x := range []struct {
		to   *float32
		from *float64
	}{{&k.Offset, c.Offset}, {&k.PScale, c.PScale}, {&k.Threshold, c.Threshold}} {
		if x.from != nil {
			*x.to = float32(*x.from)
		}
	}
	if c.Tile != nil {
		k.Tile = *c.Tile
	}
	if c.Splits != nil {
		k.Splits = *c.Splits
	}
	k.Base2 = k.Base2 || c.Base2
	k.Out = out
	if err := c.sums(&k, p); err != nil {
		return k, err
	}
	return k, k.Check()
}

// changed reports whether something is claimed that makes a kernel another.
func (c *Claim) changed() bool {
	return c.P != nil || c.Offset != nil || c.PScale != nil || c.Threshold != nil || c.Tile != nil || c.Splits != nil || c.Sums != "" || c.Promote != 0 || c.Base2
}

// sums sets how both products are added.
func (c *Claim) sums(k *flash.Kernel, p *attention.Problem) error {
	switch c.Sums {
	case "":
		if c.Promote > 0 {
			if k.Values.Order != flash.Instruction {
				return fmt.Errorf("--promote is for GPU models: name one with --sums or --kernel")
			}
			k.Values.Promote, k.Values.Carry = c.Promote, false
		}
		return nil
	case "float32":
		k.Scores = flash.Scores{Product: flash.Product{Order: flash.Contract}, Scaling: flash.InProduct, Frame: flash.Separate}
		k.Values = flash.Product{Order: flash.Contract}
		return nil
	case "exact":
		k.Scores, k.Values = flash.Scores{}, flash.Product{}
		return nil
	}
	m, err := oracle.ParseModel(c.Sums)
	if err != nil {
		return err
	}
	k.Scores = flash.Scores{Product: flash.Product{Order: flash.Instruction, Model: m}}
	if p.Q.Codes == nil || p.K.Codes == nil {
		k.Scores.Product.Model = wide(m, oracle.BF16)
	}
	k.Values = flash.Product{Order: flash.Instruction, Model: m, Promote: c.Promote, Carry: c.Promote == 0}
	switch k.P {
	case flash.BFloat16:
		k.Values.Model = wide(m, oracle.BF16)
	case flash.Float16:
		k.Values.Model = wide(m, oracle.FP16)
	}
	return nil
}

// wide is the model of the same GPU for operands of 16 bits.
func wide(m oracle.Model, f oracle.Float) oracle.Model {
	switch {
	case strings.HasPrefix(m.Name, "hopper"):
		return oracle.Hopper(f)
	case strings.HasPrefix(m.Name, "blackwell"):
		return oracle.Blackwell(f)
	}
	return m
}
