package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestChecksums computes the same conversions, elementary functions and products at
// every level and demands the same bits. It logs a checksum for each, by which command
// compare tells whether two revisions have the same bits. What an operation computes
// under its name must therefore stay as it is; another one needs another name.
func TestChecksums(t *testing.T) {
	want := map[string]string{}
	for _, l := range Levels() {
		restore, err := cpu.Force(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range checksummed() {
			sum := sha256.New()
			if err := o.compute(bits{sum}); err != nil {
				t.Fatalf("%s at level %v: %v", o.name, l, err)
			}
			got := fmt.Sprintf("%x", sum.Sum(nil)[:8])
			t.Logf("checksum %s level=%v %s", o.name, l, got)
			if want[o.name] == "" {
				want[o.name] = got
			}
			if want[o.name] != got {
				t.Errorf("%s: other bits at level %v than at %v", o.name, l, Levels()[0])
			}
		}
		restore()
	}
}

// operation is something to compute, with a name that says what.
type operation struct {
	name    string
	compute func(bits) error
}

// bits takes results.
type bits struct{ hash.Hash }

// add takes slices of numbers, and panics for anything else. Bits of floats count, so -0
// is not 0.
func (b bits) add(results ...any) {
	for _, r := range results {
		if err := binary.Write(b, binary.LittleEndian, r); err != nil {
			panic(err)
		}
	}
}

// stats takes the fields that there have always been.
func (b bits) stats(s *fp8.Stats) {
	b.add([]float64{s.Amax, s.Smallest}, []int64{
		s.Elements, s.SaturatedPos, s.SaturatedNeg, s.BecameNonFinite, s.Flushed, s.Subnormal, s.Zeros, s.NaN, s.PosInf, s.NegInf,
	})
}

// checksummed returns all operations, with fresh inputs.
func checksummed() (all []operation) {
	all = append(all, checksummedConversions()...)
	all = append(all, checksummedFunctions()...)
	all = append(all, checksummedOracles()...)
	return append(all, checksummedProducts()...)
}

// every returns float32s with all upper halves of 16 bits, so all signs, exponents,
// infinities and NaN, and lower halves that are often ties.
func every() []float32 {
	r := rand.New(rand.NewPCG(3, 1))
	x := make([]float32, 1<<16+77) // not a multiple of any vector
	for i := range x {
		low := r.Uint32() >> 16
		if i%3 == 0 {
			low = 0
		}
		x[i] = math.Float32frombits(uint32(i)<<16 | low)
	}
	return x
}

func narrowed[T fp8.Float](x []float32, to func(float32) T) []T {
	y := make([]T, len(x))
	for i := range x {
		y[i] = to(x[i])
	}
	return y
}

func checksummedConversions() (all []operation) {
	x := every()
	for _, f := range fp8.Formats() {
		for _, rounding := range []fp8.Rounding{fp8.NearestEven, fp8.Stochastic} {
			name := fmt.Sprintf("encode/format=%s/rounding=%v", lower(f), rounding)
			p := fp8.Policy{Rounding: rounding, Seed: 5}
			all = append(all,
				operation{name + "/source=float32", encoding(x, f, p)},
				operation{name + "/source=float16", encoding(narrowed(x, float16.Fromfloat32), f, p)},
				operation{name + "/source=bfloat16", encoding(narrowed(x, fp8.BFloat16FromFloat32), f, p)})
		}
		all = append(all, operation{"decode/format=" + lower(f), func(b bits) error { return decoding(b, f) }})
	}
	all = append(all, operation{"amax", func(b bits) error {
		blocks := make([]float32, len(x)/128)
		fp8.AmaxBlocks(blocks, x[:128*len(blocks)], 128)
		for i, m := range blocks {
			if m != m {
				blocks[i] = -1 // the payload of a NaN is not promised
			}
		}
		largest, nan := fp8.Amax(x)
		b.add(append(blocks, largest), []bool{nan})
		return nil
	}})
	values := normals(190 * 300)
	for i := range values {
		values[i] *= float32(math.Ldexp(1, i*7%23-11))
	}
	for _, block := range []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Rows: 128, Cols: 1}, {Rows: 1, Cols: 32}} {
		for _, p := range []scaling.Profile{scaling.TEBlockPow2, scaling.DeepSeek, scaling.MXRCeil, scaling.TECurrent} {
			r := scaling.Recipe{Profile: p, Block: block}
			all = append(all, operation{fmt.Sprintf("quantize/profile=%s/block=%v", p, block), func(b bits) error {
				t := &tensor.Tensor{Shape: []int{190, 300}}
				var st fp8.Stats
				if err := scaling.Quantize(context.Background(), t, values, scaling.Quantizer{Recipe: r, Options: tensor.Options{Stats: &st}}); err != nil {
					return err
				}
				back := make([]float32, len(values))
				tensor.Dequantize(back, t)
				b.add(t.Codes, t.Scales, back)
				b.stats(&st)
				return nil
			}})
		}
	}
	return all
}

