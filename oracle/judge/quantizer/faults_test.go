package quantizer

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// example is what an honest quantizer made, of which a fault changes something.
type example struct {
	t          *testing.T
	x          []float32
	rows, cols int
	recipe     scaling.Recipe
	got        *tensor.Tensor
	raw        []float32
	layout     fault.GridLayout
}

// laplace are values with long tails, in blocks of other sizes, on a grid of so many bits.
func laplace(seed uint64, rows, cols, mantissa int) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, rows*cols)
	for i := range x {
		v := r.ExpFloat64() * math.Exp2(float64(r.IntN(2)+(i/cols/3)%4+(i%cols/32)%3-3))
		if r.IntN(2) == 0 {
			v = -v
		}
		x[i] = float32(v)
		if mantissa < 23 {
			f, e := math.Frexp(v)
			x[i] = float32(math.Ldexp(math.Round(math.Ldexp(f, mantissa)), e-mantissa))
		}
	}
	return x
}

func newExample(t *testing.T, x []float32, rows, cols int, p scaling.Profile, f fp8.Format, b tensor.Block) *example {
	e := &example{t: t, x: x, rows: rows, cols: cols, recipe: scaling.Recipe{Profile: p, Format: f, Block: b}}
	e.got = &tensor.Tensor{Name: "codes", Shape: []int{rows, cols}}
	require.NoError(t, scaling.Quantize(t.Context(), e.got, x, scaling.Quantizer{Recipe: e.recipe}))
	return e
}

// block is the rows and columns of a block.
func (e *example) block(n int) (i0, i1, j0, j1 int) {
	h, w := e.recipe.Block.Rows, e.recipe.Block.Cols
	if h == 0 {
		h = e.rows
	}
	if w == 0 {
		w = e.cols
	}
	across := (e.cols + w - 1) / w
	i0, j0 = n/across*h, n%across*w
	return i0, min(e.rows, i0+h), j0, min(e.cols, j0+w)
}

func (e *example) amax(n int, of func(x float64) float64) (a float64) {
	i0, i1, j0, j1 := e.block(n)
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			a = max(a, of(float64(e.x[i*e.cols+j])))
		}
	}
	return a
}

// encode has values of a block times m rounded by a rule: "even", "away" or "zero" for ties, "cut".
func (e *example) encode(n int, m float64, how string, first func(x float32) float32) {
	i0, i1, j0, j1 := e.block(n)
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			y := float32(float64(e.x[i*e.cols+j]) * m)
			if first != nil {
				y = first(y)
			}
			e.got.Codes[i*e.cols+j] = search(y, e.recipe.Format, how)
		}
	}
}

// search finds the code of a number among all, saturating.
func search(y float32, f fp8.Format, how string) byte {
	size := math.Abs(float64(y))
	best, least := byte(0), math.Inf(1)
	for c := 0; c <= int(f.MaxCode()); c++ {
		v := float64(f.Float32(byte(c)))
		d := math.Abs(v - size)
		if how == "cut" && v > size {
			break
		}
		closer := d < least
		if d == least {
			closer = how == "away" || how == "even" && c%2 == 0
		}
		if closer {
			best, least = byte(c), d
		}
	}
	if math.Signbit(float64(y)) {
		best |= 1 << (f.Bits() - 1)
	}
	return best
}

func (e *example) check() *Verdict {
	e.t.Helper()
	v, err := Check(e.t.Context(), Result[float32]{X: e.x, Got: e.got, Raw: e.raw, Layout: e.layout}, e.recipe, Options{})
	require.NoError(e.t, err)
	return v
}

func mustLayout(t *testing.T, name string) (l fault.GridLayout) {
	require.NoError(t, l.UnmarshalText([]byte(name)))
	return l
}

var (
	micro  = tensor.Block{Rows: 1, Cols: 32}
	tile   = tensor.Block{Rows: 1, Cols: 128}
	square = tensor.Block{Rows: 128, Cols: 128}
	nv     = tensor.Block{Rows: 1, Cols: 16}
)

// size is the largest magnitude.
func size(x float64) float64 { return math.Abs(x) }

// seeds is how many of each are made.
const seeds = 2

