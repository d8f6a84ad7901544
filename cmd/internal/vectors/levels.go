package vectors

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// levelIndex are scales on two levels.
type levelIndex struct {
	Amax       string      `json:"amax"`
	TensorAmax string      `json:"tensorAmax"`
	BlockAmax  string      `json:"blockAmax"`
	Profiles   []levelCase `json:"profiles"`
}

type levelCase struct {
	Profile scaling.Profile `json:"profile"`
	Outer   string          `json:"outer"`
	Block   *scaleCase      `json:"block,omitempty"`
}

// levels adds the outer scale of each amax of a tensor, and the scales of blocks under it
// where a block's amax determines them.
func (s *scaler) levels() error {
	amax := append(amaxEdges(), float32(math.NaN()), 0x1p-117, 0x1p-118, 0x1p-138, 0x1p-139, 2688, 1536, 1792)
	tensors, blocks := s.amaxPairs()
	s.index.Levels.Amax = numbers(s.tensors, "levels.amax", amax)
	s.index.Levels.TensorAmax = numbers(s.tensors, "levels.amax.tensor", tensors)
	s.index.Levels.BlockAmax = numbers(s.tensors, "levels.amax.block", blocks)
	for _, p := range scaling.ProfilesFor(fp8.E2M1) {
		if !p.Outer() {
			continue
		}
		r, name := p.Recipe(scaling.Input), "levels."+string(p)
		outer := make([]float32, len(amax))
		for i, x := range amax {
			outer[i] = r.OuterScale(x)
		}
		c := levelCase{Profile: p, Outer: numbers(s.tensors, name+".outer", outer)}
		if !chooses(p) {
			scales := make([]fp8.Scale, len(blocks))
			for i, x := range blocks {
				scales[i] = r.ScaleUnder(tensors[i], x)
			}
			block := s.scaleCase(name, scales)
			block.Profile, block.Format, block.Source = p, fp8.E2M1.String(), "float32"
			c.Block = &block
		}
		s.index.Levels.Profiles = append(s.index.Levels.Profiles, c)
	}
	return nil
}

// chooses reports whether p chooses between two scales of a block by their errors, as
// profiles do that are for blocks of 16 values or of 16x16 alone.
func chooses(p scaling.Profile) bool {
	return scaling.Recipe{Profile: p, Format: fp8.E2M1, Block: micro}.Check() != nil
}

// amaxPairs returns amaxes of tensors, and of blocks in them: zeros, the amax itself, those
// that are beside a tie of UE4M3 under most profiles, and any.
func (s *scaler) amaxPairs() (tensors, blocks []float32) {
	d := newRNG(s.seed, 10)
	for _, of := range []float32{1, 2688, 448.37, 0x1.8p-90, 0x1p-116, 0x1p-118, 0x1p-130, math.MaxFloat32} {
		add := func(x float32) { tensors, blocks = append(tensors, of), append(blocks, min(x, of)) }
		add(0)
		add(of)
		for range 16 {
			add(float32(math.Ldexp(float64(of)*float64(1+d.below(1<<20)), -20-d.below(12))))
			beside := besideScaleTie(d, float64(of))
			add(math.Nextafter32(beside, 0))
			add(beside)
			add(math.Nextafter32(beside, math.MaxFloat32))
		}
	}
	for _, of := range []float32{0, float32(math.Inf(1)), float32(math.NaN())} {
		for _, x := range []float32{0, 1, of} {
			tensors, blocks = append(tensors, of), append(blocks, x)
		}
	}
	return tensors, blocks
}

// besideScaleTie returns the amax of a block whose scale, in a tensor of the given amax, is
// half way between two values of UE4M3, but for rounding.
func besideScaleTie(d rng, of float64) float32 {
	c := d.below(int(fp8.UE4M3Max))
	middle := (float64(fp8.UE4M3(c).Float32()) + float64(fp8.UE4M3(c+1).Float32())) / 2
	return float32(middle * of / 448)
}
