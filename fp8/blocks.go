package fp8

import (
	"math"
	"unsafe"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
)

const (
	shortBlocks = "fp8: fewer scales or places for amax than blocks"
	emptyBlocks = "fp8: blocks must have at least one value"
	noScales    = "fp8: BlockScales are not set"
)

// blocksIn returns the number of blocks of n values; the last may be short. It panics
// if blocks are of no values.
func blocksIn(n, block int) int {
	if block <= 0 {
		panic(emptyBlocks)
	}
	if n == 0 {
		return 0
	}
	return (n-1)/block + 1 // n+block-1 may overflow
}

// AmaxBlocks raises amax[i] to the largest magnitude in block i of src, and makes
// it NaN, which it then stays, if there is a NaN: the canonical one, 7FC00000. The
// magnitudes there before are not negative. Blocks are of the given number of
// consecutive values, the last perhaps of fewer. It panics if block is not
// positive or amax has fewer elements than there are blocks.
func AmaxBlocks[T Float](amax []float32, src []T, block int) {
	n := blocksIn(len(src), block)
	if len(amax) < n {
		panic(shortBlocks)
	}
	if values, ok := any(src).([]float32); ok {
		amaxBlocks32(amax[:n], values, block)
		return
	}
	if values, ok := any(src).([]BFloat16); ok {
		done := amaxHalves(amax, values, block)
		amax, src, n = amax[done:], src[done*block:], n-done
	}
	if _, ok := any(src).([]float64); ok || block > wideLength {
		amaxEach(amax[:n], src, block)
		return
	}
	var w wide
	piece := wideLength / block
	for i := 0; i < n; i += piece {
		var values []float32
		switch src := any(src[i*block:]).(type) {
		case []float16.Float16:
			values = widened(&w, src[:min(piece*block, len(src))])
		case []BFloat16:
			values = widened(&w, src[:min(piece*block, len(src))])
		}
		amaxBlocks32(amax[i:], values, block)
	}
}

// amaxHalves is AmaxBlocks of as many whole blocks as kernels can do, and returns how many
// those are.
func amaxHalves(amax []float32, src []BFloat16, block int) (done int) {
	if block%convert.Step != 0 || block > longest {
		return 0
	}
	level := cpu.Current()
	for n := len(src) / block; done < n; {
		count := min(n-done, longest/block)
		race.Read(src[done*block : (done+count)*block])
		race.Write(amax[done : done+count])
		from := (*uint16)(unsafe.Pointer(&src[done*block]))
		if !convert.MaxBlocksBF16(level, &amax[done], from, count, block) {
			return 0
		}
		done += count
	}
	return done
}

func amaxEach[T Float](amax []float32, src []T, block int) {
	for i, before := range amax {
		a, nan := Amax(src[i*block : min((i+1)*block, len(src))])
		if nan || before != before {
			amax[i] = math.Float32frombits(positiveNaN)
		} else if a > before {
			amax[i] = a
		}
	}
}

func amaxBlocks32(amax, src []float32, block int) {
	level := cpu.Current()
	const step = convert.Step
	done := 0 // blocks
	switch {
	case !convert.Available(level) || block >= convert.LongBlock:
	case block == 1:
		for n := len(src) / step * step; done < n; {
			count := min(n-done, longest)
			race.Read(src[done : done+count])
			race.Write(amax[done : done+count])
			convert.MaxElements(level, &amax[done], &src[done], count)
			done += count
		}
	case block%step == 0:
		for n := len(src) / block; done < n; {
			count := min(n-done, longest/block)
			race.Read(src[done*block : (done+count)*block])
			race.Write(amax[done : done+count])
			convert.MaxBlocks(level, &amax[done], &src[done*block], count, block)
			done += count
		}
	}
	amaxEach(amax[done:blocksIn(len(src), block)], src[done*block:], block)
}

// BlockScales are the scales of a row of blocks, prepared for many rows of them.
// The zero BlockScales is ready for Set. Safe for concurrent use once set.
type BlockScales struct {
	scales []Scale
	block  int

	// What kernels take, where they can: blocks are short and all multiplied, or all
	// divided, by a number.
	fit     bool
	layout  convert.Layout
	divide  uint32
	factors [convert.MaxFactors]float32
}

// Set prepares the scales of blocks of the given number of values. It keeps scales,
// which must not change while b is in use. It panics if blocks are of no values.
func (b *BlockScales) Set(scales []Scale, block int) {
	if block <= 0 {
		panic(emptyBlocks)
	}
	b.scales, b.block, b.fit = scales, block, false
	if block >= convert.LongBlock {
		return
	}
	each := block // factors of a block
	if b.layout = convert.PerElement; block%convert.StepLength == 0 {
		b.layout, each = convert.PerStep, block/convert.StepLength
	}
	if len(scales)*each > convert.MaxFactors {
		return
	}
	b.fit = b.setFactors(each)
}

