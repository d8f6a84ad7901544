package vectors

import (
	"context"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// scalingIndex is scaling.json.
type scalingIndex struct {
	Amax    string        `json:"amax"`
	HasNaN  string        `json:"hasNaN"`
	Scales  []scaleCase   `json:"scales"`
	Delayed []delayedCase `json:"delayed"`
	Blocks  []blockCase   `json:"blocks"`
}

type scaleCase struct {
	Profile    scaling.Profile `json:"profile"`
	Format     string          `json:"format"`
	Source     string          `json:"source"`
	Stored     string          `json:"stored"`
	Multiplier string          `json:"multiplier"`
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

type blockCase struct {
	Profile scaling.Profile `json:"profile"`
	Role    string          `json:"role"`
	Pattern string          `json:"pattern"`
	Input   string          `json:"input"`
	Output  operand         `json:"output"`
	Stats   stats           `json:"stats"`
}

func makeScaling(ctx context.Context, seed uint64) (*tensors, any, error) {
	s := scaler{tensors: &tensors{of: "scaling"}, seed: seed}
	for _, f := range []func() error{s.scales, s.delayed, func() error { return s.blocks(ctx) }} {
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
}

// justInTime are the profiles whose scale follows from a block's own amax.
func justInTime() (all []scaling.Profile) {
	for _, p := range scaling.ProfilesFor(fp8.E4M3) {
		if !p.Delayed() {
			all = append(all, p)
		}
	}
	return all
}

// amaxEdges are amax at which arithmetic of scales differs.
func amaxEdges() []float32 {
	x := []float32{0, math.SmallestNonzeroFloat32, 0x1p-126, 1e-38, 1e-30, 9.9999e-31, 1e-12, 9e-13, 1e-4, 9.9e-5,
		0.5, 1, 448, 57344, 240, 6, 0x1p100, math.MaxFloat32, float32(math.Inf(1))}
	for _, e := range []int{-100, -20, -1, 0, 3, 60} {
		for _, m := range []uint32{0, 1, 0x400000, 0x5FFFFF, 0x600000, 0x600001, 0x7FFFFF} {
			x = append(x, math.Float32frombits(uint32(127+e)<<23|m))
		}
	}
	return x
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
	for _, p := range justInTime() {
		for _, f := range fp8.Formats()[:fp8.E2M1] {
			if !p.For(f) {
				continue
			}
			r := scaling.Recipe{Profile: p, Format: f}
			for _, scale := range []struct {
				source string
				of     func(float32, bool) (fp8.Scale, error)
			}{
				{"float32", func(x float32, nan bool) (fp8.Scale, error) { return scaling.Scale[float32](r, x, nan) }},
				{"bfloat16", func(x float32, nan bool) (fp8.Scale, error) { return scaling.Scale[fp8.BFloat16](r, x, nan) }},
				{"float16", func(x float32, nan bool) (fp8.Scale, error) { return scaling.Scale[float16.Float16](r, x, nan) }},
			} {
				var stored, multiplier []float32
				for i, x := range amax {
					v, err := scale.of(x, nan[i] == 1)
					if err != nil {
						return err
					}
					stored, multiplier = append(stored, canonical(v.Stored)), append(multiplier, canonical(v.Multiplier))
				}
				name := fmt.Sprintf("scale.%s.%s.%s", p, lower(f), scale.source)
				s.index.Scales = append(s.index.Scales, scaleCase{p, f.String(), scale.source,
					numbers(s.tensors, name+".stored", stored), numbers(s.tensors, name+".multiplier", multiplier)})
			}
		}
	}
	return nil
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

const blockRows, blockCols = 20, 200

// blocks adds matrices of every pattern, quantized by every profile in the blocks
// of its library.
func (s *scaler) blocks(ctx context.Context) error {
	for _, pattern := range oracle.Patterns() {
		x := oracle.Generator{Pattern: pattern, Rows: blockRows, Cols: blockCols, Block: tensor.Block{Rows: 1, Cols: 128}, Seed: s.seed}.Values()
		input := numbers(s.tensors, "x."+pattern.String(), x, blockRows, blockCols)
		for _, p := range justInTime() {
			for _, r := range []struct {
				name   string
				recipe scaling.Recipe
			}{{"input", p.Recipe(scaling.Input)}, {"weight", p.Recipe(scaling.Weight)}} {
				if r.name == "weight" && r.recipe == p.Recipe(scaling.Input) {
					continue // the same block
				}
				t := &tensor.Tensor{Name: "x", Shape: []int{blockRows, blockCols}}
				var st fp8.Stats
				if err := scaling.Quantize(ctx, t, x, scaling.Quantizer{Recipe: r.recipe, Options: tensor.Options{Stats: &st}}); err != nil {
					return err
				}
				for i, v := range t.Scales {
					t.Scales[i] = canonical(v)
				}
				output := s.operand(fmt.Sprintf("q.%s.%s.%s", pattern, p, r.name), t)
				s.index.Blocks = append(s.index.Blocks, blockCase{p, r.name, pattern.String(), input, output, newStats(&st)})
			}
		}
	}
	return nil
}
