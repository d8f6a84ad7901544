package verifyattention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// Claim is what is known of a kernel. What is nil or "" is what Kernel has or, where that is
// nil, a default.
type Claim struct {
	Kernel     *flash.Kernel
	P          *flash.Cast
	Offset     *float64
	PScale     *float64
	Threshold  *float64
	Tile       *int
	Splits     *int
	Descending *bool  // the last tile of a split is the first to be taken
	Sums       string // float32, exact or the name of a GPU model
	Promote    int    // products of a GPU model's sum of P·V; 0: it goes on from tile to tile
	Base2      bool
	Bits       bool // the result has to have the kernel's bits
}

// defaultTile is that of a kernel of which nothing is known.
const defaultTile = 64

// Sums returns the names of ways to add.
func Sums() []string {
	return append([]string{"float32", "exact"}, gpus()...)
}

// ParseSums returns the name, and an error if it is none of [Sums].
func ParseSums(name string) (string, error) {
	if !slices.Contains(Sums(), name) {
		return "", fmt.Errorf("want one of %s", strings.Join(Sums(), ", "))
	}
	return name, nil
}

func gpus() (names []string) {
	for _, m := range oracle.Models() {
		k := flash.Kernel{Values: flash.Product{Order: flash.Instruction, Model: m}}
		if m.Float == oracle.NoFloat && m.Takes(fp8.E4M3) && k.Check() == nil {
			names = append(names, m.Name)
		}
	}
	return names
}

// guess is a claim that says more than was claimed.
type guess struct {
	Claim
	text string // what
}

// sums returns guesses of GPUs' sums, the most exact first, where nothing is claimed of sums and
// they can multiply such operands.
func (c *Claim) sums(ctx context.Context, p *attention.Problem, out flash.Cast) (
	all []guess, err error,
) {
	if c.Kernel != nil || c.Sums != "" || c.Promote != 0 {
		return nil, nil
	}
	errs := map[string]float64{}
	for _, name := range gpus() {
		g := guess{*c, "sums of " + name}
		g.Sums = name
		k, err := g.kernel(p, out)
		if err == nil {
			_, err = flash.Predict(ctx, p, k, flash.Options{Rows: []int{}})
		}
		switch {
		case errors.Is(err, flash.ErrKernel):
			continue
		case err != nil:
			return nil, err
		}
		sums := oracle.Kernel{Model: k.Values.Model}
		errs[name] = sums.RelativeError(p.Sizes().Keys)
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b guess) int { return cmp.Compare(errs[a.Sums], errs[b.Sums]) })
	return all, nil
}

// tilings returns guesses of tiles and their order, where these are not claimed.
func (c *Claim) tilings() (all []guess) {
	if c.Kernel != nil {
		return nil
	}
	sizes, orders := []int{defaultTile, 128, 32, 16}, []bool{false, true}
	if c.Tile != nil {
		sizes = []int{*c.Tile}
	}
	if c.Descending != nil {
		orders = []bool{*c.Descending}
	}
	for _, size := range sizes {
		for _, descending := range orders {
			if size == sizes[0] && descending == orders[0] {
				continue // that is what was claimed, or is the default
			}
			g := guess{*c, fmt.Sprintf("tiles of %d keys", size)}
			if g.Tile, g.Descending = &size, &descending; descending {
				g.text += ", the last one first"
			}
			all = append(all, g)
		}
	}
	return all
}

// bound returns what the bounds of a kernel depend on, as far as it is known.
func (c *Claim) bound(k flash.Kernel) flash.Claim {
	b := k.Claim()
	if c.Kernel == nil && c.Tile == nil {
		b.Tile = 0
	}
	return b
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
	if c.Descending != nil {
		k.Descending = *c.Descending
	}
	k.Base2 = k.Base2 || c.Base2
	k.Out = out
	if err := c.setSums(&k, p); err != nil {
		return k, err
	}
	return k, k.Check()
}

// changed reports whether something is claimed that makes a kernel another.
func (c *Claim) changed() bool {
	return c.P != nil || c.Offset != nil || c.PScale != nil || c.Threshold != nil || c.Tile != nil ||
		c.Splits != nil || c.Descending != nil || c.Sums != "" || c.Promote != 0 || c.Base2
}

// setSums sets how both products are added.
func (c *Claim) setSums(k *flash.Kernel, p *attention.Problem) error {
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
		k.Scores = flash.Scores{Product: flash.Product{Order: flash.Contract}, Scaling: flash.InProduct,
			Frame: flash.Separate}
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
	k.Values = flash.Product{Order: flash.Instruction, Model: m, Promote: c.Promote,
		Carry: c.Promote == 0}
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
	case strings.HasPrefix(m.Name, "ada"):
		return oracle.Ada(f)
	case strings.HasPrefix(m.Name, "hopper"):
		return oracle.Hopper(f)
	case strings.HasPrefix(m.Name, "blackwell"):
		return oracle.Blackwell(f)
	}
	return m
}
