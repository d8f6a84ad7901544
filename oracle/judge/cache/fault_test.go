package cache

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// faultCase is a fault, made by the definitions of this test, and words of its diagnosis.
type faultCase struct {
	name   string
	grains string
	rule   string
	hooks  func(c *made) hooks
	after  func(c *made)
	claim  Claim
	words  []string // all of them; alternatives are parted by |
	kind   Kind
}

func power(up bool) func(s float32) float32 {
	return func(s float32) float32 {
		p := float32(math.Exp2(math.Floor(math.Log2(float64(s)))))
		if up && p < s {
			p *= 2
		}
		return p
	}
}

func at(s *Side, t, h, c int) float32 { return s.Input[(t*s.Heads+h)*s.Dim+c] }

func (c *made) other(s *Side) *Side {
	if s == c.k {
		return c.v
	}
	return c.k
}

var everyGrain = "tensor head token token-head page page-head tile"

var faultCases = []faultCase{
	{name: "exchanged where it is written", grains: everyGrain, kind: "scale-of-other", words: []string{"made with the scale of V", "exchanged"}, hooks: func(c *made) hooks {
		return hooks{used: func(s *Side, g int, _ float32) float32 { return c.other(s).Scales[g] }}
	}},
	{name: "exchanged where it is read", grains: everyGrain, kind: "scale-of-other", words: []string{"read with the scale of V", "exchanged"}, hooks: func(c *made) hooks {
		return hooks{read: func(s *Side, g int, _ float32) float32 { return c.other(s).Scales[g] }}
	}},
	{name: "exchanged where it is stored", grains: everyGrain, kind: "scale-of-other", words: []string{"scales of K are each the scale of V", "exchanged", "the scale that the input asks for|codes of K are made with the scale of V"}, hooks: func(*made) hooks { return hooks{} },
		after: func(c *made) {
			c.k.Scales, c.v.Scales = c.v.Scales, c.k.Scales
			c.k.Read, c.v.Read = nil, nil
		}},
	{name: "up at read", grains: everyGrain, words: []string{"read with", "up to a power of two|nearest power of two"}, hooks: func(*made) hooks {
		return hooks{read: func(_ *Side, _ int, s float32) float32 { return power(true)(s) }}
	}},
	{name: "down at read", grains: everyGrain, words: []string{"read with", "down to a power of two|nearest power of two"}, hooks: func(*made) hooks {
		return hooks{read: func(_ *Side, _ int, s float32) float32 { return power(false)(s) }}
	}},
	{name: "up at write", grains: everyGrain, words: []string{"codes of K are made with", "up to a power of two|nearest power of two"}, hooks: func(*made) hooks {
		return hooks{used: func(_ *Side, _ int, s float32) float32 { return power(true)(s) }}
	}},
	{name: "up stored", grains: everyGrain, words: []string{"scales of K are each", "up to a power of two|nearest power of two"}, hooks: func(*made) hooks {
		return hooks{scale: func(_ *Side, _ int, s float32) float32 { return power(true)(s) }}
	}},
	{name: "bf16 scale at read", grains: everyGrain, kind: "scale-bf16", words: []string{"rounded to bfloat16"}, hooks: func(*made) hooks {
		return hooks{read: func(_ *Side, _ int, s float32) float32 { return bf16(s) }}
	}},
	{name: "not applied at read", grains: everyGrain, kind: "scale-not-applied", words: []string{"is read with", "not applied"}, hooks: func(*made) hooks {
		return hooks{read: func(*Side, int, float32) float32 { return 1 }}
	}},
	{name: "not applied at write", grains: everyGrain, kind: "scale-not-applied", words: []string{"codes of K", "not applied"}, hooks: func(*made) hooks {
		return hooks{used: func(*Side, int, float32) float32 { return 1 }}
	}},
	{name: "twice at read", grains: everyGrain, kind: "scale-twice", words: []string{"is read with", "twice"}, hooks: func(*made) hooks {
		return hooks{read: func(_ *Side, _ int, s float32) float32 { return s * s }}
	}},
	{name: "twice at write", grains: everyGrain, kind: "scale-twice", words: []string{"codes of K", "twice"}, hooks: func(*made) hooks {
		return hooks{used: func(_ *Side, _ int, s float32) float32 { return s * s }}
	}},
	{name: "reciprocal stored", grains: everyGrain, kind: "scale-reciprocal", words: []string{"the scales of K", "reciprocal"}, hooks: func(*made) hooks {
		return hooks{scale: func(_ *Side, _ int, s float32) float32 { return 1 / s }, used: func(_ *Side, _ int, s float32) float32 { return 1 / s }}
	}},
	{name: "codes before rounding", grains: "tensor head token-head tile", rule: Pow2, claim: Claim{Rule: Pow2}, kind: "codes-unrounded-scale", words: []string{"codes of K", "before it was rounded"}, hooks: func(c *made) hooks {
		amaxes := map[*Side]map[int]float32{c.k: {}, c.v: {}}
		for s, all := range amaxes {
			for i, x := range s.Input {
				g := groupOf(s, i/s.Dim/s.Heads, i/s.Dim%s.Heads, i%s.Dim)
				all[g] = max(all[g], float32(math.Abs(float64(x))))
			}
		}
		return hooks{used: func(s *Side, g int, _ float32) float32 { return amaxes[s][g] / 448 }}
	}},
	{name: "latent alone", grains: "tensor head token token-head page", kind: "amax-part", words: []string{"the amax of columns 0 to 63 alone", "columns 64 to 95", "saturate", "(seen in vllm-project/vllm#42956)"}, hooks: func(c *made) hooks {
		return hooks{amax: func(s *Side, _, _, col int) bool { return s != c.k || col < 64 }}
	}},
	{name: "latent alone, claimed", grains: "tensor token", claim: Claim{Rotary: 32}, kind: "amax-part", words: []string{"columns 64 to 95 (k_pe, rotary)", "saturate"}, hooks: func(c *made) hooks {
		return hooks{amax: func(s *Side, _, _, col int) bool { return s != c.k || col < 64 }}
	}},
	{name: "amax of the first tokens", grains: "tensor head", kind: "amax-part", words: []string{"tokens 0 to", "stale"}, hooks: func(c *made) hooks {
		for i := range c.k.Input { // later tokens are larger
			if i/c.k.Dim/c.k.Heads >= 16 {
				c.k.Input[i] *= 4
			}
		}
		return hooks{amax: func(s *Side, t, _, _ int) bool { return s != c.k || t < 16 }}
	}},
	{name: "stale", grains: "tensor head token token-head", words: []string{"stale", "saturate"}, hooks: func(c *made) hooks {
		return hooks{scale: func(s *Side, g int, scale float32) float32 {
			if s == c.k {
				return bf16(scale*448*float32(0.61+0.03*float64(g%5))) / 448
			}
			return scale
		}}
	}},
	{name: "code scale stale", grains: everyGrain, words: []string{"codes of K", "scales that are not those stored", "0.83|0.829|0.828|0.831", "stale"}, hooks: func(c *made) hooks {
		return hooks{used: func(s *Side, _ int, scale float32) float32 {
			if s == c.k {
				return scale * 0.83
			}
			return scale
		}}
	}},
	{name: "token before at read", grains: "token token-head tile", kind: "scale-elsewhere", words: []string{"K is read with scales of other places", "1 before"}, hooks: func(c *made) hooks {
		return hooks{read: func(s *Side, g int, scale float32) float32 {
			each := len(s.Scales) / s.Tokens
			if g < each {
				return scale
			}
			return s.Scales[g-each]
		}}
	}},
	{name: "first token's at write", grains: "token token-head", kind: "scale-elsewhere", words: []string{"codes of K are made with scales of other places", "of token 0"}, hooks: func(c *made) hooks {
		return hooks{used: func(s *Side, g int, _ float32) float32 { return s.Scales[g%(len(s.Scales)/s.Tokens)] }}
	}},
	{name: "heads at read", grains: "head token-head", kind: "scale-elsewhere", words: []string{"K is read with scales of other places", "heads 0 and 1 are exchanged"}, hooks: func(c *made) hooks {
		return hooks{read: func(s *Side, g int, _ float32) float32 { return s.Scales[g^1] }}
	}},
	{name: "page before", grains: "page page-head", kind: "scale-elsewhere", words: []string{"K is read with scales of other places", "1 before|token"}, hooks: func(c *made) hooks {
		return hooks{read: func(s *Side, g int, scale float32) float32 {
			each := len(s.Scales) / ((s.Tokens + 15) / 16)
			if g < each {
				return scale
			}
			return s.Scales[g-each]
		}}
	}},
	{name: "swizzled blocks", grains: "tile", kind: "scale-elsewhere", words: []string{"block"}, hooks: func(c *made) hooks {
		return hooks{read: func(s *Side, g int, _ float32) float32 {
			n := s.Dim / 32
			return s.Scales[g/n*n+g%n/2]
		}}
	}},
	{name: "token wide for token-head", grains: "token-head", kind: "amax-grid", words: []string{"the amax of each token"}, hooks: func(c *made) hooks {
		return hooks{scale: func(s *Side, g int, _ float32) float32 {
			var amax float32
			for _, x := range s.Input[g/s.Heads*s.Heads*s.Dim:][:s.Heads*s.Dim] {
				amax = max(amax, float32(math.Abs(float64(x))))
			}
			return amax / 448
		}}
	}},
	{name: "E5M2 written", grains: everyGrain, kind: "other-format", words: []string{"codes are those of E5M2"}, hooks: func(c *made) hooks {
		return hooks{code: func(s *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
			return madeE5M2.encode(float64(q)), s == c.k
		}}
	}, after: func(c *made) { c.k.Read = nil }},
	{name: "FNUZ read", grains: everyGrain, words: []string{"read as E4M3FNUZ"}, hooks: func(c *made) hooks {
		return hooks{value: func(s *Side, code byte, scale float32) (float32, bool) {
			e, m := int(code>>3&15), float64(code&7)/8
			v := math.Ldexp(1+m, e-8)
			if e == 0 {
				v = math.Ldexp(m, -7)
			}
			if code == 0x80 {
				v = math.NaN()
			} else if code&0x80 != 0 {
				v = -v
			}
			return bf16(float32(v) * scale), true
		}}
	}},
	{name: "twice rounded", grains: everyGrain, kind: "double-rounding", words: []string{"bfloat16 first"}, hooks: func(c *made) hooks {
		return hooks{code: func(s *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
			return madeE4M3.encode(float64(bf16(q))), true
		}}
	}},
	{name: "truncated", grains: everyGrain, kind: "directed", words: []string{"toward zero"}, hooks: func(c *made) hooks {
		return hooks{code: func(s *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
			code := madeE4M3.encode(float64(q))
			if math.Abs(madeE4M3.decode(code)) > math.Abs(float64(q)) {
				code--
			}
			return code, true
		}}
	}},
	{name: "overflow is NaN", grains: "tensor head", claim: Claim{Rule: Static}, kind: "overflow", words: []string{"NaN"}, hooks: func(c *made) hooks {
		return hooks{scale: func(_ *Side, _ int, s float32) float32 { return s * 0.6 },
			code: func(s *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
				return 0x7F | madeE4M3.encode(float64(q))&0x80, math.Abs(float64(q)) > 464
			}}
	}, after: func(c *made) { c.k.Read, c.v.Read = nil, nil }},
	{name: "read cut", grains: everyGrain, kind: "read-truncated", words: []string{"cut to bfloat16"}, hooks: func(c *made) hooks {
		return hooks{value: func(s *Side, code byte, scale float32) (float32, bool) {
			return math.Float32frombits(math.Float32bits(float32(madeE4M3.decode(code))*scale) &^ 0xFFFF), true
		}}
	}},
	{name: "tokens exchanged", grains: everyGrain, kind: "tokens-moved", words: []string{"tokens 5, 21", "exchanged"}, hooks: moved(func(t, h int) (int, int) { return map[int]int{5: 21, 21: 5}[t], h }, 5, 21)},
	{name: "tokens shifted", grains: everyGrain, kind: "tokens-moved", words: []string{"2 before: shifted"}, hooks: moved(func(t, h int) (int, int) { return t - 2, h }, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)},
	{name: "pages exchanged", grains: "tensor head token token-head tile", kind: "tokens-moved", words: []string{"pages 0 and 1 are exchanged"}, hooks: moved(func(t, h int) (int, int) { return t ^ 16, h }, tokensTo(32)...)},
	{name: "heads exchanged", grains: "tensor token token-head tile", kind: "heads-exchanged", words: []string{"heads 0 and 1 are exchanged"}, hooks: moved(func(t, h int) (int, int) { return t, h ^ 1 }, tokensTo(48)...)},
	{name: "one slot for all", grains: everyGrain, kind: "tokens-moved", words: []string{"the rows of token 40"}, hooks: moved(func(t, h int) (int, int) { return 40, h }, 3, 4, 5, 6, 7)},
	{name: "K in V", grains: "tensor head token-head tile", kind: "other-bytes", words: []string{"of V hold the bytes of K"}, hooks: func(*made) hooks { return hooks{} }, after: func(c *made) {
		copy(c.v.Codes, c.k.Codes)
		if c.v.Grid.Tokens == 1 {
			copy(c.v.Scales, c.k.Scales)
		}
		c.v.Read = nil
	}},
	{name: "not written", grains: everyGrain, kind: "not-written", words: []string{"tokens 30-33", "not written"}, hooks: func(*made) hooks { return hooks{} }, after: func(c *made) {
		n := c.k.Heads * c.k.Dim
		clear(c.k.Codes[30*n : 34*n])
		c.k.Read = nil
	}},
	{name: "stale page", grains: everyGrain, kind: "stale-rows", words: []string{"tokens 16-31", "stale"}, hooks: func(*made) hooks { return hooks{} }, after: func(c *made) {
		n := c.k.Heads * c.k.Dim
		old := newMade(991, c.k.Tokens, c.k.Heads, c.k.Dim, 0, c.m, c.rule, "tensor").write(hooks{})
		copy(c.k.Codes[16*n:32*n], old.k.Codes[16*n:])
		c.k.Read = nil
	}},
	{name: "page read", grains: everyGrain, kind: "tokens-moved", words: []string{"of K are read as", "pages 0 and 1 are exchanged|exchanged"}, hooks: func(*made) hooks { return hooks{} }, after: func(c *made) {
		n := 16 * c.k.Heads * c.k.Dim
		page := append([]float32(nil), c.k.Read[:n]...)
		copy(c.k.Read, c.k.Read[n:2*n])
		copy(c.k.Read[n:], page)
	}},
	{name: "too few tokens", grains: everyGrain, kind: "tokens-missing", words: []string{"has 40 tokens and the input 48", "40 to 47"}, hooks: func(*made) hooks { return hooks{} }, after: func(c *made) {
		n := 40 * c.k.Heads * c.k.Dim
		c.k.Codes, c.k.Read = c.k.Codes[:n], c.k.Read[:n]
	}},
	{name: "heads exchanged, all of them", grains: "head page-head", kind: "heads-exchanged", words: []string{"of K hold the rows: heads 0 and 1 are exchanged|heads 0 and 1 are exchanged", "the scales of K are wrong"}, hooks: func(*made) hooks { return hooks{} }, after: func(c *made) {
		s := c.k
		s.Read = nil
		for t := range s.Tokens {
			a, b := s.Codes[t*2*s.Dim:][:s.Dim], s.Codes[(t*2+1)*s.Dim:][:s.Dim]
			for i := range a {
				a[i], b[i] = b[i], a[i]
			}
		}
		for g := 0; g < len(s.Scales); g += 2 {
			s.Scales[g], s.Scales[g+1] = s.Scales[g+1], s.Scales[g]
		}
	}},
	{name: "some tokens up at read", grains: everyGrain, words: []string{"K is read with", "power of two", "in tokens 17-22, heads 1"}, hooks: func(c *made) hooks {
		return hooks{only: func(s *Side, t, h int) bool { return s == c.k && t >= 17 && t <= 22 && h == 1 },
			read: func(_ *Side, _ int, s float32) float32 { return power(true)(s) }}
	}},
	{name: "at random", grains: everyGrain, kind: "rounded-otherwise", words: []string{"stochastic"}, hooks: func(c *made) hooks {
		r := rand.New(rand.NewPCG(1, 2))
		return hooks{code: func(s *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
			code := madeE4M3.encode(float64(q))
			if math.Abs(madeE4M3.decode(code)) > math.Abs(float64(q)) {
				code--
			}
			low := math.Abs(madeE4M3.decode(code))
			if code&0x7F == 0x7E || r.Float64()*(math.Abs(madeE4M3.decode(code+1))-low) > math.Abs(float64(q))-low {
				return code, true
			}
			return code + 1, true
		}}
	}},
	{name: "wrong slot", grains: everyGrain, words: []string{"tokens 21", "1 before", "tokens 20", "not written"}, hooks: func(*made) hooks { return hooks{} }, after: func(c *made) {
		s, n, by := c.k, c.k.Heads*c.k.Dim, c.k.Scales
		s.Read = nil
		if s.Grid.Tokens == 1 {
			each := len(by) / s.Tokens
			copy(by[21*each:22*each], by[20*each:])
		}
		copy(s.Codes[21*n:22*n], s.Codes[20*n:])
		clear(s.Codes[20*n : 21*n])
	}},
	{name: "sign lost", grains: everyGrain, kind: "sign-lost", words: []string{"signs are lost"}, hooks: func(c *made) hooks {
		return hooks{code: func(s *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
			return madeE4M3.encode(math.Abs(float64(q))), true
		}}
	}},
	{name: "subnormals are zero", grains: "tensor head token page", kind: "subnormals-flushed", words: []string{"subnormal codes are zero"}, hooks: func(c *made) hooks {
		return hooks{code: func(s *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
			code := madeE4M3.encode(float64(q))
			return code & 0x80, code&0x7F < 8
		}}
	}},
}

