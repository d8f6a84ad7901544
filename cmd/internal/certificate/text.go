// Package certificate prints what a conversion of a checkpoint lost.
package certificate

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes a certificate for people, with the given number of weights that lost
// most; 0 is all. dir is the directory of the model.
func WriteText(stdout io.Writer, c *checkpoint.Certificate, dir string, top int) error {
	w := bufio.NewWriter(stdout)
	bytes := int64(0)
	for _, f := range c.Files {
		bytes += f.Bytes
	}
	fmt.Fprintf(w, "%s: %s, %d bytes in %d files\n\n", textout.Name(dir), c.Layout, bytes, len(c.Files))
	writeTotals(w, c)
	if c.Lossless {
		fmt.Fprintln(w, textout.Wrap("Nothing was lost: "+c.Proof+".", 80, ""))
	} else {
		writeLosses(w, c, top)
	}
	return w.Flush()
}

// writeTotals counts weights by what they were and became.
func writeTotals(w io.Writer, c *checkpoint.Certificate) {
	type kind struct{ from, to string }
	weights, elements := map[kind]int{}, map[kind]int64{}
	var kinds []kind
	for _, t := range c.Tensors {
		k := kind{t.From, t.To}
		if t.Copied {
			k.to = "copied"
		}
		if weights[k] == 0 {
			kinds = append(kinds, k)
		}
		weights[k]++
		elements[k] += t.Elements
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(elements[b], elements[a]), cmp.Compare(a.from+a.to, b.from+b.to))
	})
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "from\tto\tweights\telements")
	for _, k := range kinds {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", k.from, k.to, weights[k], elements[k])
	}
	table.Flush()
	fmt.Fprintln(w)
}

const nameWidth = 80 - 8 - 10 - 9 - 9 - 4*2

// writeLosses writes a line for each of the weights that lost most.
func writeLosses(w io.Writer, c *checkpoint.Certificate, top int) {
	tensors := slices.DeleteFunc(slices.Clone(c.Tensors), func(t checkpoint.WeightLoss) bool { return t.Exact })
	slices.SortStableFunc(tensors, func(a, b checkpoint.WeightLoss) int { return cmp.Compare(rank(&a), rank(&b)) })
	if top > 0 && top < len(tensors) {
		fmt.Fprintf(w, "The %d of %d weights that lost most (--detail shows all):\n\n", top, len(tensors))
		tensors = tensors[:top]
	}
	fmt.Fprintf(w, "%8s  %10s  %9s  %9s  %s\n", "SQNR dB", "worst", "saturated", "flushed", "weight")
	for _, t := range tensors {
		fmt.Fprintf(w, "%8s  %10.3g  %9s  %9s  %s\n", textout.Decibels(float64(t.SQNR)), float64(t.Largest),
			textout.Percent(t.Saturated, t.Elements), textout.Percent(t.Flushed, t.Elements),
			textout.Shorten(textout.Name(t.Name), nameWidth))
		if t.BecameNonFinite > 0 {
			fmt.Fprintf(w, "    ^ %s became NaN or infinite with their scale\n", textout.Share(t.BecameNonFinite, t.Elements))
		}
		if t.NonFinite > 0 {
			fmt.Fprintf(w, "    ^ %s were NaN or infinite\n", textout.Share(t.NonFinite, t.Elements))
		}
	}
}

// rank orders weights by what they lost: those with values that became NaN first, then by
// SQNR; those that had nothing to lose last.
func rank(t *checkpoint.WeightLoss) float64 {
	switch {
	case t.BecameNonFinite > 0:
		return math.Inf(-1)
	case t.SQNR != t.SQNR:
		return math.Inf(1)
	}
	return float64(t.SQNR)
}
