package fault

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// applyMisread applies a fault that takes the codes of scales, which are in format f, for
// those of another.
func applyMisread(f tensor.ScaleFormat, as func(s float32) float32) func(Fault, *problem, *change) error {
	return func(fault Fault, p *problem, c *change) error {
		for _, side := range fault.Of.each() {
			if p.tensor(side).ScaleFormat != f {
				return notHere("the scales of %v are not in %v", side, f)
			}
			o := c.operand(side)
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
	for _, side := range f.Of.each() {
		g, o := p.side(side), c.operand(side)
		number := float32(480)
		if p.tensor(side).ScaleFormat == tensor.E8M0Scales {
			number = float32(math.Inf(1))
			c.dot = infiniteDot
		}
		if !p.tensor(side).ScaleFormat.Encoded() || !g.hasNaN() {
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
	a, err := c.a.matrix(i)
	if err == nil {
		var b *tensor.Tensor
		if b, err = c.b.matrix(j); err == nil {
			var v [1]float32
			if err = multiply(context.Background(), v[:], a, b, &c.kernel, 1); err == nil {
				return v[0]
			}
		}
	}
	x, y := c.a.row(make([]byte, c.a.k), i), c.b.row(make([]byte, c.b.k), j)
	u, v := values(c.a.format), values(c.b.format)
	block := min(c.a.width, c.b.width)
	var sum float64
	for lo := 0; lo < c.a.k; lo += block {
		hi := min(lo+block, c.a.k)
		part, _ := dot(x[lo:hi], y[lo:hi], u, v, u, v)
		sum += part * float64(c.a.scaleAt(i, lo/c.a.width)) * float64(c.b.scaleAt(j, lo/c.b.width))
	}
	return c.underOuter(float32(sum), i, j)
}

func textOfBlock(where string) func(Fault) string {
	return func(f Fault) string {
		return fmt.Sprintf("the scales of %s are taken for those of blocks of %d along K, %s", f.Of.words(), f.By, where)
	}
}

// listBlocks lists blocks of half and of twice the length; those of both operands where
// they have one length.
func listBlocks(k Kind) func(*problem, bool) []Fault {
	return func(p *problem, _ bool) (all []Fault) {
		for _, s := range p.sidesAlike() {
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
		for _, side := range f.Of.each() {
			g, o := p.side(side), c.operand(side)
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
	for _, side := range f.Of.each() {
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
