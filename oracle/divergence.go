package oracle

import (
	"encoding/hex"
	"math"
)

// Divergence is an element that diverges and what went into it.
type Divergence struct {
	ElementError
	// Suspect is the block of K that explains this element's error, or -1 where
	// none is known. Compare knows of none: it is package judge that finds one.
	Suspect int        `json:"suspect"`
	Blocks  []BlockSum `json:"blocks,omitempty"`
	// Alpha is what the sum of all blocks is multiplied by, the product of the outer scales
	// or of their reciprocals; 0 where the operands have none.
	Alpha Number `json:"alpha,omitempty"`
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
func newDivergence(p *product, at ElementError) *Divergence {
	d := &Divergence{ElementError: at, Suspect: -1}
	if p != nil {
		d.Blocks = p.blockSums(at.Row, at.Col)
		if !p.outers.none {
			d.Alpha = Number(p.outers.at(at.Row, at.Col).float64())
		}
		d.CodesA = hex.EncodeToString(p.a.Row(at.Row))
		d.CodesB = hex.EncodeToString(p.b.Row(at.Col))
	}
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
			if sa != sa || sb != sb {
				break // and no number
			}
			x := a.dot(&b, 0, 0, from, min(from+pieceLength, hi))
			sum.addScaled(x, e, 1, 1)
			scaled.addScaled(x, e, sa, sb)
			running.addScaled(x, e, sa, sb)
		}
		class := finite
		if a.special[0] || b.special[0] || sa != sa || sb != sb {
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