func tokensTo(n int) (all []int) {
	for t := range n {
		all = append(all, t)
	}
	return all
}

// moved has the given tokens of K written from other places.
func moved(from func(t, h int) (int, int), tokens ...int) func(c *made) hooks {
	return func(c *made) hooks {
		is := map[int]bool{}
		for _, t := range tokens {
			is[t] = true
		}
		return hooks{source: func(s *Side, t, h, col int) float32 {
			if s == c.k && is[t] {
				t, h = from(t, h)
			}
			return at(s, t, h, col)
		}}
	}
}

// TestFaults names each fault in each granularity that can have it.
func TestFaults(t *testing.T) {
	for n, f := range faultCases {
		for g, grain := range strings.Fields(f.grains) {
			rule := f.rule
			if rule == "" {
				rule = Amax
			}
			c := newMade(uint64(100*n+g), 48, 2, 96, 32, madeE4M3, rule, grain)
			if f.name == "pages exchanged" || f.name == "heads exchanged" {
				c = newMade(uint64(100*n+g), 48, 2, 64, 0, madeE4M3, rule, grain)
			}
			c.write(f.hooks(c))
			if f.after != nil {
				f.after(c)
			}
			v := judge(t, c, f.claim)
			said := v.Cause()
			ok := !v.Pass
			for _, w := range f.words {
				any := false
				for _, one := range strings.Split(w, "|") {
					any = any || strings.Contains(strings.ToLower(said), strings.ToLower(one))
				}
				ok = ok && any
			}
			if f.kind != "" {
				any := false
				for _, x := range v.Findings {
					any = any || x.Kind == f.kind
				}
				ok = ok && any
			}
			if !ok {
				t.Errorf("%s, %s: want %q %v\n%s\n%s", f.name, grain, f.words, f.kind, v.Title(), said)
			}
		}
	}
	require.NotEmpty(t, faultCases)
}
