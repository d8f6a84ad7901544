package granularity

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
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
