package demo

import (
	"math/rand/v2"
	"strings"
)

// sentence is a grammar: one choice of each list in turn makes a sentence.
var sentence = [][]string{
	{"The", "A", "Each", "One", "No", "This"},
	{" careful", " small", " second", " slow", " old", " quiet", ""},
	{" engineer", " kernel", " worker", " matrix", " scale", " block", " gradient", " rounding"},
	{" measures", " multiplies", " rounds", " loses", " adds", " counts", " keeps", " finds"},
	{" the", " a", " every", " its own", " another"},
	{" large", " tiny", " wrong", " exact", " first", " last", ""},
	{" value", " sum", " code", " error", " product", " row", " column", " step"},
	{" in the night", " in float32", " before noon", " after the overflow", " without a loss", " by hand", ""},
	{". ", ". ", ". ", ".\n"},
}

// newText returns at least n bytes of sentences.
func newText(n int, seed uint64) []byte {
	source := rand.NewPCG(seed, 0)
	var text strings.Builder
	for text.Len() < n {
		for _, words := range sentence {
			text.WriteString(words[source.Uint64()%uint64(len(words))])
		}
	}
	return []byte(strings.TrimRight(text.String(), ". \n") + ".\n")
}
