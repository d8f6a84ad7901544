package optim

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/random"
)

// Moments says how [AdamW] keeps the running means of gradients between steps. The
// zero value is FP32. However they are kept, a step computes in FP32: it decodes
// them, updates them, moves the values by the updated ones, and only then encodes
// them anew, under scales from their new largest magnitudes.
//
// Scales belong to blocks of consecutive values of a parameter, row-major; the last
// block may be short. Neither the number of workers nor the machine changes a bit.
type Moments struct {
	Format MomentFormat `json:"format"`

	// Block is the number of values that share a scale, in the FP8 formats. 0: 128.
	Block int `json:"block,omitempty"`

	// Stochastic rounds at random, without bias, so that a small change is not lost
	// where it is always less than half a step. It depends on Seed, the number of the
	// step, the index of the parameter, the moment and the index of the value, and on
	// nothing else. FP32 has no rounding.
	Stochastic bool   `json:"stochastic,omitempty"`
	Seed       uint64 `json:"seed,string,omitempty"`
}

// MomentFormat is how both moments are kept.
type MomentFormat uint8

const (
	// MomentsFP32 takes 8 bytes a parameter.
	MomentsFP32 MomentFormat = iota

	// MomentsBF16 is what DeepSeek-V3 does (arXiv 2412.19437, section 3.3): 4 bytes.
	MomentsBF16

	// MomentsFP8 keeps the first moment in E4M3 and the second, which needs more range
	// because its root divides, in E5M2 (Fishman et al., arXiv 2409.12517), with scales
	// max/amax by block instead of by tensor: 2 bytes, and 8 for each block.
	MomentsFP8

	// MomentsFP8Expanded keeps both in E4M3 after expanding the range of each block to
	// that of the format (COAT, Xi et al., arXiv 2410.19313): 2 bytes, and 10 for each
	// block. A value x of a block with largest magnitude a and smallest nonzero one b
	// is kept as the code of ±448·(|x|/a)**k and stands for ±a·(|code|/448)**(1/k),
	// where k, a multiple of 1/16 from 1/16 to 255/16, is the largest with
	// (a/b)**k <= 448²/2. That is the rule of the released kernel, which adds 1e-30 to
	// a and b instead of leaving zeros out; they stay zeros here.
	MomentsFP8Expanded
)

var momentFormats = enum.Enum[MomentFormat]{
	Type: "MomentFormat", What: "moment format", Names: []string{"fp32", "bf16", "fp8", "fp8-expanded"}, Err: ErrOption,
}

// MomentFormats returns all formats.
func MomentFormats() []MomentFormat {
	return []MomentFormat{MomentsFP32, MomentsBF16, MomentsFP8, MomentsFP8Expanded}
}

// String returns the name of f, such as "fp8-expanded".
func (f MomentFormat) String() string                   { return momentFormats.String(f) }
func (f MomentFormat) MarshalText() ([]byte, error)     { return momentFormats.MarshalText(f) }
func (f *MomentFormat) UnmarshalText(text []byte) error { return momentFormats.UnmarshalText(f, text) }

const (
	defaultMomentBlock = 128
	largestMomentBlock = 1 << 20
)

func (m Moments) block() int {
	if m.Block == 0 {
		return defaultMomentBlock
	}
	return m.Block
}

// check returns an error that names what is out of range.
func (m Moments) check() error {
	if err := momentFormats.Check(m.Format); err != nil {
		return err
	}
	if m.Block < 0 || m.Block > largestMomentBlock {
		return optionError("AdamW.Moments.Block is %d: it must be from 1 to %d, or 0 for %d", m.Block, largestMomentBlock, defaultMomentBlock)
	}
	return nil
}

// canonical returns m with its defaults filled in and without what its format does
// not use: equal ones give the same bits.
func (m Moments) canonical() Moments {
	if m.Format == MomentsFP32 {
		return Moments{}
	}
	m.Block = m.block()
	if m.Format == MomentsBF16 {
		m.Block = 0
	}
	if !m.Stochastic {
		m.Seed = 0
	}
	return m
}

// which is one of the two moments.
type which int

const (
	firstMoment which = iota
	secondMoment
)

func (w which) String() string { return [...]string{"first", "second"}[w] }

// pair returns the moments of a parameter of n elements, all 0.
func (m Moments) pair(n int) [2]moment {
	return [2]moment{m.make(firstMoment, n), m.make(secondMoment, n)}
}

// make returns a moment of n zeros.
func (m Moments) make(w which, n int) moment {
	switch m.Format {
	case MomentsBF16:
		return make(bf16Moment, n)
	case MomentsFP8:
		format := fp8.E4M3
		if w == secondMoment {
			format = fp8.E5M2
		}
		return newFP8Moment(format, w, n, m.block())
	case MomentsFP8Expanded:
		return newExpandedMoment(w, n, m.block())
	}
	return make(fp32Moment, n)
}

// policy returns how moment w of a parameter is rounded in a step.
func (m Moments) policy(step int64, parameter int, w which) fp8.Policy {
	if !m.Stochastic {
		return fp8.Policy{}
	}
	return fp8.Policy{Rounding: fp8.Stochastic, Seed: random.Hash(m.Seed, uint64(step), uint64(2*parameter)+uint64(w))}
}
