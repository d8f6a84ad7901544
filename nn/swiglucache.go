package nn

import (
	"strings"

	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// swigluCache keeps what SwiGLU multiplies in FP8, [rows, hidden] each.
type swigluCache struct {
	quantizeU, quantizeG quantized
	u, g                 tensor.Tensor
}

// newSwiGLUCache returns a cache of the results of up and gate.
func newSwiGLUCache(up, gate *Linear) (c swigluCache) {
	c.quantizeU, c.quantizeG = keptOutput(up), keptOutput(gate)
	return c
}

// keptOutput quantizes the result of a layer in DeepSeek's blocks.
func keptOutput(l *Linear) quantized {
	return quantized{
		name: strings.TrimSuffix(l.Weight.Name, ".weight") + ".output",
		quantizer: scaling.Quantizer{
			Recipe:  scaling.Default(scaling.Input),
			Options: tensor.Options{Op: opSwiGLU, Workers: parallel.Workers(l.dense.workers)},
		},
	}
}

// listen makes r hear of what is kept; nil is nobody.
func (c *swigluCache) listen(r tensor.Reporter) {
	c.quantizeU.quantizer.Reporter, c.quantizeG.quantizer.Reporter = r, r
}

// keep quantizes the branches.
func (c *swigluCache) keep(b *branches, rows int) error {
	if _, err := c.quantizeU.quantize(&c.u, b.u, rows, len(b.u)/rows); err != nil {
		return err
	}
	_, err := c.quantizeG.quantize(&c.g, b.g, rows, len(b.g)/rows)
	return err
}

// restore gives the branches the values that were kept.
func (c *swigluCache) restore(b *branches) {
	tensor.Dequantize(sized(&b.u, c.u.Len()), &c.u)
	tensor.Dequantize(sized(&b.g, c.g.Len()), &c.g)
}
