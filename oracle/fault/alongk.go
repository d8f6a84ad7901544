package fault

import (
	"fmt"
	"math"
)

// tileSizes are how many products along K kernels take at once.
var tileSizes = []int{16, 32, 64, 128, 256}

// mostRanges is the number of tiles along K, of one size, up to which each is tried.
const mostRanges = 1024

func span(from, to int) string {
	if to == from+1 {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d to %d", from, to-1)
}

// listRanges lists blocks of K that share scales, and then tiles of the usual sizes; each
// once. If few, only the first, one in the middle and the last block.
func listRanges(p *problem, few bool) (all []Fault) {
	seen := map[[2]int]bool{}
	add := func(size int) {
		for from := 0; from < p.k; from += size {
			r := [2]int{from, min(from+size, p.k)}
			if !seen[r] && r != [2]int{0, p.k} {
				seen[r] = true
				all = append(all, Fault{From: r[0], To: r[1]})
			}
		}
	}
	if p.k/p.block <= mostRanges {
		add(p.block)
	}
	for _, size := range tileSizes {
		if p.k/size <= mostRanges {
			add(size)
		}
		if few && len(all) > 0 {
			break
		}
	}
	if few && len(all) > 3 {
		return []Fault{all[0], all[len(all)/2], all[len(all)-1]}
	}
	return all
}

func checkRange(f Fault, p *problem) error {
	if f.From < 0 || f.To <= f.From || f.To > p.k {
		return notHere("products %d to %d of %d", f.From, f.To, p.k)
	}
	return nil
}

func applyLost(f Fault, p *problem, c *change) error {
	if err := checkRange(f, p); err != nil {
		return err
	}
	c.extra, c.lo, c.hi = -1, f.From, f.To
	was := c.a
	c.a.codes = func(dst []byte, i int) {
		copy(dst, was.row(dst, i))
		clear(dst[f.From:f.To])
	}
	return nil
}

func applyDoubled(f Fault, p *problem, c *change) error {
	if err := checkRange(f, p); err != nil {
		return err
	}
	c.extra, c.lo, c.hi = 1, f.From, f.To
	// What is read again is put behind the end of K, in whole blocks.
	lo, hi := f.From/p.block*p.block, min(roundUp(f.To, p.block), p.k)
	end := roundUp(p.k, p.block)
	for _, o := range c.operands(Both) {
		was := *o
		o.width, o.k = p.block, end+hi-lo
		o.codes = func(dst []byte, i int) {
			clear(dst)
			row := was.row(make([]byte, was.k), i)
			copy(dst, row)
			copy(dst[end+f.From-lo:], row[f.From:f.To])
		}
		o.scale = func(i, q int) float32 {
			if q >= end/p.block {
				q -= (end - lo) / p.block
			}
			return was.scaleAt(i, q*p.block/was.width)
		}
	}
	return nil
}

func listOtherScales(p *problem, few bool) (all []Fault) {
	for _, s := range p.sidesAlike() {
		o := p.operand(s)
		if o.blocks() > mostRanges {
			continue
		}
		for q := range o.blocks() {
			if few && q != o.blocks()/2 {
				continue
			}
			for _, by := range []int{-1, 1, -q} {
				if by != 0 && q+by >= 0 && q+by < o.blocks() && (by != -q || q > 1) {
					all = append(all, Fault{Of: s, From: q * o.width, To: min((q+1)*o.width, p.k), By: by})
				}
			}
		}
	}
	return all
}

func applyOtherScale(f Fault, p *problem, c *change) error {
	if err := checkRange(f, p); err != nil {
		return err
	}
	for _, o := range c.operands(f.Of) {
		was := *o
		if q := f.From/o.width + f.By; q < 0 || (f.To-1)/o.width+f.By >= o.blocks() {
			return notHere("there is no block %d of K", q)
		}
		o.scale = func(i, q int) float32 {
			if at := q * was.width; at >= f.From && at < f.To {
				q += f.By
			}
			return was.scaleAt(i, q)
		}
	}
	return nil
}

func textOfProducts(what string) func(Fault) string {
	return func(f Fault) string {
		if f.To == f.From+1 {
			return fmt.Sprintf("product %d of K is %s", f.From, what)
		}
		return fmt.Sprintf("products %s of K are %s", span(f.From, f.To), what)
	}
}

func textOfFactor(f Fault) string {
	products := "products"
	if f.To == f.From+1 {
		products = "product"
	}
	of := fmt.Sprintf("the scale of %s of %s %s of K is ", f.Of.words(), products, span(f.From, f.To))
	if f.Factor == 0 {
		return of + "taken for 0"
	}
	return of + fmt.Sprintf("%.6g times what it should be", f.Factor)
}

func applyFactor(f Fault, p *problem, c *change) error {
	if err := checkRange(f, p); err != nil {
		return err
	}
	if !(f.Factor >= 0) || math.IsInf(f.Factor, 0) {
		return notHere("scales times %v", f.Factor)
	}
	power, _ := math.Frexp(f.Factor)
	c.extra, c.lo, c.hi, c.fitted = f.Factor-1, f.From, f.To, power != 0.5 && power != 0
	if f.Of == Both {
		c.extra = f.Factor*f.Factor - 1
	}
	for side, o := range c.operands(f.Of) {
		was := *o
		if f.From%o.width != 0 || f.To%o.width != 0 && f.To != p.k {
			return notHere("products %d to %d have no scales of %v of their own", f.From, f.To, side)
		}
		o.scale = func(i, q int) float32 {
			s := was.scaleAt(i, q)
			if at := q * was.width; at >= f.From && at < f.To {
				s = float32(float64(s) * f.Factor)
			}
			return s
		}
	}
	return nil
}

func textOfTail(f Fault) string {
	if f.By == 1 {
		return "the last product of K is left out"
	}
	return fmt.Sprintf("the last %d products of K are left out", f.By)
}

// listTails lists the last products: what is beyond the last full tile and the whole last
// tile.
func listTails(p *problem, few bool) (all []Fault) {
	seen := map[int]bool{0: true, p.k: true}
	add := func(n int) {
		if !seen[n] && n < p.k {
			seen[n] = true
			all = append(all, Fault{By: n})
		}
	}
	add(1)
	for _, size := range []int{2, 4, 8, 16, 32, 64, 128, 256} {
		add(p.k % size)
		if !few {
			add(size)
		}
	}
	return all
}

func applyTail(f Fault, p *problem, c *change) error {
	f.From, f.To = p.k-f.By, p.k
	return applyLost(f, p, c)
}

func applyTailTwice(f Fault, p *problem, c *change) error {
	if f.By <= 0 || p.k%f.By == 0 || f.By >= p.k {
		return notHere("a tail of tiles of %d products", f.By)
	}
	f.From, f.To = p.k-f.By, p.k/f.By*f.By
	return applyDoubled(f, p, c)
}

func applyUnmasked(f Fault, p *problem, c *change) error {
	if f.By <= 0 || p.k%f.By == 0 {
		return notHere("a tail of tiles of %d products", f.By)
	}
	for _, o := range c.operands(Both) {
		was := *o
		o.k = roundUp(p.k, f.By)
		if was.width >= was.k {
			o.width = o.k
		}
		o.codes = func(dst []byte, i int) {
			clear(dst)
			for n := 0; n < len(dst) && i < was.rows; i++ {
				n += copy(dst[n:], was.row(nil, i))
			}
		}
		o.scale = func(i, q int) float32 { return was.scaleAt(i, min(q, was.blocks()-1)) }
	}
	return nil
}
