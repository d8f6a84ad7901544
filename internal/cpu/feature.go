package cpu

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// Feature is an extension that some processors of a level have and others lack. A level
// does without; kernels that use one serve in place of others where it is there.
type Feature int32

const (
	NoFeature Feature = iota
	VNNI              // avx512vnni: VPDPBUSD on vectors of 512 bits, within AVX512; Skylake-X lacks it
	AVXVNNI           // avxvnni: VPDPBUSD on vectors of 256 bits, without AVX-512, within AVX2
	AMXInt8           // amx-int8: TDPBSSD, within AMX
	DotProd           // asimddp: SDOT, within NEON; ARMv8.2 has it at choice, ARMv8.4 always

	numFeatures
)

var featureNames = [...]string{"", "avx512vnni", "avxvnni", "amx-int8", "asimddp"}

// String returns the name that [Features] has for it, and "" for NoFeature.
func (f Feature) String() string {
	if f < 0 || f >= numFeatures {
		return fmt.Sprintf("Feature(%d)", int32(f))
	}
	return featureNames[f]
}

// featureLevels are the levels that features are within.
var featureLevels = [...]Level{VNNI: AVX512, AVXVNNI: AVX2, AMXInt8: AMX, DotProd: NEON}

// withheld has a bit for each feature that [Without] has taken away.
var withheld atomic.Uint32

// Has reports whether kernels may use f: whether the processor and this build have it and
// its level, and no test is without it. There is always NoFeature.
func Has(f Feature) bool { return f == NoFeature || withheld.Load()&(1<<f) == 0 && there(f) }

func there(f Feature) bool {
	if f == AMXInt8 && emulated.Load() > 0 {
		return true
	}
	return builtIn()[f]
}

var builtIn = sync.OnceValue(func() (has [numFeatures]bool) {
	levels := Levels()
	for f := NoFeature + 1; f < numFeatures; f++ {
		has[f] = processorHas(f) && slices.Contains(levels, featureLevels[f])
	}
	return has
})

func processorHas(f Feature) bool {
	switch f {
	case VNNI:
		return cpu.X86.HasAVX512VNNI
	case AVXVNNI:
		return cpu.X86.HasAVXVNNI
	case AMXInt8:
		return cpu.X86.HasAMXInt8
	case DotProd:
		return cpu.ARM64.HasASIMDDP
	}
	return false
}

// Without makes features absent until restore is called, which must be before any other
// call of Without is undone. It is for tests: of what serves processors that lack them.
func Without(features ...Feature) (restore func()) {
	before := withheld.Load()
	for _, f := range features {
		if f != NoFeature {
			withheld.Or(1 << f)
		}
	}
	return func() { withheld.Store(before) }
}
