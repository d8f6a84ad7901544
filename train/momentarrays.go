package train

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// What a checkpoint keeps of each kind of moment. Scales have no shape but their
// number.

func (m fp32Moment) arrays(name string, shape []int, w which) []array {
	return []array{newArray(name, safetensors.F32, shape, floats(m), validMoment(w))}
}

func (m bf16Moment) arrays(name string, shape []int, w which) []array {
	return []array{newArray(name, safetensors.BF16, shape, halves(m), validMoment(w))}
}

func (m *fp8Moment) arrays(name string, shape []int, w which) []array {
	dtype := safetensors.F8E4M3
	if m.format == fp8.E5M2 {
		dtype = safetensors.F8E5M2
	}
	return []array{
		newArray(name, dtype, shape, fp8Codes{m.codes, m.format}, validMoment(w)),
		newArray(name+".scale", safetensors.F32, []int{len(m.scales)}, floats(m.scales), positive),
	}
}

func (m *expandedMoment) arrays(name string, shape []int, w which) []array {
	return []array{
		newArray(name, safetensors.F8E4M3, shape, fp8Codes{m.codes, fp8.E4M3}, validMoment(w)),
		newArray(name+".amax", safetensors.F32, []int{len(m.amax)}, floats(m.amax), notNegative),
		newArray(name+".power", safetensors.U8, []int{len(m.powers)}, octets(m.powers), positive),
	}
}

// validMoment is what a moment may be.
func validMoment(w which) validity {
	if w == secondMoment {
		return notNegative
	}
	return finite
}
