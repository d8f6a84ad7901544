package generate

import (
	"cmp"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
)

// CacheFormat is how keys and values are kept.
type CacheFormat uint8

// The formats of a cache.
const (
	// CacheE4M3 keeps E4M3 codes, by default with a scale for each token and head.
	CacheE4M3 CacheFormat = iota
	// CacheBF16 keeps bfloat16.
	CacheBF16
	// CacheNVFP4 keeps E2M1 codes under a UE4M3 scale for each 16 elements of a key or value, by
	// [scaling.NVFP4TorchAO], without an outer scale.
	CacheNVFP4
	// CacheMXFP8 keeps E4M3 codes under a power of two for each 32 elements, by
	// [scaling.MXRCeil].
	CacheMXFP8
	// CacheF32 keeps float32, and attention rounds nothing to fewer bits.
	CacheF32
)

var cacheFormats = enum.Enum[CacheFormat]{
	Type: "CacheFormat", What: "format of a cache", Err: ErrOptions, Prefix: "generate",
	Names: []string{"e4m3", "bf16", "nvfp4", "mxfp8", "f32"},
}

// CacheFormats returns all formats of a cache.
func CacheFormats() []CacheFormat {
	return []CacheFormat{CacheE4M3, CacheBF16, CacheNVFP4, CacheMXFP8, CacheF32}
}

// String returns the name of f.
func (f CacheFormat) String() string                   { return cacheFormats.String(f) }
func (f CacheFormat) MarshalText() ([]byte, error)     { return cacheFormats.MarshalText(f) }
func (f *CacheFormat) UnmarshalText(text []byte) error { return cacheFormats.UnmarshalText(f, text) }

// Options are those of a [Generator]. The zero value multiplies weights in FP32, as they are
// in the model, and keeps keys and values in E4M3.
type Options struct {
	// FP8, unless nil, are the recipes of the inputs, A, and of the weights, B, of all linear
	// layers but the head. Weights are quantized once and packed; of a
	// tensor with one scale for many rows the rows are those of one call.
	FP8 *nn.Operands

	// Head, unless nil, are the recipes of the head's inputs and weight; the embedding is kept as
	// the weight is.
	Head *nn.Operands

	// RoundHead rounds the head's weight and the embedding to bfloat16, unless they have a
	// recipe. Without either they are as they are in the model, in bfloat16 where that has all of
	// their values, and the head's inputs are FP32.
	RoundHead bool

	Cache CacheFormat

	// KeyScales and ValueScales, unless nil, are those of each layer in an E4M3 cache, or of
	// each head of it, [layers, KVHeads], in place of one for each token and head: code·scale is
	// the value, as in vLLM.
	KeyScales, ValueScales []float32

	// BatchInvariant refuses recipes under which the bits of a request depend on how many
	// tokens it is run with, its own or another's: [ErrBatch].
	BatchInvariant bool

	// Read, unless nil, writes the values of a parameter of the model, which are not there yet, to
	// dst, such as [hf.Unread.Read]. What is packed then never is in memory as FP32, and the model
	// has values of norms, routers, biases and sinks and of what is multiplied in FP32 alone.
	//
	// [hf.Unread.Read]: https://pkg.go.dev/github.com/octavo-fp8/octavo/nn/hf#Unread.Read
	Read func(p *nn.Param, dst []float32) error

	// Workers is how many goroutines there are, 0 being GOMAXPROCS, but for [gemm.Pack], which
	// uses all processors. Results do not depend on it.
	Workers int

	// Progress, unless nil, hears of weights that were packed, as "pack".
	Progress progress.Reporter
}

// check returns an error that names the first option that cannot be used with a model of so
// many layers and heads of keys in each.
func (o Options) check(layers, heads int) error {
	if err := cacheFormats.Check(o.Cache); err != nil {
		return err
	}
	switch {
	case o.Workers < 0:
		return optionError("Options.Workers is %d: it must not be negative", o.Workers)
	case (o.KeyScales == nil) != (o.ValueScales == nil):
		return optionError("Options.KeyScales are %d and ValueScales %d: give both or none",
			len(o.KeyScales), len(o.ValueScales))
	}
	for _, list := range []struct {
		name   string
		scales []float32
	}{{"KeyScales", o.KeyScales}, {"ValueScales", o.ValueScales}} {
		switch {
		case list.scales == nil:
			continue
		case o.Cache != CacheE4M3:
			return optionError("Options.%s are for a cache in e4m3: this one is in %v", list.name,
				o.Cache)
		case len(list.scales) != layers && len(list.scales) != layers*heads:
			return optionError("Options.%s are %d: the model has %d layers of %d heads: give one "+
				"for each layer or one for each head", list.name, len(list.scales), layers, heads)
		}
		for i, x := range list.scales {
			if !(x > 0) || math.IsInf(float64(x), 0) {
				return optionError("Options.%s[%d] is %v: it must be positive and finite",
					list.name, i, x)
			}
		}
	}
	return cmp.Or(o.checkRecipes("FP8", o.FP8), o.checkRecipes("Head", o.Head))
}

func (o Options) checkRecipes(name string, of *nn.Operands) error {
	if of == nil {
		return nil
	}
	for _, r := range []scaling.Recipe{of.A, of.B} {
		if err := r.Check(); err != nil {
			return optionError("Options.%s: %w", name, err)
		}
		if r.Profile.Delayed() {
			return optionError("Options.%s: recipe %s takes its scale from the amax of earlier "+
				"steps, which a model does not hold: use %s", name, r.Profile, scaling.TECurrent)
		}
	}
	if err := gemm.CheckBlocks(of.A.Block, of.B.Block); err != nil {
		return optionError("Options.%s: %w", name, err)
	}
	if o.BatchInvariant {
		return CheckBatchInvariant(of.A)
	}
	return nil
}

// CheckBatchInvariant returns an error, [ErrBatch], unless a recipe quantizes each token's
// input of a linear layer by itself, so that its bits are the same whatever else is multiplied
// with it. The error says which recipe would do.
func CheckBatchInvariant(input scaling.Recipe) error {
	if input.PerRow() {
		return nil
	}
	return sentinel.Errorf(ErrBatch, "generate: inputs by %v: a token's codes depend on what is "+
		"multiplied with it: use a recipe whose inputs have scales of their own for each token, "+
		"such as fp8, mxfp8 or torchao-rowwise", input)
}
