package nn

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/number"
)

// NarrowFormat names a binary floating-point format by its bits of exponent and
// mantissa, as in "E2M1"; the empty NarrowFormat is FP32. There are those from E1M1
// to E5M10, and E8M7, which is BF16. With E exponent bits the bias is 2^(E-1)-1.
//
//	                 bits    max     min normal  min subnormal
//	NarrowBF16       1-8-7   3.4e38  2^-126      2^-133         range of FP32
//	NarrowFP16       1-5-10  65504   2^-14       2^-24          IEEE 754 binary16
//	NarrowE4M3       1-4-3   448     2^-6        2^-9           OCP FP8
//	NarrowE5M2       1-5-2   57344   2^-14       2^-16          OCP FP8
//	NarrowE3M2       1-3-2   28      2^-2        2^-4           OCP MXFP6
//	NarrowE2M3       1-2-3   7.5     2^0         2^-3           OCP MXFP6
//	NarrowE2M1       1-2-1   6       2^0         2^-1           OCP MXFP4
//
// Formats of up to 4 exponent bits use every code as a number, but for the one NaN
// of E4M3; those of 5 and 8 keep the largest exponent for infinities and NaN, as IEEE
// 754 does. The numbers of a format with 1 exponent bit are equally spaced: E1M2's are
// half the integers from -7 to 7.
//
// Sources: OCP 8-bit Floating Point Specification 1.0 and OCP Microscaling Formats
// Specification 1.0.
type NarrowFormat string

// The formats that have names of their own.
const (
	NarrowBF16 NarrowFormat = "E8M7"
	NarrowFP16 NarrowFormat = "E5M10"
	NarrowE4M3 NarrowFormat = "E4M3"
	NarrowE5M2 NarrowFormat = "E5M2"
	NarrowE3M2 NarrowFormat = "E3M2"
	NarrowE2M3 NarrowFormat = "E2M3"
	NarrowE2M1 NarrowFormat = "E2M1"
)

// number returns what the format is. The error names what is no format.
func (f NarrowFormat) number() (number.Format, error) {
	n, ok := number.Parse(string(f))
	if !ok {
		return n, fmt.Errorf("format %q: want one from E1M1 to E5M10, such as %q, or %q, which is BF16", f, NarrowE2M1, NarrowBF16)
	}
	return n, nil
}

// mustNumber is number of a format that there is.
func (f NarrowFormat) mustNumber() number.Format {
	n, err := f.number()
	if err != nil {
		panic(err)
	}
	return n
}
