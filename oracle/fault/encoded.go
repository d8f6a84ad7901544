package fault

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// applyMisread applies a fault that takes the codes of scales, which are in format f, for
// those of another.
func applyMisread(f tensor.ScaleFormat, as func(s float32) float32) func(Fault, *problem, *change) error {
	return func(fault Fault, p *problem, c *change) error {
		if p.tensor(fault.Of).ScaleFormat != f {
			return notHere("the scales of %v are not in %v", fault.Of, f)
		}
		o := c.operand(fault.Of)
		was := *o
		o.scale = func(i, q int) float32 { return as(was.scaleAt(i, q)) }
		return nil
	}
}

// asE8M0 takes the code of a UE4M3 scale for one of E8M0.
func asE8M0(s float32) float32 {
	return fp8.E8M0(fp8.EncodeOne(s, fp8.E4M3, fp8.Policy{})).Float32()
}

// asE4M3 takes the code of an E8M0 scale for one of E4M3.
func asE4M3(s float32) float32 { return fp8.E4M3.Float32(codeOfE8M0(s)) }

// asUE4M3 takes the code of an E8M0 scale for one of UE4M3.
func asUE4M3(s float32) float32 { return fp8.E4M3.Float32(codeOfE8M0(s) & 0x7F) }

func codeOfE8M0(s float32) byte {
	code, _ := fp8.E8M0FromFloat32(s)
	return byte(code)
}

func textOfBlock(where string) func(Fault) string {
	return func(f Fault) string {
		return fmt.Sprintf("the scales of %s are taken for those of blocks of %d along K, %s", f.Of.words(), f.By, where)
	}
}

// listBlocks lists blocks of half and of twice the length.
func listBlocks(k Kind) func(*problem, bool) []Fault {
	return func(p *problem, _ bool) (all []Fault) {
		for _, s := range []Side{A, B} {
			o := &p.a
			if s == B {
				o = &p.b
			}
			for _, by := range []int{2 * o.width, o.width / 2} {
				if by >= leastBlock && by < p.k {
					all = append(all, Fault{Kind: k, Of: s, By: by})
				}
			}
		}
		return all
	}
}

// leastBlock is the length of the shortest blocks in use.
const leastBlock = 16

// applyBlock reads the scales of blocks of another length, in rows of the right number of
// scales or, if dense, of the number that such blocks have.
func applyBlock(dense bool) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		g, o := p.side(f.Of), c.operand(f.Of)
		longer, shorter := max(f.By, o.width), min(f.By, o.width)
		if g.uniform() || g.rows < 2 || longer%shorter != 0 || longer == shorter || o.width >= o.k {
			return notHere("scales of %v in blocks of %d along K", f.Of, f.By)
		}
		cols := g.cols
		if dense {
			cols = (p.k + f.By - 1) / f.By
		}
		o.width = shorter
		o.scale = func(i, q int) float32 { return g.read(i/g.height*cols+q*shorter/f.By, c.beyond) }
		return nil
	}
}

// listExponents lists a bias that is off by one.
func listExponents(*problem, bool) (all []Fault) {
	for _, s := range []Side{A, B, Both} {
		for _, by := range []int{1, -1} {
			all = append(all, Fault{Kind: ScalesExponentOff, Of: s, By: by})
		}
	}
	return all
}

func outerOf(what string) func(Fault) string {
	return func(f Fault) string { return "the outer scales of " + f.Of.words() + " are " + what }
}

// applyOuter applies a fault of outer scales.
func applyOuter(f Fault, p *problem, c *change) error {
	for _, side := range []Side{A, B} {
		if f.Of != side && f.Of != Both {
			continue
		}
		o := c.operand(side)
		if !o.hasOuter() {
			return notHere("%v has no outer scales", side)
		}
		t := o.t
		switch f.Kind {
		case OuterIgnored:
			o.noOuter = true
		case OuterSquared:
			o.outer = func(i int) float32 { return t.Outer.At(i) * t.Outer.At(i) }
		case OuterReciprocal:
			o.divide = !o.divide
		}
	}
	c.slack = 0x1p-22 // the scale is not applied as it is computed here
	return nil
}
