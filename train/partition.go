package train

import (
	"github.com/octavo-fp8/octavo/optim"
)

// Partition is what one of several ranks keeps of a run, as ZeRO-1 cuts master weights and
// moments. The zero value is all of it.
//
// Each parameter is cut by itself, in row-major order, into runs of whole blocks: those
// of [optim.Moments], whose values share a scale, or single values in the formats
// without scales. Of B blocks rank r of R has those from r·B/R up to, but without,
// (r+1)·B/R, rounded down. So partitions differ by one block of each parameter at most, one
// may have nothing of a small parameter, and rank by rank they make the whole.
type Partition struct{ Rank, Ranks int }

// maxRanks bounds the files of a checkpoint.
const maxRanks = 1 << 16

// Check returns an error ([ErrInput]) unless p is the zero value, or a rank of at most
// 65536.
func (p Partition) Check() error {
	switch {
	case p == Partition{}:
		return nil
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return inputError("Partition.Ranks is %d: it must be from 1 to %d", p.Ranks, maxRanks)
	case p.Rank < 0 || p.Rank >= p.Ranks:
		return inputError("Partition.Rank is %d: it must be from 0 to %d", p.Rank, p.Ranks-1)
	}
	return nil
}

func (p Partition) isWhole() bool { return p.Ranks == 0 }

// Range returns the values [lo, hi) that a partition has of n in blocks of the given size.
// It panics if p is not valid, n is negative or block not positive.
func (p Partition) Range(n, block int) (lo, hi int) {
	if p.Check() != nil || n < 0 || block <= 0 {
		panic("train: Partition.Range out of range")
	}
	if p.isWhole() {
		return 0, n
	}
	blocks := int64(n / block)
	if n%block > 0 {
		blocks++
	}
	begin := func(rank int) int {
		return int(min(blocks*int64(rank)/int64(p.Ranks)*int64(block), int64(n)))
	}
	return begin(p.Rank), begin(p.Rank + 1)
}

// blockOf returns the number of values that share a scale in the moments of o.
func blockOf(o *optim.AdamW) int { return max(o.State().Options.Moments.Block, 1) }
