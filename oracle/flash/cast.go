package flash

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
)

// caster rounds P to its format.
type caster struct {
	cast   Cast
	format fp8.Format
	limit  float32 // what is larger does not fit
}

func newCaster(c Cast) caster {
	switch c {
	case Float16:
		return caster{c, 0, math.Nextafter32(65520, 0)}
	case E4M3:
		return caster{c, fp8.E4M3, 464}
	case E5M2:
		return caster{c, fp8.E5M2, math.Nextafter32(61440, 0)}
	}
	return caster{cast: c, limit: float32(math.Inf(1))}
}

// of returns u rounded, as a number and, of FP8, as a code.
func (c *caster) of(u float32) (float32, byte) {
	switch c.cast {
	case BFloat16:
		return fp8.BFloat16FromFloat32(u).Float32(), 0
	case Float16:
		return float16.Fromfloat32(u).Float32(), 0
	case E4M3, E5M2:
		if u > c.limit {
			u = c.format.Max() // infinity, too, as cvt.satfinite has it
		}
		code := fp8.EncodeOne(u, c.format, fp8.Policy{})
		return c.format.Float32(code), code
	}
	return u, 0
}

// round rounds an output to its format.
func (c Cast) round(out []float32) {
	if c == Float32 {
		return
	}
	to := newCaster(c)
	for i, x := range out {
		out[i], _ = to.of(x)
	}
}

// rounding bounds the error of an output of the given size when it is rounded to its
// format.
func (c Cast) rounding(size float64) float64 {
	switch c {
	case BFloat16:
		return max(0x1p-8*size, 0x1p-134)
	case Float16:
		return max(0x1p-11*size, 0x1p-25)
	}
	return 0
}
