package plan

import (
	"cmp"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Numbers is how numbers are stored: so many bits each, and a scale for each block. The zero
// value, in a [Precision], is what is usual there.
type Numbers struct {
	Bits      int          `json:"bits"`
	Block     tensor.Block `json:"block,omitzero"`      // that share a scale
	ScaleBits int          `json:"scaleBits,omitempty"` // 0: there are no scales
	OuterBits int          `json:"outerBits,omitempty"` // of one more scale, for the whole matrix
}

// Usual numbers.
var (
	fp32 = Numbers{Bits: 32}
	bf16 = Numbers{Bits: 16}

	// tiles and squares are FP8 under FP32 scales, as DeepSeek-V3 has it for activations and
	// for weights (arXiv 2412.19437, section 3.3.2).
	tiles   = Numbers{Bits: 8, Block: tensor.Block{Rows: 1, Cols: 128}, ScaleBits: 32}
	squares = Numbers{Bits: 8, Block: tensor.Block{Rows: 128, Cols: 128}, ScaleBits: 32}

	alongTokens = Numbers{Bits: 8, Block: tensor.Block{Rows: 128, Cols: 1}, ScaleBits: 32}

	// MXFP8 and MXFP4 have a scale of 8 bits for 32 (OCP Microscaling Formats 1.0).
	mxfp8       = Numbers{Bits: 8, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleBits: 8}
	mxfp8Tokens = Numbers{Bits: 8, Block: tensor.Block{Rows: 32, Cols: 1}, ScaleBits: 8}
	mxfp4       = Numbers{Bits: 4, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleBits: 8}

	// nvfp4 has a scale in UE4M3 for 16, and one in FP32 for the matrix.
	nvfp4 = Numbers{Bits: 4, Block: tensor.Block{Rows: 1, Cols: 16}, ScaleBits: 8, OuterBits: 32}

	// perTensor is FP8 under one FP32 scale.
	perTensor = Numbers{Bits: 8, ScaleBits: 32}
)

// Bytes is the size of a matrix, with its scales.
func (n Numbers) Bytes(rows, cols int64) int64 {
	bytes := ceil(rows*cols*int64(n.Bits), 8)
	if bytes == 0 {
		return 0
	}
	return bytes + ceil(blocks(rows, n.Block.Rows)*blocks(cols, n.Block.Cols)*int64(n.ScaleBits)+int64(n.OuterBits), 8)
}

// blocks is how many of an extent there are in so many; an extent of 0 is all of them.
func blocks(n int64, extent int) int64 {
	if extent == 0 {
		return 1
	}
	return ceil(n, int64(extent))
}

func (n Numbers) or(usual Numbers) Numbers {
	if n == (Numbers{}) {
		return usual
	}
	return n
}

func (n Numbers) check(name string) error {
	b := n.Block
	if n.Bits < 1 || n.Bits > 64 || min(n.ScaleBits, n.OuterBits) < 0 || max(n.ScaleBits, n.OuterBits) > 64 || b.Rows < 0 || b.Cols < 0 {
		return sentinel.Errorf(ErrJob, "plan: precision.%s has %d bits and scales of %d for %d x %d under one of %d: want 1 to 64 bits, and scales of 0 to 64 for a block of 0 or more", name, n.Bits, n.ScaleBits, b.Rows, b.Cols, n.OuterBits)
	}
	return nil
}

// Precision is how everything is stored. The zero value is the usual mixed precision:
// BF16, with gradients, master weights and moments in FP32.
type Precision struct {
	Name string `json:"name,omitempty"`

	Weights Numbers `json:"weights,omitzero"` // matrices of layers; BF16
	Experts Numbers `json:"experts,omitzero"` // those of experts; as Weights
	Rest    Numbers `json:"rest,omitzero"`    // embedding, head, norms, biases, router; BF16

	// Columnwise says that weights are there a second time, transposed, which FP8 products
	// need on some hardware.
	Columnwise bool `json:"columnwise,omitempty"`

	Gradients Numbers `json:"gradients,omitzero"` // FP32
	Master    Numbers `json:"master,omitzero"`    // weights that the optimizer moves; FP32
	Moment1   Numbers `json:"moment1,omitzero"`   // FP32
	Moment2   Numbers `json:"moment2,omitzero"`   // as Moment1

	// Inputs are those of linear layers, kept for the gradients of weights; BF16. Stream are
	// what norms and attention read; BF16.
	Inputs Numbers `json:"inputs,omitzero"`
	Stream Numbers `json:"stream,omitzero"`

	// AttentionOut is the result of attention. The zero value: as Inputs, for the layer after
	// it, and as Stream beside that where these differ, for the backward pass of attention;
	// otherwise both read the same.
	AttentionOut Numbers `json:"attentionOut,omitzero"`

	// SwiGLU are its two inputs; as Stream. FromSwiGLU says that the input of the layer after
	// it is not kept but computed from those again (DeepSeek-V3, section 3.3.3).
	SwiGLU     Numbers `json:"swiglu,omitzero"`
	FromSwiGLU bool    `json:"fromSwiglu,omitempty"`

	KV Numbers `json:"kv,omitzero"` // the cache of keys and values, or of latents; BF16

	// ServeOnly refuses training: there it would keep some layers otherwise, and a Precision is
	// that of all.
	ServeOnly bool `json:"serveOnly,omitempty"`
}

// Precisions returns named recipes:
//
//   - bf16: the zero value
//   - fp8: as package nn has it, with primary weights in FP8 under scales of blocks, inputs of
//     linear layers under those of tiles along tokens, and all else as bf16
//   - te-current: as TransformerEngine under Megatron-LM with primary weights in FP8 under one
//     scale for a tensor: weights and inputs of linear layers of 1 byte, all else as bf16
//   - mxfp8: the same with a scale of 8 bits for 32; weights are there a second time, since
//     their scales are along the other dimension in the backward pass
//   - deepseek-v3: FP8 under scales of blocks, moments in BF16, the input of the layer after
//     attention in 12 bits, and the inputs of SwiGLU in FP8 in place of its result
//     (arXiv 2412.19437, sections 3.3.2, 3.3.3 and 3.5.2)
//   - octavo: what package nn keeps with its activations fp8-swiglu and package optim with
//     moments of FP8, on a device whose other numbers are BF16: as deepseek-v3, with
//     moments of 2 bytes and 8 for each 128, 8 bits after attention, and scales of inputs
//     along tokens
//   - fp8-serve: weights as deepseek-v3 publishes them and a KV cache of FP8
//   - mxfp4-experts: experts in MXFP4 and all else in BF16, as gpt-oss is published
//   - fp8-rows: weights of linear layers in FP8 under a BF16 scale for each row, to be served
//   - mxfp4, nvfp4, nvfp4-4over6: weights of linear layers in four bits, to be served; nvfp4-4over6
//     has the bytes of nvfp4
func Precisions() []Precision {
	return []Precision{
		{Name: "bf16"},
		{Name: "fp8", Weights: squares, Inputs: alongTokens},
		{Name: "te-current", Weights: perTensor, Inputs: perTensor},
		{Name: "mxfp8", Weights: mxfp8, Columnwise: true, Inputs: mxfp8Tokens},
		{
			Name: "deepseek-v3", Weights: squares, Moment1: bf16, Inputs: tiles,
			AttentionOut: Numbers{Bits: 12, Block: tiles.Block, ScaleBits: 32}, SwiGLU: tiles, FromSwiGLU: true,
		},
		{
			Name: "octavo", Weights: squares, Moment1: tiles, Inputs: alongTokens, AttentionOut: alongTokens,
			SwiGLU: tiles, FromSwiGLU: true,
		},
		{Name: "fp8-serve", Weights: squares, KV: perTensor},
		{Name: "mxfp4-experts", Experts: mxfp4},
		{Name: "fp8-rows", Weights: Numbers{Bits: 8, Block: tensor.Block{Rows: 1}, ScaleBits: 16}, ServeOnly: true},
		{Name: "mxfp4", Weights: mxfp4, ServeOnly: true},
		{Name: "nvfp4", Weights: nvfp4, ServeOnly: true},
		{Name: "nvfp4-4over6", Weights: nvfp4, ServeOnly: true},
	}
}

// NamedPrecision returns the recipe of a name. It is an error, [ErrJob], if there is none.
func NamedPrecision(name string) (Precision, error) {
	var names []string
	for _, p := range Precisions() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Precision{}, sentinel.Errorf(ErrJob, "plan: no precision is called %q: want one of %s", name, strings.Join(names, ", "))
}

// complete fills in what is usual, and checks.
func (p Precision) complete() (Precision, error) {
	p.Weights = p.Weights.or(bf16)
	p.Experts = p.Experts.or(p.Weights)
	p.Rest = p.Rest.or(bf16)
	p.Gradients = p.Gradients.or(fp32)
	p.Master = p.Master.or(fp32)
	p.Moment1 = p.Moment1.or(fp32)
	p.Moment2 = p.Moment2.or(p.Moment1)
	p.Inputs = p.Inputs.or(bf16)
	p.Stream = p.Stream.or(bf16)
	p.SwiGLU = p.SwiGLU.or(p.Stream)
	p.KV = p.KV.or(bf16)
	out := p.AttentionOut.or(bf16)
	return p, cmp.Or(p.Weights.check("weights"), p.Experts.check("experts"), p.Rest.check("rest"),
		p.Gradients.check("gradients"), p.Master.check("master"), p.Moment1.check("moment1"),
		p.Moment2.check("moment2"), p.Inputs.check("inputs"), p.Stream.check("stream"),
		p.SwiGLU.check("swiglu"), p.KV.check("kv"), out.check("attentionOut"))
}

// weight returns how a weight is stored.
func (p Precision) weight(w weight) Numbers {
	switch w.kind {
	case linear:
		return p.Weights
	case expertLinear:
		return p.Experts
	}
	return p.Rest
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
