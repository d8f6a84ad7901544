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

	unevenFactors = "fp8: not as many factors as scales that are stored"
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
	switch src := any(src).(type) {
	case []float32:
		amaxBlocks32(amax[:n], src, block)
	case []float64:
		amaxEach(amax[:n], src, block)
	case []float16.Float16:
		amaxBlocks16(amax[:n], src, block)
	case []BFloat16:
		amaxBlocks16(amax[:n], src, block)
	}
}

func amaxBlocks16[T half](amax []float32, src []T, block int) {
	done := amaxHalves(amax, src, block)
	amax, src = amax[done:], src[done*block:]
	if block > wideLength {
		amaxEach(amax, src, block)
		return
	}
	var w wide
	for piece := wideLength / block; len(amax) > 0; {
		n := min(piece, len(amax))
		values := src[:min(n*block, len(src))]
		amaxBlocks32(amax[:n], widened(&w, values), block)
		amax, src = amax[n:], src[len(values):]
	}
}

// amaxHalves is AmaxBlocks of as many whole blocks as kernels can do, and returns how many
// those are.
func amaxHalves[T half](amax []float32, src []T, block int) (done int) {
	if block%convert.Step != 0 || block > longest {
		return 0
	}
	level := cpu.Current()
	for n := len(src) / block; done < n; {
		count := min(n-done, longest/block)
		race.Read(src[done*block : (done+count)*block])
		race.Write(amax[done : done+count])
		from := (*uint16)(unsafe.Pointer(&src[done*block]))
		if !convert.MaxBlocksHalves(level, &amax[done], from, count, block, source[T]()) {
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
// The zero BlockScales is ready for Set and SetFactors. Safe for concurrent use once set.
type BlockScales struct {
	scales          []Scale   // by Set
	stored, factors []float32 // by SetFactors
	block           int

	// What kernels take, where they can: blocks are short and all multiplied, or all
	// divided, by a number.
	fit    bool
	layout convert.Layout
	divide uint32
	least  float32 // the factor that makes values smallest
	spread [convert.MaxFactors]float32
}

// Set prepares the scales of blocks of the given number of values. It keeps scales,
// which must not change while b is in use. It panics if blocks are of no values.
func (b *BlockScales) Set(scales []Scale, block int) {
	each := b.reset(len(scales), block)
	b.scales = scales
	if !b.fit {
		return
	}
	const divides, multiplies = 1, 2
	var seen, most, largest uint32
	smallest := uint32(math.MaxUint32)
	for i, s := range scales {
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
		bits := math.Float32bits(factor)
		most, largest, smallest = max(most, math.Float32bits(s.Stored)), max(largest, bits), min(smallest, bits)
		fill(b.spread[i*each:][:each], factor)
	}
	b.divide = seen & divides
	b.setExtremes(convert.Extremes{Stored: most, Largest: largest, Smallest: smallest})
	b.fit = b.fit && seen != divides|multiplies
}

// SetFactors is [BlockScales.Set] of scales that all multiply, or all divide: block i has
// the dequantization scale stored[i], and its values are multiplied or divided by
// factors[i]. It keeps both slices, and panics if they are not of one length.
func (b *BlockScales) SetFactors(stored, factors []float32, divide bool, block int) {
	if len(stored) != len(factors) {
		panic(unevenFactors)
	}
	each := b.reset(len(factors), block)
	b.stored, b.factors = stored, factors
	if divide {
		b.divide = 1
	}
	if b.fit && len(factors) > 0 {
		b.setExtremes(spread(b.spread[:len(factors)*each], stored, factors))
	}
}

// spread repeats each of factors, so that dst is full.
func spread(dst, stored, factors []float32) convert.Extremes {
	each := len(dst) / len(factors)
	race.Read(stored)
	race.Read(factors)
	x, ok := convert.Spread(cpu.Current(), &dst[0], &stored[0], &factors[0], len(factors), each)
	if ok {
		return x
	}
	x = convert.Extremes{Smallest: math.MaxUint32}
	for i, f := range factors {
		bits := math.Float32bits(f)
		x.Stored, x.Largest, x.Smallest = max(x.Stored, math.Float32bits(stored[i])), max(x.Largest, bits), min(x.Smallest, bits)
		fill(dst[i*each:][:each], f)
	}
	return x
}

// setExtremes finds out whether kernels take the scales, which have those extremes: no
// stored one is negative, infinite or NaN and no factor is negative.
func (b *BlockScales) setExtremes(x convert.Extremes) {
	b.fit = x.Stored < infinityBits && x.Largest < 1<<31
	if b.least = math.Float32frombits(x.Smallest); b.divide != 0 {
		b.least = math.Float32frombits(x.Largest)
	}
}

// reset prepares for n scales, and returns how many factors kernels take of each.
func (b *BlockScales) reset(n, block int) (each int) {
	if block <= 0 {
		panic(emptyBlocks)
	}
	b.scales, b.stored, b.factors, b.block, b.divide = nil, nil, nil, block, 0
	each = block
	if b.layout = convert.PerElement; block%convert.StepLength == 0 {
		b.layout, each = convert.PerStep, block/convert.StepLength
	}
	b.fit = block < convert.LongBlock && n*each <= convert.MaxFactors
	return each
}

// len returns the number of scales.
func (b *BlockScales) len() int { return len(b.scales) + len(b.factors) }

// Scale returns that of block i. It panics if there is none.
func (b *BlockScales) Scale(i int) Scale {
	if b.scales != nil {
		return b.scales[i]
	}
	return FactorScale(b.stored[i], b.factors[i], b.divide != 0)
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
	return &b.spread[i]
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
	if b.len() < blocksIn(len(src), b.block) {
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

// EncodeBlocksStats is [EncodeBlocks] of the blocks from number at of the row on, and adds what
// happens in the i-th of them to stats[i]. Where src is less than a block it may lie anywhere in
// it. It panics as EncodeBlocks does, or if there are fewer stats than blocks or at is negative.
func EncodeBlocksStats[T Float](e *Encoder, dst []byte, src []T, b *BlockScales, at int, first uint64, stats []Stats) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	e.mustBeMade()
	if b == nil || b.block == 0 {
		panic(noScales)
	}
	n := blocksIn(len(src), b.block)
	if at < 0 || b.len()-at < n || len(stats) < n {
		panic(shortBlocks)
	}
	done := 0
	switch src := any(src).(type) {
	case []float32:
		done = encodeWhole(e, dst, src, b, at, first, stats)
	case []float16.Float16:
		done = encodeWhole(e, dst, src, b, at, first, stats)
	case []BFloat16:
		done = encodeWhole(e, dst, src, b, at, first, stats)
	}
	for ; done < n; done++ {
		lo, hi := done*b.block, min((done+1)*b.block, len(src))
		EncodeBlock(e, dst[lo:hi], src[lo:hi], b.Scale(at+done), first+uint64(lo), &stats[done])
	}
}

// encodeWhole is EncodeBlocksStats of as many whole blocks as kernels can do, and returns how
// many those are.
func encodeWhole[T direct](e *Encoder, dst []byte, src []T, b *BlockScales, at int, first uint64, stats []Stats) (done int) {
	level := cpu.Current()
	if !b.fit || b.layout != convert.PerStep || !e.serves(level) || !encodesDirectly[T](level, nil) {
		return 0
	}
	const places = convert.StepLength
	var counts [16]convert.Counts
	for n := len(src) / b.block; done < n; {
		lo := done * b.block
		c := counts[:min(n-done, len(counts))]
		if !e.setIndex(first+uint64(lo), len(c)*b.block) {
			break
		}
		race.Read(src[lo : lo+len(c)*b.block])
		race.Write(dst[lo : lo+len(c)*b.block])
		e.vector.Source, e.vector.Divide = source[T](), b.divide
		e.vector.Ahead = uint32(len(src) * int(unsafe.Sizeof(src[0]))) // the next row
		factor := b.factor(at*b.block + lo)
		convert.EncodeBlocks(level, &dst[lo], unsafe.Pointer(&src[lo]), b.block, &e.vector, factor, b.block/places, c)
		for i := range c {
			block, st := lo+i*b.block, &stats[done+i]
			if st.Detail != nil || !e.count(&c[i], b.block, 0, b.factor(at*b.block+block), convert.One, st) {
				EncodeBlock(e, dst[block:block+b.block], src[block:block+b.block], b.Scale(at+done+i), first+uint64(block), st)
			}
		}
		done += len(c)
	}
	return done
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
			e.vector.Divide, e.least = b.divide, b.least
			e.vector.Ahead = uint32(len(src) * int(unsafe.Sizeof(src[0]))) // the next row
			if !encodePart(e, level, dst[done:], src[done:done+n], 0, b.factor(at+done), b.layout, first+uint64(done), st) {
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
		d.addRow(src[done:end], dst[done:], e.table, b.Scale(i).stored())
		done = end
	}
}

// encodeEach encodes what begins at element at of the row block by block.
func encodeEach[T Float](e *Encoder, dst []byte, src []T, b *BlockScales, at int, first uint64, st *Stats) {
	for done := 0; done < len(src); {
		i := (at + done) / b.block
		end := min((i+1)*b.block-at, len(src))
		EncodeBlock(e, dst[done:end], src[done:end], b.Scale(i), first+uint64(done), st)
		done = end
	}
}
