package quantizer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Identity is what is known of a quantizer without a claim. Its JSON is stable: keys are added,
// never changed.
type Identity struct {
	Name   string     `json:"name"`
	Rows   int        `json:"rows"`
	Cols   int        `json:"cols"`
	Format fp8.Format `json:"format"`

	Same    []Candidate `json:"same"`    // that give all bits
	Nearest []Candidate `json:"nearest"` // others, the nearest first
	Tried   int         `json:"tried"`
	// NotTried are other profiles for the format: of delayed scales, which follow from no values,
	// or with scales of another type, size or number of levels.
	NotTried []scaling.Profile `json:"notTried,omitempty"`
}

// Candidate is a way to quantize, and how much of the bits it gives.
type Candidate struct {
	Profile  scaling.Profile  `json:"profile"`
	Block    tensor.Block     `json:"block"`
	Rounding string           `json:"rounding"`
	Layout   fault.GridLayout `json:"layout"` // of scales

	Scales float64 `json:"scales"`          // share that is equal
	Codes  float64 `json:"codes"`           // likewise
	Outer  bool    `json:"outer"`           // outer scales are equal, if there are some
	Apart  string  `json:"apart,omitempty"` // values that tell it from the first of those that are the same

	recipe scaling.Recipe
}

// same reports whether all bits are.
func (c *Candidate) same() bool { return c.Scales == 1 && c.Codes == 1 && c.Outer }

// usual are the blocks that are tried.
var usual = []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 16}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 64}, {Rows: 1, Cols: 128}, {Rows: 1, Cols: 256},
	{Rows: 16, Cols: 16}, {Rows: 32, Cols: 32}, {Rows: 64, Cols: 64}, {Rows: 128, Cols: 128}, {Cols: 1}, {Rows: 16, Cols: 1}, {Rows: 32, Cols: 1}, {Rows: 128, Cols: 1}}

const (
	mostNearest  = 8
	mostElements = 1 << 18 // of a first look
)

// Identify says which profile, with which block and rounding, gives codes and scales, which
// lie in the given order, nil: one that fits. got has no scales. It returns an error for codes
// that are not those of the values, for scales that no usual block has ([tensor.ErrShape]), and when
// ctx ends. Delayed scales are not tried, since they follow from no values.
func Identify[T Value](ctx context.Context, x []T, got *tensor.Tensor, raw []float32, layout *fault.GridLayout, o Options) (*Identity, error) {
	rows, cols := got.Dims()
	id := &Identity{Name: got.Name, Rows: rows, Cols: cols, Format: got.Format}
	if len(x) != got.Len() || len(got.Codes) != got.Len() {
		return nil, sentinel.Length(tensor.ErrShape, fmt.Sprintf("tensor %q: the source", got.Name), len(x), got.Len())
	}
	all := candidates(got, raw, layout)
	if len(all) == 0 {
		return nil, sentinel.Errorf(tensor.ErrShape, "tensor %q of shape %v: no profile for %v has %d such scales in a usual block%s",
			got.Name, got.Shape, got.Format, len(raw), map[bool]string{true: " and no outer ones", false: ""}[got.Outer.None()])
	}
	for _, p := range scaling.ProfilesFor(got.Format) {
		if !slices.ContainsFunc(all, func(c Candidate) bool { return c.Profile == p }) {
			id.NotTried = append(id.NotTried, p)
		}
	}
	part := firstLook(x, got)
	for n := range all {
		if err := measure(ctx, &all[n], x, got, raw, part, o); err != nil {
			return nil, err
		}
	}
	id.Tried = len(all)
	slices.SortStableFunc(all, nearer)
	// Of the nearest, other roundings are tried; of all that may be right, all elements.
	for _, c := range slices.Clone(all[:min(4, len(all))]) {
		if c.same() {
			break
		}
		for _, rounding := range []fp8.Rounding{fp8.NearestEven, fp8.TowardZero, fp8.NearestTowardZero} {
			if rounding == c.recipe.EncodePolicy().Rounding || rounding == fp8.NearestEven {
				continue
			}
			c.recipe.Policy.Rounding = rounding
			if err := measure(ctx, &c, x, got, raw, part, o); err != nil {
				return nil, err
			}
			all, id.Tried = append(all, c), id.Tried+1
		}
	}
	slices.SortStableFunc(all, nearer)
	for n := range all {
		if part == nil || n > 2 && !all[n].same() {
			break
		}
		if err := measure(ctx, &all[n], x, got, raw, nil, o); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, nearer)
	for _, c := range all {
		switch {
		case c.same():
			if len(id.Same) > 0 {
				c.Apart = apart(ctx, id.Same[0].recipe, c.recipe)
			}
			id.Same = append(id.Same, c)
		case len(id.Nearest) < mostNearest:
			id.Nearest = append(id.Nearest, c)
		}
	}
	return id, nil
}

