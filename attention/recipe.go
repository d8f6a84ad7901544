package attention

import (
	"cmp"
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Granularity is which elements of Q, K or V share a scale.
type Granularity uint8

const (
	PerTensor  Granularity = iota
	PerHead                // all tokens of a head
	PerToken               // the row of each token of each head
	PerBlock               // [Recipe].Block tokens of a head
	PerChannel             // each column of a head; of V alone
)

var granularities = enum.Enum[Granularity]{
	Type: "Granularity", What: "granularity", Prefix: "attention",
	Names: []string{"tensor", "head", "token", "block", "channel"},
}

// String returns the text of g, such as "token".
func (g Granularity) String() string                   { return granularities.String(g) }
func (g Granularity) MarshalText() ([]byte, error)     { return granularities.MarshalText(g) }
func (g *Granularity) UnmarshalText(text []byte) error { return granularities.UnmarshalText(g, text) }

// Recipe says how Q, K and V are quantized. The zero Recipe is E4M3 with one scale for each
// of the three. Recipes are comparable.
type Recipe struct {
	Format  fp8.Format
	Profile scaling.Profile // arithmetic of scales; empty is te-block-pow2

	Q, K, V Granularity
	Block   int // tokens that share a scale of PerBlock; it divides those of a head

	// SmoothK takes its mean over tokens from each column of each head of K, as SageAttention
	// does (Zhang et al., arXiv 2410.02367). The softmax stays what it is, as every score of a
	// query changes by the same. The log-sum-exp becomes less by scale·q·mean, see [KeyMeans].
	// A sink has no part in that, and a cap bends it, so that neither goes together with it.
	SmoothK bool

	// Hadamard rotates rows of Q and K by the same random signs, which follow from Seed, and
	// then by the Hadamard matrix divided by the square root of its size: the largest power
	// of two that divides D. It spreads outliers, as FlashAttention-3's incoherent processing
	// does (Shah et al., arXiv 2407.08608); scores stay what they are but for rounding.
	Hadamard bool
	Seed     uint64
}

// Check reports what is wrong with the recipe by itself.
func (r Recipe) Check() error {
	for _, g := range []Granularity{r.Q, r.K, r.V} {
		if err := granularities.Check(g); err != nil {
			return err
		}
	}
	switch {
	case r.Q == PerChannel || r.K == PerChannel:
		return fmt.Errorf("%w: scales by channel of Q or K cannot be factored out of their "+
			"products", ErrScales)
	case r.Block <= 0 && (r.Q == PerBlock || r.K == PerBlock || r.V == PerBlock):
		return fmt.Errorf("%w: Recipe.Block is %d: it must be positive", ErrScales, r.Block)
	}
	if err := (scaling.Recipe{Profile: r.Profile, Format: r.Format}).Check(); err != nil {
		return inPackage(err)
	}
	if r.Profile.Outer() || r.Profile.Delayed() {
		return fmt.Errorf("%w: profile %q needs more than the values: take one that is just in "+
			"time, with one level of scales", ErrScales, r.Profile)
	}
	return nil
}

// Quantize sets p's Q, K and V to codes of q, [Heads, Queries, Dim], k, [KVHeads, Keys, Dim],
// and v, [KVHeads, Keys, ValueDim], and sets Keys to all. Mask, Scale, Cap and Sinks stay as they
// are. Tensors that p has, which must not be one and the same, are reused with their memory.
// q, k and v are only read.
//
// It returns an error, and changes nothing, if the recipe is none, if its blocks do not divide
// a head's tokens or q, k or v is not of the right length ([ErrShape]), or if K is to be smoothed
// and p has sinks ([ErrMask]) or a cap ([ErrScales]). Other errors are those of
// [scaling.Quantize], after which p's operands are unspecified.
func (r Recipe) Quantize(
	ctx context.Context, p *Problem, q, k, v []float32, s Sizes, o tensor.Options,
) error {
	if err := r.check(p, s); err != nil {
		return err
	}
	if err := cmp.Or(
		sentinel.Length(ErrShape, "attention: q", len(q), s.Heads*s.Queries*s.Dim),
		sentinel.Length(ErrShape, "attention: k", len(k), s.KVHeads*s.Keys*s.Dim),
		sentinel.Length(ErrShape, "attention: v", len(v), s.KVHeads*s.Keys*s.ValueDim),
	); err != nil {
		return err
	}
	if r.SmoothK {
		k = smooth(k, s)
	}
	if r.Hadamard && s.Dim > 0 {
		q, k = r.rotate(q, s.Dim), r.rotate(k, s.Dim)
	}
	p.Keys = 0
	for _, x := range []struct {
		operand            *Operand
		name               string
		values             []float32
		granularity        Granularity
		heads, tokens, dim int
	}{
		{&p.Q, "Q", q, r.Q, s.Heads, s.Queries, s.Dim},
		{&p.K, "K", k, r.K, s.KVHeads, s.Keys, s.Dim},
		{&p.V, "V", v, r.V, s.KVHeads, s.Keys, s.ValueDim},
	} {
		t := x.operand.Codes
		if t == nil {
			t = new(tensor.Tensor)
		}
		*x.operand = Operand{Codes: t}
		t.Name, t.Shape = x.name, []int{x.heads, x.tokens, x.dim}
		recipe := scaling.Recipe{Profile: r.Profile, Format: r.Format,
			Block: r.blockOf(x.granularity, x.tokens)}
		quantizer := scaling.Quantizer{Recipe: recipe, Options: o}
		if err := scaling.Quantize(ctx, t, x.values, quantizer); err != nil {
			return inPackage(err)
		}
	}
	return nil
}

// check reports what is wrong with the recipe for a problem.
func (r Recipe) check(p *Problem, s Sizes) error {
	if err := r.Check(); err != nil {
		return err
	}
	if s.Heads < 0 || s.KVHeads < 0 || s.Queries < 0 || s.Keys < 0 || s.Dim < 0 || s.ValueDim < 0 {
		return fmt.Errorf("%w: sizes are %+v", ErrShape, s)
	}
	if r.SmoothK && p.Sinks != nil {
		return fmt.Errorf("%w: smoothing K moves scores, and sinks would stay where they are: "+
			"leave out one of the two", ErrMask)
	}
	if r.SmoothK && p.Cap != 0 {
		return fmt.Errorf("%w: smoothing K moves scores, and a cap bends them by where they are: "+
			"leave out one of the two", ErrScales)
	}
	for _, x := range []struct {
		name          string
		granularity   Granularity
		heads, tokens int
	}{{"Q", r.Q, s.Heads, s.Queries}, {"K", r.K, s.KVHeads, s.Keys},
		{"V", r.V, s.KVHeads, s.Keys}} {
		if x.granularity == PerBlock && x.heads > 1 && x.tokens%r.Block != 0 {
			return fmt.Errorf("%w: blocks of %d tokens do not divide the %d of a head of %s",
				ErrShape, r.Block, x.tokens, x.name)
		}
	}
	return nil
}

// blockOf is what shares a scale, in the matrix of heads·tokens rows.
func (r Recipe) blockOf(g Granularity, tokens int) tensor.Block {
	switch g {
	case PerHead:
		return tensor.Block{Rows: tokens}
	case PerToken:
		return tensor.Block{Rows: 1}
	case PerBlock:
		return tensor.Block{Rows: r.Block}
	case PerChannel:
		return tensor.Block{Rows: tokens, Cols: 1}
	}
	return tensor.Block{}
}
