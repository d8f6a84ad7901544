package fp8

import (
	"math"
	"slices"
	"unsafe"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
)

// part is the number of elements that a kernel is given at a time: what it finds
// it cannot do is done again the general way.
const part = 4096

// longest is the number of elements that a kernel without a part is given at a
// time: it cannot be interrupted.
const longest = 1 << 16

const infinityBits = 0x7F800000

// direct is a type that kernels encode from.
type direct interface {
	float32 | float16.Float16 | BFloat16
}

// source is what kernels call T.
func source[T direct]() convert.Source {
	var zero T
	switch any(zero).(type) {
	case BFloat16:
		return convert.BFloat16
	case float16.Float16:
		return convert.Float16
	}
	return convert.Float32
}

// serves reports whether kernels of a level encode with the format and policy.
func (e *Encoder) serves(level cpu.Level) bool {
	return e.fit && (e.vector.Mode != convert.NearestEvenOfBF16 || convert.HalvesAvailable(level))
}

// encodesDirectly reports whether kernels encode T at a level. A Detail takes float32.
func encodesDirectly[T direct](level cpu.Level, st *Stats) bool {
	if source[T]() == convert.Float32 {
		return convert.Available(level)
	}
	return convert.HalvesAvailable(level) && (st == nil || st.Detail == nil)
}

// encodeKernels encodes as much of src as kernels can and returns how much that
// is: nothing, all, or all but less than a vector.
func encodeKernels[T direct](e *Encoder, dst []byte, src []T, first uint64, st *Stats) (done int) {
	level := cpu.Current()
	const step = convert.Step
	if len(src) == 0 || !e.serves(level) || !encodesDirectly[T](level, st) || e.broken || math.Signbit(float64(e.factor)) {
		return 0
	}
	for done+step <= len(src) {
		n := min(len(src)-done, part) / step * step
		if !encodePart(e, level, dst[done:], src[done:done+n], 0, &e.factor, convert.One, first+uint64(done), st) {
			encodeRest(e, dst[done:], src[done:done+n], first+uint64(done), st)
		} else if st != nil && st.Detail != nil {
			st.Detail.addRow(any(src[done:done+n]).([]float32), dst[done:], e.table, e.scale.stored())
		}
		done += n
	}
	if done == len(src) || st != nil && st.Detail != nil || !encodeTail(e, level, dst[done:], src[done:], first+uint64(done), st) {
		return done
	}
	return len(src)
}

// encodeTail is encodePart of less than a vector: zeros fill one, and do not count.
func encodeTail[T direct](e *Encoder, level cpu.Level, dst []byte, src []T, first uint64, st *Stats) bool {
	var from [convert.Step]T
	var to [convert.Step]byte
	zeros := len(from) - copy(from[:], src)
	if !encodePart(e, level, to[:], from[:], zeros, &e.factor, convert.One, first, st) {
		return false
	}
	copy(dst, to[:len(src)])
	return true
}

// encodePart encodes src, whole vectors and at most part elements, with a kernel,
// and reports false, with nothing in st, if it met what it cannot encode. So many zeros at
// the end of src do not count. A Detail is for the caller, who knows the scales.
func encodePart[T direct](e *Encoder, level cpu.Level, dst []byte, src []T, zeros int, factors *float32, layout convert.Layout, first uint64, st *Stats) bool {
	if !e.setIndex(first, len(src)) {
		return false
	}
	race.Read(src)
	race.Write(dst[:len(src)])
	var c convert.Counts
	e.vector.Source = source[T]()
	from := unsafe.Pointer(&src[0])
	if e.vector.Source == convert.Float32 {
		convert.Encode(level, &dst[0], (*float32)(from), len(src), &e.vector, factors, layout, &c)
	} else {
		convert.EncodeHalves(level, &dst[0], (*uint16)(from), len(src), &e.vector, factors, layout, &c)
	}
	return e.count(&c, len(src), zeros, factors, layout, st)
}

// count adds to st, unless it is nil, what a kernel counted in n values, of which so many are
// zeros that do not count. It reports false, with nothing in st, where the kernel met what it
// cannot encode.
func (e *Encoder) count(c *convert.Counts, n, zeros int, factors *float32, layout convert.Layout, st *Stats) bool {
	if c.MaxScaled >= convert.Limit || c.Saturated > 0 && e.policy.Overflow != OverflowSaturate {
		return false
	}
	if e.vector.Zeros >= convert.ZerosPositive && e.makesZero(c.MinBits, factors, layout, n) {
		return false
	}
	if st != nil {
		c.Zeros -= uint32(zeros)
		c.ZeroCodes -= uint32(zeros)
		c.BelowNormal -= uint32(zeros)
		st.addCounts(n-zeros, c)
	}
	return true
}

