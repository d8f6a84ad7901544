package checkpoint

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Types that several schemes read.
var (
	f8         = []safetensors.DType{safetensors.F8E4M3}
	u8         = []safetensors.DType{safetensors.U8, safetensors.I8}
	i8         = []safetensors.DType{safetensors.I8, safetensors.U8}
	e8m0       = []safetensors.DType{safetensors.F8E8M0, safetensors.U8}
	byteScales = []safetensors.DType{safetensors.U8, safetensors.F8E8M0}
	f32        = []safetensors.DType{safetensors.F32, safetensors.BF16, safetensors.F16}
	own        = []safetensors.DType{""}
)

// Blocks that schemes have.
var (
	perTensor  = tensor.Block{}
	perChannel = tensor.Block{Rows: 1}
	square128  = tensor.Block{Rows: 128, Cols: 128}
	group32    = tensor.Block{Rows: 1, Cols: 32}
	group16    = tensor.Block{Rows: 1, Cols: 16}
)

// The schemes. What is read is told apart in this order where a configuration does not say,
// so that a scheme with more parts comes before one with fewer of the same.
var (
	// fp8Block is DeepSeek-V3's: the scales are multipliers in spite of their name.
	// Transformers has the same, and stacks of experts; theirs may be E8M0.
	fp8Block = &Scheme{
		Name: "fp8-block", Block: square128, ScaleFormat: tensor.E8M0Scales, Resize: true, Stacks: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: f8, Shape: elements},
			Scales: {Suffix: ".weight_scale_inv", DTypes: append(f32, safetensors.F8E8M0), Shape: grid},
			Input:  {Suffix: ".activation_scale", DTypes: f32, Shape: scalar, Optional: true},
		},
	}

	// fp8BlockE8M0 is DeepSeek-V4's of all but routed experts.
	fp8BlockE8M0 = &Scheme{
		Name: "fp8-block-e8m0", Block: square128, ScaleFormat: tensor.E8M0Scales, Resize: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: f8, Shape: elements},
			Scales: {Suffix: ".scale", DTypes: []safetensors.DType{safetensors.F8E8M0, safetensors.F32}, Shape: grid},
		},
	}

	// fp4GroupE8M0 is DeepSeek-V4's of routed experts.
	fp4GroupE8M0 = &Scheme{
		Name: "fp4-group-e8m0", Format: fp8.E2M1, Block: group32, ScaleFormat: tensor.E8M0Scales, Whole: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: i8, Shape: Nibbles},
			Scales: {Suffix: ".scale", DTypes: e8m0, Shape: grid},
		},
	}

	// fp8Tensor is vLLM's fp8 and ModelOpt's FP8.
	fp8Tensor = &Scheme{
		Name: "fp8-tensor", Block: perTensor,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: f8, Shape: elements},
			Scales: {Suffix: ".weight_scale", DTypes: []safetensors.DType{safetensors.F32}, Shape: scalar},
			Input:  {Suffix: ".input_scale", DTypes: f32, Shape: scalar, Optional: true},
		},
	}

	// ctTensor, ctChannel and ctBlock are compressed-tensors' float-quantized: scales have
	// the type of the weight.
	ctTensor = &Scheme{
		Name: "ct-fp8-tensor", Block: perTensor,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: f8, Shape: elements},
			Scales: {Suffix: ".weight_scale", DTypes: own, Shape: one},
			Input:  {Suffix: ".input_scale", DTypes: own, Shape: one, Optional: true},
		},
	}
	ctChannel = &Scheme{
		Name: "ct-fp8-channel", Block: perChannel,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: f8, Shape: elements},
			Scales: {Suffix: ".weight_scale", DTypes: own, Shape: grid},
		},
	}
	ctBlock = &Scheme{
		Name: "ct-fp8-block", Block: square128, Resize: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: f8, Shape: elements},
			Scales: {Suffix: ".weight_scale", DTypes: own, Shape: grid},
		},
	}

	ctMXFP8 = &Scheme{
		Name: "ct-mxfp8", Block: group32, ScaleFormat: tensor.E8M0Scales, Whole: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: f8, Shape: elements},
			Scales: {Suffix: ".weight_scale", DTypes: byteScales, Shape: grid},
		},
	}
	ctMXFP4 = &Scheme{
		Name: "ct-mxfp4", Format: fp8.E2M1, Block: group32, ScaleFormat: tensor.E8M0Scales, Whole: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight_packed", DTypes: u8, Shape: Nibbles},
			Scales: {Suffix: ".weight_scale", DTypes: byteScales, Shape: grid},
		},
	}
	ctNVFP4 = &Scheme{
		Name: "ct-nvfp4", Format: fp8.E2M1, Block: group16, ScaleFormat: tensor.UE4M3Scales, Divide: true, Whole: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight_packed", DTypes: u8, Shape: Nibbles},
			Scales: {Suffix: ".weight_scale", DTypes: f8, Shape: grid},
			Outer:  {Suffix: ".weight_global_scale", DTypes: f32, Shape: one},
			Input:  {Suffix: ".input_global_scale", DTypes: f32, Shape: one, Optional: true},
		},
	}

	// modelOptNVFP4 has the reciprocal of compressed-tensors' outer scale.
	modelOptNVFP4 = &Scheme{
		Name: "modelopt-nvfp4", Format: fp8.E2M1, Block: group16, ScaleFormat: tensor.UE4M3Scales, Whole: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight", DTypes: u8, Shape: Nibbles},
			Scales: {Suffix: ".weight_scale", DTypes: f8, Shape: grid},
			Outer:  {Suffix: ".weight_scale_2", DTypes: f32, Shape: scalar},
			Input:  {Suffix: ".input_scale", DTypes: f32, Shape: scalar, Optional: true},
		},
	}

	// gptOSS is of experts alone, [experts, rows, columns] with rows of gate and up in turn:
	// the transpose of what transformers calls the same parameter in BF16.
	gptOSS = &Scheme{
		Name: "gpt-oss-mxfp4", Format: fp8.E2M1, Block: group32, ScaleFormat: tensor.E8M0Scales, Whole: true, Stacks: true, Transposed: true,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: ".weight_blocks", DTypes: u8, Shape: Chunks},
			Scales: {Suffix: ".weight_scales", DTypes: byteScales, Shape: grid},
		},
	}

	// torchAOChannel is torchao's Float8Tensor by rows, and torchAOTensor that of one scale.
	// What else torchao has to know is in the metadata of its files.
	torchAOTensor = &Scheme{
		Name: "torchao-float8-tensor", Block: perTensor,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: "._weight_qdata", DTypes: f8, Shape: elements},
			Scales: {Suffix: "._weight_scale", DTypes: f32, Shape: one},
		},
	}
	torchAOChannel = &Scheme{
		Name: "torchao-float8-row", Block: perChannel,
		Parts: [roles]StoredTensor{
			Codes:  {Suffix: "._weight_qdata", DTypes: f8, Shape: elements},
			Scales: {Suffix: "._weight_scale", DTypes: f32, Shape: grid},
		},
	}
)

var schemes = []*Scheme{
	fp8Block, fp8BlockE8M0, fp4GroupE8M0,
	ctNVFP4, ctMXFP4, modelOptNVFP4, ctMXFP8,
	fp8Tensor, ctTensor, ctChannel, ctBlock,
	gptOSS, torchAOTensor, torchAOChannel,
}

// Schemes returns all schemes, those with more parts before those with fewer of the same.
// They must not be changed.
func Schemes() []*Scheme { return append([]*Scheme(nil), schemes...) }
