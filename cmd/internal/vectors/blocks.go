package vectors

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// blockCase is a matrix that was quantized.
type blockCase struct {
	Profile scaling.Profile `json:"profile"`
	Role    string          `json:"role"`
	Pattern string          `json:"pattern"`
	Input   string          `json:"input"`
	Output  operand         `json:"output"`
	Stats   stats           `json:"stats"`
}

// Sizes of matrices, which no block divides. Narrow formats have smaller blocks, and far
// more profiles.
const (
	blockRows, blockCols   = 20, 200
	narrowRows, narrowCols = 20, 72
)

// mxFormats are those of OCP's MX formats.
var mxFormats = []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E2M3, fp8.E3M2, fp8.E2M1, fp8.MXINT8}

// blocks adds matrices of every pattern, quantized by every profile in the blocks of its
// library.
func (s *scaler) blocks(ctx context.Context) error {
	for _, pattern := range oracle.Patterns() {
		for _, of := range []func(context.Context, oracle.Pattern) error{s.blocksFP8, s.blocksMX, s.blocksNVFP4} {
			if err := of(ctx, pattern); err != nil {
				return err
			}
		}
	}
	return s.otherBlocksNVFP4(ctx)
}

func (s *scaler) blocksFP8(ctx context.Context, pattern oracle.Pattern) error {
	g := oracle.Generator{Pattern: pattern, Rows: blockRows, Cols: blockCols, Block: tile, Seed: s.seed, Uniform: true}
	m := s.matrix("x."+pattern.String(), g.Values(), blockRows, blockCols)
	for _, p := range oneLevel(fp8.E4M3) {
		if p.ScaleFormat().Encoded() {
			continue
		}
		if err := s.roles(ctx, p, fp8.E4M3, pattern.String(), m); err != nil {
			return err
		}
	}
	return nil
}

