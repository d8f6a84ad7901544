package agree

import (
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// ErrLayer is of a layer whose parts do not fit together, and of recipes that are not
// recomputed.
var ErrLayer = errors.New("agree: layer cannot be judged")

// Recipe is how the operands of a linear layer are made. A nil operand is not quantized, but
// values of F32 are rounded to Rounded, unless that is F32 or none.
type Recipe struct {
	Name          string
	Input, Weight *scaling.Recipe
	Rounded       Type
}

// Layer is a linear layer as an engine ran it: Output = Input·Weightᵀ + Bias.
type Layer struct {
	Tokens  int
	Input   []float32 // [Tokens, Weight.Cols]
	Output  []float32 // [Tokens, Weight.Rows]
	Bias    []float32 // [Weight.Rows], or nil
	InputOf Type      // what the values of Input are
	Of      Type      // what those of Output are
	Weight  Weight

	// Passes are the tokens of each pass of the engine, whose sum is Tokens; nil: not known.
	// A scale of all of the input is one for a pass.
	Passes []int
}

// Type is a floating-point type of values in memory.
type Type string

// The types. The zero Type is F32.
const (
	F32  Type = "F32"
	BF16 Type = "BF16"
	F16  Type = "F16"
)

func (t Type) format() number.Format {
	switch t {
	case BF16:
		return number.BF16
	case F16:
		return number.FP16
	}
	return number.FP32
}

// Narrowest returns the narrowest type that has all values: an engine's results are of that
// type although a file has them in a wider one.
func Narrowest(values []float32, t Type) Type {
	if t == F32 {
		for _, of := range []Type{BF16, F16} {
			f, all := of.format(), true
			for _, x := range values {
				if !f.Has(x) {
					all = false
					break
				}
			}
			if all {
				return of
			}
		}
	}
	return t
}

// Weight is the weight of a layer as its checkpoint stores it, [Rows, Cols].
type Weight struct {
	Rows, Cols int
	Of         Type // of values that are not quantized

	// Codes are all of a quantized weight; nil if it is values.
	Codes *tensor.Tensor

	// Values writes the values of rows from lo on, those of Codes too, as many as dst holds. It
	// is called by several goroutines at once.
	Values func(dst []float32, lo int) error

	// Amax returns the largest magnitude of all that the engine quantizes together with the
	// weight, such as q, k and v.
	Amax func() (float32, error)

	// InputScale is the scale of the input that the checkpoint holds, of NVFP4 the outer one as
	// it is stored; 0 if there is none.
	InputScale float32
}

// Claim is what the engine is said to compute.
type Claim struct {
	Recipe Recipe
	// Kernel says how products are added where they are those of codes. The zero Kernel is
	// float32, in any order.
	Kernel oracle.Kernel
	// Static says that the input is quantized under [Weight.InputScale].
	Static bool
}

// Options of a judgement.
type Options struct {
	Recipes []Recipe // that compete beside those that follow from the claim
	Workers int      // goroutines at most; 0 means GOMAXPROCS
}

// check returns an error unless the parts of l fit together.
func (l *Layer) check(c *Claim) error {
	w := &l.Weight
	total := 0
	for _, n := range l.Passes {
		if n < 0 {
			return layerError("a pass has %d tokens", n)
		}
		total += n
	}
	switch {
	case l.Tokens < 1 || w.Rows < 1 || w.Cols < 1:
		return layerError("%d tokens and a weight of %dx%d: nothing is computed", l.Tokens, w.Rows, w.Cols)
	case len(l.Input)/l.Tokens != w.Cols || len(l.Input)%l.Tokens != 0:
		return layerError("the input has %d values: want %dx%d", len(l.Input), l.Tokens, w.Cols)
	case len(l.Output)/l.Tokens != w.Rows || len(l.Output)%l.Tokens != 0:
		return layerError("the output has %d values: want %dx%d", len(l.Output), l.Tokens, w.Rows)
	case l.Bias != nil && len(l.Bias) != w.Rows:
		return layerError("the bias has %d values: want %d", len(l.Bias), w.Rows)
	case l.Passes != nil && total != l.Tokens:
		return layerError("passes have %d tokens: want %d", total, l.Tokens)
	case c.Static && !(w.InputScale > 0):
		return layerError("a scale of the input is claimed that the checkpoint does not hold")
	case c.Kernel.Model.Name != "":
		return c.Kernel.Check()
	}
	return nil
}

func layerError(format string, args ...any) error {
	return sentinel.Errorf(ErrLayer, "agree: %w", fmt.Errorf(format, args...))
}
