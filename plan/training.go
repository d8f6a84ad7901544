package plan

import "cmp"

// Training is a model to train, and the loss to expect of it.
type Training struct {
	N      float64 `json:"n"`               // parameters without embeddings
	D      float64 `json:"d"`               // tokens
	Bits   float64 `json:"bits"`            // of everything that is multiplied
	Format Format  `json:"format,omitzero"` // set by [Sun] only
	Loss   Loss    `json:"loss"`
}

// flopsPerBit times N·D·P is the cost of a training: 6·N·D in 16 bits.
const flopsPerBit = 6. / 16

// FLOPs returns 6/16·N·D·P, the cost of training n parameters on d tokens when it
// is linear in bits and 16 bits have the usual 6·N·D (Kumar et al., section
// 4.3). Real gains are smaller, as they say. It is an error if an argument or the
// product is not positive and finite.
func FLOPs(n, d, bits float64) (float64, error) {
	c := flopsPerBit * n * d * bits
	return c, cmp.Or(positive("N", n), positive("D", d), positive("bits", bits), positive("the cost", c))
}
