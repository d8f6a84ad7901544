package serve

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// shapeOptions are those of operands that are made.
type shapeOptions struct {
	M      int        `json:"m"`
	N      int        `json:"n"`
	K      int        `json:"k"`
	Format fp8.Format `json:"format"`
	Seed   uint64     `json:"seed"`
}

// most is the number of elements that generators make at most.
const most = 1<<31 - 1

// check returns an error unless operands of these shapes can be made.
func (o *shapeOptions) check(c *call) error {
	for _, rows := range []int{o.M, o.N} {
		if err := c.generated(rows, o.K, 8); err != nil {
			return err
		}
	}
	return nil
}

// generated returns an error unless a generator can make a matrix.
func (c *call) generated(rows, cols, size int) error {
	if err := c.room(rows, cols, size); err != nil {
		return err
	}
	if rows*cols > most {
		return fmt.Errorf("%dx%d elements: want %d at most", rows, cols, most)
	}
	return nil
}

func exactOperands(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		shapeOptions
		Block tensor.Block `json:"block"`
	}
	if err := c.read(&o); err != nil {
		return nil, nil, err
	}
	if err := o.check(c); err != nil {
		return nil, nil, err
	}
	if o.K > 1<<24 {
		return nil, nil, fmt.Errorf("k is %d: the sums of exact operands fit float32 up to %d", o.K, 1<<24)
	}
	a, b := power.Operands(o.M, o.N, o.K, o.Format, o.Block, o.Seed)
	return both(a, b)
}

func cancelling(c *call) (any, []safetensors.Tensor, error) {
	var o shapeOptions
	if err := c.read(&o); err != nil {
		return nil, nil, err
	}
	if err := o.check(c); err != nil {
		return nil, nil, err
	}
	a, b := oracle.Cancelling(o.M, o.N, o.K, o.Format, o.Seed)
	return both(a, b)
}

// both returns two operands.
func both(a, b *tensor.Tensor) (any, []safetensors.Tensor, error) {
	var arrays []safetensors.Tensor
	for _, t := range []*tensor.Tensor{a, b} {
		rows, cols := t.Grid()
		arrays = append(arrays, safetensors.New(t.Name, operands.DTypeOf(t.Format), t.Shape, t.Codes), floatArray(t.Name+"_scales", []int{rows, cols}, t.Scales))
	}
	return map[string]any{"format": a.Format, "block": a.Block}, arrays, nil
}

func generate(c *call) (any, []safetensors.Tensor, error) {
	var g oracle.Generator
	if err := c.read(&g); err != nil {
		return nil, nil, err
	}
	if err := c.generated(g.Rows, g.Cols, 12); err != nil {
		return nil, nil, err
	}
	return nothing, []safetensors.Tensor{floatArray("values", []int{g.Rows, g.Cols}, g.Values())}, nil
}
