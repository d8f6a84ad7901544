package nn

// Norms are those that a [Block] has besides the two before attention and before the MLP.
type Norms struct {
	PlusOne  bool // every gain of the model is 1 + its weight, those before attention included (Gemma)
	After    bool // the results of attention and of the MLP are normalized before they are added (Gemma, GLM-4)
	QueryKey bool // each head's query and key are, before they are rotated (Qwen3, Gemma 3)
}

// Biases are those that linear layers add to their results. They stay FP32 in every recipe.
type Biases struct {
	QueryKeyValue bool // of the projections to queries, keys and values
	Output        bool // of attention's projection back
	MLP           bool // of gate, up and down, of experts too
	Router        bool // of the logits of experts
}

// Gate is how the two branches of an MLP become one: gate(x) activated, times up(x). The zero
// value is SwiGLU.
type Gate struct {
	Activation GateActivation

	// Alpha is the factor within the sigmoid of [GateClamped], and Limit what its branches are
	// clamped to: gate to at most Limit, up to [-Limit, Limit].
	Alpha, Limit float64
}

// GateActivation is what becomes of the gate.
type GateActivation uint8

const (
	GateSiLU     GateActivation = iota // g·sigmoid(g)
	GateGELU                           // 0.5·g·(1 + erf(g/√2))
	GateGELUTanh                       // 0.5·g·(1 + tanh(√(2/π)·(g + 0.044715·g³))) (Gemma)
	GateClamped                        // g·sigmoid(Alpha·g), times up + 1, both clamped (gpt-oss)
)
