package fault

import (
	"iter"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
)

// change is what a fault makes of a product. Unless a fault says otherwise, an element
// of C is a sum of products of a and b by kernel, plus the bias and the old C, each a
// float32 addition, and is then rounded.
type change struct {
	p      *problem
	a, b   operand
	kernel oracle.Kernel
	// dot, unless nil, is an element of the product in place of what the kernel computes.
	dot func(c *change, i, j int) float32
	// from, unless nil, calls add with the elements of the product whose sum is written to
	// element (i, j) of C, and with none where nothing is.
	from func(i, j int, add func(i, j int))
	// placed, unless nil, says of which rows element (i, j) has scales.
	placed    func(i, j int) (ofA, ofB int)
	factor    float64 // of the product
	bias, old int     // how often they are added
	biasAt    func(i, j int) int
	after     func(v float32, i, j int) float32 // done to a value before it is rounded
	rounded   Type                              // after rounds to it, or cuts where cut says so
	cut       bool
	unordered bool                // sums are of type rounded, in an order that is not known
	fitted    bool                // a factor was taken from results
	freedom   float64             // what else was taken from them, in bits
	overflows bool                // scales may be so large that parts of a sum overflow
	exact     bool                // dot or kernel say to the last bits what the kernel computes
	unknown   func(i, j int) bool // elements of which nothing is known; nil: none
	beyond    beyond              // what is read where there are no scales
	slack     float64             // relative errors that an honest kernel does not make
	// The products [from, to) of K count extra times more: a quicker way to say what a and
	// b say as well.
	extra  float64
	lo, hi int
}

// newChange returns the change that fault f makes.
func newChange(p *problem, f Fault) (*change, error) {
	row, err := table.Row(f.Kind)
	if err != nil {
		return nil, err
	}
	c := &change{p: p, a: p.a, b: p.b, kernel: p.Kernel, factor: 1, bias: 1, old: 1}
	if p.explaining {
		c.beyond = unknown
	}
	if f.Kind == None {
		return c, nil
	}
	if p.empty() {
		return nil, notHere("an empty product")
	}
	if err := row.check(f); err != nil {
		return nil, err
	}
	if err := row.apply(f, p, c); err != nil {
		return nil, err
	}
	return c, nil
}

// operands returns the operands of a side or of both, to change them.
func (c *change) operands(s Side) iter.Seq2[Side, *operand] {
	return func(yield func(Side, *operand) bool) {
		if (s == A || s == Both) && !yield(A, &c.a) {
			return
		}
		if s == B || s == Both {
			yield(B, &c.b)
		}
	}
}

// addends returns what is added to the product of element (i, j).
func (c *change) addends(i, j int, do func(x float32)) {
	if c.p.Bias != nil {
		at := j
		if c.biasAt != nil {
			at = c.biasAt(i, j)
		}
		for range c.bias {
			do(c.p.Bias[at])
		}
	}
	if c.p.Old != nil {
		for range c.old {
			do(c.p.Old[i*c.p.n+j])
		}
	}
}

// finish turns the product of element (i, j) into what is rounded to the type of C.
func (c *change) finish(v float32, i, j int) float32 {
	if c.factor != 1 {
		v = float32(float64(v) * c.factor)
	}
	c.addends(i, j, func(x float32) { v += x })
	if c.after != nil {
		v = c.after(v, i, j)
	}
	return v
}

// element returns the sum of elements of the product that is written to (i, j), where
// product returns one of them.
func (c *change) element(i, j int, product func(i, j int) float32) float32 {
	if c.from == nil {
		return product(i, j)
	}
	var v float32
	first := true
	c.from(i, j, func(i, j int) {
		x := product(i, j)
		if first {
			v, first = x, false
			return
		}
		v += x
	})
	return v
}

