package training

import "github.com/octavo-fp8/octavo/nn"

// Arithmetic is a way to multiply in linear layers.
type Arithmetic struct {
	Name string
	Use  func(*nn.Config)
}

// FP32 multiplies as the model is.
func FP32() Arithmetic { return Arithmetic{"FP32", func(*nn.Config) {}} }

// BF16 rounds operands and results.
func BF16() Arithmetic {
	return Arithmetic{"BF16", func(c *nn.Config) {
		r := nn.DefaultRounding(nn.NarrowBF16)
		c.Rounding = &r
	}}
}

// FP8 multiplies under the default recipes.
func FP8() Arithmetic {
	return Arithmetic{"FP8", func(c *nn.Config) {
		recipes := nn.DefaultFP8()
		c.FP8 = &recipes
	}}
}
