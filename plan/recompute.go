package plan

// Recompute says what the backward pass computes again instead of keeping it. The zero value
// is nothing.
type Recompute struct {
	// Layers is how many first layers of each stage, or of each chunk where layers are
	// interleaved, keep only their input; below 0: all.
	Layers int `json:"layers,omitempty"`

	Attention bool `json:"attention,omitempty"` // queries, keys, values and attention, from their projections' input
	Latent    bool `json:"latent,omitempty"`    // of MLA what is made of the latents: queries, keys and values
	MLP       bool `json:"mlp,omitempty"`       // of dense layers all but the input of the MLP
	MoE       bool `json:"moe,omitempty"`       // of experts, the shared one included, all but their input
	Norms     bool `json:"norms,omitempty"`     // results of the norms before attention and MLP

	ExpertActivation bool `json:"expertActivation,omitempty"` // results of SwiGLU in experts
}

// Library is what a training library keeps beyond what the mathematics needs. The zero value
// is nothing.
type Library struct {
	// ZeroGradients is a BF16 tensor of zeros for each shape of a weight on a rank, which
	// TransformerEngine from 2.3 on hands to autograd where it adds gradients itself.
	ZeroGradients bool `json:"zeroGradients,omitempty"`

	// ExchangedOutput is the result of attention before heads are exchanged for tokens again
	// (context parallelism), which TransformerEngine from 2.8 on keeps.
	ExchangedOutput bool `json:"exchangedOutput,omitempty"`

	UnfusedLoss  bool `json:"unfusedLoss,omitempty"`  // cross-entropy keeps its softmax in FP32
	CombineInput bool `json:"combineInput,omitempty"` // weights of experts are applied after their last product, whose result is kept

	// Octavo has activations kept as package nn of octavo does, by class as [nn.Policy] says:
	// attention that is not flash, the results of norms, and of experts what they are given and
	// give, and none of what other libraries keep beyond that. Ops take what they do elsewhere.
	Octavo bool `json:"octavo,omitempty"`

	// SimuMax counts what SimuMax 1.2 counts otherwise, so that its figures can be compared:
	// the router's input apart from the shared expert's, which is the same, 2 bytes for a
	// log-sum-exp, which takes 4, for FP8 experts FP32 gradients of one projection, and with
	// ExpertActivation a map of all tokens to all experts once more.
	SimuMax bool `json:"simumax,omitempty"`
}

// What Megatron-LM with TransformerEngine keeps: with version 2.11, and with 2.1 and no fused
// cross-entropy.
var (
	TransformerEngine   = Library{ZeroGradients: true, ExchangedOutput: true}
	TransformerEngine21 = Library{UnfusedLoss: true, CombineInput: true}
)
