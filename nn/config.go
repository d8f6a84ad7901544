package nn

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/swiglu"
)

// Config is the shape of a [Llama]. Vocab, Dim, Layers, Heads, Hidden and
// Context must be set; the rest have useful zero values.
type Config struct {
	Vocab   int // number of tokens
	Dim     int // width of the residual stream
	Layers  int
	Heads   int // query heads, each of Dim/Heads, which must be even
	KVHeads int // key and value heads, a divisor of Heads; 0: Heads
	Hidden  int // width of the MLP
	Context int // longest sequence

	RopeTheta float64 // base of the rotary frequencies; 0: 10000
	NormEps   float64 // added to the mean square in RMSNorm; 0: 1e-5
	TieHead   bool    // use the embedding as the output head
	Workers   int     // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	FP8       *FP8              // recipes of the linear layers; nil: FP32
	Rounding  *Rounding         // of the linear layers' operands, without FP8; nil: none
	Smoothing *swiglu.Smoothing // of the MLPs' SwiGLU; nil: plain SwiGLU

	Activations ActivationFormat // how they are kept for Backward; all but the zero value need FP8
}

// Validate returns an error that names the first field that is out of range, its
// value and the constraint.
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Vocab", c.Vocab}, {"Dim", c.Dim}, {"Layers", c.Layers}, {"Heads", c.Heads},
		{"KVHeads", c.KVHeads}, {"Hidden", c.Hidden}, {"Context", c.Context},
	} {
		if f.value <= 0 {
			return fmt.Errorf("nn: Config.%s is %d: it must be positive", f.name, f.value)
		}
	}
	switch {
	case c.Dim%(2*c.Heads) != 0:
		return fmt.Errorf("nn: Config.Dim is %d: it must be a multiple of 2·Heads = %d", c.Dim, 2*c.Heads)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("nn: Config.KVHeads is %d: it must divide Heads = %d", c.KVHeads, c.Heads)
	case c.Context > elementary.SinCosLimit:
		return fmt.Errorf("nn: Config.Context is %d: it must be at most %d", c.Context, int(elementary.SinCosLimit))
	case !(c.RopeTheta >= 1 && c.RopeTheta <= 1e12):
		return fmt.Errorf("nn: Config.RopeTheta is %v: it must be from 1 to 1e12", c.RopeTheta)
	case !(c.NormEps > 0 && c.NormEps <= 1):
		return fmt.Errorf("nn: Config.NormEps is %v: it must be from 0 to 1", c.NormEps)
	case c.Workers < 0:
		return fmt.Errorf("nn: Config.Workers is %d: it must not be negative", c.Workers)
	}
	if c.Smoothing != nil {
		if err := c.Smoothing.Check(); err != nil {
			return fmt.Errorf("nn: Config.Smoothing: %w", err)
		}
	}
	if err := c.checkActivations(); err != nil {
		return err
	}
	return checkProducts("Config", c.FP8, c.Rounding)
}

// checkProducts returns an error unless the products that a struct of options asks for
// can be used. It may ask for neither.
func checkProducts(options string, f *FP8, r *Rounding) error {
	switch {
	case f != nil && r != nil:
		return fmt.Errorf("nn: %s.FP8 and %s.Rounding are both set: products are in FP8 or of rounded operands: leave one nil", options, options)
	case f != nil:
		return f.check()
	case r != nil:
		return r.check()
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.RopeTheta == 0 {
		c.RopeTheta = 1e4
	}
	if c.NormEps == 0 {
		c.NormEps = 1e-5
	}
	return c
}

func (c Config) headDim() int { return c.Dim / c.Heads }

// kvDim is the width of all keys, or values, of one position.
func (c Config) kvDim() int { return c.KVHeads * c.headDim() }
