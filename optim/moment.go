package optim

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/scaling"
)

// moment is one running mean of a parameter, however it is kept. Ranges begin with
// a block; those that do not overlap may be used concurrently.
type moment interface {
	// load returns elements [lo, hi) in FP32: in buf, which is as long, or where they
	// are.
	load(buf []float32, lo, hi int) []float32

	// store keeps values, which load returned and which have changed since, from
	// element lo on. It adds what happened to st.
	store(values []float32, lo int, p fp8.Policy, st *fp8.Stats)

	len() int   // elements
	bytes() int // of memory, scales included

	// tensors are what is saved of it.
	tensors(name string, shape []int, w which) []Tensor
}

// fp32Moment is updated in place.
type fp32Moment []float32

func (m fp32Moment) load(_ []float32, lo, hi int) []float32               { return m[lo:hi] }
func (m fp32Moment) store(_ []float32, _ int, _ fp8.Policy, _ *fp8.Stats) {}
func (m fp32Moment) len() int                                             { return len(m) }
func (m fp32Moment) bytes() int                                           { return 4 * len(m) }

// bf16Moment has the range of FP32.
type bf16Moment []fp8.BFloat16

func (m bf16Moment) len() int   { return len(m) }
func (m bf16Moment) bytes() int { return 2 * len(m) }

func (m bf16Moment) load(buf []float32, lo, hi int) []float32 {
	for i, v := range m[lo:hi] {
		buf[i] = v.Float32()
	}
	return buf
}

func (m bf16Moment) store(values []float32, lo int, p fp8.Policy, _ *fp8.Stats) {
	dst := m[lo : lo+len(values)]
	if p.Rounding == fp8.Stochastic {
		for i, v := range values {
			dst[i] = random.BF16(v, random.Hash(p.Seed, uint64(lo+i), 0))
		}
		return
	}
	for i, v := range values {
		dst[i] = fp8.BFloat16FromFloat32(v)
	}
}

// fp8Moment has a scale for each block.
type fp8Moment struct {
	format fp8.Format
	which  which
	block  int
	codes  []byte
	scales []float32
}

func newFP8Moment(format fp8.Format, w which, n, block int) *fp8Moment {
	m := &fp8Moment{format: format, which: w, block: block, codes: make([]byte, n), scales: make([]float32, blocksOf(n, block))}
	for i := range m.scales {
		m.scales[i] = 1
	}
	return m
}

func (m *fp8Moment) len() int   { return len(m.codes) }
func (m *fp8Moment) bytes() int { return len(m.codes) + 4*len(m.scales) }

func (m *fp8Moment) load(buf []float32, lo, hi int) []float32 {
	for i := lo; i < hi; i += m.block {
		end := min(i+m.block, hi)
		fp8.DecodeScaled(buf[i-lo:end-lo], m.codes[i:end], m.format, m.scales[i/m.block])
	}
	return buf
}

func (m *fp8Moment) store(values []float32, lo int, p fp8.Policy, st *fp8.Stats) {
	encoder := fp8.NewEncoder(m.format, p)
	for i := 0; i < len(values); i += m.block {
		x := values[i:min(i+m.block, len(values))]
		codes := m.codes[lo+i : lo+i+len(x)]
		scale := momentScale(m.format, x)
		m.scales[(lo+i)/m.block] = scale.Stored
		fp8.EncodeBlock(&encoder, codes, x, scale, uint64(lo+i), st)
		if m.which == secondMoment {
			keepPositive(codes, x)
		}
	}
}

// momentRecipes are the recipes of blocks.
var momentRecipes = [...]scaling.Recipe{
	fp8.E4M3: {Profile: scaling.TEBlock, Format: fp8.E4M3},
	fp8.E5M2: {Profile: scaling.TEBlock, Format: fp8.E5M2},
}

// momentScale returns the scale that carries the largest magnitude to the largest
// code: te-block of package scaling.
func momentScale(format fp8.Format, x []float32) fp8.Scale {
	amax, _ := fp8.Amax(x)
	return momentRecipes[format].Scale(amax)
}

// keepPositive gives what was flushed to zero the smallest code above it: a root of
// zero would divide a first moment that is not.
func keepPositive(codes []byte, x []float32) {
	for i, c := range codes {
		if c == 0 && x[i] > 0 {
			codes[i] = 1
		}
	}
}

// blocksOf returns the number of blocks of n values.
func blocksOf(n, block int) int { return (n + block - 1) / block }