// makesZero reports whether one of n values, the smallest of which but for zeros has bits
// smallest+1, may become zero by being scaled. Factors are not negative.
func (e *Encoder) makesZero(smallest uint32, factors *float32, layout convert.Layout, n int) bool {
	if smallest == math.MaxUint32 {
		return false // all are
	}
	x, least := math.Float32frombits(smallest+1), *factors
	if layout != convert.One {
		if least = e.least; !e.flushes(x, least) {
			return false // not even with a factor of other parts
		}
		count := n
		if layout == convert.PerStep {
			count = n / convert.StepLength
		}
		all := unsafe.Slice(factors, count)
		if least = slices.Min(all); e.vector.Divide != 0 {
			least = slices.Max(all)
		}
	}
	return e.flushes(x, least)
}

// flushes reports whether x becomes zero under a factor.
func (e *Encoder) flushes(x, factor float32) bool {
	if e.vector.Divide != 0 {
		return x/factor == 0
	}
	return x*factor == 0
}

// setIndex prepares the vector for n elements from the given one. It reports false where
// their indices do not share their upper half, from which the keys come.
func (e *Encoder) setIndex(first uint64, n int) bool {
	if e.policy.Rounding != Stochastic {
		return true
	}
	high := uint32(first >> 32)
	if high != e.random.high {
		e.random.rekey(high)
	}
	e.vector.K0, e.vector.K1, e.vector.Index = e.random.k0, e.random.k1, uint32(first)
	return uint32((first+uint64(n)-1)>>32) == high
}

// addCounts adds what a kernel counted in n values.
func (s *Stats) addCounts(n int, c *convert.Counts) {
	s.Elements += int64(n)
	s.Amax = max(s.Amax, float64(math.Float32frombits(c.MaxBits)))
	if c.MinBits != math.MaxUint32 {
		if smallest := float64(math.Float32frombits(c.MinBits + 1)); s.Smallest == 0 || smallest < s.Smallest {
			s.Smallest = smallest
		}
	}
	s.SaturatedNeg += int64(c.SaturatedNeg)
	s.SaturatedPos += int64(c.Saturated - c.SaturatedNeg)
	s.Subnormal += int64(c.BelowNormal - c.ZeroCodes)
	s.Flushed += int64(c.ZeroCodes - c.Zeros)
	s.Zeros += int64(c.Zeros)
}

// amaxKernels is Amax of as much of src as kernels can do without meeting a NaN.
func amaxKernels(src []float32) (amax float32, done int) {
	level := cpu.Current()
	const step = convert.Step
	if !convert.Available(level) {
		return 0, 0
	}
	for done+step <= len(src) {
		n := min(len(src)-done, longest) / step * step
		race.Read(src[done : done+n])
		bits := convert.MaxBits(level, &src[done], n)
		if bits > infinityBits {
			break
		}
		amax = max(amax, math.Float32frombits(bits))
		done += n
	}
	return amax, done
}

// decodeKernels decodes src times scale as far as kernels can.
func decodeKernels(dst []float32, src []byte, f Format, scale float32) (done int) {
	level := cpu.Current()
	const step = convert.Step
	if len(src) < step || !layouts[f].fits() || !convert.Available(level) || math.Float32bits(scale) >= infinityBits {
		return 0
	}
	d := decodings[f]
	d.Scale = scale
	length := part
	if at := int(uintptr(unsafe.Pointer(&dst[0]))); at%4 == 0 && convert.Streams(4*len(src)) {
		d.Stream, length = 1, 4*part // at the end of which a kernel waits for memory
		done = -at & 63 / 4
		decodeEach(dst[:done], src, f, scale) // to where a line begins
	}
	for done+step <= len(src) {
		n := min(len(src)-done, length) / step * step
		race.Read(src[done : done+n])
		race.Write(dst[done : done+n])
		if convert.Decode(level, &dst[done], &src[done], n, &d) {
			decodeEach(dst[done:done+n], src[done:], f, scale)
		}
		done += n
	}
	return done
}

// decodings are what kernels must know of formats.
var decodings = func() (all [len(layouts)]convert.Decoding) {
	for f := range layouts {
		l, d := &layouts[f], &all[f]
		*d = convert.Decoding{
			Bits:   uint32(l.bits),
			Shift:  uint32(23 - l.mantissa),
			Mask:   uint32(l.magnitude()) << (23 - l.mantissa),
			Rebias: float32(math.Ldexp(1, 127-l.bias)),
			Max:    uint32(l.max),
			Lone:   0xFF,

			Offset:   uint32(127-l.bias) << 23,
			Smallest: uint32(128-l.bias) << 23,
		}
		if l.nan == l.max {
			d.Max = 0x7F
		}
		if l.max>>l.mantissa < 0x1F { // the largest exponent is finite in float16 too
			d.HalfRebias, d.HalfShift = float32(math.Ldexp(1, 15-l.bias)), uint32(6+l.mantissa-l.bits)
		}
		if l.fnuz {
			d.Lone = uint32(l.nan)
		}
	}
	return all
}()

// decodeEach writes the values of the first codes of src times scale to dst.
func decodeEach(dst []float32, src []byte, f Format, scale float32) {
	for i, c := range src[:len(dst)] {
		dst[i] = scaled32(decodeTables[f][c], scale)
	}
}
