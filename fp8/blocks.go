package fp8

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernel"
)

const shortBlocks = "fp8: fewer scales or places for amax than blocks"

// blocksIn returns the number of blocks of n values; the last may be short.
func blocksIn(n, block int) int { return (n + block - 1) / block }

// AmaxBlocks is [Amax] of each block of consecutive values of src: of the given
// number of them, which must be positive, the last block perhaps of fewer. It
// panics if amax or nan has fewer elements than there are blocks.
func AmaxBlocks[T Float](amax []float32, nan []bool, src []T, block int) {
	n := blocksIn(len(src), block)
	if len(amax) < n || len(nan) < n {
		panic(shortBlocks)
	}
	done := 0
	if values, ok := any(src).([]float32); ok {
		done = amaxBlocksKernels(amax, values, block)
	}
	for i := range n {
		if nan[i] = false; i >= done || amax[i] != amax[i] {
			amax[i], nan[i] = Amax(src[i*block : min((i+1)*block, len(src))])
		}
	}
}

// amaxBlocksKernels does as many blocks as kernels can; a block with a NaN gets a
// NaN.
func amaxBlocksKernels(amax, src []float32, block int) (done int) {
	level := cpu.Current()
	done = len(src) / block
	if !kernel.Blocks(level) || block%kernel.Step(level) != 0 || done == 0 {
		return 0
	}
	kernel.MaxBlocks(level, &amax[0], &src[0], done, block)
	return done
}

// EncodeBlocks is [EncodeBlock] of each block of consecutive values of src with a
// scale of its own. It panics if dst is shorter than src or there are fewer scales
// than blocks.
func EncodeBlocks[T Float](e *Encoder, dst []byte, src []T, scales []Scale, block int, first uint64, st *Stats) {
	n := blocksIn(len(src), block)
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	if len(scales) < n {
		panic(shortBlocks)
	}
	values, _ := any(src).([]float32)
	for i := 0; i < n; {
		if done := e.encodeBlocksKernels(dst, values, scales, block, i, first, st); done > 0 {
			i += done
			continue
		}
		lo, hi := i*block, min((i+1)*block, len(src))
		EncodeBlock(e, dst[lo:hi], src[lo:hi], scales[i], first+uint64(lo), st)
		i++
	}
}

// blocksAtOnce is the most blocks that a kernel is given at a time.
const blocksAtOnce = 64

// encodeBlocksKernels encodes the next whole blocks from block i and returns how
// many: none if kernels cannot.
func (e *Encoder) encodeBlocksKernels(dst []byte, src []float32, scales []Scale, block, i int, first uint64, st *Stats) int {
	level := cpu.Current()
	blocks := min(len(src)/block-i, blocksAtOnce)
	if blocks <= 0 || !kernel.Blocks(level) || block%kernel.Step(level) != 0 || st != nil && st.Detail != nil {
		return 0
	}
	var factors [blocksAtOnce]float32
	at, n := i*block, blocks*block
	if !e.setScales(factors[:blocks], scales[i:i+blocks]) || !e.setIndex(first+uint64(at), n) {
		return 0
	}
	var c kernel.Counts
	kernel.EncodeBlocks(level, &dst[at], &src[at], n, &e.vector, &c, &factors[0], block)
	if e.refused(&c) {
		return 0
	}
	if st != nil {
		st.addCounts(n, &c)
	}
	return blocks
}

// setScales prepares for blocks that are all multiplied, or all divided, by a
// number: the factors. It reports false if they are not.
func (e *Encoder) setScales(factors []float32, scales []Scale) bool {
	divide := scales[0].Multiplier == 0
	for i, s := range scales {
		factors[i] = s.Multiplier
		if divide {
			factors[i] = s.Stored
		}
		stored := math.Float32bits(s.Stored) &^ (1 << 31)
		if (s.Multiplier == 0) != divide || factors[i] == 0 || stored >= infinityBits {
			return false
		}
	}
	e.vector.Divide = 0
	if divide {
		e.vector.Divide = 1
	}
	return true
}