// candidates are profiles with blocks and orders of scales that fit.
func candidates(got *tensor.Tensor, raw []float32, layout *fault.GridLayout) (all []Candidate) {
	rows, cols := got.Dims()
	seen := map[[2]int]bool{}
	for _, b := range usual {
		p := newPartition(rows, cols, b)
		size := [2]int{p.height, p.width}
		if seen[size] {
			continue
		}
		seen[size] = true
		orders := LayoutsOf(p.gridRows, p.gridCols, len(raw), nil, false)
		if layout != nil {
			if orders = nil; LayoutSize(*layout, p.gridRows, p.gridCols) <= len(raw) {
				orders = []fault.GridLayout{*layout}
			}
		}
		for n, l := range orders {
			if n > 0 && (p.gridRows == 1 || p.gridCols == 1) {
				break // the same order
			}
			for _, profile := range scaling.ProfilesFor(got.Format) {
				r := scaling.Recipe{Profile: profile, Format: got.Format, Block: b}
				if !got.Outer.None() && got.Outer.Rows > 0 && profile.Outer() {
					r.OuterRows = got.Outer.Rows
				}
				stored := profile.ScaleFormat() == got.ScaleFormat || got.ScaleFormat == tensor.Float32Scales
				if !stored || profile.Delayed() || profile.Outer() == got.Outer.None() || r.Check() != nil {
					continue
				}
				all = append(all, Candidate{Profile: profile, Block: b, Layout: l, recipe: r})
			}
		}
	}
	return all
}

// firstLook returns rows for a first look: nil is all.
func firstLook[T Value](x []T, got *tensor.Tensor) (rows []int) {
	n, cols := got.Dims()
	if len(x) <= mostElements {
		return nil
	}
	const band = 128 // rows of the tallest block
	most := max(1, mostElements/(band*cols))
	for _, b := range explain.Spread((n+band-1)/band, most) {
		for i := b * band; i < min(n, (b+1)*band); i++ {
			rows = append(rows, i)
		}
	}
	return rows
}

// measure finds the share of bits that a candidate gives, of some rows or of all: nil.
func measure[T Value](ctx context.Context, c *Candidate, x []T, got *tensor.Tensor, raw []float32, some []int, o Options) error {
	rows, cols := got.Dims()
	c.Rounding = c.recipe.EncodePolicy().Rounding.String()
	whole := newPartition(rows, cols, c.Block)
	if c.Block.Rows == 0 || c.recipe.OuterRows > 1 || c.recipe.Profile == scaling.NVFP4TERow && got.Outer.Rows == 0 {
		some = nil // blocks reach over all rows
	}
	of := x
	t := &tensor.Tensor{Shape: []int{rows, cols}}
	q := scaling.Quantizer{Recipe: c.recipe, Options: tensor.Options{Workers: o.Workers}}
	if some != nil {
		of = make([]T, 0, len(some)*cols)
		for _, i := range some {
			of = append(of, x[i*cols:(i+1)*cols]...)
		}
		t.Shape[0] = len(some)
		if c.recipe.Profile.Outer() && len(got.Outer.Scales) == 1 {
			amax, nan := fp8.Amax(x)
			if nan && !leavesNaN(c.recipe.Profile) {
				amax = float32(math.NaN())
			}
			q.OuterAmax = []float32{amax}
		}
	}
	if err := scaling.Quantize(ctx, t, of, q); err != nil {
		return err
	}
	row := func(n int) int {
		if some != nil {
			return some[n]
		}
		return n
	}
	var nan [256]bool
	for code := range nan {
		nan[code] = got.Format.IsNaN(byte(code))
	}
	scales, codes := 0, 0
	gridRows, gridCols := t.Grid()
	for r := range gridRows {
		at := row(r*whole.height) / whole.height
		for k := range gridCols {
			if same(raw[c.Layout.Index(at, k, whole.gridRows, whole.gridCols)], t.Scales[r*gridCols+k]) {
				scales++
			}
		}
	}
	for n := range t.Shape[0] {
		a, b := t.Codes[n*cols:(n+1)*cols], got.Codes[row(n)*cols:(row(n)+1)*cols]
		for k, code := range a {
			if code == b[k] || nan[code] && nan[b[k]] {
				codes++
			}
		}
	}
	c.Scales, c.Codes = share(scales, len(t.Scales)), share(codes, len(t.Codes))
	c.Outer = len(t.Outer.Scales) == 0
	if n := len(got.Outer.Scales); !c.Outer && (some == nil || n == 1) && n == len(t.Outer.Scales) && t.Outer.Divide == got.Outer.Divide {
		c.Outer = slices.EqualFunc(t.Outer.Scales, got.Outer.Scales, same)
	}
	return nil
}

