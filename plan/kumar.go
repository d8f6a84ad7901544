package plan

import (
	"cmp"
	"fmt"
	"math"
)

// Kumar is the law of Kumar et al., "Scaling Laws for Precision" (arXiv
// 2411.04330): section 4.2 and, for quantization after training, section 3. The
// zero value is no law; start from [Kumar2024].
type Kumar struct {
	Chinchilla
	Weights      Sensitivity `json:"weights"`
	Activations  Sensitivity `json:"activations"`
	KV           Sensitivity `json:"kv"`
	PostTraining Degradation `json:"postTraining"`
}

// Sensitivity is how one part of a model suffers from few bits: in P bits a
// fraction 1 - exp(-P/Gamma + Offset) of the parameters counts.
type Sensitivity struct {
	Gamma  float64  `json:"gamma"`        // γ_x
	Offset float64  `json:"offset"`       // n_x, 0 or more: no parameters may count in 0 bits
	Fit    FitRange `json:"fit,omitzero"` // of bits
}

// Degradation is how weights suffer from quantization after training in 16 bits
// or more: C·D^GammaD/N^GammaN·exp(-P/Gamma + Offset). The paper does not list the
// P it was fitted on, so none warns.
type Degradation struct {
	C      float64 `json:"c"`      // C_T
	GammaD float64 `json:"gammaD"` // γ_D
	GammaN float64 `json:"gammaN"` // γ_N
	Gamma  float64 `json:"gamma"`  // γ_post
	Offset float64 `json:"offset"` // see the package documentation on b
}

// Bits are the precisions of a model, not necessarily whole. What is not
// quantized has 16.
type Bits struct {
	Weights     float64 `json:"weights"`        // these three in training
	Activations float64 `json:"activations"`    //
	KV          float64 `json:"kv"`             //
	Post        float64 `json:"post,omitempty"` // of weights quantized after training; 0 for none
}

// UniformBits returns bits for all that is multiplied in training, as hardware asks
// for.
func UniformBits(bits float64) Bits { return Bits{Weights: bits, Activations: bits, KV: bits} }

// Kumar2024 returns the constants of Table 2 (Appendix K). The ranges of bits
// end at the baselines, in BF16.
func Kumar2024() Kumar {
	return Kumar{
		Chinchilla: Chinchilla{
			A: 4.299e3, Alpha: 0.4965, B: 1.806e4, Beta: 0.4965, E: 2.7648,
			FitN: FitRange{30e6, 1.7e9}, FitD: FitRange{1.5e9, 26e9},
		},
		Weights:      Sensitivity{Gamma: 2.6745, Offset: 0.3037, Fit: FitRange{3, 16}},
		Activations:  Sensitivity{Gamma: 2.2102, Offset: 1.4072, Fit: FitRange{4, 16}},
		KV:           Sensitivity{Gamma: 0.9578, Offset: 2.4185, Fit: FitRange{4, 16}},
		PostTraining: Degradation{C: 0.0598, GammaD: 0.5068, GammaN: 0.3439, Gamma: 0.5907},
	}
}

// Loss estimates the loss of n parameters trained on d tokens. It is an error if
// an argument or a constant of k is not positive and finite, if a part has so few
// bits that no effective parameters remain, and if weights are quantized after
// training in less than 16 bits or to more bits than they had.
func (k Kumar) Loss(n, d float64, bits Bits) (Loss, error) {
	if err := cmp.Or(k.check(), positive("N", n), positive("D", d)); err != nil {
		return Loss{}, err
	}
	fraction, err := k.logFraction(bits)
	if err != nil {
		return Loss{}, err
	}
	l := k.loss(n, d)
	l.Precision = l.Capacity * math.Expm1(-k.Alpha*fraction)
	l.Effective = n * math.Exp(fraction)
	if bits.Post != 0 {
		if l.PostTraining, err = k.degradation(n, d, bits); err != nil {
			return Loss{}, err
		}
	}
	for _, p := range k.parts(bits) {
		l.Warnings = append(l.Warnings, warnings(p.Fit.outside("the precision of "+p.name, p.bits))...)
	}
	return l.sum()
}

// part is one of the three parts of a model and its precision.
type part struct {
	name string
	Sensitivity
	bits float64
}

func (k Kumar) parts(b Bits) [3]part {
	return [3]part{{"weights", k.Weights, b.Weights}, {"activations", k.Activations, b.Activations}, {"the KV cache", k.KV, b.KV}}
}

func (k Kumar) check() error {
	if err := k.Chinchilla.check(); err != nil {
		return err
	}
	for _, p := range k.parts(Bits{}) {
		if err := cmp.Or(positive("constant Gamma of "+p.name, p.Gamma), notNegative("constant Offset of "+p.name, p.Offset)); err != nil {
			return err
		}
	}
	return nil
}

// logFraction is log N_eff/N. Each factor is checked: two negative ones would
// pass for a positive product.
func (k Kumar) logFraction(bits Bits) (float64, error) {
	sum := 0.
	for _, p := range k.parts(bits) {
		if err := positive("the precision of "+p.name, p.bits); err != nil {
			return 0, err
		}
		factor := p.logFraction(p.bits)
		if math.IsInf(factor, -1) {
			return 0, fmt.Errorf("plan: %.4g bits for %s leave no effective parameters: N_eff reaches 0 at %.4g bits, use more",
				p.bits, p.name, p.least())
		}
		sum += factor
	}
	return sum, nil
}

// least is the precision at which no parameters count.
func (s Sensitivity) least() float64 { return s.Gamma * s.Offset }

// logFraction is the logarithm of the fraction of parameters that count, -Inf
// where none do.
func (s Sensitivity) logFraction(bits float64) float64 {
	x := bits/s.Gamma - s.Offset
	if x <= 0 {
		return math.Inf(-1)
	}
	return math.Log(-math.Expm1(-x))
}

// slope is the derivative of logFraction above least.
func (s Sensitivity) slope(bits float64) float64 {
	return 1 / (s.Gamma * math.Expm1(bits/s.Gamma-s.Offset))
}

// degradation is δ_PTQ of equation 2.
func (k Kumar) degradation(n, d float64, bits Bits) (float64, error) {
	p := k.PostTraining
	if err := cmp.Or(p.check(), positive("the precision after training", bits.Post)); err != nil {
		return 0, err
	}
	for _, t := range k.parts(bits) {
		if t.bits < 16 {
			return 0, fmt.Errorf("plan: %s trained in %.4g bits and weights quantized afterwards: the law is published for training in 16 bits or more; set Post to 0 or train in 16",
				t.name, t.bits)
		}
	}
	if bits.Post > bits.Weights {
		return 0, fmt.Errorf("plan: weights trained in %.4g bits and quantized to %.4g afterwards: Post must not be more", bits.Weights, bits.Post)
	}
	if bits.Post == bits.Weights {
		return 0, nil // nothing is left to quantize (section 5)
	}
	return p.C * math.Pow(d, p.GammaD) / math.Pow(n, p.GammaN) * math.Exp(p.Offset-bits.Post/p.Gamma), nil
}

func (p Degradation) check() error {
	return cmp.Or(
		positive("constant C of PostTraining", p.C), positive("constant Gamma of PostTraining", p.Gamma),
		positive("constant GammaD of PostTraining", p.GammaD), positive("constant GammaN of PostTraining", p.GammaN),
		finite("constant Offset of PostTraining", p.Offset))
}
