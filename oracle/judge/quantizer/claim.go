package quantizer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Value is a type of the values that are quantized.
type Value interface {
	float32 | fp8.BFloat16 | float16.Float16
}

// Result is what a quantizer was given and what it made of it. Got has the block that is
// claimed, codes one a byte and scales decoded, row-major, and outer scales if there are some.
type Result[T Value] struct {
	X   []T
	Got *tensor.Tensor

	// Raw are the scales in the order in which they lie in memory, gaps included, which is
	// Layout; nil: Got's, row-major.
	Raw    []float32
	Layout fault.GridLayout
}

// Options say how to judge. Workers are goroutines at most; 0 means GOMAXPROCS.
type Options struct{ Workers int }

// job is a result that is judged.
type job struct {
	recipe     scaling.Recipe
	workers    int
	x          []float32
	rows, cols int
	part       partition   // the claim's blocks
	own        *Arithmetic // which is no profile's, or nil
	typed      func(r scaling.Recipe, amax float32, nan bool) (fp8.Scale, error)

	codes  []byte // that were got, as all else that has no other name
	scales []float32
	raw    []float32
	layout fault.GridLayout
	outer  tensor.Outer

	want      *tensor.Tensor
	amaxes    amaxes // of blocks
	outerAmax []float32
	random    bool // codes are rounded stochastically
	lazy      *lazy

	scaleState []state  // of each block
	codeState  []state  // of each element
	reasons    []string // why something is undecided

	claimedScales func() []fp8.Scale // of blocks
}

// state is whether something has the bits that are claimed.
type state uint8

const (
	right state = iota
	wrong
	open // undefined
)

// partition cuts a matrix into blocks. Rows may be of lanes in turn: a block then has height rows
// of each of share lanes.
type partition struct{ rows, cols, height, width, gridRows, gridCols, lanes, share int }

func newPartition(rows, cols int, b tensor.Block) partition {
	p := partition{rows: rows, cols: cols, lanes: 1, share: 1}
	p.height, p.width = b.Extents(rows, cols)
	p.gridRows, p.gridCols = b.Grid(rows, cols)
	return p
}

// newLanes cuts rows of each of several lanes.
func newLanes(rows, lanes, cols int, s Share) partition {
	return partition{rows * lanes, cols, s.Rows, s.Cols, ceilDiv(rows, s.Rows) * ceilDiv(lanes, s.Lanes), ceilDiv(cols, s.Cols), lanes, s.Lanes}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func (p *partition) blocks() int { return p.gridRows * p.gridCols }
func (p *partition) line(i int) int {
	return i/p.lanes/p.height*ceilDiv(p.lanes, p.share) + i%p.lanes/p.share
}
func (p *partition) block(i, j int) int { return p.line(i)*p.gridCols + j/p.width }

// cut does something with the parts of a row that are of a block each.
func (p *partition) cut(row, from, to int, do func(lo, hi, b int)) {
	for from < to {
		hi := min(to, (from/p.width+1)*p.width)
		do(from, hi, p.block(row, from))
		from = hi
	}
}

// first is the first element of a block.
func (p *partition) first(b int) (i, k int) {
	line, n := b/p.gridCols, ceilDiv(p.lanes, p.share)
	return line/n*p.height*p.lanes + line%n*p.share, b % p.gridCols * p.width
}

// bounds are the rows and columns of a block, where there is one lane.
func (p *partition) bounds(b int) (i0, i1, j0, j1 int) {
	i0, j0 = p.first(b)
	return i0, min(i0+p.height, p.rows), j0, min(j0+p.width, p.cols)
}

// place names a block.
func (p *partition) place(b int) string {
	i0, i1, j0, j1 := p.bounds(b)
	return fmt.Sprintf("block %d,%d (rows %d-%d, columns %d-%d)", b/p.gridCols, b%p.gridCols, i0, i1-1, j0, j1-1)
}

// newJob checks a result and widens it.
func newJob[T Value](r Result[T], recipe scaling.Recipe, o Options) (*job, error) {
	if r.Got == nil {
		return nil, sentinel.Errorf(tensor.ErrShape, "quantizer: there is no result")
	}
	got := *r.Got
	got.Format, got.Block = recipe.Format, recipe.Block
	if err := recipe.Check(); err != nil {
		return nil, err
	}
	if recipe.Format == fp8.MXINT8 && recipe.EncodePolicy().Rounding == fp8.Stochastic {
		return nil, sentinel.Errorf(scaling.ErrRecipe, "quantizer: stochastic rounding to MXINT8 is not judged")
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("quantizer: %d workers: want 0 or more", o.Workers)
	}
	if err := got.Check(); err != nil {
		return nil, err
	}
	if got.Stride != 0 || got.ScaleStride != 0 {
		return nil, sentinel.Errorf(tensor.ErrShape, "tensor %q has rows that do not follow each other", got.Name)
	}
	if len(r.X) != got.Len() {
		return nil, sentinel.Length(tensor.ErrShape, fmt.Sprintf("tensor %q: the source", got.Name), len(r.X), got.Len())
	}
	if recipe.Profile.Outer() && got.Outer.None() {
		return nil, sentinel.Errorf(tensor.ErrScale, "tensor %q has no outer scales, and %s gives some", got.Name, recipe.Profile)
	}
	j := &job{recipe: recipe, workers: o.Workers, x: widen(r.X), codes: got.Codes, scales: got.Scales, outer: got.Outer,
		raw: r.Raw, layout: r.Layout, random: recipe.EncodePolicy().Rounding == fp8.Stochastic}
	j.lazy, j.claimedScales = &lazy{}, sync.OnceValue(j.findScales)
	j.rows, j.cols = got.Dims()
	j.part = newPartition(j.rows, j.cols, recipe.Block)
	if j.raw == nil {
		j.raw = got.Scales
	}
	j.typed = func(r scaling.Recipe, amax float32, nan bool) (fp8.Scale, error) {
		return scaling.Scale[T](r, amax, nan)
	}
	return j, nil
}

func widen[T Value](x []T) []float32 {
	if x, ok := any(x).([]float32); ok {
		return x
	}
	r := make([]float32, len(x))
	for i, v := range x {
		r[i] = number.Float32(v)
	}
	return r
}

// same reports whether two scales have the same bits; NaN are equal whatever theirs.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// leavesNaN reports whether a profile of NVFP4 takes an amax over what is not NaN.
func leavesNaN(p scaling.Profile) bool { return strings.HasPrefix(string(p), "nvfp4-te") }

// chooses reports whether a profile chooses between two scales of a block.
func chooses(p scaling.Profile) bool {
	return strings.Contains(string(p), "4over6") ||
		slices.Contains([]scaling.Profile{scaling.NVFP4FourOverSixMAE, scaling.NVFP4FourOverSixMSE, scaling.NVFP4FourOverSixAbsMax}, p)
}
