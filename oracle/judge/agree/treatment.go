package agree

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/scaling"
)

// Scales is what became of the scales of an operand.
type Scales uint8

const (
	asMade     Scales = iota
	RoundedUp         // to powers of two, before values were encoded under them
	ReadUp            // to powers of two, of codes that were made under others
	Transposed        // the grid is read column by column
)

// Treatment is what an engine does with an operand before it multiplies. The zero Treatment
// takes it as it is stored: values, or codes and their scales.
type Treatment struct {
	Quantized bool // by Recipe, from values
	Recipe    scaling.Recipe
	Rounded   Type // what values, or what codes stand for, are rounded to; F32 or none: not
	Scales    Scales
	Static    bool // the scale is the one that the checkpoint holds for inputs
}

// quantizedBy returns what a recipe does with an operand; nil leaves it.
func quantizedBy(r *scaling.Recipe) Treatment {
	if r == nil {
		return Treatment{}
	}
	return Treatment{Quantized: true, Recipe: *r}
}

// text says what is done with an operand of which stored is how it is stored.
func (t Treatment) text(stored string) string {
	parts := []string{stored}
	switch r := t.Recipe; {
	case t.Static:
		parts[0] = fmt.Sprintf("%v under the checkpoint's input scale", r.Format)
	case t.Quantized:
		parts[0] = fmt.Sprintf("%v %v %s", r.Format, r.Block, cmp.Or(r.Profile, scaling.TEBlockPow2))
	}
	switch t.Scales {
	case RoundedUp:
		parts = append(parts, "scales rounded up to powers of two")
	case ReadUp:
		parts = append(parts, "scales rounded up to powers of two, codes kept")
	case Transposed:
		parts = append(parts, "the grid of scales transposed")
	}
	if t.Rounded != "" && t.Rounded != F32 {
		parts = append(parts, "rounded to "+string(t.Rounded))
	}
	return strings.Join(parts, ", ")
}
