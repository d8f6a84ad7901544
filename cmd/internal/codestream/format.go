package codestream

import (
	"errors"
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
)

// Format is what codes are of: a format of package fp8, one of its formats of scales, or one
// of IEEE P3109.
type Format struct {
	Name string

	bits  int // of a code; a byte that has more is none
	width int // bits that a packed code takes
	// codec returns the functions under a policy, or an error if it makes no sense of it.
	codec func(Policy) (codec, error)
}

// Policy is what an encoder does where there is a choice.
type Policy struct {
	fp8.Policy
	// Power is how a value between two powers of two becomes a scale in E8M0, which has
	// nothing else; other formats refuse it unless it is nil.
	Power *fp8.E8M0Rounding
}

// Check returns an error if a policy makes no sense for the format.
func (f Format) Check(p Policy) error {
	_, err := f.codec(p)
	return err
}

// codec converts between values and codes, one a byte. The index of the first value counts
// where rounding is stochastic.
type codec struct {
	encode func(codes []byte, values []float32, first uint64)
	decode func(values []float32, codes []byte)
}

// The names of the formats of scales.
const (
	e8m0  = "E8M0"
	ue4m3 = "UE4M3"
)

// Names are those of all formats but P3109's, in small letters.
func Names() (names []string) {
	for _, f := range fp8.Formats() {
		names = append(names, strings.ToLower(f.String()))
	}
	return append(names, strings.ToLower(e8m0), strings.ToLower(ue4m3))
}

// ParseFormat returns the format of the given name, in any case. P3109's are written as there:
// binary4p2se.
func ParseFormat(name string) (Format, error) {
	switch {
	case strings.EqualFold(name, e8m0):
		return Format{e8m0, 8, 8, codecOfE8M0}, nil
	case strings.EqualFold(name, ue4m3):
		return Format{ue4m3, 7, 8, codecOfUE4M3}, nil
	}
	if p, err := fp8.ParseP3109(p3109Name(name)); err == nil {
		return formatOfP3109(p), nil
	}
	f, err := fp8.ParseFormat(name)
	if err != nil {
		return Format{}, fmt.Errorf("want %s, or one of P3109 such as binary4p2se", strings.Join(Names(), ", "))
	}
	return Format{f.String(), f.Bits(), f.Bits(), func(p Policy) (codec, error) {
		return codec{
			func(codes []byte, values []float32, first uint64) {
				fp8.EncodeScaled(codes, values, f, p.Policy, fp8.Scale{}, first, nil)
			},
			func(values []float32, codes []byte) { fp8.Decode(values, codes, f) },
		}, p.noPower()
	}}, nil
}

var errPower = errors.New("only e8m0 is rounded up or down")

func (p Policy) noPower() error {
	if p.Power != nil {
		return errPower
	}
	return nil
}

func codecOfE8M0(p Policy) (codec, error) {
	rounding := fp8.E8M0Nearest
	switch {
	case p.Power != nil:
		rounding = *p.Power
	case p.Rounding != fp8.NearestEven:
		return codec{}, errors.New("e8m0 is rounded to nearest, up or down")
	}
	return codec{
		func(codes []byte, values []float32, _ uint64) {
			for i, x := range values {
				codes[i] = byte(rounding.Encode(x, p.Overflow))
			}
		},
		func(values []float32, codes []byte) {
			for i, c := range codes {
				values[i] = fp8.E8M0(c).Float32()
			}
		},
	}, nil
}

func codecOfUE4M3(p Policy) (codec, error) {
	if p.Policy != (fp8.Policy{}) || p.Power != nil {
		return codec{}, errors.New("ue4m3 is rounded to nearest, ties to even, and saturates: it takes no other policy")
	}
	return codec{
		func(codes []byte, values []float32, _ uint64) {
			for i, x := range values {
				codes[i] = byte(fp8.EncodeUE4M3(x))
			}
		},
		func(values []float32, codes []byte) {
			for i, c := range codes {
				values[i] = fp8.UE4M3(c).Float32()
			}
		},
	}, nil
}

// p3109Name spells a name of P3109's as fp8 does.
func p3109Name(name string) string {
	if rest, ok := strings.CutPrefix(strings.ToLower(name), "binary"); ok {
		return "Binary" + rest
	}
	return name
}

func formatOfP3109(f fp8.P3109) Format {
	return Format{f.String(), f.Bits, f.Bits, func(p Policy) (codec, error) {
		if p.Rounding == fp8.Stochastic {
			return codec{}, errors.New("formats of P3109 are not rounded stochastically here")
		}
		wide := make([]float64, chunk)
		return codec{
			func(codes []byte, values []float32, _ uint64) {
				for i, x := range values {
					wide[i] = float64(x)
				}
				f.Encode(codes, wide[:len(values)], p.Policy)
			},
			f.Decode,
		}, p.noPower()
	}}
}
