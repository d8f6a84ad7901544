package cache

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/tensor"
)

// newNVFP4 writes a cache by the definition of TransformerEngine's NVFP4: blocks of 16 under a
// UE4M3 scale under one float32.
func newNVFP4(seed uint64, tokens, heads, dim int, used func(s *Side, g int, scale, outer float32) (float32, float32)) *made {
	r := rand.New(rand.NewPCG(seed, 4))
	c := &made{m: madeE2M1, k: input(r, tokens, heads, dim, 32, 2), v: input(r, tokens, heads, dim, 0, 0.3)}
	var stored [2][]float32
	for n, s := range []*Side{c.k, c.v} {
		s.Format, s.ScaleFormat, s.Grid = madeE2M1.format, tensor.UE4M3Scales, Grid{1, 1, 16}
		var all float32
		amaxes := make([]float32, len(s.Input)/16)
		for i, x := range s.Input {
			a := float32(math.Abs(float64(x)))
			all, amaxes[i/16] = max(all, a), max(amaxes[i/16], a)
		}
		up := float32(2688) / all
		outer := 1 / up
		sixth := up * (float32(1) / 6)
		for _, a := range amaxes {
			v := a * sixth
			stored[n] = append(stored[n], float32(madeE4M3.decode(madeE4M3.encode(float64(min(v, 448))))))
		}
		s.Outer, s.Scales = &outer, stored[n]
	}
	for _, s := range []*Side{c.k, c.v} {
		for i, x := range s.Input {
			scale, outer := s.Scales[i/16], *s.Outer
			if used != nil {
				scale, outer = used(s, i/16, scale, outer)
			}
			by := 1 / float32(scale*outer)
			code := madeE2M1.encode(float64(x * by))
			if x == 0 || code&7 == 0 && x*by == 0 {
				code = 0
			}
			s.Codes = append(s.Codes, code)
			s.Read = append(s.Read, bf16(float32(float32(madeE2M1.decode(code))*s.Scales[i/16])**s.Outer))
		}
	}
	return c
}

// TestNVFP4 judges two levels of scales, without a claim.
func TestNVFP4(t *testing.T) {
	v := judge(t, newNVFP4(1, 40, 2, 64, nil), Claim{})
	require.True(t, v.Pass, "%s\n%s", v.Title(), v.Cause())
	for _, f := range []struct {
		words string
		used  func(s *Side, g int, scale, outer float32) (float32, float32)
		after func(c *made)
	}{
		{words: "the outer scale is not applied", used: func(_ *Side, _ int, scale, _ float32) (float32, float32) { return scale, 1 }},
		{words: "the block's scale alone", used: func(_ *Side, _ int, scale, _ float32) (float32, float32) { return scale, 1 }},
		{words: "rounded up to a power of two", used: func(_ *Side, _ int, scale, outer float32) (float32, float32) { return power(true)(scale), outer }},
		{words: "K is read with the outer scale of V", after: func(c *made) {
			for i, code := range c.k.Codes {
				c.k.Read[i] = bf16(float32(float32(madeE2M1.decode(code))*c.k.Scales[i/16]) * *c.v.Outer)
			}
		}},
		{words: "the two codes of each byte are exchanged", after: func(c *made) {
			for i := 0; i < len(c.k.Codes); i += 2 {
				c.k.Codes[i], c.k.Codes[i+1] = c.k.Codes[i+1], c.k.Codes[i]
			}
			c.k.Read = nil
		}},
		{words: "the outer scale of K is the reciprocal", after: func(c *made) {
			inverse := 1 / *c.k.Outer
			c.k.Outer = &inverse
			c.k.Read = nil
		}},
		{words: "block 1 has the scale of block 0", after: func(c *made) { // vllm#49011
			for i := range c.v.Scales {
				if i%4 == 3 {
					copy(c.v.Scales[i-3:i+1], []float32{c.v.Scales[i-3], c.v.Scales[i-3], c.v.Scales[i-2], c.v.Scales[i-2]})
				}
			}
			c.v.Read = nil
		}},
	} {
		c := newNVFP4(9, 44, 2, 64, f.used)
		if f.after != nil {
			f.after(c)
		}
		v := judge(t, c, Claim{})
		require.False(t, v.Pass)
		require.Contains(t, v.Cause(), f.words)
	}
}

// TestOuterGiven does not accuse outer scales that were calibrated, where nobody claims that they
// are made from the input, and judges what is under them.
func TestOuterGiven(t *testing.T) {
	c := newNVFP4(5, 32, 2, 64, nil)
	for _, s := range []*Side{c.k, c.v} {
		given := 1.3 * *s.Outer
		s.Outer = &given
		for b := range s.Scales {
			var amax float32
			for _, x := range s.Input[b*16:][:16] {
				amax = max(amax, float32(math.Abs(float64(x))))
			}
			s.Scales[b] = float32(madeE4M3.decode(madeE4M3.encode(float64(amax / (6 * given)))))
			for i := b * 16; i < b*16+16; i++ {
				s.Codes[i] = madeE2M1.encode(float64(s.Input[i] / (s.Scales[b] * given)))
				s.Read[i] = bf16(float32(float32(madeE2M1.decode(s.Codes[i]))*s.Scales[b]) * given)
				if s.Input[i] == 0 {
					s.Codes[i], s.Read[i] = 0, 0
				}
			}
		}
	}
	v := judge(t, c, Claim{})
	require.Equal(t, "undecided", v.Outcome, "%s\n%s", v.Title(), v.Cause())
	require.Contains(t, v.Cause(), "outer scale of K")
	require.True(t, judge(t, c, Claim{OuterGiven: true}).Pass)
}

