package fault

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
)

// applyGrid applies a fault that reads another scale of the grid: read returns that for
// row r and column c.
func applyGrid(read func(f Fault, g *grid, h *change) func(r, c int) float32) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for _, side := range f.Of.each() {
			g, o := p.side(side), c.operand(side)
			if g.uniform() {
				return notHere("all scales of %v are equal", side)
			}
			at := read(f, g, c)
			o.scale = func(i, q int) float32 { return at(i/g.height, q) }
		}
		return nil
	}
}

func readTransposed(_ Fault, g *grid, h *change) func(r, c int) float32 {
	return func(r, c int) float32 { return g.read(c*g.cols+r, h.beyond) }
}

func readRowsOff(f Fault, g *grid, h *change) func(r, c int) float32 {
	return func(r, c int) float32 { return g.read((r+f.By)*g.cols+c, h.beyond) }
}

func readColumnsOff(f Fault, g *grid, h *change) func(r, c int) float32 {
	return func(r, c int) float32 { return g.read(r*g.cols+c+f.By, h.beyond) }
}

func readFirstRow(_ Fault, g *grid, h *change) func(r, c int) float32 {
	return func(_, c int) float32 { return g.read(c, h.beyond) }
}

func readRow(f Fault, g *grid, h *change) func(r, c int) float32 {
	return func(_, c int) float32 { return g.read(f.By*g.cols+c, h.beyond) }
}

func textOfRow(f Fault) string {
	return fmt.Sprintf("the scales of %s are read from row %d of their grid", f.Of.words(), f.By)
}

func readFirstColumn(_ Fault, g *grid, h *change) func(r, c int) float32 {
	return func(r, _ int) float32 { return g.read(r*g.cols, h.beyond) }
}

func readTile(f Fault, g *grid, h *change) func(r, c int) float32 {
	return func(r, c int) float32 { return g.read(r/f.By*f.By*g.cols+c, h.beyond) }
}

func textOfFirst(which, whose string) func(Fault) string {
	return func(f Fault) string {
		return fmt.Sprintf("the scales of %s %s are taken for those of %s", f.Of.words(), which, whose)
	}
}

func textOfTileScale(f Fault) string {
	return fmt.Sprintf("every %d rows have the scales of %s of the first of them", f.By, f.Of.words())
}

func listTileScales(p *problem, _ bool) (all []Fault) {
	for _, s := range []Side{A, B, Both} {
		for _, n := range []int{2, 4, 8, 16, 32, 64, 128} {
			if !slices.ContainsFunc(s.each(), func(s Side) bool { return n >= p.side(s).rows }) {
				all = append(all, Fault{Kind: ScalesOfTile, Of: s, By: n})
			}
		}
	}
	return all
}

func textOfLayout(f Fault) string {
	return fmt.Sprintf("the scales of %s, %s, are read as %s", f.Of.words(), f.Written.in(), f.Read.in())
}

func listLayouts(p *problem, _ bool) (all []Fault) {
	for _, s := range []Side{A, B, Both} {
		if slices.ContainsFunc(s.each(), func(s Side) bool { g := p.side(s); return g.rows*g.cols < 2 }) {
			continue
		}
		for written := range layouts.Names {
			for read := range layouts.Names {
				if read != written {
					all = append(all, Fault{Kind: ScalesLayout, Of: s, Written: GridLayout(written), Read: GridLayout(read)})
				}
			}
		}
	}
	return all
}

func applyLayout(f Fault, p *problem, c *change) error {
	if layouts.Check(f.Written) != nil || layouts.Check(f.Read) != nil || f.Written == f.Read {
		return notHere("%v read as %v", f.Written, f.Read)
	}
	// packed words hold exponents.
	packed := func(l GridLayout) bool { return l == packed || l == packedReversed }
	for _, side := range f.Of.each() {
		if (packed(f.Written) || packed(f.Read)) && !p.side(side).powers() {
			return notHere("scales of %v that are not powers of two are not packed", side)
		}
	}
	return applyGrid(readLayout)(f, p, c)
}

// readLayout reads what a writer of one layout left where another has a scale. Gaps are
// 0. What is beyond the end is not known; in an injected fault it is 0, as TMA has it.
func readLayout(f Fault, g *grid, h *change) func(r, c int) float32 {
	memory := make([]float32, f.Written.size(g.rows, g.cols))
	for r := range g.rows {
		for c, s := range g.t.ScaleRow(r) {
			memory[f.Written.Index(r, c, g.rows, g.cols)] = s
		}
	}
	return func(r, c int) float32 {
		at := f.Read.Index(r, c, g.rows, g.cols)
		if at < len(memory) {
			return memory[at]
		}
		if h.beyond == unknown {
			return unknownScale
		}
		return 0
	}
}

// powers reports whether all scales are powers of two that E8M0 has.
func (g *grid) powers() bool {
	for r := range g.rows {
		for _, s := range g.t.ScaleRow(r) {
			if _, ok := fp8.E8M0FromFloat32(s); !ok {
				return false
			}
		}
	}
	return true
}

// applyScale applies a fault that makes another number of each scale.
func applyScale(of func(f Fault, s float32) float32) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		change := func(o *operand) {
			was := *o
			o.scale = func(i, q int) float32 { return of(f, was.scaleAt(i, q)) }
		}
		if f.Of != B {
			change(&c.a)
		}
		if f.Of != A {
			change(&c.b)
		}
		c.slack = 0x1p-22 // the scale is not applied as it is computed here
		return nil
	}
}

func ignored(Fault, float32) float32        { return 1 }
func squared(_ Fault, s float32) float32    { return s * s }
func reciprocal(_ Fault, s float32) float32 { return 1 / s }

func roundedScale(f Fault, s float32) float32 { return f.Type.narrow(s) }

// powerDown returns the largest power of two up to s; zeros, infinities and NaN stay.
func powerDown(_ Fault, s float32) float32 {
	fraction, exponent := math.Frexp(float64(s))
	if fraction == 0 || fraction != fraction || math.IsInf(fraction, 0) {
		return s
	}
	return float32(math.Ldexp(math.Copysign(0.5, fraction), exponent))
}

func powerUp(f Fault, s float32) float32 {
	if down := powerDown(f, s); down != s {
		return 2 * down
	}
	return s
}

func exponentOff(f Fault, s float32) float32 { return float32(math.Ldexp(float64(s), f.By)) }

func textOfRoundedScales(f Fault) string {
	return fmt.Sprintf("the scales of %s are rounded to %v", f.Of.words(), f.Type)
}

func listRoundedScales(*problem, bool) (all []Fault) {
	for _, s := range []Side{A, B, Both} {
		all = append(all, Fault{Kind: ScalesRounded, Of: s, Type: BFloat16}, Fault{Kind: ScalesRounded, Of: s, Type: Float16})
	}
	return all
}

func textOfExponent(f Fault) string {
	return fmt.Sprintf("the scales of %s are %.4g times what they should be, as under a wrong bias of their exponents", f.Of.words(), math.Ldexp(1, f.By))
}

func applyScalesExchanged(_ Fault, p *problem, c *change) error {
	ga, gb := &p.gridA, &p.gridB
	if ga.rows != gb.rows || ga.cols != gb.cols {
		return notHere("grids of %dx%d and %dx%d scales", ga.rows, ga.cols, gb.rows, gb.cols)
	}
	c.a.scale = func(i, q int) float32 { return gb.t.ScaleRow(i / ga.height)[q] }
	c.b.scale = func(i, q int) float32 { return ga.t.ScaleRow(i / gb.height)[q] }
	return nil
}
