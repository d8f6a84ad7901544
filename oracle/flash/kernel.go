package flash

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
)

// Kernel is everything that decides the bits of a flash kernel. It computes row by row,
// over tiles of keys; all operations are rounded to float32, to nearest even.
//
//  1. The scores s_j of the tile's kept keys are made by Scores, and with them the number
//     c_j that takes them to base 2: z_j = rn(s_j·c_j).
//  2. M' is the largest z so far, unless it exceeds M by no more than Threshold: then M
//     stays. alpha = exp2(rn(M-M')), and 1 for the first tile with a kept key and where M
//     stays.
//  3. p_j = exp2(rn(rn(z_j-M')+Offset)), or otherwise as Frame says.
//  4. l = rn(rn(l·alpha) + Σp), added as Sum says.
//  5. u_j = rn(p_j·PScale), times rn(vs_j/vmax) and rounded where V's scales vary by
//     token, vmax being the largest of the head's valid keys; P_j is u_j in P's format.
//  6. O = rn(rn(O·alpha) + ΣP_j·v_j), v the decoded codes, added as Values says.
//  7. In the end l' = rn(l + sink), out = O/l'·F, as Ending says, with F the scale of V,
//     rn(F/PScale) if PScale is not 1, and rounded to the format Out; log-sum-exp =
//     rn(M + rn(log2(l)-Offset)), natural after one product with float32(ln 2).
//  8. Splits of consecutive tiles are such rows of their own, without sink, and merged by
//     weights exp2(rn(lse_s-G)), G the log-sum-exp of all, in ascending order.
//
// attention.md, section 6, has the same in other words, for its kernel flash_p8. The zero
// Kernel is that one with one tile of all keys and P in float32. A Kernel is comparable.
type Kernel struct {
	Name string `json:"name,omitempty"`

	Tile       int  `json:"tile"`                 // keys; 0 is all of them
	Descending bool `json:"descending,omitempty"` // the last tile first, within a split
	Splits     int  `json:"splits,omitempty"`     // 0 is 1

	Scores Scores `json:"scores"`

	// FirstMax is what M is before the first tile, if not 0; else it is -Inf.
	FirstMax float32 `json:"firstMax,omitempty"`
	// Threshold is how far, in base 2, the maximum may lag: 0 if every larger one counts.
	Threshold float32 `json:"threshold,omitempty"`
	// Offset is what P is lifted by, in base 2.
	Offset float32 `json:"offset,omitempty"`

	Exp2 Exponential `json:"exp2"`
	Sum  SumOrder    `json:"sum"`

	P      Cast    `json:"p"`
	PScale float32 `json:"pScale,omitempty"` // 0 is 1
	Values Product `json:"values"`

	Ending Ending `json:"ending"`
	Out    Cast   `json:"out,omitempty"`   // format of the output: Float32, BFloat16 or Float16
	Base2  bool   `json:"base2,omitempty"` // the log-sum-exp is in base 2

	// Evidence says where the description is from, and what it leaves out.
	Evidence string `json:"evidence,omitempty"`
}

// Scores is how Q·Kᵀ becomes scores in base 2.
type Scores struct {
	Product Product `json:"product"`
	Scaling Scaling `json:"scaling"`
	Frame   Frame   `json:"frame"`
}

// Product is how the products of Q·Kᵀ or of P·V are added up. Masked keys take no part.
type Product struct {
	Order Order `json:"order"`

	// Model is the instruction where Order is Instruction. For one of BF16 or FP16 the
	// operands are the decoded codes, which must be numbers of that format.
	Model oracle.Model `json:"model,omitzero"`
	// Promote is after how many products the instruction's chain is added to a float32
	// sum, in which it begins at +0. 0 is after all: those of a tile, or of a row of Q.
	Promote int `json:"promote,omitempty"`
	// Carry, of P·V alone, says that the chain of a tile goes on from rn(O·alpha), as in
	// an accumulator that stays in the tensor core. Promote is then 0.
	Carry bool `json:"carry,omitempty"`
}

