package fault

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
)

// applyGrid applies a fault that reads another scale of the grid: read returns that for
// row r and column c.
func applyGrid(read func(f Fault, g *grid, h *change) func(r, c int) float32) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for side, o := range c.operands(f.Of) {
			g := &p.operand(side).grid
			if g.uniform() {
				return notHere("all scales of %v are equal", side)
			}
			at := read(f, g, c)
			o.scale = func(i, q int) float32 { return at(i/g.height, q) }
		}
		return nil
	}
}

// applyAt is applyGrid for a scale that is read from another place of the grid, in which
// rows are one after the other.
func applyAt(place func(f Fault, g *grid, r, c int) int) func(Fault, *problem, *change) error {
	return applyGrid(func(f Fault, g *grid, h *change) func(r, c int) float32 {
		return func(r, c int) float32 { return g.read(place(f, g, r, c), h.beyond) }
	})
}

// fitsGrid reports whether there is more than one tile of By rows in the grid.
func fitsGrid(f Fault, p *problem) bool {
	return (f.Of == B || f.By < p.a.grid.rows) && (f.Of == A || f.By < p.b.grid.rows)
}

// fitsBlocks reports whether there are more than By blocks of K.
func fitsBlocks(f Fault, p *problem) bool {
	return (f.Of == B || f.By < p.a.grid.cols) && (f.Of == A || f.By < p.b.grid.cols)
}

// applyCarried multiplies by the scales of the rows before, too, as where a tile's scales
// are changed in place and used for the next.
func applyCarried(f Fault, p *problem, c *change) error {
	for side, o := range c.operands(f.Of) {
		if f.By >= p.extent(side) {
			return notHere("%d rows before", f.By)
		}
		was := *o
		o.scale = func(i, q int) float32 {
			if i < f.By {
				return was.scaleAt(i, q)
			}
			return was.scaleAt(i, q) * was.scaleAt(i-f.By, q)
		}
	}
	c.slack = 0x1p-22
	return nil
}

