package cache

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// What follows makes caches by definitions of its own: formats from their exponents, scales and
// codes in plain loops.

// minifloat is a format of a sign, exponent bits and mantissa bits.
type minifloat struct {
	format         fp8.Format
	exponent, mant int
	bias           int
	max            float64
	codes          []byte // of magnitudes, ascending
	values         []float64
}

func newMinifloat(f fp8.Format, exponent, mant, bias int, max float64) *minifloat {
	m := &minifloat{format: f, exponent: exponent, mant: mant, bias: bias, max: max}
	for code := 0; code < 1<<(exponent+mant); code++ {
		e, x := code>>mant, float64(code&(1<<mant-1))/float64(int(1)<<mant)
		v := math.Ldexp(1+x, e-bias)
		if e == 0 {
			v = math.Ldexp(x, 1-bias)
		}
		if v <= max {
			m.codes, m.values = append(m.codes, byte(code)), append(m.values, v)
		}
	}
	return m
}

var (
	madeE4M3 = newMinifloat(fp8.E4M3, 4, 3, 7, 448)
	madeE5M2 = newMinifloat(fp8.E5M2, 5, 2, 15, 57344)
	madeFNUZ = newMinifloat(fp8.E4M3FNUZ, 4, 3, 8, 240)
	madeE2M1 = newMinifloat(fp8.E2M1, 2, 1, 1, 6)
)

// encode rounds to the nearest code, ties to the even one, and saturates.
func (m *minifloat) encode(x float64) byte {
	a := math.Abs(x)
	i := sort.SearchFloat64s(m.values, a)
	switch {
	case i == len(m.values):
		i--
	case i > 0 && m.values[i] != a:
		mid := (m.values[i-1] + m.values[i]) / 2
		if a < mid || a == mid && m.codes[i-1]%2 == 0 {
			i--
		}
	}
	if math.Signbit(x) && !(m.format == fp8.E4M3FNUZ && i == 0) {
		return m.codes[i] | 1<<(m.exponent+m.mant)
	}
	return m.codes[i]
}

func (m *minifloat) decode(code byte) float64 {
	sign := byte(1 << (m.exponent + m.mant))
	v := math.Inf(1)
	if i := int(code &^ sign); i < len(m.values) { // codes ascend without a gap
		v = m.values[i]
	}
	if code&sign != 0 {
		v = -v
	}
	return v
}

// bf16 rounds to bfloat16.
func bf16(x float32) float32 {
	b := math.Float32bits(x)
	return math.Float32frombits((b + 0x7FFF + b>>16&1) &^ 0xFFFF)
}

// made is a cache in the making.
type made struct {
	m        *minifloat
	rule     string // "amax" or "pow2"
	k, v     *Side
	encScale tensor.ScaleFormat
}

// grain is how many tokens, heads and columns share a scale, by name.
var grains = map[string]func(s *Side) Grid{
	"tensor":     func(s *Side) Grid { return Grid{s.Tokens, s.Heads, s.Dim} },
	"head":       func(s *Side) Grid { return Grid{s.Tokens, 1, s.Dim} },
	"token":      func(s *Side) Grid { return Grid{1, s.Heads, s.Dim} },
	"token-head": func(s *Side) Grid { return Grid{1, 1, s.Dim} },
	"page":       func(s *Side) Grid { return Grid{16, s.Heads, s.Dim} },
	"page-head":  func(s *Side) Grid { return Grid{16, 1, s.Dim} },
	"tile":       func(s *Side) Grid { return Grid{1, 1, 32} },
}

// input draws a side: each head, token and column has a size of its own, and rotary columns of K
// are larger.
func input(r *rand.Rand, tokens, heads, dim, rotary int, size float64) *Side {
	s := &Side{Tokens: tokens, Heads: heads, Dim: dim, Cols: dim, InputBits: 7}
	perHead := make([]float64, heads)
	for h := range perHead {
		perHead[h] = math.Exp(0.7 * r.NormFloat64())
	}
	for range tokens {
		perToken := math.Exp(0.4 * r.NormFloat64())
		for h := range heads {
			for c := range dim {
				x := size * perToken * perHead[h] * r.NormFloat64()
				if c >= dim-rotary {
					x *= 4
				}
				s.Input = append(s.Input, bf16(float32(x)))
			}
		}
	}
	return s
}

