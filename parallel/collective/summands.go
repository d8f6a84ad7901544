package collective

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// summands is the number of elements that are added at a time.
const summands = 1024

// summandBuffers are what adding them needs.
type summandBuffers struct {
	sum, value []float32
	codes      []byte
}

func newSummands() *summandBuffers {
	return &summandBuffers{make([]float32, summands), make([]float32, summands), make([]byte, summands)}
}

// sentPolicy keeps what is not finite so.
var sentPolicy = fp8.Policy{Inf: fp8.InfPropagate}

// part8 does elements [lo, hi) in FP8.
func (s *sharing) part8(b *summandBuffers, lo, hi int, encode, sums *fp8.Stats) {
	n := hi - lo
	sum, value, codes := b.sum[:n], b.value[:n], b.codes[:n]
	before := fp8.Scale{Stored: 1, Multiplier: s.before}
	for worker, shard := range s.shards {
		fp8.EncodeScaled(codes, shard[lo:hi], fp8.E4M3, sentPolicy, before, 0, encode)
		if worker == 0 {
			fp8.Decode(sum, codes, fp8.E4M3)
			continue
		}
		fp8.Decode(value, codes, fp8.E4M3)
		for i, v := range value {
			sum[i] += v
		}
		fp8.Encode(codes, sum, fp8.E4M3, sentPolicy, sums)
		fp8.Decode(sum, codes, fp8.E4M3)
	}
	for i, v := range sum {
		s.dst[lo+i] = v * s.after
	}
}

// part32 does elements [lo, hi) in FP32.
func (s *sharing) part32(b *summandBuffers, lo, hi int, encode, sums *fp8.Stats) {
	sum := b.sum[:hi-lo]
	for worker, shard := range s.shards {
		for i, v := range shard[lo:hi] {
			x := float32(v * s.before)
			rounding.Count(encode, v, x)
			if worker == 0 {
				sum[i] = x
				continue
			}
			before := sum[i]
			sum[i] = before + x
			rounding.CountSum(sums, before, x, sum[i])
		}
	}
	for i, v := range sum {
		s.dst[lo+i] = v * s.after
	}
}
