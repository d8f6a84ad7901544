package vectors

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// scalingIndex is scaling.json.
type scalingIndex struct {
	Amax     string         `json:"amax"`
	HasNaN   string         `json:"hasNaN"`
	Scales   []scaleCase    `json:"scales"`
	Levels   levelIndex     `json:"levels"`
	Delayed  []delayedCase  `json:"delayed"`
	Hadamard []hadamardCase `json:"hadamard"`
	Blocks   []blockCase    `json:"blocks"`
}

type scaleCase struct {
	Profile    scaling.Profile `json:"profile"`
	Format     string          `json:"format"`
	Source     string          `json:"source"`
	Stored     string          `json:"stored"`
	Multiplier string          `json:"multiplier"`
	Divisor    string          `json:"divisor,omitempty"`
}

type delayedCase struct {
	Format     string `json:"format"`
	Length     int    `json:"length"`
	Margin     int    `json:"margin"`
	Algorithm  string `json:"algorithm"`
	Amax       string `json:"amax"`
	Stored     string `json:"stored"`
	Multiplier string `json:"multiplier"`
}

func makeScaling(ctx context.Context, seed uint64) (*tensors, any, error) {
	s := scaler{tensors: &tensors{of: "scaling"}, seed: seed}
	for _, f := range []func() error{
		s.scales, s.levels, s.delayed,
		func() error { return s.hadamard(ctx) },
		func() error { return s.blocks(ctx) },
	} {
		if err := f(); err != nil {
			return nil, nil, err
		}
	}
	return s.tensors, s.index, nil
}

// scaler gathers what recipes give.
type scaler struct {
	*tensors
	seed  uint64
	index scalingIndex

	transformed matrix // by the first Hadamard transform
}

// isFP8 reports whether f is one of the formats that profiles for FP8 have.
func isFP8(f fp8.Format) bool { return f < fp8.E2M1 }

// oneLevel are the profiles that give blocks of format f scales which follow from a
// block's own amax: those for FP8 where it is one, and those of narrow formats.
func oneLevel(f fp8.Format) []scaling.Profile {
	return slices.DeleteFunc(scaling.ProfilesFor(f), func(p scaling.Profile) bool {
		forFP8 := !p.ScaleFormat().Encoded() && p.For(fp8.E4M3)
		return p.Delayed() || p.Outer() || forFP8 && !isFP8(f)
	})
}

// amaxEdges are amax at which arithmetic of scales differs: among them, for many exponents,
// those about the largest value of each format.
func amaxEdges() []float32 {
	x := []float32{0, math.SmallestNonzeroFloat32, 0x1p-126, 1e-38, 1e-30, 9.9999e-31, 1e-12, 9e-13, 1e-4, 9.9e-5,
		0.5, 1, 448, 57344, 240, 6, 0x1p100, math.MaxFloat32, float32(math.Inf(1))}
	for _, e := range []int{-100, -20, -1, 0, 3, 60} {
		for _, m := range []uint32{
			0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x5FFFFF, 0x600000, 0x600001, 0x6FFFFF, 0x700000, 0x700001,
			0x77FFFF, 0x780000, 0x780001, 0x7DFFFF, 0x7E0000, 0x7E0001, 0x7FFFFF,
		} {
			x = append(x, math.Float32frombits(uint32(127+e)<<23|m))
		}
	}
	return x
}

// sources are the types of values, whose largest some profiles cut multipliers to.
var sources = []struct {
	name  string
	scale func(scaling.Recipe, float32, bool) (fp8.Scale, error)
}{
	{"float32", scaling.Scale[float32]},
	{"bfloat16", scaling.Scale[fp8.BFloat16]},
	{"float16", scaling.Scale[float16.Float16]},
}

// scales adds the scale of each amax, with a NaN beside it and without.
func (s *scaler) scales() error {
	var amax []float32
	var nan []byte
	for _, x := range amaxEdges() {
		amax, nan = append(amax, x, x), append(nan, 0, 1)
	}
	s.index.Amax = numbers(s.tensors, "amax", amax)
	s.index.HasNaN = s.add("amax.nan", "U8", []int{len(nan)}, nan)
	for _, f := range fp8.Formats() {
		for _, p := range oneLevel(f) {
			for _, source := range sources {
				if p.ScaleFormat().Encoded() && source.name != "float32" {
					continue // the scale is the same
				}
				scales := make([]fp8.Scale, len(amax))
				for i, x := range amax {
					var err error
					if scales[i], err = source.scale(scaling.Recipe{Profile: p, Format: f}, x, nan[i] == 1); err != nil {
						return err
					}
				}
				c := s.scaleCase(fmt.Sprintf("scale.%s.%s.%s", p, lower(f), source.name), scales)
				c.Profile, c.Format, c.Source = p, f.String(), source.name
				s.index.Scales = append(s.index.Scales, c)
			}
		}
	}
	return nil
}

// scaleCase adds the numbers of scales. A divisor is among them where any scale has one.
func (s *scaler) scaleCase(name string, scales []fp8.Scale) (c scaleCase) {
	var stored, multiplier, divisor []float32
	divides := false
	for _, v := range scales {
		stored, multiplier, divisor = append(stored, canonical(v.Stored)), append(multiplier, canonical(v.Multiplier)), append(divisor, canonical(v.Divisor))
		divides = divides || v.Divisor != 0
	}
	c.Stored = numbers(s.tensors, name+".stored", stored)
	c.Multiplier = numbers(s.tensors, name+".multiplier", multiplier)
	if divides {
		c.Divisor = numbers(s.tensors, name+".divisor", divisor)
	}
	return c
}

// canonical gives every NaN, whose payload is not promised, the same bits.
func canonical(x float32) float32 {
	if x != x {
		return float32(math.NaN())
	}
	return x
}

// delayed adds the scales of steps of a history.
func (s *scaler) delayed() error {
	amax := []float32{0, 3, 1, 0, 500, 2, 2, 2, 1e-40, 2, float32(math.Inf(1)), 2, 2, 2, float32(math.NaN()), 7, math.MaxFloat32, 1, 1, 1, 1, 1}
	name := numbers(s.tensors, "delayed.amax", amax)
	algorithms := []string{"max", "most-recent"}
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
		for _, d := range []scaling.Delayed{{Length: 1}, {Length: 4}, {Length: 4, Margin: 2}, {Length: 4, Algorithm: scaling.AmaxMostRecent}} {
			h, err := scaling.NewHistory(scaling.Recipe{Profile: scaling.TEDelayed, Format: f, Delayed: d})
			if err != nil {
				return err
			}
			var stored, multiplier []float32
			for _, x := range amax {
				h.Observe(0, x)
				h.Update()
				v := h.Scale(0)
				stored, multiplier = append(stored, canonical(v.Stored)), append(multiplier, canonical(v.Multiplier))
			}
			n := fmt.Sprintf("delayed.%d", len(s.index.Delayed))
			s.index.Delayed = append(s.index.Delayed, delayedCase{f.String(), d.Length, d.Margin, algorithms[d.Algorithm], name,
				numbers(s.tensors, n+".stored", stored), numbers(s.tensors, n+".multiplier", multiplier)})
		}
	}
	return nil
}
