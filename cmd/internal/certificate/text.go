// Package certificate shows what a conversion of a checkpoint lost, as text and as a page.
package certificate

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes a certificate for people, with the given number of weights that lost
// most; 0 is all. dir is the directory of the model.
func WriteText(stdout io.Writer, c *checkpoint.Certificate, dir string, top int) error {
	w := textout.NewWriter(stdout)
	bytes := int64(0)
	for _, f := range c.Files {
		bytes += f.Bytes
	}
	fmt.Fprintf(w, "%s: %s, %d bytes in %s\n\n", textout.Name(dir), c.Layout, bytes, textout.Count(len(c.Files), "file"))
	if n := len(c.NotUnderstood); n > 0 {
		textout.Paragraph(w, "This is no certificate: "+notUnderstood(c)+".", "")
		for _, name := range c.NotUnderstood[:min(n, mostBroken)] {
			fmt.Fprintf(w, "  %s\n", textout.Shorten(textout.Name(name), 78))
		}
		fmt.Fprintln(w)
	}
	if text := smoothed(c); text != "" {
		textout.Paragraph(w, text, "")
		fmt.Fprintln(w)
	}
	writeTotals(w, c)
	if c.Lossless {
		textout.Paragraph(w, kept(c), "")
	}
	if text := leftOut(c); text != "" {
		textout.Paragraph(w, text, "")
		if !c.Lossless {
			fmt.Fprintln(w)
		}
	}
	writeClaims(w, c, top)
	if !c.Lossless && len(losers(c)) > 0 {
		writeLosses(w, c, top)
	}
	return w.Flush()
}

// kept says what a conversion that loses no value has kept.
func kept(c *checkpoint.Certificate) string {
	what := "Nothing was lost"
	if len(c.LeftOut) > 0 {
		what = "No weight has lost anything"
	}
	return what + ": " + c.Proof + "."
}

// smoothed says what was done to the weights before, "" for nothing.
func smoothed(c *checkpoint.Certificate) string {
	if c.Smoothed == "" {
		return ""
	}
	return "Smoothed before it was converted, and compared here with what it was then: " + c.Smoothed + "."
}

// leftOut says what a conversion has left out, "" for nothing.
func leftOut(c *checkpoint.Certificate) string {
	if len(c.LeftOut) == 0 {
		return ""
	}
	return fmt.Sprintf("%d scales of inputs or of cached keys and values were left out, for which %s has no place, such as %s.",
		len(c.LeftOut), c.Layout, textout.Name(c.LeftOut[0]))
}

// notUnderstood says how many tensors a certificate does not judge.
func notUnderstood(c *checkpoint.Certificate) string {
	return fmt.Sprintf("%d tensors were copied and not understood: they may hold codes of a method that is not known", len(c.NotUnderstood))
}

// writeTotals counts weights by what they were and became.
func writeTotals(w io.Writer, c *checkpoint.Certificate) {
	table := textout.NewTable(w)
	fmt.Fprintln(table, "from\tto\tweights\telements")
	for _, k := range totals(c) {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", k.From, k.To, k.Weights, k.Elements)
	}
	table.Flush()
	fmt.Fprintln(w)
}

// mostBroken is how many claims that do not hold are shown where not all are.
const mostBroken = 3

// writeClaims says which claims hold, and what breaks the others: all of them if top is 0.
func writeClaims(w io.Writer, c *checkpoint.Certificate, top int) {
	a := newClaims(c)
	if a.All == 0 {
		return
	}
	textout.Paragraph(w, a.String(), "")
	broken := a.Broken
	if top > 0 {
		broken = broken[:min(mostBroken, len(broken))]
	}
	for _, t := range broken {
		fmt.Fprintf(w, "  %s\n", textout.Shorten(textout.Name(t.Name), 78))
		fmt.Fprintln(w, textout.Wrap("^ "+reason(t.Claim), min(78, textout.Width(w)), "    "))
	}
	if n := len(a.Broken) - len(broken); n > 0 {
		fmt.Fprintf(w, "  and %d more (--detail shows all)\n", n)
	}
	if advice := a.Advice(); advice != "" {
		textout.Paragraph(w, advice, "")
	}
	if !c.Lossless {
		fmt.Fprintln(w)
	}
}

// writeLosses writes a line for each of the weights that lost most.
func writeLosses(w io.Writer, c *checkpoint.Certificate, top int) {
	tensors := losers(c)
	if top > 0 && top < len(tensors) {
		fmt.Fprintf(w, "The %d of %d weights that lost most (--detail shows all):\n\n", top, len(tensors))
		tensors = tensors[:top]
	}
	table := textout.NewTable(w)
	fmt.Fprintln(table, "SQNR dB\tworst\tsaturated\tflushed\tweight")
	for _, t := range tensors {
		fmt.Fprintf(table, "%s\t%.3g\t%s\t%s\t%s\n", textout.Decibels(float64(t.SQNR)), float64(t.Largest),
			textout.Percent(t.Saturated, t.Elements), textout.Percent(t.Flushed, t.Elements),
			textout.Name(t.Name))
		if t.BecameNonFinite > 0 {
			table.Note("%s", textout.Wrong(textout.Share(t.BecameNonFinite, t.Elements)+" became NaN or infinite with their scale"))
		}
		if t.NonFinite > 0 {
			table.Note("%s were NaN or infinite", textout.Share(t.NonFinite, t.Elements))
		}
	}
	table.Flush()
}
