package pack

import (
	"context"
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// magnitude returns the value of a code without its sign in units of the smallest value, from
// its fields: (2^mantissa + fraction)·2^(exponent-1), or the fraction where the exponent is 0.
func magnitude(f fp8.Format, code int) int64 {
	m := f.Mantissa()
	if f == fp8.MXINT8 {
		return int64(code)
	}
	fraction, exponent := int64(code&(1<<m-1)), code>>m
	if exponent == 0 {
		return fraction
	}
	return (1<<m + fraction) << (exponent - 1)
}

// smallest is the exponent of the format's smallest value.
func smallest(f fp8.Format) int { return int(math.Log2(float64(f.MinSubnormal()))) }

// policies are what each row of a cast is rounded by in turn.
var policies = []fp8.Policy{
	{},
	{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate, NaN: fp8.NaNCanonical},
	{Rounding: fp8.TowardZero, Zero: fp8.ZeroUnsigned},
	{Rounding: fp8.NearestTowardZero, Overflow: fp8.OverflowNonFinite},
	{Rounding: fp8.Stochastic}, // by given bits
}

// place is where a value lies: a quarter of the way from the code of a magnitude to the next,
// for each quarter.
type place struct {
	code, quarters int
	negative       bool
	random         byte // of stochastic rounding
}

func placeOf(key uint64, i, j, codes int) place {
	h := random.Hash(key, 21+uint64(i)<<8, uint64(j))
	return place{int(h >> 32 % uint64(codes)), int(h & 3), h>>2&1 != 0, byte(h >> 8)}
}

// value is the number at a place.
func (p place) value(f fp8.Format) float64 {
	low := magnitude(f, p.code)
	step := magnitude(f, p.code+1) - low
	x := math.Ldexp(float64(4*low+int64(p.quarters)*step), smallest(f)-2)
	if p.negative {
		x = -x
	}
	return x
}

// codeOf is what the value at a place becomes under a policy.
func (p place) codeOf(f fp8.Format, policy fp8.Policy) int64 {
	up := false
	switch policy.Rounding {
	case fp8.NearestEven:
		up = p.quarters == 3 || p.quarters == 2 && p.code&1 == 1
	case fp8.NearestTowardZero:
		up = p.quarters == 3
	case fp8.Stochastic:
		up = 64*p.quarters+int(p.random) >= 256
	}
	code := p.code
	if up {
		code++
	}
	sign := int64(0)
	if p.negative {
		sign = 1 << (f.Bits() - 1)
	}
	top := int(f.MaxCode())
	switch {
	case f == fp8.MXINT8 && p.negative:
		return int64(byte(-code))
	case code > top && policy.Overflow == fp8.OverflowSaturate:
		code = top
	case code > top && f.HasInf():
		code = top + 1 // infinities follow the largest value
	case code > top && f.HasNaN():
		if !twoNaNs(f) {
			return int64(f.NaNCode())
		}
		code = int(f.NaNCode())
	case code > top:
		code = top
	case code == 0 && (policy.Zero == fp8.ZeroUnsigned || f.HasNaN() && !twoNaNs(f)):
		return 0
	}
	return sign | int64(code)
}

// twoNaNs reports whether a format's NaN have signs: whether it has a negative zero.
func twoNaNs(f fp8.Format) bool { return f.HasNaN() && bits.OnesCount8(f.NaNCode()) > 1 }

// casts has one operator for each format, whose results are codes and decoded values.
func casts() (all []operator) {
	for _, f := range fp8.Formats() {
		all = append(all, castOf(f, policies, int(f.MaxCode())+1))
	}
	return all
}

// gpuCasts are those that PyTorch has, of values in range.
func gpuCasts() (all []operator) {
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ, fp8.E5M2FNUZ} {
		all = append(all, castOf(f, policies[:1], int(f.MaxCode())))
	}
	return all
}