func newMade(seed uint64, tokens, heads, dim, rotary int, m *minifloat, rule, grain string) *made {
	r := rand.New(rand.NewPCG(seed, 77))
	c := &made{m: m, rule: rule, k: input(r, tokens, heads, dim, rotary, 2.5), v: input(r, tokens, heads, dim, 0, 0.4)}
	for _, s := range []*Side{c.k, c.v} {
		s.Format, s.Grid = m.format, grains[grain](s)
	}
	return c
}

// hooks are what a fault changes; nil is nothing.
type hooks struct {
	amax   func(s *Side, t, h, c int) bool             // whether an element counts
	scale  func(s *Side, g int, scale float32) float32 // as it is stored
	source func(s *Side, t, h, c int) float32          // the value that is written at a place
	used   func(s *Side, g int, scale float32) float32 // by which codes are made
	code   func(s *Side, t, h, c int, x float64, q float32) (byte, bool)
	read   func(s *Side, g int, scale float32) float32 // by which codes are read
	value  func(s *Side, code byte, scale float32) (float32, bool)
	only   func(s *Side, t, h int) bool // places of used and read; nil: all
}

// groupOf is the scale of a place, in the definition's own words.
func groupOf(s *Side, t, h, c int) int {
	up := func(n, by int) int { return (n + by - 1) / by }
	return (t/s.Grid.Tokens*up(s.Heads, s.Grid.Heads)+h/s.Grid.Heads)*up(s.Cols, s.Grid.Cols) + c/s.Grid.Cols
}

func scaleOf(rule string, amax, max float32) float32 {
	s := amax / max
	if rule == "down" {
		return power(false)(s)
	}
	if rule == "pow2" {
		p := float32(math.Exp2(math.Floor(math.Log2(float64(s)))))
		for p < s {
			p *= 2
		}
		for p/2 >= s {
			p /= 2
		}
		return p
	}
	return s
}

// write computes both sides with a fault.
func (c *made) write(f hooks) *made {
	for _, s := range []*Side{c.k, c.v} {
		up := func(n, by int) int { return (n + by - 1) / by }
		amaxes := make([]float32, up(s.Tokens, s.Grid.Tokens)*up(s.Heads, s.Grid.Heads)*up(s.Cols, s.Grid.Cols))
		each := func(do func(at, t, h, col int)) {
			for at := range s.Input {
				do(at, at/s.Dim/s.Heads, at/s.Dim%s.Heads, at%s.Dim)
			}
		}
		moved := func(at, t, h, col int) float32 {
			if f.source != nil {
				return f.source(s, t, h, col)
			}
			return s.Input[at]
		}
		each(func(at, t, h, col int) {
			if f.amax == nil || f.amax(s, t, h, col) {
				g := groupOf(s, t, h, col)
				x := s.Input[at]
				if s.Grid.Tokens == 1 {
					x = moved(at, t, h, col)
				}
				amaxes[g] = max(amaxes[g], float32(math.Abs(float64(x))))
			}
		})
		s.Scales = nil
		for g, a := range amaxes {
			scale := scaleOf(c.rule, a, float32(c.m.max))
			if f.scale != nil {
				scale = f.scale(s, g, scale)
			}
			s.Scales = append(s.Scales, scale)
		}
		s.ScaleFormat = c.encScale
	}
	for _, s := range []*Side{c.k, c.v} {
		s.Codes, s.Read = make([]byte, len(s.Input)), make([]float32, len(s.Input))
		for at := range s.Input {
			t, h, col := at/s.Dim/s.Heads, at/s.Dim%s.Heads, at%s.Dim
			g := groupOf(s, t, h, col)
			scale, readBy := s.Scales[g], s.Scales[g]
			here := f.only == nil || f.only(s, t, h)
			if f.used != nil && here {
				scale = f.used(s, g, scale)
			}
			if f.read != nil && here {
				readBy = f.read(s, g, readBy)
			}
			x := s.Input[at]
			if f.source != nil {
				x = f.source(s, t, h, col)
			}
			q := x / scale
			code := c.m.encode(float64(q))
			if f.code != nil {
				if other, ok := f.code(s, t, h, col, float64(x), q); ok {
					code = other
				}
			}
			s.Codes[at] = code
			v := bf16(float32(c.m.decode(code)) * readBy)
			if f.value != nil && here {
				if other, ok := f.value(s, code, readBy); ok {
					v = other
				}
			}
			s.Read[at] = v
		}
	}
	return c
}
