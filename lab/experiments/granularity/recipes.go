package granularity

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// grain is how many values share a scale.
type grain struct {
	name  string
	block tensor.Block
}

var (
	tensorGrain = grain{"tensor", tensor.Block{}}
	tileGrain   = grain{"1x128", tensor.Block{Rows: 1, Cols: 128}}

	// grains are from coarse to fine.
	grains = []grain{
		tensorGrain,
		{"128x128", tensor.Block{Rows: 128, Cols: 128}},
		{"row", tensor.Block{Rows: 1}},
		tileGrain,
		{"1x32", tensor.Block{Rows: 1, Cols: 32}},
	}
)

var recipeFormats = []fp8.Format{fp8.E4M3, fp8.E5M2}

// recipeOutcome is what a recipe made of an operand.
type recipeOutcome struct {
	of     *operand
	recipe scaling.Recipe
	outcome
	scaleBytes float64 // a value
}

// encodeBy encodes an operand by a recipe; that of a delayed one is given the past.
func encodeBy(ctx context.Context, o *operand, r scaling.Recipe) (recipeOutcome, error) {
	e := recipeOutcome{of: o, recipe: r, outcome: newOutcome()}
	q := scaling.Quantizer{Recipe: r, Options: tensor.Options{Stats: &e.stats}}
	if r.Profile.Delayed() {
		history, err := scaling.NewHistory(r)
		if err != nil {
			return e, err
		}
		for _, amax := range o.past {
			history.Observe(0, amax)
			history.Update()
		}
		q.History = history
	}
	t := tensor.Tensor{Name: o.name, Shape: []int{o.rows, o.cols}}
	if err := scaling.Quantize(ctx, &t, o.values, q); err != nil {
		return e, err
	}
	size := 4
	if r.Profile.E8M0() {
		size = 1
	}
	e.scaleBytes = float64(size*len(t.Scales)) / float64(t.Len())
	return e, nil
}

// profileOutcomes encodes operands by the recipe of every profile, in both formats.
func profileOutcomes(ctx context.Context, operands []*operand) (all []recipeOutcome, err error) {
	for _, o := range operands {
		for _, profile := range scaling.ProfilesFor(fp8.E4M3) {
			for _, format := range recipeFormats {
				r := profile.Recipe(o.role)
				r.Format = format
				e, err := encodeBy(ctx, o, r)
				if err != nil {
					return nil, err
				}
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// grainOutcomes encodes operands in every granularity, in both formats, with
// te-block arithmetic.
func grainOutcomes(ctx context.Context, operands []*operand) (all []recipeOutcome, err error) {
	for _, o := range operands {
		for _, g := range grains {
			for _, format := range recipeFormats {
				e, err := encodeBy(ctx, o, scaling.Recipe{Profile: scaling.TEBlock, Format: format, Block: g.block})
				if err != nil {
					return nil, err
				}
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// givenOperands returns the second half of the tokens of what goes into the last
// layer's down projection, by the activations in o; the first half is its past. It
// returns none if there are no activations.
func givenOperands(o lab.Options) ([]*operand, error) {
	if o.Activations == nil {
		return nil, nil
	}
	layer := 0
	for has(o.Activations, layer+1) {
		layer++
	}
	gateName, upName := gateOf(layer), fmt.Sprintf("layers.%d.up", layer)
	info, _ := o.Activations.Info(gateName)
	if len(info.Shape) != 2 || info.Len() == 0 {
		return nil, fmt.Errorf("the activations have no %s of [tokens, channels]: give a file that has, or none", gateName)
	}
	gate, err := o.Activations.Float32s(gateName)
	if err != nil {
		return nil, err
	}
	up, err := o.Activations.Float32s(upName)
	if err != nil {
		return nil, err
	}
	if len(up) != len(gate) {
		return nil, fmt.Errorf("the activations' %s and %s have %d and %d values: want as many", gateName, upName, len(gate), len(up))
	}
	swiglu.Forward(up, up, gate, swiglu.Scales{})
	rows, cols := info.Shape[0], info.Shape[1]
	half := rows / 2 * cols
	past, _ := fp8.Amax(up[:half])
	return []*operand{{
		name: fmt.Sprintf("given.%d.mlp.down_proj.input", layer), role: scaling.Input,
		rows: rows - rows/2, cols: cols, values: up[half:], past: []float32{past},
	}}, nil
}

func gateOf(layer int) string { return fmt.Sprintf("layers.%d.gate", layer) }

func has(activations *safetensors.File, layer int) bool {
	_, found := activations.Info(gateOf(layer))
	return found
}
