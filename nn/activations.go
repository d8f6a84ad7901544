package nn

import "fmt"

// ActivationFormat is how activations are kept from the forward to the backward
// pass. Whatever it is, the forward pass computes the same bits. The section Memory
// of the package documentation says what each format keeps.
type ActivationFormat uint8

const (
	// ActivationsFP32 keeps all that the backward pass reads as it was computed.
	ActivationsFP32 ActivationFormat = iota

	// ActivationsFP8 keeps of the input of a linear layer only what the product of
	// its weight gradient multiplies, xᵀ in FP8, which is quantized from FP32 in the
	// forward pass already, as TransformerEngine does with its columnwise copies; and
	// it computes the probabilities of attention again from queries and keys (Dao et
	// al., arXiv 2205.14135, section 3.1). Gradients have the same bits as with
	// ActivationsFP32.
	ActivationsFP8

	// ActivationsFP8SwiGLU also keeps both inputs of SwiGLU in FP8 and computes its
	// result again from those, for the weight gradient of the down projection, which
	// is not kept then (DeepSeek-V3, arXiv 2412.19437, section 3.3.3). They are in
	// blocks of 1x128 whatever Config.FP8 is: E4M3 with just-in-time powers of two,
	// the recipe scaling.Default(scaling.Input). Gradients are those of rounded
	// inputs, and so have other bits.
	ActivationsFP8SwiGLU
)

var activationFormats = [...]string{"fp32", "fp8", "fp8-swiglu"}

// ActivationFormats returns all formats.
func ActivationFormats() []ActivationFormat {
	return []ActivationFormat{ActivationsFP32, ActivationsFP8, ActivationsFP8SwiGLU}
}

// String returns the name that [ParseActivationFormat] reads, such as "fp8-swiglu".
func (f ActivationFormat) String() string {
	if int(f) < len(activationFormats) {
		return activationFormats[f]
	}
	return fmt.Sprintf("ActivationFormat(%d)", uint8(f))
}

// ParseActivationFormat returns the format of the given name.
func ParseActivationFormat(name string) (ActivationFormat, error) {
	for i, known := range activationFormats {
		if name == known {
			return ActivationFormat(i), nil
		}
	}
	return 0, fmt.Errorf("nn: unknown activation format %q: want one of %q", name, activationFormats)
}

// MarshalText implements [encoding.TextMarshaler].
func (f ActivationFormat) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *ActivationFormat) UnmarshalText(text []byte) (err error) {
	*f, err = ParseActivationFormat(string(text))
	return err
}

// keepsInputs reports whether inputs of linear layers, and with them all else, are
// kept in FP32.
func (f ActivationFormat) keepsInputs() bool { return f == ActivationsFP32 }

// keepsBranches reports whether the inputs of SwiGLU are kept in FP32.
func (f ActivationFormat) keepsBranches() bool { return f != ActivationsFP8SwiGLU }

// checkActivations returns an error if c's activations cannot be kept as it says.
func (c Config) checkActivations() error {
	switch {
	case int(c.Activations) >= len(activationFormats):
		return fmt.Errorf("nn: Config.Activations is %v: want one of %q", c.Activations, activationFormats)
	case c.Activations != ActivationsFP32 && c.FP8 == nil:
		return fmt.Errorf("nn: Config.Activations is %v and Config.FP8 is nil: set FP8, whose operands are what is kept, or keep activations in %v",
			c.Activations, ActivationsFP32)
	}
	return nil
}
