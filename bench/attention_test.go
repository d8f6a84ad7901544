package bench

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/tensor"
)

// attended is a cache that is larger than the processor's, and what attends to it: one
// query of each head, as in decoding.
type attended struct {
	name   string
	config attention.CacheConfig
	group  int // query heads of each head of keys
	p      attention.PFormat
}

func attendedCaches() []attended {
	one := attention.CacheScale{Scales: []float32{0.01}}
	codes := attention.CacheConfig{KVHeads: 8, Dim: 128, K: one, V: one}
	v32 := attention.FlashMLAV32
	var list []attended
	for _, group := range []int{1, 4, 8, 128} {
		list = append(list, attended{"e4m3", codes, group, attention.PE4M3})
	}
	list = append(list, attended{"e4m3", codes, 1, attention.PBFloat16}, attended{"e4m3", codes, 8, attention.PBFloat16})
	return append(list, attended{v32.String(), attention.CacheConfig{Record: &v32}, 128, attention.PBFloat16})
}

// BenchmarkAttend is attention over a KV cache beside its roof: what reading as much memory
// takes, or doing as many multiply-adds, whichever takes longer. All three are measured by
// turns, for about as long, and the medians are compared.
func BenchmarkAttend(b *testing.B) {
	const bytes = 96 * mebi
	written := memory.Large[byte](bytes) // as those of caches
	for i := range written {
		written[i] = byte(i)
	}
	for _, c := range attendedCaches() {
		s := c.sequence(b, bytes)
		for _, workers := range []int{1, 2} {
			name := fmt.Sprintf("cache=%s/heads=%d/p=%v/workers=%d", c.name, c.group, c.p, workers)
			b.Run(name, func(b *testing.B) { c.attend(b, s, written, workers) })
		}
	}
}

// sequence fills a cache of about so many bytes.
func (c *attended) sequence(b *testing.B, bytes int) *attention.Sequence {
	config := c.config
	config.Pages = 1
	one, err := attention.NewCache(config)
	if err != nil {
		b.Fatal(err)
	}
	config.Pages = max(bytes/one.Bytes(), 1)
	cache, err := attention.NewCache(config)
	if err != nil {
		b.Fatal(err)
	}
	c.config = cache.Config()
	s := cache.NewSequence(c.name)
	k, v := normals(64*c.config.KVHeads*c.config.Dim), normals(64*c.config.KVHeads*c.config.ValueDim)
	if c.config.Record != nil {
		v = nil
	}
	for range config.Pages {
		if err := attention.Append(s, k, v); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func (c *attended) attend(b *testing.B, s *attention.Sequence, written []byte, workers int) {
	heads := c.config.KVHeads * c.group
	q := attention.Query{Sequence: s, Q: c.queries(heads)}
	out := make([]float32, heads*c.config.ValueDim)
	o := attention.Options{P: c.p, Workers: workers, Splits: workers}
	flop := 2 * float64(heads) * float64(s.Len()) * float64(c.config.Dim+c.config.ValueDim)
	size := s.Len() * c.config.KVHeads * (c.config.Dim + c.config.ValueDim)
	if c.config.Record != nil {
		size = s.Len() * c.config.Record.TokenBytes()
	}
	var attend, read, multiply []float64 // seconds of each turn
	for b.Loop() {
		start := time.Now()
		if err := attention.Attend(b.Context(), out, &q, o); err != nil {
			b.Fatal(err)
		}
		attend = append(attend, time.Since(start).Seconds())
		b.StopTimer()
		read = append(read, readSeconds(written[:size], workers))
		multiply = append(multiply, multiplySeconds(flop, workers))
		b.StartTimer()
	}
	b.ReportMetric(flop/median(attend)/1e9, "GFLOP/s")
	b.ReportMetric(float64(size)/median(attend)/1e9, "GB/s")
	if roof := max(median(read), median(multiply)); roof > 0 {
		b.ReportMetric(flop/median(multiply)/1e9, "peak-GFLOP/s")
		b.ReportMetric(float64(size)/median(read)/1e9, "peak-GB/s")
		b.ReportMetric(100*roof/median(attend), "%roof")
	}
}

// readSeconds measures how long reading memory once takes; 0 where there is no kernel.
func readSeconds(memory []byte, workers int) float64 {
	rate := peakRead(memory, workers, 1)
	if rate == 0 {
		return 0
	}
	return float64(len(memory)) / rate / 1e9
}

// multiplySeconds measures how long so many operations take in registers; 0 where there is
// no kernel.
func multiplySeconds(flop float64, workers int) float64 {
	var products atomic.Int64
	done, seconds := 0.0, 0.0
	for done < flop {
		seconds += fastest(1, workers, func() { products.Store(spin(cpu.Current())) })
		if products.Load() == 0 {
			return 0
		}
		done += 2 * float64(products.Load()) * float64(workers)
	}
	return seconds * flop / done
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

func (c *attended) queries(heads int) attention.Operand {
	dim := c.config.Dim
	x := normals(heads * dim)
	if c.config.Record != nil {
		values := make([]fp8.BFloat16, len(x))
		for i := range x {
			values[i] = fp8.BFloat16FromFloat32(x[i])
		}
		return attention.Operand{BFloat16: values, Shape: [3]int{heads, 1, dim}}
	}
	t := &tensor.Tensor{Shape: []int{heads, 1, dim}, Codes: make([]byte, len(x)), Scales: []float32{0.02}}
	fp8.Encode(t.Codes, x, fp8.E4M3, fp8.Policy{}, nil)
	return attention.Operand{Codes: t}
}