// encoding encodes with Stats and without.
func encoding[T fp8.Float](x []T, f fp8.Format, p fp8.Policy) func(bits) error {
	return func(b bits) error {
		codes := make([]byte, len(x))
		var st fp8.Stats
		fp8.Encode(codes, x, f, p, &st)
		b.add(codes)
		clear(codes)
		fp8.Encode(codes, x, f, p, nil)
		b.add(codes)
		b.stats(&st)
		return nil
	}
}

// decoding decodes every code to every type.
func decoding(b bits, f fp8.Format) error {
	codes := make([]byte, 1000)
	for i := range codes {
		codes[i] = byte(i)
	}
	wide, half, brain := make([]float32, len(codes)), make([]float16.Float16, len(codes)), make([]fp8.BFloat16, len(codes))
	fp8.Decode(wide, codes, f)
	fp8.Decode(half, codes, f)
	fp8.Decode(brain, codes, f)
	b.add(wide, half, brain)
	fp8.DecodeScaled(wide, codes, f, 0.3)
	b.add(wide)
	return nil
}

func checksummedFunctions() []operation {
	x := every()
	const rows, cols = 37, 130
	u, g := normals(2 * rows * cols)[:rows*cols], normals(2 * rows * cols)[rows*cols:]
	copy(u, every()[30000:30100])
	dz, z, du := normals(rows*cols), make([]float32, rows*cols), make([]float32, rows*cols)
	dg := make([]float32, rows*cols)
	var smoother swiglu.Smoother
	activation := func(scales swiglu.Scales) func(bits) error {
		return func(b bits) error {
			swiglu.Forward(z, u, g, scales)
			swiglu.Backward(du, dg, dz, u, g, scales)
			b.add(z, du, dg)
			return nil
		}
	}
	return []operation{
		{"exp", func(b bits) error {
			y := make([]float32, len(x))
			elementary.ExpTo(y, x, 4, 0.125, 3)
			b.add(y)
			return nil
		}},
		{"log", func(b bits) error {
			y := make([]float32, len(x))
			for i := range x {
				y[i] = elementary.Log(x[i])
			}
			b.add(y)
			return nil
		}},
		{"swiglu/smoothing=none", activation(swiglu.Scales{})},
		{"swiglu/smoothing=channel", activation(smoother.Scales(u, cols))},
	}
}

// checksummedProducts have sizes that the kernels for one row, for a few, for many and
// for more than an area of the caches serve, none a multiple of a vector.
func checksummedProducts() (all []operation) {
	tile, square := tensor.Block{Rows: 1, Cols: 128}, tensor.Block{Rows: 128, Cols: 128}
	for _, s := range []Shape{{M: 1, N: 300, K: 700, Experts: 1}, {M: 5, N: 130, K: 515, Experts: 1}, {M: 16, N: 97, K: 1030, Experts: 1}, {M: 130, N: 140, K: 390, Experts: 1}, {M: 300, N: 290, K: 300, Experts: 1}, {M: 61, N: 33, K: 129, Experts: 1}} {
		all = append(all, product(s, fp8.E4M3, fp8.E4M3, tile, square))
	}
	small := Shape{M: 19, N: 70, K: 400, Experts: 1}
	for _, blocks := range [][2]tensor.Block{{tile, tile}, {{Rows: 1, Cols: 32}, {Rows: 1, Cols: 32}}, {{}, {}}, {{Rows: 1}, {Rows: 1}}, {{Rows: 3, Cols: 33}, {Rows: 1, Cols: 33}}} {
		all = append(all, product(small, fp8.E4M3, fp8.E4M3, blocks[0], blocks[1]))
	}
	for _, f := range fp8.Formats()[1:] {
		all = append(all, product(small, f, fp8.E4M3, tile, square), product(small, f, f, tile, square))
	}
	return append(all,
		operation{"product/groups=9,0,17,1", checksummedGroups},
		operation{"product/rounded/" + key(small), func(b bits) error {
			x, y, c := normals(small.M*small.K), normals(small.N*small.K), make([]float32, small.M*small.N)
			canonical.MultiplyDense(c, x, y, small.M, small.N, small.K, 0)
			b.add(c)
			return nil
		}})
}