// TestFaultsAreNamed has faults of other seeds, shapes and profiles than those of the museum, made by
// their own definitions. Each has to be named: a word of each list occurs in what explains it.
func TestFaultsAreNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, seed uint64) *example
		words string // lists between ";", words between "|"
	}{
		{"neighbour", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 70, 437, 23), 70, 437, scaling.DeepSeek, fp8.E4M3, tile)
			for n := range e.got.Scales {
				if n%4 < 3 {
					s := float32(e.amax(n+1, size)) / 448
					e.got.Scales[n] = s
					for j := n % 4 * 128; j < n%4*128+128; j++ {
						e.got.Codes[n/4*437+j] = search(e.x[n/4*437+j]/s, fp8.E4M3, "even")
					}
				}
			}
			return e
		}, "scale-neighbour;right"},
		{"transposed grid", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 300, 500, 23), 300, 500, scaling.DeepGEMM, fp8.E4M3, square)
			s := append([]float32(nil), e.got.Scales...) // 3x4
			for r := range 3 {
				for c := range 4 {
					e.got.Scales[c*3+r] = s[r*4+c]
				}
			}
			return e
		}, "scale-layout;transposed|column-major"},
		{"ties away", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 33, 160, 5), 33, 160, scaling.MXRCeil, fp8.E4M3, micro)
			for n, s := range e.got.Scales {
				e.encode(n, 1/float64(s), "away", nil)
			}
			return e
		}, "ties;away"},
		{"ties toward zero, E2M1", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 33, 160, 4), 33, 160, scaling.MXCeil, fp8.E2M1, micro)
			for n, s := range e.got.Scales {
				e.encode(n, 1/float64(s), "zero", nil)
			}
			return e
		}, "ties;toward zero"},
		{"cut in some rows", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 90, 161, 23), 90, 161, scaling.MXEven, fp8.E5M2, micro)
			for n := 6 * 40; n < 6*53; n++ {
				e.encode(n, 1/float64(e.got.Scales[n]), "cut", nil)
			}
			return e
		}, "directed;toward zero|cut;40;52"},
		{"through float16", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 150, 384, 23), 150, 384, scaling.MXFloor, fp8.E4M3, micro)
			for n, s := range e.got.Scales {
				e.encode(n, 1/float64(s), "even", func(y float32) float32 { return float16.Fromfloat32(y).Float32() })
			}
			return e
		}, "double-rounding;twice;float16"},
		{"through bfloat16, E5M2", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 51, 333, 23), 51, 333, scaling.MXCeil, fp8.E5M2, micro)
			for n, s := range e.got.Scales {
				e.encode(n, 1/float64(s), "even", func(y float32) float32 { return fp8.BFloat16FromFloat32(y).Float32() })
			}
			return e
		}, "double-rounding;twice;bfloat16"},
		{"saturates at 240", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 40, 300, 23), 40, 300, scaling.DeepGEMM, fp8.E4M3, tile)
			for i, c := range e.got.Codes {
				if c&0x7F > 0x77 {
					e.got.Codes[i] = c&0x80 | 0x77
				}
			}
			return e
		}, "saturates-below;240"},
		{"amax/240", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 40, 300, 23), 40, 300, scaling.DeepSeek, fp8.E4M3, tile)
			for n := range e.got.Scales {
				s := float32(e.amax(n, size)) / 240
				e.got.Scales[n] = s
				e.encode(n, 1, "even", func(y float32) float32 { return y / s })
			}
			return e
		}, "scale-largest;240"},
		{"outer left out", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 48, 208, 23), 48, 208, scaling.NVFP4TE, fp8.E2M1, nv)
			for n, s := range e.got.Scales {
				e.encode(n, 1/float64(s), "even", nil)
			}
			return e
		}, "outer;left out"},
		{"stale outer", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 48, 208, 23), 48, 208, scaling.NVFP4ModelOpt, fp8.E2M1, nv)
			q := scaling.Quantizer{Recipe: e.recipe, OuterAmax: []float32{5.5}}
			require.NoError(t, scaling.Quantize(t.Context(), e.got, e.x, q))
			return e
		}, "outer-other-amax;stale;5.5"},
		{"outer reciprocal", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 48, 208, 23), 48, 208, scaling.NVFP4TorchAOGlobal, fp8.E2M1, nv)
			e.got.Outer.Scales[0] = 1 / e.got.Outer.Scales[0]
			return e
		}, "outer;reciprocal"},
		{"outer of one", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 48, 208, 23), 48, 208, scaling.NVFP4FourOverSixMSE, fp8.E2M1, nv)
			e.got.Outer.Scales[0] = 1
			return e
		}, "outer-ignored;left out"},
		{"outer of 448", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 48, 208, 23), 48, 208, scaling.NVFP4ModelOpt, fp8.E2M1, nv)
			a := float32(0)
			for _, v := range e.x {
				a = max(a, v, -v)
			}
			e.got.Outer.Scales[0] = a / 448
			return e
		}, "outer;448;claimed"},
		{"four over six", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 48, 208, 23)
			e := newExample(t, x, 48, 208, scaling.NVFP4TE, fp8.E2M1, nv)
			e.got = newExample(t, x, 48, 208, scaling.NVFP4FourOverSixMSE, fp8.E2M1, nv).got
			return e
		}, "other-profile;nvfp4-fouroversix-mse"},
		{"Model-Optimizer's rounding", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 48, 224, 4)
			for i := range x {
				if i%11 == 0 {
					x[i] = 0
				}
			}
			e := newExample(t, x, 48, 224, scaling.MXRCeil, fp8.E2M1, micro)
			e.got = newExample(t, x, 48, 224, scaling.MXModelOpt, fp8.E2M1, micro).got
			return e
		}, "codes-other-library|other-profile;mx-modelopt"},
		{"reciprocals, UE4M3", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 48, 208, 23), 48, 208, scaling.NVFP4TorchAO, fp8.E2M1, nv)
			for n, s := range e.got.Scales {
				e.got.Scales[n] = fp8.E4M3.Float32(search(1/s, fp8.E4M3, "even"))
			}
			return e
		}, "scale-reciprocal;reciprocal"},
		{"largest value", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 50, 256, 23), 50, 256, scaling.DeepSeek, fp8.E4M3, tile)
			for n := range e.got.Scales {
				s := max(float32(e.amax(n, func(x float64) float64 { return x })), 1e-4) / 448
				e.got.Scales[n] = s
				e.encode(n, 1, "even", func(y float32) float32 { return y / s })
			}
			return e
		}, "amax-signed;negative"},
		{"swizzled", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 256, 256, 23), 256, 256, scaling.MXRCeil, fp8.E4M3, micro)
			s := append([]float32(nil), e.got.Scales...)
			for r := range 256 {
				for c := range 8 { // cuBLAS: tiles of 128x4, 32x4x4
					at := (r/128*2+c/4)*512 + r%32*16 + r%128/32*4 + c%4
					e.got.Scales[at] = s[r*8+c]
				}
			}
			return e
		}, "scale-layout;128x4"},
		{"not swizzled", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 100, 224, 23), 100, 224, scaling.MXRCeil, fp8.E4M3, micro)
			e.layout = mustLayout(t, "128x4")
			e.raw = make([]float32, 128*8)
			copy(e.raw, e.got.Scales) // row by row, where tiles are wanted
			e.got.Scales = Arrange(e.raw, e.layout, 100, 7)
			return e
		}, "scale-layout;row-major"},
		{"packed in reverse", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 64, 1024, 23), 64, 1024, scaling.DeepGEMMUE8M0, fp8.E4M3, tile)
			e.layout = mustLayout(t, "packed")
			e.raw = make([]float32, 64*8)
			for r := range 64 {
				for c := range 8 {
					e.raw[(c/4*64+r)*4+3-c%4] = e.got.Scales[r*8+c]
				}
			}
			e.got.Scales = Arrange(e.raw, e.layout, 64, 8)
			return e
		}, "scale-layout;reverse"},
		{"clamped scale", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 320, 23), 60, 320, scaling.DeepSeek, fp8.E4M3, tile)
			for n, s := range e.got.Scales {
				if s < 0.006 {
					e.got.Scales[n] = 0.006
					e.encode(n, 1, "even", func(y float32) float32 { return y / 0.006 })
				}
			}
			return e
		}, "scale-clamped;smallest;0.006"},
		{"flushed", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 60, 320, 23)
			for i := range x {
				if i%9 == 0 {
					x[i] *= 1e-4
				}
			}
			e := newExample(t, x, 60, 320, scaling.TEBlock, fp8.E4M3, tile)
			for i, c := range e.got.Codes {
				if c&0x7F < 8 {
					e.got.Codes[i] = c & 0x80
				}
			}
			return e
		}, "subnormals-flushed;zero"},
		{"negative zero", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 60, 320, 23)
			for i := range x {
				if i%5 == 0 {
					x[i] *= 1e-9
				}
			}
			e := newExample(t, x, 60, 320, scaling.TEBlock, fp8.E4M3, tile)
			for i, c := range e.got.Codes {
				if c == 0x80 {
					e.got.Codes[i] = 0
				}
			}
			return e
		}, "zero-sign;negative zero"},
		{"nibbles", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 21, 144, 23), 21, 144, scaling.NVFP4TE, fp8.E2M1, nv)
			for i := 0; i < len(e.got.Codes); i += 2 {
				e.got.Codes[i], e.got.Codes[i+1] = e.got.Codes[i+1], e.got.Codes[i]
			}
			return e
		}, "nibble;exchanged"},
		{"one stale block", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 320, 23), 60, 320, scaling.DeepSeek, fp8.E4M3, tile)
			s := e.got.Scales[77] * 0.3712
			e.got.Scales[77] = s
			e.encode(77, 1, "even", func(y float32) float32 { return y / s })
			return e
		}, "stale-amax;another amax"},
		{"two faults", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 320, 23), 60, 320, scaling.MXRCeil, fp8.E4M3, micro)
			for n := range e.got.Scales {
				s := math.Exp2(math.Floor(math.Log2(e.amax(n, size) / 448)))
				e.got.Scales[n] = float32(s)
				e.encode(n, 1/s, "cut", nil)
			}
			return e
		}, "one too low|rounded down;directed"},
		{"codes of the neighbour", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 384, 23), 60, 384, scaling.DeepSeek, fp8.E4M3, tile)
			for n := 1; n < len(e.got.Scales); n++ {
				if n%3 > 0 {
					s := e.got.Scales[n-1]
					e.encode(n, 1, "even", func(y float32) float32 { return y / s })
				}
			}
			return e
		}, "codes-other-scale;left"},
		{"stored in bfloat16", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 384, 23), 60, 384, scaling.DeepGEMM, fp8.E4M3, tile)
			for n, s := range e.got.Scales {
				e.got.Scales[n] = fp8.BFloat16FromFloat32(s).Float32()
			}
			return e
		}, "scale-stored-narrow;bfloat16"},
		{"amax of rows", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 384, 23), 60, 384, scaling.DeepSeek, fp8.E4M3, tile)
			for n := range e.got.Scales {
				s := float32(max(e.amax(n/3*3, size), e.amax(n/3*3+1, size), e.amax(n/3*3+2, size))) / 448
				e.got.Scales[n] = s
				e.encode(n, 1, "even", func(y float32) float32 { return y / s })
			}
			return e
		}, "amax-other-block;rows"},
		{"unrounded, te-block-pow2", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 384, 23), 60, 384, scaling.TEBlockPow2, fp8.E5M2, tile)
			for n := range e.got.Scales {
				m := float32(57344) / float32(e.amax(n, size))
				e.encode(n, 1, "even", func(y float32) float32 { return y * m })
			}
			return e
		}, "codes-unrounded-scale;before it was rounded"},
		{"unrounded, mx", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 384, 23), 60, 384, scaling.MXRCeil, fp8.E2M1, micro)
			for n := range e.got.Scales {
				s := float32(e.amax(n, size)) / 6
				e.encode(n, 1, "even", func(y float32) float32 { return y / s })
			}
			return e
		}, "codes-unrounded-scale;before it was rounded"},
		{"too high in columns", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 384, 23), 60, 384, scaling.MXFloor, fp8.E4M3, micro)
			for n, s := range e.got.Scales {
				if n%12 == 5 {
					e.got.Scales[n] = 2 * s
					e.encode(n, 0.5/float64(s), "even", nil)
				}
			}
			return e
		}, "one too high;160;191"},
		{"FNUZ codes", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 60, 384, 23), 60, 384, scaling.DeepGEMM, fp8.E4M3, tile)
			for i, c := range e.got.Codes {
				v := e.got.Format.Float32(c)
				if e.got.Codes[i] = search(min(max(v, -240), 240), fp8.E4M3FNUZ, "even"); v == 0 {
					e.got.Codes[i] = 0
				}
			}
			for n, s := range e.got.Scales {
				_ = s
				i0, i1, j0, j1 := e.block(n)
				m := 1 / s
				for i := i0; i < i1; i++ {
					for j := j0; j < j1; j++ {
						y := e.x[i*e.cols+j] * m
						c := search(min(max(y, -240), 240), fp8.E4M3FNUZ, "even")
						if c == 0x80 {
							c = 0
						}
						e.got.Codes[i*e.cols+j] = c
					}
				}
			}
			return e
		}, "other-format;E4M3FNUZ"},
		{"sign lost", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 30, 96, 23), 30, 96, scaling.MXFloor, fp8.E2M1, micro)
			for i := range e.got.Codes {
				e.got.Codes[i] &= 7
			}
			return e
		}, "sign-lost"},
		{"bfloat16 arithmetic", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 60, 384, 23)
			for i := range x {
				x[i] = fp8.BFloat16FromFloat32(x[i]).Float32()
			}
			e := newExample(t, x, 60, 384, scaling.TEBlock, fp8.E4M3, tile)
			for n := range e.got.Scales {
				m := fp8.BFloat16FromFloat32(448 / float32(e.amax(n, size))).Float32()
				e.encode(n, 1, "even", func(y float32) float32 { return fp8.BFloat16FromFloat32(y * m).Float32() })
			}
			return e
		}, "bfloat16;twice"},
		{"ragged tail of four", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 60, 343, 23)
			for i := range 60 {
				x[i*343+341] = 40 // is left out, and saturates
			}
			e := newExample(t, x, 60, 343, scaling.DeepSeek, fp8.E4M3, tile)
			for n := 2; n < len(e.got.Scales); n += 3 {
				a := 0.0
				for j := 256; j < 340; j++ {
					a = max(a, math.Abs(float64(e.x[n/3*343+j])))
				}
				s := float32(a) / 448
				e.got.Scales[n] = s
				e.encode(n, 1, "even", func(y float32) float32 { return y / s })
			}
			return e
		}, "amax-ragged;last;columns 340"},
		{"zero blocks of one", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 60, 384, 23)
			for i := range 700 {
				x[i] = 0
			}
			e := newExample(t, x, 60, 384, scaling.DeepGEMM, fp8.E4M3, tile)
			for n := range 5 {
				e.got.Scales[n] = 1
			}
			return e
		}, "zero-block|scale-clamped;zeros;scale 1"},
		{"wrong axis, weights", func(t *testing.T, seed uint64) *example {
			x := laplace(seed, 96, 160, 23)
			e := newExample(t, x, 96, 160, scaling.MXFloor, fp8.E2M1, micro)
			across := newExample(t, x, 96, 160, scaling.MXFloor, fp8.E2M1, tensor.Block{Rows: 32, Cols: 1})
			copy(e.got.Codes, across.got.Codes)
			copy(e.got.Scales, across.got.Scales)
			return e
		}, "wrong-axis;axis"},
		{"NaN above", func(t *testing.T, seed uint64) *example {
			e := newExample(t, laplace(seed, 40, 160, 23), 40, 160, scaling.MXFloor, fp8.E5M2, micro)
			for n, s := range e.got.Scales {
				i0, _, j0, j1 := e.block(n)
				for j := j0; j < j1; j++ {
					if y := e.x[i0*e.cols+j] / s; math.Abs(float64(y)) >= 61440 {
						e.got.Codes[i0*e.cols+j] = 0x7C | e.got.Codes[i0*e.cols+j]&0x80
					}
				}
			}
			return e
		}, "overflow;infinity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				e := c.make(t, seed+101)
				v := e.check()
				require.Equal(t, "fail", v.Outcome)
				text := strings.ToLower(v.Cause())
				for _, list := range strings.Split(strings.ToLower(c.words), ";") {
					ok := false
					for _, w := range strings.Split(list, "|") {
						ok = ok || regexp.MustCompile(regexp.QuoteMeta(w)).MatchString(text)
					}
					require.True(t, ok, "%s is not in:\n%s\n%s\n%v", list, v.Title(), v.Cause(), v.findings())
				}
			}
		})
	}
}
