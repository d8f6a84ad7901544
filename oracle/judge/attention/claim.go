package attention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// Claim is what is known of a kernel. What is nil or "" is what Kernel has or, where that is
// nil, a default: P in E4M3 times 2^8, or in BF16 where V is, and sums in float32 in any
// order, over tiles of any size.
type Claim struct {
	Kernel     *flash.Kernel
	P          *flash.Cast
	Offset     *float32 // log2 of what P is multiplied by before its cast
	PScale     *float32 // P is multiplied by it, too
	Threshold  *float32 // log2 of how far the maximum may lag
	Tile       *int     // keys
	Splits     *int     // parts of the keys that are merged
	Descending *bool    // the last tile of a split is the first to be taken
	Sums       string   // one of [Sums]: float32, exact or the name of a GPU model
	Promote    int      // products of a GPU model's sum of P·V; 0: it goes on from tile to tile
	Base2      bool     // log-sum-exps are in base 2
	Bits       bool     // the result has to have the bits of Kernel, which is not nil
}

// defaultTile is that of a kernel of which nothing is known.
const defaultTile = 64

// Sums returns the names of ways to add.
func Sums() []string { return append([]string{"float32", "exact"}, gpus()...) }

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
func (c *Claim) sums(ctx context.Context, p *attention.Problem, out flash.Cast) (all []guess, err error) {
	if c.Kernel != nil || c.Sums != "" || c.Promote != 0 {
		return nil, nil
	}
	errs := map[string]float64{}
	for _, name := range gpus() {
		g := guess{*c, "sums of " + name}
		g.Sums = name
		k, err := g.KernelOf(p, out)
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
			g := guess{*c, fmt.Sprintf("tiles of %d keys", size)}
			if g.Tile, g.Descending = &size, &descending; descending {
				g.text += ", the last one first"
			}
			all = append(all, g)
		}
	}
	return all[1:] // the first was claimed, or is the default
}

// bound returns what the bounds of a kernel depend on, as far as it is known.
func (c *Claim) bound(k flash.Kernel) flash.Numerics {
	b := k.Numerics()
	if c.Kernel == nil && c.Tile == nil {
		b.Tile = 0
	}
	return b
}

// KernelOf returns the kernel that is claimed of a problem, whose output is in a format.
func (c *Claim) KernelOf(p *attention.Problem, out flash.Cast) (flash.Kernel, error) {
	k := flash.Kernel{Tile: defaultTile, Scores: flash.Scores{Scaling: flash.InProduct}, P: flash.E4M3}
	if p.V.Codes == nil {
		k.P = flash.BFloat16
	}
	set(&k.P, c.P)
	k.Scores.Product.Order, k.Values.Order = flash.Contract, flash.Contract
	if c.PScale == nil {
		k.Offset = map[flash.Cast]float32{flash.E4M3: 8, flash.E5M2: 15}[k.P]
	}
	if c.Kernel != nil {
		k = *c.Kernel
	}
	named := k
	set(&k.P, c.P)
	set(&k.Offset, c.Offset)
	set(&k.PScale, c.PScale)
	set(&k.Threshold, c.Threshold)
	set(&k.Tile, c.Tile)
	set(&k.Splits, c.Splits)
	set(&k.Descending, c.Descending)
	k.Base2 = k.Base2 || c.Base2
	if err := c.setSums(&k, p); err != nil {
		return k, err
	}
	if k != named {
		k.Name = ""
	}
	k.Out = out
	return k, k.Check()
}

// set takes what is claimed.
func set[T any](to, claimed *T) {
	if claimed != nil {
		*to = *claimed
	}
}

// setSums sets how both products are added.
func (c *Claim) setSums(k *flash.Kernel, p *attention.Problem) error {
	if c.Promote > 0 && !(slices.Contains(gpus(), c.Sums) || c.Sums == "" && k.Values.Order == flash.Instruction) {
		return sentinel.Errorf(flash.ErrKernel, "--promote is for GPU models: name one with --sums or --kernel")
	}
	switch c.Sums {
	case "":
		if c.Promote > 0 {
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

// wide is the model of the same GPU for operands of 16 bits, if there is one.
func wide(m oracle.Model, f oracle.Float) oracle.Model {
	generation, _, _ := strings.Cut(m.Name, "-")
	if of, err := oracle.ParseModel(generation + "-" + f.String()); err == nil {
		return of
	}
	return m
}
