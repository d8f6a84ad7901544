package law

import (
	"math"

	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

// arm is a model of the sweep.
type arm struct {
	name string
	pays int // bits that its width is paid for: parameters times these are the same in all
	training.Arithmetic

	weights, activations int // bits in the forward pass

	half bool // it is trained for half as long
	once bool // on the whole text, of which it sees nothing twice; else on a cut of it, often
}

// Names of arms that goals are about. Those of one cost pay for what they multiply in; full
// is FP32 in the width of so many bits.
const (
	bf16        = "BF16"
	fp8         = "FP8 E4M3"
	fp6         = "FP6 E3M2"
	fp6m        = "FP6 E2M3"
	fp4         = "FP4 E2M1"
	fp4Forward  = "FP4 forward"
	fp4Weights  = "FP4 weights"
	threeBits   = "3 bits E1M1"
	halfTrained = "FP32, width of 8 bits, half the steps"
)

// full names FP32 in the width that so many bits pay for.
var full = map[int]string{
	32: "FP32", 16: "FP32, width of 16 bits", 8: "FP32, width of 8 bits",
	6: "FP32, width of 6 bits", 4: "FP32, width of 4 bits",
}

// arms are all models of a seed: first those on a cut of the text.
func arms() (all []arm) {
	add := func(name string, pays int, a training.Arithmetic, weights, activations int) {
		all = append(all, arm{name: name, pays: pays, Arithmetic: a, weights: weights, activations: activations})
	}
	for _, bits := range paidFor {
		add(full[bits], bits, training.FP32(), 32, 32)
	}
	add(bf16, 16, training.BF16(), 16, 16)
	add(fp8, 8, rounded(nn.NarrowE4M3, all3), 8, 8)
	add(fp6, 6, rounded(nn.NarrowE3M2, all3), 6, 6)
	add(fp6m, 6, rounded(nn.NarrowE2M3, all3), 6, 6)
	add(fp4, 4, rounded(nn.NarrowE2M1, all3), 4, 4)
	add(fp4Forward, 4, rounded(nn.NarrowE2M1, forward), 4, 4)
	add(fp4Weights, 4, rounded(nn.NarrowE2M1, weightsOnly), 4, 32)
	add(threeBits, 4, rounded("E1M1", all3), 3, 3)
	add(halfTrained, 8, training.FP32(), 32, 32)
	all[len(all)-1].half = true
	for _, a := range all {
		if a.isOneOf(full[32], bf16, fp8, fp6, fp4) {
			a.name, a.once = a.name+", once", true
			all = append(all, a)
		}
	}
	return all
}

func (a arm) isOneOf(names ...string) bool {
	for _, name := range names {
		if a.name == name {
			return true
		}
	}
	return false
}

// operands are those of an operand's products that are rounded.
type operands uint8

const (
	weightsOnly operands = iota + 1
	forward              // weights and inputs, in both passes: as Kumar et al. do
	all3                 // gradients too: as hardware does
)

// rounded multiplies in FP32 what was rounded to a format, gradients at random.
func rounded(f nn.NarrowFormat, which operands) training.Arithmetic {
	return training.Arithmetic{Name: string(f), Use: func(c *nn.Config) {
		r := nn.DefaultRounding(f)
		r.Stochastic = true
		if which < all3 {
			r.Gradient, r.Stochastic = nn.Narrowing{}, false
		}
		if which < forward {
			r.Input = nn.Narrowing{}
		}
		c.Rounding = &r
	}}
}

// paidFor are the bits that widths are paid for, the widest model last.
var paidFor = []int{32, 16, 8, 6, 4}

// llama is a byte-level model that costs what one of the given width does in 8 bits, paid for
// so many: widths are multiples of 4, and the MLP makes up for what they miss.
func llama(dim, layers, context, bits int) nn.Config {
	of8 := training.Llama(dim, layers, context)
	const heads = 2
	c := nn.Config{Vocab: of8.Vocab, Layers: layers, Heads: heads, Context: context}
	const multiple = 2 * heads // each head has an even width
	c.Dim = int(math.Round(float64(dim)*math.Sqrt(8/float64(bits))/multiple)) * multiple
	layer := float64(linearParams(of8)) / float64(layers) * 8 / float64(bits)
	c.Hidden = int(math.Round((layer/float64(c.Dim) - float64(4*c.Dim)) / 3))
	return c
}

// linearParams returns the number of values in the linear layers, which are those that
// bits are saved on.
func linearParams(c nn.Config) int {
	return c.Layers * c.Dim * (4*c.Dim + 3*c.Hidden)
}