// Order is an order of additions.
type Order uint8

const (
	// ExactOnce adds exactly and rounds once. A zero sum is +0.
	ExactOnce Order = iota
	// Contract is the order of package gemm: chunks of 32 from the start of a tile, or of
	// a row of Q, even and odd products apart.
	Contract
	// Instruction is the order of a tensor core's instruction.
	Instruction
)

// Scaling is where the scales of Q and K, the softmax's and log2(e) come in. SL is
// float32(float64(scale)·log2 e).
type Scaling uint8

const (
	// Folded is c = rn(SL·rn(qs·ks)). With ExactOnce, and unless Frame fuses, z is the
	// exact product of codes times c, rounded once.
	Folded Scaling = iota
	// FoldedLeft is c = rn(rn(rn(qs·ks)·scale)·float32(log2 e)).
	FoldedLeft
	// InProduct is c = SL, with scores that have all scales already, as a product of
	// package gemm does. It goes with Contract alone, and alone takes scales that vary
	// along a row, or outer ones.
	InProduct
)

// Frame is in what units the maximum is kept and how the exponent is made of it.
type Frame uint8

const (
	// Separate: M is a maximum of z, the exponent rn(rn(z-M)+Offset).
	Separate Frame = iota
	// Fused: M is a maximum of z, the exponent fma(s, c, -rn(M-Offset)).
	Fused
	// Raw: M is a maximum of s; alpha = exp2(rn(rn(M-M')·c)), the exponent
	// fma(s, c, -rn(rn(M·c)-Offset)). All keys of a row must have one c: the largest s is
	// not that of the largest score else. So kernels that do this take no scales of tokens of
	// K, and [Predict] refuses them.
	Raw
	// RawContracted is Raw with fma(M, c, -Offset) for rn(rn(M·c)-Offset).
	RawContracted
	// Lifted: M is a maximum of fma(s, c, -Offset), the exponent fma(s, c, -M). The offset
	// is taken out of M in the end.
	Lifted
)

// Exponential is what computes powers of 2.
type Exponential struct {
	Method Exp2Method `json:"method"`

	// Degree, if not 0, is that of the polynomial that takes the place of some of the
	// exponentials of p (not of alpha): 3, 4 or 5. In pieces of 32 keys of a tile, from
	// piece Start on and but for the last, those pairs k, k+1 (k even) have it with
	// k mod Every >= Every-Some. Every 0 is all pairs of all pieces.
	Degree int `json:"degree,omitempty"`
	Every  int `json:"every,omitempty"`
	Some   int `json:"some,omitempty"`
	Start  int `json:"start,omitempty"`
}

// Exp2Method is how exp2 and log2 are rounded.
type Exp2Method uint8

const (
	// Rounded is correctly rounded.
	Rounded Exp2Method = iota
	// Flushed is correctly rounded, with subnormal operands and results replaced by 0, as
	// ex2.approx.ftz does.
	Flushed
	// Elementary is that of package attention: computed in float64, and rounded.
	Elementary
)

// SumOrder is how the p of a tile are added to l. Masked keys count as +0.
type SumOrder uint8

const (
	// SumExact adds exactly, rounds once, and adds that to rn(l·alpha).
	SumExact SumOrder = iota
	// SumLanes has 16 lanes, key k of the tile in lane k mod 16, added ascending from +0,
	// and then t+8, t+4, t+2 and t+1 pairwise: package attention's.
	SumLanes
	// SumQuads has four threads, key k in thread k/2 mod 4, each with an l of its own that
	// lives as long as the row; in the end rn(rn(l0+l2)+rn(l1+l3)). Hopper's accumulators
	// lie so.
	SumQuads
	// SumQuadTiles is SumQuads, but that each thread adds up a tile from +0 and then adds that
	// to rn(l·alpha); in the end rn(rn(l0+l1)+rn(l2+l3)). FlashMLA's.
	SumQuadTiles
	// SumPairs has eight lanes, key k in lane k mod 8, lane 0 beginning at rn(l·alpha); then
	// lanes t+2 of every four, t+4 and t+1 are added. FlashAttention-4's.
	SumPairs
)

