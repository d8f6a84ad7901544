package plan

import (
	"cmp"
	"math"
)

// Sun is the law of Sun et al., "Scaling Laws for Floating-Point Quantization
// Training" (arXiv 2501.02423, equation 18), the Capybara law. The zero value is no
// law; start from [Sun2025].
//
// The paper's n, α, d, β and ε are A, Alpha, B, Beta and E here.
type Sun struct {
	Chinchilla
	Gamma float64 `json:"gamma"` // γ
	Delta float64 `json:"delta"` // δ, of exponent bits
	Nu    float64 `json:"nu"`    // ν, of mantissa bits

	FitExponent FitRange `json:"fitExponent,omitzero"`
	FitMantissa FitRange `json:"fitMantissa,omitzero"`
	FitBlock    FitRange `json:"fitBlock,omitzero"`
}

// Format is a floating-point format and its blocks. Bits are not necessarily
// whole.
type Format struct {
	Exponent float64 `json:"exponent"` // bits; one more is the sign
	Mantissa float64 `json:"mantissa"` // bits
	Block    float64 `json:"block"`    // elements that share a scale, 1 or more
}

// Bits returns the bits of a number.
func (f Format) Bits() float64 { return f.Exponent + f.Mantissa + 1 }

// ChannelBlock is the block size that has the penalty of one scale per channel:
// log2 is 13.1567 (section 3.6).
const ChannelBlock = 9131.904140285933

// Sun2025 returns the constants of Table 2 (Appendix B.1).
func Sun2025() Sun {
	return Sun{
		Chinchilla: Chinchilla{
			A: 69.2343, Alpha: 0.2368, B: 68973.0621, Beta: 0.5162, E: 1.9061,
			// N from 40.9M to 679.5M and D from 10.5B to 104.9B, rounded outwards.
			FitN: FitRange{40e6, 680e6}, FitD: FitRange{10e9, 105e9},
		},
		Gamma: 11334.5197, Delta: 3.1926, Nu: 2.9543,
		FitExponent: FitRange{0, 6}, FitMantissa: FitRange{1, 7}, FitBlock: FitRange{32, ChannelBlock},
	}
}

// Loss estimates the loss of n parameters trained on d tokens. It is an error if
// an argument or a constant of s is not positive and finite (bits of f may be 0),
// and if a block has less than one element.
func (s Sun) Loss(n, d float64, f Format) (Loss, error) {
	if err := cmp.Or(s.check(), positive("N", n), positive("D", d), f.check()); err != nil {
		return Loss{}, err
	}
	l := s.loss(n, d)
	l.Precision = math.Pow(d, s.Beta) / math.Pow(n, s.Alpha) * s.noise(f)
	l.Effective = n * math.Exp(-math.Log1p(l.Precision/l.Capacity)/s.Alpha)
	l.Warnings = append(l.Warnings, warnings(
		s.FitExponent.outside("the number of exponent bits", f.Exponent),
		s.FitMantissa.outside("the number of mantissa bits", f.Mantissa),
		s.FitBlock.outside("the block size", f.Block))...)
	return l.sum()
}

// noise is the penalty of a format for D^β = N^α.
func (s Sun) noise(f Format) float64 {
	return math.Log2(f.Block) / (s.Gamma * math.Pow(f.Exponent+0.5, s.Delta) * math.Pow(f.Mantissa+0.5, s.Nu))
}

func (s Sun) check() error {
	return cmp.Or(s.Chinchilla.check(),
		positive("constant Gamma", s.Gamma), positive("constant Delta", s.Delta), positive("constant Nu", s.Nu))
}

func (f Format) check() error {
	return cmp.Or(notNegative("the number of exponent bits", f.Exponent), notNegative("the number of mantissa bits", f.Mantissa),
		checkBlock(f.Block))
}

func checkBlock(block float64) error {
	if block < 1 {
		return tooSmall("the block size", block, 1)
	}
	return positive("the block size", block)
}