// blocksMX adds what profiles of MX formats, and those of E2M1 on one level, give.
func (s *scaler) blocksMX(ctx context.Context, pattern oracle.Pattern) error {
	inputs := make(map[fp8.Format]matrix)
	for _, f := range mxFormats {
		g := oracle.Generator{Pattern: pattern, Rows: narrowRows, Cols: narrowCols, Block: micro, Seed: s.seed, Uniform: true}
		name := "x.mx." + pattern.String()
		if pattern == oracle.Ties || pattern == oracle.Subnormals { // whose values are the format's
			g.Format = f
			name += "." + lower(f)
		}
		m, ok := inputs[g.Format]
		if !ok {
			m = s.matrix(name, g.Values(), narrowRows, narrowCols)
			inputs[g.Format] = m
		}
		for _, p := range oneLevel(f) {
			forNarrow := p.ScaleFormat() == tensor.E8M0Scales || !p.For(fp8.E4M3) && !p.ScaleFormat().Encoded()
			if !forNarrow {
				continue
			}
			if err := s.roles(ctx, p, f, pattern.String(), m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scaler) blocksNVFP4(ctx context.Context, pattern oracle.Pattern) error {
	g := oracle.Generator{Pattern: pattern, Rows: narrowRows, Cols: narrowCols, Block: sixteen, Format: fp8.E2M1, Seed: s.seed, Uniform: true}
	return s.nvfp4(ctx, pattern.String(), s.matrix("x.nvfp4."+pattern.String(), g.Values(), narrowRows, narrowCols))
}

// otherBlocksNVFP4 adds a matrix that tells one order of operations from another, one that
// was transformed, and a stack.
func (s *scaler) otherBlocksNVFP4(ctx context.Context) error {
	if err := s.nvfp4(ctx, "boundaries", s.matrix("x.nvfp4.boundaries", s.boundaries(), narrowRows, narrowCols)); err != nil {
		return err
	}
	for _, p := range []scaling.Profile{scaling.NVFP4TE, scaling.NVFP4TERow} {
		if err := s.roles(ctx, p, fp8.E2M1, "transformed", s.transformed); err != nil {
			return err
		}
	}
	g := oracle.Generator{Pattern: oracle.Outlier, Rows: 3 * 16, Cols: 40, Block: tensor.Block{Rows: 16}, Seed: s.seed, Uniform: true}
	m := s.matrix("x.nvfp4.stack", g.Values(), 3, 16, 40)
	for _, p := range []scaling.Profile{scaling.NVFP4TE, scaling.NVFP4CompressedTensors, scaling.NVFP4FourOverSixMSE} {
		r := p.Recipe(scaling.Weight)
		r.OuterRows = 16
		if err := s.block(ctx, r, "weight", "stack", m); err != nil {
			return err
		}
	}
	return nil
}

func (s *scaler) nvfp4(ctx context.Context, pattern string, m matrix) error {
	for _, p := range scaling.ProfilesFor(fp8.E2M1) {
		if p.ScaleFormat() != tensor.UE4M3Scales {
			continue
		}
		if err := s.roles(ctx, p, fp8.E2M1, pattern, m); err != nil {
			return err
		}
	}
	return nil
}

// boundaries returns a matrix in blocks of 16 whose amaxes are beside ties of UE4M3 and
// whose values are beside ties of E2M1, under the scales that most profiles of NVFP4 give:
// there libraries differ that agree on other values.
func (s *scaler) boundaries() []float32 {
	const of = 19.7
	d := newRNG(s.seed, 11)
	x := make([]float32, narrowRows*narrowCols)
	for i := range narrowRows {
		for j := 0; j < narrowCols; j += 16 {
			block := x[i*narrowCols+j : i*narrowCols+min(j+16, narrowCols)]
			amax := besideScaleTie(d, of)
			scale := float64(fp8.EncodeUE4M3(float32(float64(amax)*448/of)).Float32()) * of / 2688
			for k := range block {
				c := byte(d.below(7))
				tie := (float64(fp8.E2M1.Float32(c)) + float64(fp8.E2M1.Float32(c+1))) / 2
				block[k] = near(d, min(float32(tie*scale), amax))
			}
			block[d.below(len(block))] = near(d, amax)
		}
	}
	x[0] = of
	return x
}

// near returns x or a neighbour, of either sign.
func near(d rng, x float32) float32 {
	switch d.below(3) {
	case 0:
		x = math.Nextafter32(x, 0)
	case 1:
		x = math.Nextafter32(x, 1e30)
	}
	if d.below(2) == 1 {
		x = -x
	}
	return x
}

// matrix is values that a file has.
type matrix struct {
	name   string
	values []float32
	shape  []int
}

func (s *scaler) matrix(name string, values []float32, shape ...int) matrix {
	return matrix{numbers(s.tensors, name, values, shape...), values, shape}
}

// roles adds m quantized as an input and, where that has another block, as a weight.
func (s *scaler) roles(ctx context.Context, p scaling.Profile, f fp8.Format, pattern string, m matrix) error {
	input, weight := p.Recipe(scaling.Input), p.Recipe(scaling.Weight)
	input.Format, weight.Format = f, f
	if err := s.block(ctx, input, "input", pattern, m); err != nil || weight == input {
		return err
	}
	return s.block(ctx, weight, "weight", pattern, m)
}

// block adds m quantized by a recipe.
func (s *scaler) block(ctx context.Context, r scaling.Recipe, role, pattern string, m matrix) error {
	t := &tensor.Tensor{Name: "x", Shape: m.shape}
	var st fp8.Stats
	if err := scaling.Quantize(ctx, t, m.values, scaling.Quantizer{Recipe: r, Options: tensor.Options{Stats: &st}}); err != nil {
		return err
	}
	for i, v := range t.Scales {
		t.Scales[i] = canonical(v)
	}
	name := fmt.Sprintf("q.%s.%s.%s.%s", pattern, r.Profile, lower(r.Format), role)
	s.index.Blocks = append(s.index.Blocks, blockCase{r.Profile, role, pattern, m.name, s.operand(name, t), newStats(&st)})
	return nil
}