func castOf(f fp8.Format, by []fp8.Policy, count int) operator {
	if f == fp8.MXINT8 { // the largest code is followed by none
		count = int(f.MaxCode())
	}
	return operator{"cast/" + name(f), func(key uint64, s size) *job {
		rows, cols := s.M, s.N
		x, random := make([]float32, rows*cols), make([]byte, rows*cols)
		codes, back := make([]byte, rows*cols), make([]float32, rows*cols)
		shift := make([]int, rows) // values are multiplied by its power of two first
		for i := range rows {
			if !s.GPU {
				shift[i] = below(key, 22, uint64(i), 20) - 10
			}
			for j := range cols {
				p := placeOf(key, i, j, count)
				x[i*cols+j] = float32(math.Ldexp(p.value(f), shift[i]))
				random[i*cols+j] = p.random
			}
		}
		encoded := &result{what: "codes", rows: rows, cols: cols,
			got: func(i, j int) float64 { return float64(codes[i*cols+j]) },
			want: func(i, j int) int64 {
				return placeOf(key, i, j, count).codeOf(f, by[i%len(by)])
			}}
		decoded := &result{what: "values", rows: rows, cols: cols, unit: smallest(f),
			got: func(i, j int) float64 { return float64(back[i*cols+j]) },
			want: func(i, j int) int64 {
				p := placeOf(key, i, j, count)
				p.quarters = 0
				if p.negative {
					return -magnitude(f, p.code)
				}
				return magnitude(f, p.code)
			}}
		// What is decoded are the codes below the values.
		under := make([]byte, rows*cols)
		for i := range rows {
			for j := range cols {
				p := placeOf(key, i, j, count)
				p.quarters = 0
				under[i*cols+j] = byte(p.codeOf(f, fp8.Policy{}))
			}
		}
		j := &job{results: []*result{encoded, decoded}, run: func(context.Context) error {
			parallel.For(rows, 1, 0, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					a, b := i*cols, (i+1)*cols
					policy := by[i%len(by)]
					one := math.Ldexp(1, shift[i])
					scale := fp8.Scale{Stored: float32(one), Multiplier: float32(1 / one)}
					for k := a; k < b; k++ {
						codes[k], back[k] = ^codes[k], float32(math.NaN())
					}
					if policy.Rounding == fp8.Stochastic {
						fp8.EncodeBits(codes[a:b], x[a:b], f, policy, scale, random[a:b],
							fp8.BitsExact, nil)
					} else {
						fp8.EncodeScaled(codes[a:b], x[a:b], f, policy, scale, 0, nil)
					}
					fp8.Decode(back[a:b], under[a:b], f)
				}
			})
			return nil
		}}
		if s.GPU {
			j.kind, j.with = "cast", map[string]any{"format": name(f)}
			j.files = []safetensors.Tensor{
				float32s("x", x, rows, cols), safetensors.New("codes", safetensors.U8, []int{rows, cols}, under),
			}
		}
		return j
	}}
}

// quantization makes codes and scales of a matrix in which each block has the largest code
// times a power of two, which then is its scale.
type quantization struct {
	name    string
	format  fp8.Format
	profile scaling.Profile
	block   tensor.Block
}

var quantizations = []quantization{
	{"te-block-pow2-1x128", fp8.E4M3, "te-block-pow2", tile},
	{"te-block-pow2-128x128", fp8.E4M3, "te-block-pow2", block},
	{"te-block-pow2-e5m2", fp8.E5M2, "te-block-pow2", tile},
	{"mx-floor-e4m3", fp8.E4M3, "mx-floor", micro},
	{"mx-floor-e2m1", fp8.E2M1, "mx-floor", micro},
}

func (q quantization) operator() operator {
	return operator{"quantize/" + q.name, func(key uint64, s size) *job {
		rows, cols, f := s.M, s.N, q.format
		t := &tensor.Tensor{Name: "x", Shape: []int{rows, cols}, Block: q.block}
		gridRows, gridCols := t.Grid()
		high, wide := q.block.Rows, q.block.Cols
		exponent := func(i, j int) int { return below(key, 23+uint64(i)<<8, uint64(j), 30) - 15 }
		at := func(i, j int) place {
			if i%high == 0 && j%wide == 0 { // the largest of its block
				return place{code: int(f.MaxCode())}
			}
			return placeOf(key, i, j, int(f.MaxCode()))
		}
		x := make([]float32, rows*cols)
		for i := range rows {
			for j := range cols {
				x[i*cols+j] = float32(math.Ldexp(at(i, j).value(f), exponent(i/high, j/wide)))
			}
		}
		codes := &result{what: "codes", rows: rows, cols: cols,
			got:  func(i, j int) float64 { return float64(t.Codes[i*cols+j]) },
			want: func(i, j int) int64 { return at(i, j).codeOf(f, fp8.Policy{}) }}
		scales := &result{what: "scales", rows: gridRows, cols: gridCols, unit: -15,
			got:  func(i, j int) float64 { return float64(t.Scales[i*gridCols+j]) },
			want: func(i, j int) int64 { return 1 << (exponent(i, j) + 15) }}
		recipe := scaling.Recipe{Profile: q.profile, Format: f, Block: q.block}
		return &job{results: []*result{codes, scales}, run: func(ctx context.Context) error {
			for i := range t.Codes {
				t.Codes[i] = ^t.Codes[i]
			}
			return scaling.Quantize(ctx, t, x, scaling.Quantizer{Recipe: recipe})
		}}
	}}
}
