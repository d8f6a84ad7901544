package identify

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// Setup says what the kernel multiplies. The zero value is a product of E4M3 of K = 512
// with one scale for each operand.
type Setup struct {
	Format  fp8.Format  `json:"format"`            // of A, and of B unless
	FormatB *fp8.Format `json:"formatB,omitempty"` // says another
	K       int         `json:"k"`                 // 0 means DefaultK

	// BlockA and BlockB are what shares a scale.
	BlockA tensor.Block `json:"blockA"`
	BlockB tensor.Block `json:"blockB"`

	// E8M0 says that scales are powers of two.
	E8M0 bool `json:"e8m0"`

	// NVFP4 says that operands are E2M1 codes under an E4M3 scale for each 16. Format,
	// blocks and E8M0 do not count then, and K = 0 means 2048.
	NVFP4 bool `json:"nvfp4"`

	// Float, unless it is none, says that operands are numbers in BF16, FP16 or TF32.
	// Formats, blocks and E8M0 do not count then.
	Float oracle.Float `json:"float,omitempty"`

	// Old says that the kernel adds the product to an old C, A·Bᵀ + C, or begins from
	// one: then there is a product that asks where it enters. Not with NVFP4.
	Old bool `json:"old,omitempty"`
}

const (
	// DefaultK is long enough to see promotion after up to 256 products.
	DefaultK = 512

	leastK, mostK = 64, 2048
	multipleOfK   = 32
)

// Check returns an error, which is an [ErrSetup], unless there are probes: K is a
// multiple of 32 from 64 to 2048, and a block of K one of 16, or all of K.
func (s Setup) Check() error {
	if _, err := s.Float.MarshalText(); err != nil {
		return sentinel.Errorf(ErrSetup, "identify: %w", err)
	}
	if s.NVFP4 && (s.Float != oracle.NoFloat || s.Old) {
		return sentinel.Errorf(ErrSetup, "identify: operands in %v or an old C do not go with NVFP4", s.Float)
	}
	if s.NVFP4 {
		if n := s.places(); s.k()%group != 0 || n < leastK || n > mostK || n%multipleOfK != 0 {
			return sentinel.Errorf(ErrSetup, "identify: K = %d of NVFP4: want a multiple of %d from %d to %d", s.k(), multipleOfK*group, leastK*group, mostK*group)
		}
		return nil
	}
	for _, f := range []fp8.Format{s.Format, s.formatB()} {
		if !f.Valid() {
			return sentinel.Errorf(ErrSetup, "identify: %w", fp8.ErrFormat)
		}
		if most := float64(f.Max()); most < float64(magnitudesFP8.largeB) || f.MinSubnormal() > magnitudesFP8.smallB {
			return sentinel.Errorf(ErrSetup, "identify: format %v, of values from %v to %v, does not have those of the probes, from %v to %v, and a step of an instruction "+
				"for MX formats has one or two scales to make up for it: %s", f, f.MinSubnormal(), most, magnitudesFP8.smallB, magnitudesFP8.largeB, instead(f))
		}
	}
	if k := s.k(); k < leastK || k > mostK || k%multipleOfK != 0 {
		return sentinel.Errorf(ErrSetup, "identify: K = %d: want a multiple of %d from %d to %d", k, multipleOfK, leastK, mostK)
	}
	for name, b := range map[string]tensor.Block{"A": s.BlockA, "B": s.BlockB} {
		if b.Rows < 0 || b.Cols < 0 || b.Rows > mostBlockRows || b.Cols%16 != 0 {
			return sentinel.Errorf(ErrSetup, "identify: %s in blocks of %v: want at most %d rows, and columns that are a multiple of 16 or all", name, b, mostBlockRows)
		}
	}
	return nil
}

// instead says what to ask in place of a format that has no probes.
func instead(f fp8.Format) string {
	if f == fp8.E2M1 {
		return "ask by NVFP4, whose steps have four, as the instruction for MXFP4 alone has the same arithmetic, or by E4M3 with E8M0 scales, which the one for all MX formats takes too"
	}
	return "ask by E4M3 with E8M0 scales, which the instruction for it takes too"
}

const mostBlockRows = 128

// group is the number of NVFP4 codes under a scale, of which probes use one.
const group = 16

// places is the number of places along K where probes have a product.
func (s Setup) places() int { return s.k() / s.width() }

// width is the number of products of a place.
func (s Setup) width() int {
	if s.NVFP4 {
		return group
	}
	return 1
}

func (s Setup) k() int {
	switch {
	case s.K == 0 && s.NVFP4:
		return 2048
	case s.K == 0:
		return DefaultK
	}
	return s.K
}

// String describes the setup in a line.
func (s Setup) String() string {
	old := ""
	if s.Old {
		old = ", added to an old C"
	}
	switch {
	case s.NVFP4:
		return fmt.Sprintf("NVFP4, K = %d", s.k())
	case s.Float != oracle.NoFloat:
		return fmt.Sprintf("%v, K = %d%s", s.Float, s.k(), old)
	}
	formats := s.Format.String()
	if b := s.formatB(); b != s.Format {
		formats += " by " + b.String()
	}
	scales := ""
	if s.E8M0 {
		scales = ", E8M0"
	}
	return fmt.Sprintf("%s, K = %d, scales of A by %v and of B by %v%s%s", formats, s.k(), s.BlockA, s.BlockB, scales, old)
}

// formatB is the format of B.
func (s Setup) formatB() fp8.Format {
	if s.FormatB != nil {
		return *s.FormatB
	}
	return s.Format
}

// scaled reports whether operands have scales that are not in the instruction.
func (s Setup) scaled() bool { return !s.NVFP4 && s.Float == oracle.NoFloat }

// blockK is the number of products that share a pair of scales.
func (s Setup) blockK() int {
	block := s.k()
	if !s.scaled() {
		return block
	}
	for _, b := range []tensor.Block{s.BlockA, s.BlockB} {
		if b.Cols > 0 {
			block = min(block, b.Cols)
		}
	}
	return block
}
