package optim

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/safetensors"
)

// What a checkpoint keeps of each kind of moment. Scales have no shape but their
// number.

func (m fp32Moment) arrays(name string, shape []int, w which) []arrays.Array {
	return []arrays.Array{arrays.New(name, safetensors.F32, shape, arrays.Floats(m), validMoment(w))}
}

func (m bf16Moment) arrays(name string, shape []int, w which) []arrays.Array {
	return []arrays.Array{arrays.New(name, safetensors.BF16, shape, arrays.BFloat16s(m), validMoment(w))}
}

func (m *fp8Moment) arrays(name string, shape []int, w which) []arrays.Array {
	dtype := safetensors.F8E4M3
	if m.format == fp8.E5M2 {
		dtype = safetensors.F8E5M2
	}
	return []arrays.Array{
		arrays.New(name, dtype, shape, arrays.Codes{Bytes: m.codes, Format: m.format}, validMoment(w)),
		arrays.New(name+".scale", safetensors.F32, []int{len(m.scales)}, arrays.Floats(m.scales), arrays.Positive),
	}
}

func (m *expandedMoment) arrays(name string, shape []int, w which) []arrays.Array {
	return []arrays.Array{
		arrays.New(name, safetensors.F8E4M3, shape, arrays.Codes{Bytes: m.codes, Format: fp8.E4M3}, validMoment(w)),
		arrays.New(name+".amax", safetensors.F32, []int{len(m.amax)}, arrays.Floats(m.amax), arrays.NotNegative),
		arrays.New(name+".power", safetensors.U8, []int{len(m.powers)}, arrays.Bytes(m.powers), arrays.Positive),
	}
}

// validMoment is what a moment may be.
func validMoment(w which) arrays.Validity {
	if w == secondMoment {
		return arrays.NotNegative
	}
	return arrays.Finite
}