func share(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// nearer orders candidates by the bits that they give.
func nearer(a, b Candidate) int {
	score := func(c *Candidate) float64 {
		s := c.Scales + c.Codes
		if c.Outer {
			s++
		}
		return s
	}
	return cmp.Compare(score(&b), score(&a))
}

// probes are values that tell profiles apart, in words.
func probes(f fp8.Format, rows, cols int) (words []string, values [][]float32) {
	r := rand.New(rand.NewPCG(1, 36))
	random := func() []float32 {
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	add := func(text string, set func(x []float32)) {
		x := random()
		set(x)
		words, values = append(words, text), append(values, x)
	}
	// Of the second half of the columns, or of all, the amax is the given one.
	amax := func(a float32) func(x []float32) {
		return func(x []float32) {
			for i := range x {
				if i%cols >= cols/2 {
					x[i] = a * (float32(i%7) / 8)
				}
			}
			x[cols-1] = a
		}
	}
	add("other ordinary values", func([]float32) {})
	add("blocks of many sizes", func(x []float32) {
		for i := range x {
			x[i] *= float32(math.Exp2(float64(i / 16 % 37)))
		}
	})
	for _, by := range []float32{f.Max(), 1, 1.5, 1.75, 6} {
		a := by * 0x1p-3
		add(fmt.Sprintf("an amax just above %v times a power of two", by), amax(math.Nextafter32(a, 1e9)))
		add(fmt.Sprintf("an amax just below %v times a power of two", by), amax(math.Nextafter32(a, 0)))
		add(fmt.Sprintf("an amax of %v times a power of two", by), amax(a))
	}
	add("values halfway between two codes", func(x []float32) {
		for i := range x {
			x[i] = f.Max() * float32(i%61) / 61
			c := fp8.EncodeOne(x[i], f, fp8.Policy{Rounding: fp8.TowardZero})
			x[i] = (f.Float32(c) + f.Float32(min(c+1, f.MaxCode()))) / 2
		}
		x[0], x[cols-1] = f.Max(), f.Max()
	})
	add("a block of zeros", amax(0))
	add("negative zeros, and negative values that become zero", func(x []float32) {
		for i := range x {
			x[i] = float32(math.Copysign(float64(i%2)*1e-6, -1))
		}
		x[0] = 1
	})
	add("an amax of 1e-6", amax(1e-6))
	add("an amax of 1e-13", amax(1e-13))
	add("an amax of 1e-38", amax(1e-38))
	add("an amax of 1e38", amax(1e38))
	add("an infinity", func(x []float32) { x[3] = float32(math.Inf(1)) })
	add("a NaN", func(x []float32) { x[3] = float32(math.NaN()) })
	return words, values
}

// apart says of which values two recipes make different bits.
func apart(ctx context.Context, a, b scaling.Recipe) string {
	if a.Block != b.Block {
		return "more rows and columns than one block has, or other shapes"
	}
	rows, cols := max(1, a.Block.Rows), max(64, 2*a.Block.Cols)
	words, values := probes(a.Format, rows, cols)
	for n, x := range values {
		var t [2]tensor.Tensor
		for i, r := range []scaling.Recipe{a, b} {
			t[i].Shape = []int{rows, cols}
			if err := scaling.Quantize(ctx, &t[i], x, scaling.Quantizer{Recipe: r, Options: tensor.Options{Workers: 1}}); err != nil {
				return ""
			}
		}
		if !slices.Equal(t[0].Codes, t[1].Codes) || !slices.EqualFunc(t[0].Scales, t[1].Scales, same) || !slices.EqualFunc(t[0].Outer.Scales, t[1].Outer.Scales, same) {
			return words[n]
		}
	}
	return ""
}
