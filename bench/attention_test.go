package bench

import (
	"fmt"
	"testing"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
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

// BenchmarkAttend is attention over a KV cache beside its roof, in one run: what the
// fastest reading of as much memory, or the multiply-adds, allow.
func BenchmarkAttend(b *testing.B) {
	const bytes = 96 * mebi
	memory := written(bytes)
	for _, c := range attendedCaches() {
		s := c.sequence(b, bytes)
		for _, workers := range []int{1, 2} {
			name := fmt.Sprintf("cache=%s/heads=%d/p=%v/workers=%d", c.name, c.group, c.p, workers)
			b.Run(name, func(b *testing.B) { c.attend(b, s, memory, workers) })
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

func (c *attended) attend(b *testing.B, s *attention.Sequence, memory []byte, workers int) {
	heads := c.config.KVHeads * c.group
	q := attention.Query{Sequence: s, Q: c.queries(heads)}
	out := make([]float32, heads*c.config.ValueDim)
	o := attention.Options{P: c.p, Workers: workers, Splits: workers}
	for b.Loop() {
		if err := attention.Attend(b.Context(), out, &q, o); err != nil {
			b.Fatal(err)
		}
	}
	flop := 2 * float64(heads) * float64(s.Len()) * float64(c.config.Dim+c.config.ValueDim)
	bytes := float64(s.Len()) * float64(c.config.KVHeads*(c.config.Dim+c.config.ValueDim))
	if c.config.Record != nil {
		bytes = float64(s.Len() * c.config.Record.TokenBytes())
	}
	rate := flop * float64(b.N) / b.Elapsed().Seconds() / 1e9
	b.ReportMetric(rate, "GFLOP/s")
	b.ReportMetric(rate*bytes/flop, "GB/s")
	var limits Limits
	limits.measure([]cpu.Level{cpu.Current()}, []int{workers}, memory, []int{len(memory)})
	if roof := limits.Roof(cpu.Current().String(), workers, flop/bytes); roof > 0 {
		b.ReportMetric(100*rate/roof, "%roof")
	}
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
