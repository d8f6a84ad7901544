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

// scheme says when a scale is known and how much it covers. The arithmetic is the
// same in all: the largest code over the amax.
type scheme struct {
	name     string
	perBlock bool
	delayed  *scaling.Delayed // nil: just in time
}

var (
	tensorNow  = scheme{"tensor, just in time", false, nil}
	tensorLast = scheme{"tensor, last step", false, &scaling.Delayed{Length: 1, Algorithm: scaling.AmaxMostRecent}}
	tensorLong = scheme{"tensor, largest of 1024", false, &scaling.Delayed{}}
	blockNow   = scheme{"block, just in time", true, nil}
	blockLast  = scheme{"block, last step", true, &scaling.Delayed{Length: 1, Algorithm: scaling.AmaxMostRecent}}
	blockFew   = scheme{"block, largest of 16", true, &scaling.Delayed{Length: fewSteps}}
	blockLong  = scheme{"block, largest of 1024", true, &scaling.Delayed{}}

	schemes = []scheme{tensorNow, tensorLast, tensorLong, blockNow, blockLast, blockFew, blockLong}
)

// fewSteps is the shorter history.
const fewSteps = 16

// recipe returns what chooses the scales of an operand of a role.
func (s scheme) recipe(role scaling.Role) scaling.Recipe {
	if s.delayed != nil {
		return scaling.Recipe{Profile: scaling.TEDelayed, Block: s.block(role), Delayed: *s.delayed}
	}
	return scaling.Recipe{Profile: scaling.TEBlock, Block: s.block(role)}
}

// block returns what shares a scale in an operand of a role.
func (s scheme) block(role scaling.Role) tensor.Block {
	if s.perBlock {
		return scaling.Default(role).Block
	}
	return tensor.Block{}
}

// track follows an operand under a scheme.
type track struct {
	of      *operand
	scheme  scheme
	recipe  scaling.Recipe
	history *scaling.History // of its blocks; nil just in time
	seen    []bool           // by block: the history has an amax above 0

	outcome
	ratios []float64 // of a block's amax to that of its history
	points []trackPoint
}

// outcome is what happened to values.
type outcome struct {
	stats             fp8.Stats // with Detail
	blocks, saturated int       // blocks that are not zero, and those of which a value saturated
}

// trackPoint is one step.
type trackPoint struct {
	step int
	outcome
}

func newOutcome() outcome { return outcome{stats: fp8.Stats{Detail: new(fp8.Detail)}} }

func newTrack(o *operand, s scheme) (t *track, err error) {
	t = &track{of: o, scheme: s, recipe: s.recipe(o.role), outcome: newOutcome()}
	if s.delayed != nil {
		t.history, err = scaling.NewHistory(t.recipe)
	}
	return t, err
}

// observe ends a step of the history.
func (t *track) observe(ctx context.Context) error {
	if t.history == nil {
		return nil
	}
	encoded := tensor.Tensor{Name: t.of.name, Shape: []int{t.of.rows, t.of.cols}}
	if err := scaling.Quantize(ctx, &encoded, t.of.values, scaling.Quantizer{Recipe: t.recipe, History: t.history}); err != nil {
		return err
	}
	t.history.Update()
	amaxes := blockAmaxes(t.of.values, t.of.rows, t.of.cols, t.recipe.Block)
	if t.seen == nil {
		t.seen = make([]bool, len(amaxes))
	}
	for i, amax := range amaxes {
		t.seen[i] = t.seen[i] || amax > 0
	}
	return nil
}

// measure encodes the operand as it is now by the scales that its history gives.
func (t *track) measure(step int) {
	now := blockAmaxes(t.of.values, t.of.rows, t.of.cols, t.recipe.Block)
	scales := make([]fp8.Scale, len(now))
	for i, amax := range now {
		switch {
		case t.history == nil:
			scales[i] = t.recipe.Scale(amax)
			continue
		case t.seen == nil: // before the first step
			scales[i] = fp8.Scale{Stored: 1, Multiplier: 1}
			continue
		}
		scales[i] = t.history.Scale(i)
		if t.seen[i] && amax > 0 {
			room := float64(t.recipe.Format.Max()) / float64(scales[i].Multiplier)
			t.ratios = append(t.ratios, float64(amax)/room)
		}
	}
	found := encodeUnder(t.of, t.recipe.Block, scales)
	t.outcome.add(found)
	t.points = append(t.points, trackPoint{step, found})
}

// add counts what happened to other values too.
func (o *outcome) add(other outcome) {
	o.stats.Merge(&other.stats)
	o.blocks += other.blocks
	o.saturated += other.saturated
}

func (o outcome) saturatedShare() float64 {
	return float64(o.stats.Saturated()) / float64(max(o.stats.Elements, 1))
}

// flushedShare is that of the values which are not zero.
func (o outcome) flushedShare() float64 {
	return float64(o.stats.Flushed) / float64(max(o.stats.Elements-o.stats.Zeros, 1))
}

// sqnr is the ratio of signal to quantization noise, in decibels.
func (o outcome) sqnr() float64 { return o.stats.Detail.SQNR() }

func (o outcome) saturatedBlocks() float64 { return float64(o.saturated) / float64(max(o.blocks, 1)) }

// encodeUnder encodes an operand in E4M3 by a scale for each block.
func encodeUnder(o *operand, b tensor.Block, scales []fp8.Scale) outcome {
	total := newOutcome()
	block := make([]fp8.Stats, len(scales))
	codes := make([]byte, o.cols)
	eachSegment(o.rows, o.cols, b, func(i, lo, hi int) {
		st := &block[i]
		st.Detail = total.stats.Detail
		fp8.EncodeScaled(codes, o.values[lo:hi], fp8.E4M3, fp8.Policy{}, scales[i], 0, st)
	})
	for i := range block {
		block[i].Detail = nil // it is the total's already
		total.stats.Merge(&block[i])
		if block[i].Amax > 0 {
			total.blocks++
		}
		if block[i].Saturated() > 0 {
			total.saturated++
		}
	}
	return total
}

// blockAmaxes returns the amax of every block of a matrix, row-major over the grid.
func blockAmaxes(values []float32, rows, cols int, b tensor.Block) []float32 {
	gridRows, gridCols := b.Grid(rows, cols)
	all := make([]float32, gridRows*gridCols)
	eachSegment(rows, cols, b, func(i, lo, hi int) {
		amax, _ := fp8.Amax(values[lo:hi])
		all[i] = max(all[i], amax)
	})
	return all
}

// eachSegment calls f for the part of every row, [lo, hi) of the array, that lies in
// block i of the grid.
func eachSegment(rows, cols int, b tensor.Block, f func(i, lo, hi int)) {
	blockRows, blockCols := b.Extents(rows, cols)
	_, gridCols := b.Grid(rows, cols)
	for row := range rows {
		for col := 0; col < cols; col += blockCols {
			f(row/blockRows*gridCols+col/blockCols, row*cols+col, row*cols+min(col+blockCols, cols))
		}
	}
}

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