// narrow rounds to a type.
func (t Type) narrow(x float32) float32 {
	switch t {
	case BFloat16:
		return fp8.BFloat16FromFloat32(x).Float32()
	case Float16:
		return float16.Fromfloat32(x).Float32()
	}
	return x
}

// fraction is the number of fraction bits of a type, least the exponent of its least
// subnormal number and most its largest finite number.
func (t Type) parameters() (fraction, least int, most float64) {
	switch t {
	case BFloat16:
		return 7, -133, 0x1.FEp127
	case Float16:
		return 10, -24, 65504
	}
	return 23, -149, math.MaxFloat32
}

// place returns the distance from a number of the magnitude of x to the next.
func (t Type) place(x float64) float64 {
	fraction, least, most := t.parameters()
	x = min(math.Abs(x), most)
	if x == 0 {
		return math.Ldexp(1, least)
	}
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e-1-fraction, least))
}

// values are the float64 values of a format's codes.
func values(f fp8.Format) *[256]float64 { return &valueTables[f] }

// magnitudes are those of the finite values of a format; where aligned says so, a
// subnormal counts as the least normal number, as tensor cores align it.
func magnitudes(f fp8.Format, aligned bool) *[256]float64 {
	if aligned {
		return &alignedTables[f]
	}
	return &magnitudeTables[f]
}

var (
	valueTables     = makeTables(func(_ fp8.Format, v float64) float64 { return v })
	magnitudeTables = makeTables(finiteMagnitude)
	alignedTables   = makeTables(func(f fp8.Format, v float64) float64 {
		if v = finiteMagnitude(f, v); v != 0 {
			v = max(v, float64(f.MinNormal()))
		}
		return v
	})
)

// finiteMagnitude is that of a finite value, and 0 of others.
func finiteMagnitude(_ fp8.Format, v float64) float64 {
	if v-v != 0 {
		return 0
	}
	return math.Abs(v)
}

// makeTables returns what of makes of each code's value, for each format.
func makeTables(of func(f fp8.Format, v float64) float64) [][256]float64 {
	tables := make([][256]float64, len(fp8.Formats()))
	for _, f := range fp8.Formats() {
		for c := range 256 {
			tables[f][c] = of(f, float64(f.Float32(byte(c))))
		}
	}
	return tables
}

func codeOfOne(f fp8.Format) byte { return fp8.EncodeOne(float32(1), f, fp8.Policy{}) }

// narrowed says what of a sum is rounded to a narrower type.
type narrowed uint8

const (
	ofBlocks narrowed = iota // sums of a block, before scales are applied
	ofTotals                 // sums over blocks, after that
	ofGroups                 // sums of some products, which are added in float32
)

// narrowDot returns an element of the product of whose sums some are rounded to a narrower
// type after every so many products.
func narrowDot(t Type, every int, of narrowed) func(c *change, i, j int) float32 {
	return func(c *change, i, j int) float32 {
		u, v := c.a.values(), c.b.values()
		var total float32
		c.eachBlock(i, j, new(scratch), func(x, y []byte, sa, sb float32) {
			var p float32
			for from := 0; from < len(x); from += every {
				var sum float64
				for k := from; k < min(from+every, len(x)); k++ {
					sum += float64(u[x[k]] * v[y[k]])
				}
				switch of {
				case ofTotals:
					total = t.narrow(float32(float64(float32(float32(sum)*sa)*sb) + float64(total)))
				case ofGroups:
					p += t.narrow(float32(sum))
				default:
					p = t.narrow(float32(float64(p) + sum))
				}
			}
			if of != ofTotals {
				total += float32(float32(p*sa) * sb)
			}
		})
		return c.underOuter(total, i, j)
	}
}

// underOuter multiplies the sum of element (i, j) by its outer scales.
func (c *change) underOuter(sum float32, i, j int) float32 {
	if !c.a.hasOuter() && !c.b.hasOuter() {
		return sum
	}
	return sum * float32(float32(c.a.factor(i))*float32(c.b.factor(j)))
}
