package nn

import (
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// Options are those of a layer. The layers of a model usually have the same. The zero
// value multiplies in FP32.
type Options struct {
	// Shared is what all layers of a model have in common. A layer without has one of
	// its own; delayed recipes and delayed smoothing require one. With those and with any
	// smoothing, layers that share one must have different names.
	Shared *Shared

	FP8       *FP8              // recipes of linear layers; nil: FP32
	Rounding  *Rounding         // of linear layers' operands, without FP8; nil: none
	Smoothing *swiglu.Smoothing // of the SwiGLU in an MLP; nil: plain SwiGLU

	Activations ActivationFormat // how they are kept for Backward; all but the zero value need FP8
	Norms       Norms            // of norms and attention; those after both are of a block
	Biases      Biases           // of attention, MLPs and experts
	Gate        Gate             // of MLPs and experts
	Operators   Operators        // formats of other operators than linear layers; the zero value: FP32
	Workers     int              // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	policy *Policy // nil: that of Activations
}

// Tap sees an activation, or the gradient of one: values are [rows, cols], row-major,
// a row for each token. They are the layer's memory: to be read during the call, and
// neither changed nor kept. The section Taps of the package documentation lists the
// names.
type Tap func(name string, values []float32, rows, cols int)

// Shared is what the layers of one model have in common: who hears of what they do,
// the state of their scales, and memory. The zero value is ready to use. It must not
// be copied, and layers that share one must not be called concurrently.
type Shared struct {
	// Reporter, unless nil, hears of every operand that is quantized and of results
	// that are not finite. It must be safe for concurrent use. Tensors are named after
	// the weight: "up_proj.input", "up_proj.weight" and "up_proj.gradient", under the
	// operations "forward", "input-gradient" and "weight-gradient"; with
	// [ActivationsFP8SwiGLU] and [ActivationsDeepSeekV3] also "up_proj.output" and
	// "gate_proj.output", under "swiglu". Products in FP32 and those of a [Rounding] have
	// nothing to report.
	Reporter tensor.Reporter

	// Tap, unless nil, is called with every activation, by the goroutine that called
	// the layer.
	Tap Tap

	// ProductTap, unless nil, is called with every product in FP8 of a training pass, by the
	// goroutine that called the layer.
	ProductTap ProductTap

	// Progress, unless nil, hears how far what package train does with the whole model
	// is: "evaluate" counts losses, "gradients" shards, "save" and "load" the values of a
	// checkpoint.
	Progress progress.Reporter

	scaling Scaling
	scratch scratch
	again   bool // what the forward pass did is done once more

	zeros []float32 // that all matrices are, where they have no memory of their own: see NewUnreadLlama
}

// Scaling returns the state of the scales of all layers that share s.
func (s *Shared) Scaling() *Scaling { return &s.scaling }

// reporter returns who hears of what happens now: nobody in inference, nor of what is
// computed again.
func (s *Shared) reporter() tensor.Reporter {
	if s.scaling.inference > 0 || s.again {
		return nil
	}
	return s.Reporter
}

func (s *Shared) training() bool { return s.scaling.inference == 0 }

// repeat calls f, in which layers compute once more what they did in the last forward pass:
// nobody hears of it, and nothing is recorded or forgotten.
func (s *Shared) repeat(f func() error) error {
	before := s.again
	s.again = true
	defer func() { s.again = before }()
	return f()
}

// tap shows an activation, [rows, len/rows].
func (s *Shared) tap(layer, which string, values []float32, rows int) {
	if s.Tap != nil && rows > 0 && !s.again {
		s.Tap(layer+which, values, rows, len(values)/rows)
	}
}

// complete returns o checked, with its defaults filled in. The options are named in
// errors as fields of what.
func (o Options) complete(what string) (Options, error) {
	if err := o.check(what); err != nil {
		return o, err
	}
	if o.Shared == nil {
		if o.FP8 != nil && o.FP8.delayed() || o.Smoothing != nil && o.Smoothing.Delay > 0 {
			return o, configError("%s.Shared is nil: delayed scales need one, whose Scaling ends each step", what)
		}
		o.Shared = new(Shared)
	}
	return o, nil
}

func (o Options) check(what string) error {
	switch {
	case o.Workers < 0:
		return configError("%s.Workers is %d: it must not be negative", what, o.Workers)
	case o.FP8 != nil && o.Rounding != nil:
		return configError("%s.FP8 and %s.Rounding are both set: products are in FP8 or of rounded operands: leave one nil", what, what)
	}
	if o.FP8 != nil {
		if err := o.FP8.check(); err != nil {
			return err
		}
	}
	if o.Rounding != nil {
		if err := o.Rounding.check("Rounding"); err != nil {
			return err
		}
	}
	if o.Smoothing != nil {
		if err := o.Smoothing.Check(); err != nil {
			return configError("%s.Smoothing: %w", what, err)
		}
	}
	if err := o.Gate.check(what, o.Smoothing); err != nil {
		return err
	}
	if o.Smoothing != nil && o.Biases.MLP {
		return configError("%s.Smoothing: the bias of the down projection would be divided by its scales: "+
			"leave one out", what)
	}
	if err := o.Operators.check(what); err != nil {
		return err
	}
	return o.Activations.check(what, o.FP8)
}

// roundInput returns o for a layer the scales of whose input [FP8.RoundScales] rounds.
func (o Options) roundInput() Options {
	if o.FP8 != nil && o.FP8.RoundScales {
		f := *o.FP8
		f.Forward.A, f.WeightGradient.B = roundScales(f.Forward.A), roundScales(f.WeightGradient.B)
		o.FP8 = &f
	}
	return o
}

// roundGradient is roundInput of a layer's output gradient.
func (o Options) roundGradient() Options {
	if o.FP8 != nil && o.FP8.RoundScales {
		f := *o.FP8
		f.InputGradient.A = roundScales(f.InputGradient.A)
		f.WeightGradient.A = roundScales(f.WeightGradient.A)
		o.FP8 = &f
	}
	return o
}