func (b *BlockScales) setFactors(each int) (fit bool) {
	const divides, multiplies = 1, 2
	// The largest bits of Stored and the signs of the factors: less than those of an
	// infinity if no Stored is negative, infinite or NaN and no factor is negative.
	var seen, most uint32
	factors := b.factors[:len(b.scales)*each]
	for _, s := range b.scales {
		factor := s.Multiplier
		switch { // as in Scale.factor, but for 1, by which one may divide and multiply
		case s.isOne():
			factor = 1
		case factor == 0:
			factor = s.divisor()
			seen |= divides
		default:
			seen |= multiplies
		}
		most = max(most, math.Float32bits(s.Stored), math.Float32bits(factor)&(1<<31))
		fill(factors[:each], factor)
		factors = factors[each:]
	}
	b.divide = seen & divides
	return most < infinityBits && seen != divides|multiplies
}

func fill(s []float32, x float32) {
	for ; len(s) >= 4; s = s[4:] {
		s[0], s[1], s[2], s[3] = x, x, x, x
	}
	for i := range s {
		s[i] = x
	}
}

// factor returns the factors from element i of the row on.
func (b *BlockScales) factor(i int) *float32 {
	if b.layout == convert.PerStep {
		i /= convert.StepLength
	}
	return &b.factors[i]
}

// EncodeBlocks is [EncodeBlock] of each block of a row, under its scale in b. It
// panics if dst is shorter than src, there are fewer scales than blocks, b is not set
// or e was not made by [NewEncoder].
func EncodeBlocks[T Float](e *Encoder, dst []byte, src []T, b *BlockScales, first uint64, st *Stats) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	e.mustBeMade()
	if b == nil || b.block == 0 {
		panic(noScales)
	}
	if len(b.scales) < blocksIn(len(src), b.block) {
		panic(shortBlocks)
	}
	dst = dst[:len(src)]
	switch src := any(src).(type) {
	case []float32:
		encodeRow(e, dst, src, b, 0, first, st)
	case []float64:
		encodeEach(e, dst, src, b, 0, first, st)
	case []float16.Float16:
		encodeHalfRow(e, dst, src, b, first, st)
	case []BFloat16:
		encodeHalfRow(e, dst, src, b, first, st)
	}
}

func encodeHalfRow[T half](e *Encoder, dst []byte, src []T, b *BlockScales, first uint64, st *Stats) {
	if !b.fit || encodesDirectly[T](cpu.Current(), st) {
		encodeRow(e, dst, src, b, 0, first, st)
		return
	}
	var w wide
	for done := 0; done < len(src); done += wideLength {
		values := widened(&w, src[done:])
		encodeRow(e, dst[done:done+len(values)], values, b, done, first+uint64(done), st)
	}
}

// encodeRow encodes what begins at element at, a multiple of convert.StepLength, of the
// row.
func encodeRow[T direct](e *Encoder, dst []byte, src []T, b *BlockScales, at int, first uint64, st *Stats) {
	level := cpu.Current()
	const step = convert.Step
	done := 0
	if b.fit && e.serves(level) && encodesDirectly[T](level, st) {
		for done+step <= len(src) {
			n := min(len(src)-done, part) / step * step
			e.vector.Divide = b.divide
			if !encodePart(e, level, dst[done:], src[done:done+n], b.factor(at+done), b.layout, first+uint64(done), st) {
				encodeEach(e, dst[done:], src[done:done+n], b, at+done, first+uint64(done), st)
			} else if st != nil && st.Detail != nil {
				e.detailRow(dst[done:], any(src[done:done+n]).([]float32), b, at+done, st.Detail)
			}
			done += n
		}
	}
	encodeEach(e, dst[done:], src[done:], b, at+done, first+uint64(done), st)
}

// detailRow adds to d what was encoded, which begins at element at of the row.
func (e *Encoder) detailRow(dst []byte, src []float32, b *BlockScales, at int, d *Detail) {
	for done := 0; done < len(src); {
		i := (at + done) / b.block
		end := min((i+1)*b.block-at, len(src))
		d.addRow(src[done:end], dst[done:], e.table, b.scales[i].stored())
		done = end
	}
}

// encodeEach encodes what begins at element at of the row block by block.
func encodeEach[T Float](e *Encoder, dst []byte, src []T, b *BlockScales, at int, first uint64, st *Stats) {
	for done := 0; done < len(src); {
		i := (at + done) / b.block
		end := min((i+1)*b.block-at, len(src))
		EncodeBlock(e, dst[done:end], src[done:end], b.scales[i], first+uint64(done), st)
		done = end
	}
}
