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

// applyBytes applies a fault that multiplies with the bytes of scales.
func applyBytes(f Fault, _ *problem, c *change) error {
	for side, o := range c.operands(f.Of) {
		if !o.t.ScaleFormat.Encoded() {
			return notHere("the scales of %v are no bytes", side)
		}
		was, e8m0 := *o, o.t.ScaleFormat == tensor.E8M0Scales
		o.scale = func(i, q int) float32 {
			if s := was.scaleAt(i, q); e8m0 {
				return float32(codeOfE8M0(s))
			} else {
				return float32(fp8.EncodeOne(s, fp8.E4M3, fp8.Policy{}))
			}
		}
	}
	return nil
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
			c.dot = plainDot
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

// plainDot returns an element of the product where codes are read as no format's, or scales
// are none that an operand may have: a sum in float32 in place of the kernel's. Where they
// are, it is the kernel's.
func plainDot(c *change, i, j int) float32 {
	if c.a.decode == nil && c.b.decode == nil && c.placed == nil {
		if v, err := c.computed(context.Background(), i, j); err == nil {
			return v
		}
	}
	u, v := c.a.values(), c.b.values()
	var sum float32
	c.eachBlock(i, j, new(scratch), func(x, y []byte, sa, sb float32) {
		part, _ := dot(x, y, u, v, u, v)
		sum = float32(float64(float32(float32(part)*sa))*float64(sb) + float64(sum))
	})
	return c.underOuter(sum, i, j)
}

// plainly has elements computed as plainDot does, unless a model's bits are to be injected.
func (c *change) plainly(p *problem) error {
	if c.dot = plainDot; p.hasModel() && !p.explaining {
		return notHere("a model's sums of what is no number of its formats")
	}
	return nil
}

// listBytes lists the codes of the scales of a side that are kept as E8M0.
func listBytes(p *problem, few bool) (all []Fault) {
	a, b := p.a.grid.bytes, p.b.grid.bytes
	for _, s := range eitherOrBoth {
		for code := range 256 {
			if (s == B || a[code]) && (s == A || b[code]) && (!few || code == 0 || code == 255) {
				all = append(all, Fault{Of: s, By: code})
			}
		}
	}
	return all
}

// textOfByte says of which code it is, what it stands for and what it is read as.
func textOfByte(as string) func(Fault) string {
	return func(f Fault) string {
		value := fmt.Sprintf("2^%d", f.By-127)
		switch {
		case f.By == 255:
			value = "NaN"
		case f.By >= 127 && f.By < 147:
			value += fmt.Sprintf(" = %d", 1<<(f.By-127))
		}
		return fmt.Sprintf("scale byte %d of %s, in E8M0 %s, is read as %s", f.By, f.Of.words(), value, as)
	}
}

// applyByte has one code of E8M0 read as another number.
func applyByte(as func(code int) float32) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		if f.By < 0 || f.By > 255 {
			return notHere("byte %d", f.By)
		}
		from, to := fp8.E8M0(f.By).Float32(), as(f.By)
		if to == from || to != to && from != from || f.By == 255 && math.IsInf(float64(to), 1) {
			return notHere("scale byte %d is %v", f.By, to)
		}
		for side, o := range c.operands(f.Of) {
			if !p.operand(side).grid.bytes[f.By] {
				return notHere("no scale of %v is byte %d of E8M0", side, f.By)
			}
			was := *o
			o.scale = func(i, q int) float32 {
				if s := was.scaleAt(i, q); s != from && (s == s || from == from) {
					return s
				}
				return to
			}
		}
		if math.IsInf(float64(to), 0) || to > 0x1p100 {
			c.overflows = true
		}
		return c.plainly(p)
	}
}

// applyScaleDecode has scales in a format read as other numbers.
func applyScaleDecode(format tensor.ScaleFormat, as func(s float32) float32) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for side, o := range c.operands(f.Of) {
			if o.t.ScaleFormat != format || o.grid.every(func(s float32) bool { return as(s) == s || s != s }) {
				return notHere("no scale of %v is read otherwise", side)
			}
			was := *o
			o.scale = func(i, q int) float32 { return as(was.scaleAt(i, q)) }
		}
		return nil
	}
}

// flushed has numbers below least counted as 0.
func flushed(least float32) func(s float32) float32 {
	return func(s float32) float32 {
		if s < least {
			return 0
		}
		return s
	}
}

// leastUE4M3 is the least normal number of UE4M3.
const leastUE4M3 = 0x1p-6

// asNormalUE4M3 takes the exponent 0 for one as others are.
func asNormalUE4M3(s float32) float32 {
	if s < leastUE4M3 {
		return leastUE4M3/2 + s/2
	}
	return s
}

func textOfLeak(f Fault) string {
	first, other := "lowest", "before"
	if f.By < 0 {
		first, other = "highest", "after"
	}
	return fmt.Sprintf("the scales of %s, float32, are packed into words of four exponents, the first in the %s byte, by shifts without masks: bits of the mantissa leak into the exponents of the scales %s, of which 255 is read as %v",
		f.Of.words(), first, other, ofLeaked(255, f.By))
}

// ofLeaked is what a byte is read as: 255 as NaN or, as by says, as the largest scale or as
// float32 has it.
func ofLeaked(code byte, by int) float32 {
	switch max(by, -by) {
	case 2:
		code = min(code, 254)
	case 3:
		return math.Float32frombits(uint32(code) << 23)
	}
	return fp8.E8M0(code).Float32()
}

// applyLeak packs the exponents of four scales of a row into a word, the first into the lowest
// byte or, where f.By is negative, into the highest, with all bits that a shift leaves, and
// reads them as E8M0.
func applyLeak(f Fault, p *problem, c *change) error {
	for side, o := range c.operands(f.Of) {
		g := &p.operand(side).grid
		if g.t.ScaleFormat != tensor.Float32Scales || g.powers() || g.cols < 2 {
			return notHere("no bits of the scales of %v can leak into others", side)
		}
		o.scale = func(i, q int) float32 {
			row := g.t.ScaleRow(i / g.height)[q/4*4:]
			var word uint32
			for n, s := range row[:min(4, len(row))] {
				word |= shift(math.Float32bits(s), 8*inWord(n, f.By)-23)
			}
			return ofLeaked(byte(word>>(8*inWord(q%4, f.By))), f.By)
		}
	}
	c.overflows = true
	return c.plainly(p)
}

// inWord returns the byte of a word that is number n.
func inWord(n, by int) int {
	if by < 0 {
		return 3 - n
	}
	return n
}

func shift(x uint32, left int) uint32 {
	if left < 0 {
		return x >> -left
	}
	return x << left
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
