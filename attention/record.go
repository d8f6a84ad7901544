package attention

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// Record is a way of keeping a token in a KV cache, to the byte as a public kernel reads
// it: codes in E4M3, their scales and, for latent attention (MLA), bfloat16 values that
// carry the position (RoPE).
//
//	                 bytes  values  codes, of a scale  scales       bfloat16
//	flashmla-v3.2    656    576     512, 128           float32      64
//	flashmla-model1  584    512     448, 64            E8M0         64
//	vllm-ds-mla      656    576     512, 128           float32      64
//	deepgemm-indexer 132    128     128, 128           float32      none
type Record uint8

const (
	// FlashMLAV32 is the record of FlashMLA's sparse decoding for DeepSeek-V3.2
	// (tests/quant.py, V32_FP8Sparse): codes, scales, bfloat16, token after token. A scale
	// is the power of two above amax/448, 2^-13 at least.
	FlashMLAV32 Record = iota

	// FlashMLAModel1 is its MODEL1_FP8Sparse: scales chosen likewise, and kept, 8 bytes a
	// token, behind the codes and bfloat16 values of all tokens of a block, which is
	// filled up to a multiple of 576 bytes.
	FlashMLAModel1

	// VLLMDeepSeek is what vLLM writes as fp8_ds_mla (csrc/cache_kernels.cu): laid out as
	// FlashMLAV32, and a scale is amax/448, of which NaN is no part.
	VLLMDeepSeek

	// DeepGEMMIndexer holds keys of the indexer's scores (DeepGEMM's
	// tests, kv_cache_cast_to_fp8): a block's codes first and then its scales,
	// max(amax, 1e-4)/448, by whose rounded reciprocal values are multiplied.
	DeepGEMMIndexer
)

var records = enum.Enum[Record]{
	Type: "Record", What: "record of a KV cache",
	Names:  []string{"flashmla-v3.2", "flashmla-model1", "vllm-ds-mla", "deepgemm-indexer"},
	Prefix: "attention",
}

// String returns the text of r, such as "flashmla-v3.2".
func (r Record) String() string                   { return records.String(r) }
func (r Record) MarshalText() ([]byte, error)     { return records.MarshalText(r) }
func (r *Record) UnmarshalText(text []byte) error { return records.UnmarshalText(r, text) }

// Valid reports whether r is one of the records of this package.
func (r Record) Valid() bool { return records.Valid(r) }

// recordLayout is everything in which records differ. A token's bytes are codes, then
// scales where they are not behind, then wide values. What is behind comes after all
// tokens of a block.
type recordLayout struct {
	codes int // E4M3
	tile  int // of them under one scale
	e8m0  bool
	wide  int // bfloat16 values

	behind   bool // scales come after all tokens of a block
	spare    int  // bytes after a token's scales
	multiple int  // of which the bytes of a block are one

	valueDim int // how many of the values are those of V, too
	scale    func(amax float32, nan bool) fp8.Scale
	policy   fp8.Policy
}

var recordLayouts = [...]recordLayout{
	FlashMLAV32: {codes: 512, tile: 128, wide: 64, multiple: 1, valueDim: 512, scale: powerScale},
	FlashMLAModel1: {
		codes: 448, tile: 64, e8m0: true, wide: 64, behind: true, spare: 1, multiple: 576,
		valueDim: 512, scale: powerScale,
	},
	VLLMDeepSeek: {
		codes: 512, tile: 128, wide: 64, multiple: 1, valueDim: 512,
		scale: vllmScale, policy: fp8.Policy{NaN: fp8.NaNCanonical},
	},
	DeepGEMMIndexer: {codes: 128, tile: 128, behind: true, multiple: 1, scale: indexerScale},
}

// layout panics if r is not one of the records.
func (r Record) layout() *recordLayout {
	if !r.Valid() {
		panic(badRecord)
	}
	return &recordLayouts[r]
}

const badRecord = "attention: unknown record"

func (l *recordLayout) tiles() int { return l.codes / l.tile }

func (l *recordLayout) scaleSize() int {
	if l.e8m0 {
		return 1
	}
	return 4
}

// scaleBytes is what a token's scales take.
func (l *recordLayout) scaleBytes() int { return l.tiles()*l.scaleSize() + l.spare }

// inner is what of a token lies together.
func (l *recordLayout) inner() int {
	n := l.codes + 2*l.wide
	if !l.behind {
		n += l.scaleBytes()
	}
	return n
}

// Dim returns the number of values of a token.
func (r Record) Dim() int { l := r.layout(); return l.codes + l.wide }

// ValueDim returns how many of a token's values, the first ones, are its V, or 0 for a
// record that has keys alone.
func (r Record) ValueDim() int { return r.layout().valueDim }

// TokenBytes returns the number of bytes of a token, wherever in its block they are.
func (r Record) TokenBytes() int {
	l := r.layout()
	return l.codes + 2*l.wide + l.scaleBytes()
}

// BlockBytes returns the number of bytes of a block of so many tokens, filled up where
// the record asks for it.
func (r Record) BlockBytes(tokens int) int {
	m := r.layout().multiple
	return (tokens*r.TokenBytes() + m - 1) / m * m
}

var inf32 = float32(math.Inf(1))

// powerScale is _cast_scale_inv_to_ue8m0 of FlashMLA's tests/quant.py, whose logarithm is
// rounded to float32.
func powerScale(amax float32, nan bool) fp8.Scale {
	switch s := amax / fp8.E4M3.Max(); {
	case nan:
		return nanScale()
	case s == inf32:
		return fp8.Scale{Stored: s}
	default:
		return fp8.Scale{Stored: rounding.Exp2CeilLog2(max(s, 1e-4))}
	}
}

// vllmScale takes the largest magnitude by CUDA's fmaxf, which leaves out NaN.
func vllmScale(amax float32, _ bool) fp8.Scale {
	const minNormal = 0x1p-126
	return fp8.Scale{Stored: max(amax/fp8.E4M3.Max(), minNormal)}
}

func indexerScale(amax float32, nan bool) fp8.Scale {
	if nan {
		return nanScale()
	}
	s := max(amax, 1e-4) / fp8.E4M3.Max()
	return fp8.Scale{Stored: s, Multiplier: 1 / s}
}

// nanScale makes all codes of its tile NaN, whatever their values.
func nanScale() fp8.Scale { return fp8.Scale{Stored: float32(math.NaN())} }
