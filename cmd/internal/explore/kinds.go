package explore

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// kind is a format of codes, of numbers or of scales.
type kind struct {
	name     string
	bits     int
	mantissa int // bits of it; the lowest of a code
	signed   bool
	encode   func(dst []byte, src []float32, p fp8.Policy)
	value    func(code byte) float32
}

// p3109 are of that family, which has 120 formats: those of 8 bits that training has tried.
var p3109 = []fp8.P3109{
	{Bits: 8, Precision: 3, Signed: true, Infinite: true},
	{Bits: 8, Precision: 4, Signed: true, Infinite: true},
	{Bits: 8, Precision: 5, Signed: true, Infinite: true},
}

// kinds are all formats of package fp8, scales last.
var kinds = func() (all []kind) {
	for _, f := range fp8.Formats() {
		all = append(all, kind{f.String(), f.Bits(), f.Mantissa(), true,
			func(dst []byte, src []float32, p fp8.Policy) { fp8.Encode(dst, src, f, p, nil) }, f.Float32})
	}
	for _, f := range p3109 {
		all = append(all, kind{f.String(), f.Bits, f.Precision - 1, true,
			func(dst []byte, src []float32, p fp8.Policy) {
				wide := make([]float64, len(src))
				for i, x := range src {
					wide[i] = float64(x)
				}
				f.Encode(dst, wide, p)
			}, f.Float32})
	}
	for _, r := range []fp8.E8M0Rounding{fp8.E8M0Down, fp8.E8M0Up, fp8.E8M0Nearest} {
		all = append(all, kind{"E8M0 " + r.String(), 8, 0, false, each(func(x float32, p fp8.Policy) byte { return byte(r.Encode(x, p.Overflow)) }),
			func(code byte) float32 { return fp8.E8M0(code).Float32() }})
	}
	return append(all, kind{"UE4M3", 7, 3, false, each(func(x float32, _ fp8.Policy) byte { return byte(fp8.EncodeUE4M3(x)) }),
		func(code byte) float32 { return fp8.UE4M3(code).Float32() }})
}()

func each(encode func(float32, fp8.Policy) byte) func([]byte, []float32, fp8.Policy) {
	return func(dst []byte, src []float32, p fp8.Policy) {
		for i, x := range src {
			dst[i] = encode(x, p)
		}
	}
}

// CodesRequest asks for the codes of values in one format.
type CodesRequest struct {
	Format string
	Policy fp8.Policy
	Bits   []byte // of float32 values, little-endian
}

// Codes returns a code for each value, as Explore shows it.
func Codes(q CodesRequest, _ *io.SectionReader) ([]byte, error) {
	if err := q.Policy.Check(); err != nil {
		return nil, err
	}
	values := make([]float32, len(q.Bits)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(q.Bits[4*i:]))
	}
	for _, k := range kinds {
		if k.name == q.Format {
			codes := make([]byte, len(values))
			k.encode(codes, values, q.Policy)
			return codes, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q", q.Format)
}
