package oracle

import (
	"context"
	"encoding/hex"
	"math"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// mostExamined is the number of elements outside that an explanation rests on.
const mostExamined = 256

// Explanation is one block of K that accounts for errors: elements are off by
// Factor times the block's contribution, as far as their bounds can tell. -1 is a
// block that was left out, 1 one that was added twice; any other factor is a wrong
// scale, 1 + Factor times the right one.
type Explanation struct {
	Block     int    `json:"block"`
	From      int    `json:"from"` // the block's part of K
	To        int    `json:"to"`
	Factor    Number `json:"factor"`
	Explained int    `json:"explained"` // elements, of those
	Examined  int    `json:"examined"`  // that were looked at: the first 256 outside
}

// examined is an element outside and how far from it an explanation may be.
type examined struct {
	Place
	tolerance float64
}

// Divergence is an element that diverges and what went into it.
type Divergence struct {
	Place
	// Suspect is the block of K that explains this element's error, or -1 where
	// none is known.
	Suspect int        `json:"suspect"`
	Blocks  []BlockSum `json:"blocks,omitempty"`
	// CodesA and CodesB, in hexadecimal, are the codes of the suspect, or of the
	// whole of K.
	CodesA string `json:"codesA,omitempty"`
	CodesB string `json:"codesB,omitempty"`
}

// BlockSum is what a block of K contributes to one element of C.
type BlockSum struct {
	From    int    `json:"from"`
	To      int    `json:"to"`
	ScaleA  Number `json:"scaleA"`
	ScaleB  Number `json:"scaleB"`
	Sum     Number `json:"sum"`     // of products of codes
	Scaled  Number `json:"scaled"`  // times both scales
	Running Number `json:"running"` // of the scaled sums so far
}

// newDivergence says what went into the element at a place. All sums are exact
// and then rounded to float64.
func newDivergence(p *product, at examined, e *Explanation) *Divergence {
	d := &Divergence{Place: at.Place, Suspect: -1}
	if p == nil {
		return d
	}
	d.Blocks = p.blockSums(at.Row, at.Col)
	lo, hi := 0, p.k
	if e != nil && explains(d.Blocks[e.Block].Scaled, e.Factor, at) {
		d.Suspect = e.Block
		lo, hi = e.From, e.To
	}
	d.CodesA = hex.EncodeToString(p.a.Row(at.Row)[lo:hi])
	d.CodesB = hex.EncodeToString(p.b.Row(at.Col)[lo:hi])
	return d
}

// blockSums returns the blocks of element (i, j). Blocks with a code that is not
// finite have sums that are not.
func (p *product) blockSums(i, j int) []BlockSum {
	var a, b integers
	a.decode(p.a, i, i+1, wide(p.a.Format) && wide(p.b.Format))
	b.decode(p.b, j, j+1, false)
	e := unit(p.a.Format) + unit(p.b.Format)
	sums := make([]BlockSum, p.blocks())
	var running accumulator
	special := finite
	for q := range sums {
		lo, hi := p.span(q)
		sa, sb := p.a.Scale(i, lo), p.b.Scale(j, lo)
		var sum, scaled accumulator
		for from := lo; from < hi; from += pieceLength {
			x := a.dot(&b, 0, 0, from, min(from+pieceLength, hi))
			sum.addScaled(x, e, 1, 1)
			scaled.addScaled(x, e, sa, sb)
			running.addScaled(x, e, sa, sb)
		}
		class := finite
		if a.special[0] || b.special[0] {
			class = p.classOf(i, j, lo, hi)
		}
		special = special.plus(class)
		sums[q] = BlockSum{lo, hi, Number(sa), Number(sb), sum.orSpecial(class), scaled.orSpecial(class), running.orSpecial(special)}
	}
	return sums
}

func (a *accumulator) orSpecial(c class) Number {
	if c != finite {
		return Number(math.Float64frombits(c.bits(layout64)))
	}
	return Number(a.float64())
}

// explain looks for the block that accounts for most of the given errors.
func explain(ctx context.Context, p *product, places []examined) (*Explanation, error) {
	blocks := p.blocks()
	scaled := make([]Number, 0, len(places)*blocks)
	for _, at := range places {
		if err := meter.Err(ctx); err != nil {
			return nil, err
		}
		for _, s := range p.blockSums(at.Row, at.Col) {
			scaled = append(scaled, s.Scaled)
		}
	}
	best := Explanation{Block: -1, Examined: len(places)}
	try := func(q int, factor Number, least int) {
		n := 0
		for i, at := range places {
			if explains(scaled[i*blocks+q], factor, at) {
				n++
			}
		}
		if n > best.Explained && n >= least {
			best.Block, best.Factor, best.Explained = q, factor, n
		}
	}
	for _, factor := range []Number{-1, 1} {
		for q := range blocks {
			try(q, factor, 1)
		}
	}
	// The factor of a wrong scale is taken from one error, so that it takes others
	// to confirm it.
	const confirmed = 3
	for _, i := range []int{0, len(places) / 2} {
		for q := range blocks {
			try(q, (places[i].Got-places[i].Want)/scaled[i*blocks+q], confirmed)
		}
	}
	if best.Block < 0 || 2*best.Explained <= best.Examined {
		return nil, nil
	}
	best.From, best.To = p.span(best.Block)
	return &best, nil
}

// explains reports whether factor times a contribution is the error at a place.
func explains(scaled, factor Number, at examined) bool {
	rest := float64(at.Got-at.Want) - float64(float64(factor)*float64(scaled))
	return math.Abs(rest) <= at.tolerance
}