// Cast is the format of P.
type Cast uint8

// Formats of P. FP8 saturates.
const (
	Float32 Cast = iota // none
	BFloat16
	Float16
	E4M3
	E5M2
)

// Ending is how O becomes the output.
type Ending uint8

const (
	// ReciprocalFirst is rn(O·rn(rn(1/l)·F)).
	ReciprocalFirst Ending = iota
	// Quotient is rn(O·rn(F/l)).
	Quotient
	// ScaleLast is rn(rn(O·rn(1/l))·F).
	ScaleLast
)

// Check returns an error unless the kernel's fields are in range and go together.
func (k Kernel) Check() error {
	if err := k.checkEnums(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return sentinel.Errorf(ErrKernel, "flash: %s: "+format, append([]any{k.title()}, args...)...)
	}
	switch e := k.Exp2; {
	case math.IsNaN(float64(k.FirstMax)) || math.IsInf(float64(k.FirstMax), 0):
		return bad("firstMax is %v", k.FirstMax)
	case e.Degree != 0 && (e.Degree < 3 || e.Degree > 5):
		return bad("no polynomial of degree %d: 3, 4 and 5 are there", e.Degree)
	case e.Every < 0 || e.Some < 0 || e.Some > e.Every || e.Start < 0:
		return bad("%d of every %d exponentials from piece %d on", e.Some, e.Every, e.Start)
	case k.Scores.Scaling == InProduct && k.Scores.Product.Order != Contract:
		return bad("scales are in the product only with the order of package gemm")
	}
	if err := k.Numerics().check(); err != nil {
		return bad("%w", err)
	}
	return nil
}

func (p Product) check() error {
	switch {
	case p.Order != Instruction && (p.Model != oracle.Model{} || p.Promote != 0 || p.Carry):
		return sentinel.Errorf(ErrKernel, "model, promote and carry are of instructions only")
	case p.Promote < 0 || p.Promote != 0 && p.Carry:
		return sentinel.Errorf(ErrKernel, "promotion after %d products, carried on: %v", p.Promote,
			p.Carry)
	case p.Order != Instruction:
		return nil
	case p.Model.Unit == oracle.Scaled || p.Model.Unit == oracle.Grouped:
		return sentinel.Errorf(ErrKernel, "model %q has scales inside", p.Model.Name)
	case p.Model.Float == oracle.TF32:
		return sentinel.Errorf(ErrKernel, "model %q is of TF32", p.Model.Name)
	}
	if err := p.Model.Check(); err != nil {
		return sentinel.Errorf(ErrKernel, "%w", err)
	}
	return nil
}

// title names the kernel in errors.
func (k *Kernel) title() string {
	if k.Name == "" {
		return "the kernel"
	}
	return fmt.Sprintf("kernel %q", k.Name)
}

// tile returns the number of keys of a tile, at least 1.
func (k *Kernel) tile(keys int) int {
	if k.Tile == 0 {
		return max(keys, 1)
	}
	return k.Tile
}

func (k *Kernel) splits() int { return max(k.Splits, 1) }

// keysOfSplit is how many keys a split has, or the last one at most.
func (k *Kernel) keysOfSplit(keys int) int {
	tile := k.tile(keys)
	tiles := (keys + tile - 1) / tile
	return (tiles + k.splits() - 1) / k.splits() * tile
}

// filledSplits is how many splits have keys.
func (k *Kernel) filledSplits(keys int) int {
	each := max(k.keysOfSplit(keys), 1)
	return (keys + each - 1) / each
}

func (k *Kernel) pScale() float32 {
	if k.PScale == 0 {
		return 1
	}
	return k.PScale
}