func listLayouts(p *problem, _ bool) (all []Fault) {
	several := func(s Side) bool { g := &p.operand(s).grid; return g.rows*g.cols >= 2 }
	for _, s := range eitherOrBoth {
		if s != B && !several(A) || s != A && !several(B) {
			continue
		}
		for written := range layouts.Names {
			for read := range layouts.Names {
				// Padded rows are those of tiles that were not made, or were.
				other := []GridLayout{RowMajor, Tiles128x4, tiles8x4}
				if read != written && (GridLayout(read) != padded || slices.Contains(other, GridLayout(written))) &&
					(GridLayout(written) != padded || slices.Contains(other, GridLayout(read))) {
					all = append(all, Fault{Of: s, Written: GridLayout(written), Read: GridLayout(read)})
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
	for _, o := range c.operands(f.Of) {
		if (f.Written == padded || f.Read == padded) && o.grid.cols%4 == 0 {
			return notHere("rows of %d scales are not padded", o.grid.cols)
		}
	}
	// packed words hold exponents.
	packed := func(l GridLayout) bool { return l == packed || l == packedReversed }
	for side, o := range c.operands(f.Of) {
		if (packed(f.Written) || packed(f.Read)) && !o.grid.powers() {
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
	return g.every(func(s float32) bool {
		_, ok := fp8.E8M0FromFloat32(s)
		return ok
	})
}

// applyScale applies a fault that makes another number of each scale.
func applyScale(of func(f Fault, s float32) float32) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for _, o := range c.operands(f.Of) {
			was := *o
			o.scale = func(i, q int) float32 { return of(f, was.scaleAt(i, q)) }
		}
		c.slack = 0x1p-22 // the scale is not applied as it is computed here
		return nil
	}
}

func powerDown(_ Fault, s float32) float32 { return number.PowerDown(s) }

func powerUp(_ Fault, s float32) float32 { return number.PowerUp(s) }

func exponentOff(f Fault, s float32) float32 { return float32(math.Ldexp(float64(s), f.By)) }

func applyScalesExchanged(_ Fault, p *problem, c *change) error {
	ga, gb := &p.a.grid, &p.b.grid
	if ga.rows != gb.rows || ga.cols != gb.cols {
		return notHere("grids of %dx%d and %dx%d scales", ga.rows, ga.cols, gb.rows, gb.cols)
	}
	c.a.scale = func(i, q int) float32 { return gb.t.ScaleRow(i / ga.height)[q] }
	c.b.scale = func(i, q int) float32 { return ga.t.ScaleRow(i / gb.height)[q] }
	return nil
}

// listStrides lists numbers of groups into which all rows of a grid can be cut.
func listStrides(p *problem, few bool) (all []Fault) {
	const most = 64
	for _, s := range eitherOrBoth {
		rows := p.operand(A).grid.rows
		if s == B || s == Both && p.operand(B).grid.rows != rows {
			rows = p.operand(B).grid.rows
		}
		n := 0
		for by := 2; by <= rows/2 && by <= mostBy && n < most; by++ {
			if rows%by != 0 || few && n > 0 || s == Both && p.operand(A).grid.rows != rows {
				continue
			}
			all = append(all, Fault{Of: s, By: by})
			n++
		}
	}
	return all
}

// strided is the row that is read for row r where rows of a grid, By in each group, are read
// as groups in each of By.
func strided(f Fault, g *grid, r, c int) int {
	if g.rows%f.By != 0 {
		return r*g.cols + c
	}
	return (r%f.By*(g.rows/f.By)+r/f.By)*g.cols + c
}

// listPlaced lists tiles of C and how many of them are beside each other, as thread blocks are
// launched.
func listPlaced(p *problem, few bool) (all []Fault) {
	for _, s := range eitherOrBoth {
		for _, tile := range tileSizes {
			for n, by := range []string{"2", "4", "8", "16"} {
				// All tiles of a row beside each other read one row of B's scales.
				if s == B && n > 0 && p.n <= tile<<n {
					break
				}
				if p.n > tile && (p.m > tile || s != A) && (!few || len(all) == 0 && tile < p.n/2) {
					all = append(all, Fault{Of: s, By: tile, Values: by})
				}
			}
		}
	}
	return all
}

// applyPlaced has the scales of tiles read by the numbers of thread blocks, of which f.Values
// beside each other compute tiles of one row, as GemmIdentityThreadblockSwizzle has it.
func applyPlaced(f Fault, p *problem, c *change) error {
	wide, err := strconv.Atoi(f.Values)
	if err != nil || wide < 2 || f.By < 1 {
		return notHere("tiles of %d launched %s beside each other", f.By, f.Values)
	}
	for side, o := range c.operands(f.Of) {
		g := &p.operand(side).grid
		if g.uniform() {
			return notHere("all scales of %v are equal", side)
		}
		o.scale = func(i, q int) float32 { return g.read(i/g.height*g.cols+q, c.beyond) }
	}
	c.placed = func(i, j int) (ofA, ofB int) {
		ofA, ofB = i, j
		if f.Of != B {
			ofA = (i/f.By*wide+j/f.By%wide)*f.By + i%f.By
		}
		if f.Of != A {
			ofB = j/f.By/wide*f.By + j%f.By
		}
		return ofA, ofB
	}
	return c.plainly(p)
}

func textOfStale(f Fault) string {
	factors, err := numbers(f.Values, parseFloat)
	s := fmt.Sprintf("the scales of %s of row %d of their grid are not those that are stored but others, stale or of another tensor: ", f.Of.words(), f.By)
	if err != nil {
		return s + f.Values
	}
	const most = 8
	if len(factors) == 1 || slices.Min(factors) == slices.Max(factors) {
		return s + fmt.Sprintf("%.5g times those", factors[0])
	}
	words := make([]string, min(len(factors), most))
	for i := range words {
		words[i] = fmt.Sprintf("%.5g", factors[i])
	}
	if len(factors) > most {
		words = append(words, "and so on")
	}
	return s + "block by block " + strings.Join(words, ", ") + " times those"
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// applyStaleRow has the scales of one row of a grid multiplied by factors.
func applyStaleRow(f Fault, p *problem, c *change) error {
	factors, err := numbers(f.Values, parseFloat)
	if err != nil {
		return err
	}
	for side, o := range c.operands(f.Of) {
		was := *o
		if g := &o.grid; f.By < 0 || f.By >= g.rows || len(factors) != was.blocks() {
			return notHere("%d factors of the scales of row %d of %v", len(factors), f.By, side)
		}
		o.scale = func(i, q int) float32 {
			s := was.scaleAt(i, q)
			if i/was.grid.height == f.By {
				s = float32(float64(s) * factors[q])
			}
			return s
		}
	}
	c.fitted, c.freedom = true, float64(fitted*(len(factors)-1))
	return nil
}