// drawn returns a tensor of codes of normally distributed values, with some of any
// value, NaN and infinities included, in one row of twenty.
func drawn(rows, cols int, f fp8.Format, block tensor.Block) *tensor.Tensor {
	t := &tensor.Tensor{Shape: []int{rows, cols}, Format: f, Block: block, Codes: make([]byte, rows*cols)}
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	for i := range t.Codes {
		t.Codes[i] = fp8.EncodeOne(float32(r.NormFloat64()*40), f, fp8.Policy{})
		if i/cols%20 == 7 && r.IntN(50) == 0 {
			t.Codes[i] = byte(r.Uint32())
		}
	}
	n, m := t.Grid()
	t.Scales = make([]float32, n*m)
	for i := range t.Scales {
		t.Scales[i] = float32(math.Ldexp(1+r.Float64(), r.IntN(12)-6))
	}
	return t
}

// product multiplies with B as a tensor and packed, for one and for two workers, to
// float32 and, with a bias and onto an old C, to bfloat16.
func product(s Shape, a, b fp8.Format, blockA, blockB tensor.Block) operation {
	name := fmt.Sprintf("product/a=%s/b=%s/scales=%v,%v/%s", lower(a), lower(b), blockA, blockB, key(s))
	x, y := drawn(s.M, s.K, a, blockA), drawn(s.N, s.K, b, blockB)
	return operation{name, func(sum bits) error {
		packed, err := gemm.Pack(y)
		if err != nil {
			return err
		}
		ctx := context.Background()
		c := make([]float32, s.M*s.N)
		if err := gemm.Multiply(ctx, c, x, y, gemm.Options{Workers: 1}); err != nil {
			return err
		}
		sum.add(c)
		if err := gemm.Multiply(ctx, c, x, packed, gemm.Options{Workers: 2}); err != nil {
			return err
		}
		sum.add(c)
		narrow := make([]fp8.BFloat16, s.M*s.N)
		if err := gemm.Multiply(ctx, narrow, x, y, gemm.Options{Bias: normals(s.N), Accumulate: true}); err != nil {
			return err
		}
		sum.add(narrow)
		return nil
	}}
}

// checksummedGroups multiplies rows that are grouped by expert, by tensors and by packed
// weights.
func checksummedGroups(sum bits) error {
	rows, total := []int{9, 0, 17, 1}, 27
	x := drawn(total, 260, fp8.E4M3, tensor.Block{Rows: 1, Cols: 128})
	var experts []*tensor.Tensor
	var packed []*gemm.Packed
	for e := range rows {
		w := drawn(65+e, 260, fp8.E4M3, tensor.Block{Rows: 128, Cols: 128})
		w, err := w.RowRange(0, 65)
		if err != nil {
			return err
		}
		p, err := gemm.Pack(w)
		if err != nil {
			return err
		}
		experts, packed = append(experts, w), append(packed, p)
	}
	c := make([]float32, total*65)
	if err := gemm.GroupedRows(context.Background(), c, x, experts, rows, gemm.Options{}); err != nil {
		return err
	}
	sum.add(c)
	clear(c)
	if err := gemm.GroupedRows(context.Background(), c, x, packed, rows, gemm.Options{}); err != nil {
		return err
	}
	sum.add(c)
	return nil
}
