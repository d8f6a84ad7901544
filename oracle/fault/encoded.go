package fault

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// applyMisread applies a fault that takes the codes of scales, which are in format f, for
// those of another.
func applyMisread(f tensor.ScaleFormat, as func(s float32) float32) func(Fault, *problem, *change) error {
	return func(fault Fault, p *problem, c *change) error {
		for side, o := range c.operands(fault.Of) {
			if o.t.ScaleFormat != f {
				return notHere("the scales of %v are not in %v", side, f)
			}
			was := *o
			o.scale = func(i, q int) float32 { return as(was.scaleAt(i, q)) }
		}
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

// applyNaNNumber applies a fault that takes NaN scales for numbers. Elements under a scale
// that is infinite then are sums that no kernel of the contract computes.
func applyNaNNumber(f Fault, p *problem, c *change) error {
	for side, o := range c.operands(f.Of) {
		number := float32(480)
		if o.t.ScaleFormat == tensor.E8M0Scales {
			number = float32(math.Inf(1))
			c.dot = infiniteDot
		}
		if !o.t.ScaleFormat.Encoded() || o.grid.every(func(s float32) bool { return s == s }) {
			return notHere("no encoded scale of %v is NaN", side)
		}
		was := *o
		o.scale = func(i, q int) float32 {
			if s := was.scaleAt(i, q); s == s {
				return s
			}
			return number
		}
	}
	if c.dot != nil && p.hasModel() {
		if err := p.Kernel.CheckOperands(p.A, p.B); err != nil {
			return notHere("%v", err)
		}
	}
	return nil
}

// infiniteDot returns an element of the product, of which scales may be infinite. Where
// none is, that is the kernel's.
func infiniteDot(c *change, i, j int) float32 {
	if v, err := c.computed(context.Background(), i, j); err == nil {
		return v
	}
	u, v := values(c.a.format), values(c.b.format)
	var sum float64
	eachBlock(&c.a, &c.b, i, j, new(scratch), func(x, y []byte, sa, sb float32) {
		part, _ := dot(x, y, u, v, u, v)
		sum += part * float64(sa) * float64(sb)
	})
	return c.underOuter(float32(sum), i, j)
}

// listBlocks lists blocks of half and of twice the length; those of both operands where
// they have one length.
func listBlocks(p *problem, _ bool) (all []Fault) {
	for _, s := range p.sidesAlike() {
		width := p.operand(s).width
		for _, by := range []int{2 * width, width / 2} {
			if by >= leastBlock && by < p.k {
				all = append(all, Fault{Of: s, By: by})
			}
		}
	}
	return all
}

// leastBlock is the length of the shortest blocks in use.
const leastBlock = 16

// applyBlock reads the scales of blocks of another length, in rows of the right number of
// scales or, if dense, of the number that such blocks have.
func applyBlock(dense bool) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for side, o := range c.operands(f.Of) {
			g := &p.operand(side).grid
			longer, shorter := max(f.By, o.width), min(f.By, o.width)
			if g.uniform() || g.rows < 2 || longer%shorter != 0 || longer == shorter || o.width >= o.k {
				return notHere("scales of %v in blocks of %d along K", side, f.By)
			}
			cols := g.cols
			if dense {
				cols = (p.k + f.By - 1) / f.By
			}
			o.width = shorter
			o.scale = func(i, q int) float32 { return g.read(i/g.height*cols+q*shorter/f.By, c.beyond) }
		}
		return nil
	}
}

// applyOuter applies a fault of outer scales.
func applyOuter(misread func(o *operand)) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for side, o := range c.operands(f.Of) {
			if !o.hasOuter() {
				return notHere("%v has no outer scales", side)
			}
			misread(o)
		}
		c.slack = 0x1p-22 // the scale is not applied as it is computed here
		return nil
	}
}

func squareOuter(o *operand) {
	t := o.t
	o.outer = func(i int) float32 { return t.Outer.At(i) * t.Outer.At(i) }
}
