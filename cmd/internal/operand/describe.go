package operand

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/tensor"
)

// Description says what an operand is, as commands print it.
type Description struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Shape  []int  `json:"shape"`
	Block  string `json:"block"`
}

// Describe describes t.
func Describe(t *tensor.Tensor) Description {
	return Description{t.Name, t.Format.String(), t.Shape, t.Block.String()}
}

// String describes the operand in one line.
func (d Description) String() string {
	return fmt.Sprintf("%s, %s %v, one scale for %s", textout.Quoted(d.Name), d.Format, d.Shape, d.Block)
}