// TestUndecided does not accuse codes of the arithmetic that is as common as the claimed one, if
// none was claimed.
func TestUndecided(t *testing.T) {
	c := newMade(3, 64, 2, 128, 0, madeE4M3, Amax, "token-head").write(hooks{})
	for _, s := range []*Side{c.k, c.v} {
		for i, x := range s.Input {
			scale := s.Scales[i/s.Dim]
			s.Codes[i] = madeE4M3.encode(float64(x * (1 / scale)))
		}
		s.Read = nil
	}
	v := judge(t, c, Claim{})
	require.Equal(t, "undecided", v.Outcome, "%s\n%s", v.Title(), v.Cause())
	require.Contains(t, v.Title(), "rounded reciprocal")
	require.True(t, judge(t, c, Claim{Multiply: true}).Pass)
	v = judge(t, c, Claim{Rule: Amax})
	require.Equal(t, "fail", v.Outcome)
	require.Contains(t, v.Cause(), "multiplied by the rounded reciprocal")
}

// TestMisuse refuses parts that do not fit together.
func TestMisuse(t *testing.T) {
	good := func() *Side { return newMade(1, 8, 2, 32, 0, madeE4M3, Amax, "token").write(hooks{}).k }
	for name, change := range map[string]func(s *Side){
		"input":  func(s *Side) { s.Input = s.Input[1:] },
		"codes":  func(s *Side) { s.Codes = s.Codes[1:] },
		"scales": func(s *Side) { s.Scales = s.Scales[1:] },
		"read":   func(s *Side) { s.Read = s.Read[1:] },
		"grid":   func(s *Side) { s.Grid = Grid{} },
		"cols":   func(s *Side) { s.Cols = 33 },
		"outer":  func(s *Side) { x := float32(-1); s.Outer = &x },
		"format": func(s *Side) { s.Format = 255 },
		"wide":   func(s *Side) { s.Wide = []float32{1} },
	} {
		s := good()
		change(s)
		_, err := Check(context.Background(), s, nil, Claim{}, Options{})
		require.ErrorIs(t, err, ErrSide, name)
	}
	for _, c := range []Claim{{Rule: "no"}, {Floor: -1}, {Rotary: -1}, {Rule: "nvfp4-te"}} {
		_, err := Check(context.Background(), good(), nil, c, Options{})
		require.ErrorIs(t, err, ErrSide, c)
	}
	_, err := Check(context.Background(), nil, nil, Claim{}, Options{})
	require.ErrorIs(t, err, ErrSide)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Check(ctx, good(), nil, Claim{}, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestNVFP4Pages judges block scales under an outer one that several tokens share, by the definition
// of Model-Optimizer, and names codes that are cut.
func TestNVFP4Pages(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 5))
		for _, cut := range []bool{false, true} {
			s := input(r, 37, 3, 48, 0, 1.5)
			s.Format, s.ScaleFormat, s.Grid = madeE2M1.format, tensor.UE4M3Scales, Grid{8, 1, 16}
			var all float32
			amaxes := make([]float32, 5*3*3)
			for i, x := range s.Input {
				a := float32(math.Abs(float64(x)))
				g := groupOf(s, i/s.Dim/s.Heads, i/s.Dim%s.Heads, i%s.Dim)
				all, amaxes[g] = max(all, a), max(amaxes[g], a)
			}
			outer := all / 2688
			s.Outer = &outer
			for _, a := range amaxes {
				s.Scales = append(s.Scales, float32(madeE4M3.decode(madeE4M3.encode(float64(a/float32(6*outer))))))
			}
			for i, x := range s.Input {
				q := float64(x / float32(s.Scales[groupOf(s, i/s.Dim/s.Heads, i/s.Dim%s.Heads, i%s.Dim)]*outer))
				code := madeE2M1.encode(q)
				if cut && math.Abs(madeE2M1.decode(code)) > math.Abs(q) {
					code--
				}
				s.Codes = append(s.Codes, code)
			}
			v, err := Check(context.Background(), s, nil, Claim{Rule: "nvfp4-modelopt"}, Options{})
			require.NoError(t, err)
			require.Equal(t, !cut, v.Pass, "%s\n%s", v.Title(), v.Cause())
			if cut {
				require.Contains(t, v.Cause(), "K: codes are rounded toward zero")
				require.Equal(t, Kind("directed"), v.Findings[0].Kind)
			}
		}
	}
}
