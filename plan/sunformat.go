package plan

import (
	"cmp"
	"fmt"
	"math"
)

// BestFormat returns how to share out bits, sign included, between exponent and
// mantissa for the smallest penalty (equation 19): bits·δ/(δ+ν) - 1/2 to the
// exponent and bits·ν/(δ+ν) - 1/2 to the mantissa. It is an error if that is
// negative for one, with 1.04 bits or less under [Sun2025].
func (s Sun) BestFormat(bits, block float64) (Format, error) {
	if err := cmp.Or(s.check(), positive("the number of bits", bits), checkBlock(block)); err != nil {
		return Format{}, err
	}
	if least := s.leastBits(); bits < least {
		return Format{}, tooSmall("the number of bits", bits, least)
	}
	sum := s.Delta + s.Nu
	// Rounding could leave either a little below 0 at least bits.
	return Format{
		Exponent: max(0, s.Delta*bits/sum-0.5),
		Mantissa: max(0, s.Nu*bits/sum-0.5),
		Block:    block,
	}, nil
}

// leastBits is where the best format has no exponent or no mantissa left.
func (s Sun) leastBits() float64 { return (s.Delta + s.Nu) / (2 * min(s.Delta, s.Nu)) }

// BestWholeFormat is [Sun.BestFormat] in whole bits, from 1 to 64: E4M3 of 8.
func (s Sun) BestWholeFormat(bits int, block float64) (Format, error) {
	if bits < 1 || bits > maxBits {
		return Format{}, fmt.Errorf("plan: the number of bits is %d, must be from 1 to %d", bits, maxBits)
	}
	if err := cmp.Or(s.check(), checkBlock(block)); err != nil {
		return Format{}, err
	}
	best, least := Format{}, math.Inf(1)
	for exponent := range bits {
		f := Format{Exponent: float64(exponent), Mantissa: float64(bits - 1 - exponent), Block: block}
		// Logarithms, because the penalty of the law overflows for large δ and ν.
		if noise := -s.Delta*math.Log(f.Exponent+0.5) - s.Nu*math.Log(f.Mantissa+0.5); noise < least {
			best, least = f, noise
		}
	}
	return best, nil
}

// maxBits is the widest format in use, float64.
const maxBits = 64
