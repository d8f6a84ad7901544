package oracle

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Model is the arithmetic of a matrix instruction, bit for bit: of FP8 operands, or of
// those that its Float says. The models of this package are made by functions such as
// [HopperWGMMA] and [Hopper]; a Model with other parameters describes hardware that does
// not exist, for tests. A Model is comparable and safe for concurrent use.
//
// All but CDNA3 are variants of one fused step (T-FDPA of MMA-Sim, arXiv
// 2511.10909; Khattak and Mikaitis, arXiv 2512.07004). It adds up to L products
// and c:
//
//  1. Every term is s·2^e, where e is the sum of the exponents of its two codes:
//     a product is not renormalized, and a subnormal has the exponent of the
//     smallest normal number. Products that are zero are left out; c takes part
//     even if zero, with exponent -126, or -14 where the result is a float16.
//  2. All terms are cut, toward zero, to F fraction bits below the largest
//     exponent, and added exactly.
//  3. The sum is cut, toward zero, to Keep fraction bits of a float32, or rounded
//     to the nearest float16, ties to even.
//
// Khattak and Mikaitis report that zeros put a floor of 4-F under the largest
// exponent of a step with a float16 result. It could matter to tiny results of
// E5M2 only, no vectors show it, and it is not modelled.
//
// Longer sums are chains: the result of a step is c of the next. A NaN is
// 7FFFFFFF, or 7FFF in float16; it results from a NaN, from infinity times zero
// and from infinities of both signs.
//
// Models of units to come, of Unit [SingleRounding] and those of NVFP4 with a longer K, have no
// function of their own: [ParseModel] knows their names. silicon.md says of each property
// whether hardware, a specification or nothing pins it.
type Model struct {
	Name string `json:"name"`
	Unit Unit   `json:"unit"`
	K    int    `json:"k"`    // products of one instruction
	L    int    `json:"l"`    // products of one step
	F    int    `json:"f"`    // fraction bits of an aligned term
	Keep int    `json:"keep"` // fraction bits of a float32 result

	// Float is the format of both operands, where it is not one of 8 bits or fewer. Such
	// a model is Fused.
	Float Float `json:"float,omitempty"`

	// Narrow says that operands may be E2M1, E2M3 and E3M2, too, in any pair with each other
	// and with FP8.
	Narrow bool `json:"narrow,omitempty"`

	// First, for Emulated, says which products of an instruction the first step
	// adds: product i where bit i is set.
	First uint32 `json:"first,omitempty"`

	// Last, Flush and E8M0 are of SingleRounding models: c is added last, in float32; subnormal
	// sums and a subnormal c become 0; and the instruction applies E8M0 scales.
	Last  bool `json:"last,omitempty"`
	Flush bool `json:"flush,omitempty"`
	E8M0  bool `json:"e8m0,omitempty"`

	// Evidence says what pins the model: hardware ("verified"), a specification
	// ("specified"), a description or nothing ("assumed").
	Evidence string `json:"evidence"`
}

// Unit is a kind of datapath.
type Unit uint8

const (
	// Fused is the step above.
	Fused Unit = iota
	// Emulated is FP8 by way of the FP16 unit: two steps, of the products in First
	// and of the others, without c, which is added last and rounded to nearest.
	Emulated
	// Scaled is the step above with products that have the exponents of two E8M0
	// scales as well (ST-FDPA).
	Scaled
	// Grouped adds groups of 16 products of E2M1 exactly, times two UE4M3 or E8M0 scales,
	// and then aligns the groups by the exponents of their scales (GST-FDPA).
	Grouped
	// matrixCore is AMD's: products of even and of odd offset are added as above,
	// without c, to two sums, which are aligned and added to c rounding down, and
	// to float32 to nearest even (GTR-FDPA).
	matrixCore
	// SingleRounding adds the products of a step, and c unless it is added Last, exactly, and rounds
	// to the nearest float32, ties to even. A sum is Flushed if it is below 2^-126 after
	// rounding to 24 bits. Such a model has F = 24 and Keep = 23. A NaN is 7FC00000.
	SingleRounding
)

// AdaMMA is mma.sync.m16n8k32 for FP8 on Ada (RTX 4090, L40S): two steps of 16,
// low half of K first; F=13, results of 13 fraction bits. Verified on silicon,
// float32 and float16, E4M3 and E5M2, any c.
func AdaMMA() Model {
	return Model{Name: "ada-mma", K: 32, L: 16, F: 13, Keep: 13,
		Evidence: "verified on Ada vectors, float32 and float16 results"}
}

// HopperWGMMA is wgmma with k=32 for FP8 on Hopper (H100, H200): one step of 32;
// F=13, results of 13 fraction bits. Verified on silicon for float32 with c=0;
// c≠0 and float16 are described by MMA-Sim and by Khattak and Mikaitis.
func HopperWGMMA() Model {
	return Model{Name: "hopper-wgmma", K: 32, L: 32, F: 13, Keep: 13,
		Evidence: "verified on H100 vectors, and on an H200 with c, chains and special values, float32 and float16 results"}
}

// HopperMMA is mma.sync.m16n8k32 for FP8 on Hopper, which goes through the FP16
// unit: step one adds products i with i mod 4 < 2, step two the others, F=25, and
// c comes last. Verified on silicon for float16, whose vectors pin the groups and
// their order but not F, which is that of the FP16 unit, and for float32 on H100 and
// H200, whose vectors pin that c comes last, rounded to nearest, and F from 23 on, but
// not the groups.
func HopperMMA() Model {
	return Model{Name: "hopper-mma", Unit: Emulated, K: 32, L: 16, F: 25, Keep: 23, First: 0x33333333,
		Evidence: "verified on H100 and H200 vectors, and on an H200 with chains and special values, float32 and float16 results"}
}

// BlackwellMMA is mma.sync.m16n8k32 for FP8 on datacenter Blackwell (B200), as
// [HopperMMA]. Verified on silicon for float16 and float32; the vectors of float32
// pin that c comes last, rounded to nearest, but neither F nor the two groups,
// which are those of the float16 results and of the FP16 unit's table.
func BlackwellMMA() Model {
	m := HopperMMA()
	m.Name = "blackwell-mma"
	m.Evidence = "verified on B200 vectors; for float32 results they do not pin F and the groups"
	return m
}

// BlackwellTCGen05 is tcgen05.mma kind::f8f6f4 on datacenter Blackwell, and mma.sync
// kind::f8f6f4 on RTX Blackwell: one step of 32, F=25, results in full float32, of E4M3,
// E5M2, E2M1, E2M3 and E3M2 in any pair. Described by both papers, but for E2M3 and E3M2,
// which MMA-Sim leaves for later: they are taken to be as the others. No public vectors.
func BlackwellTCGen05() Model {
	return Model{Name: "blackwell-tcgen05", K: 32, L: 32, F: 25, Keep: 23, Narrow: true,
		Evidence: "described (MMA-Sim; Khattak and Mikaitis), but for E2M3 and E3M2; no vectors"}
}

// BlackwellMXFP8 is kind::mxf8f6f4 with one E8M0 scale for 32 codes on Blackwell, MXFP8,
// MXFP6, MXFP4 and any pair of them: one step of 32, F=25, results in full float32.
// Described by MMA-Sim, but for E2M3 and E3M2, which are taken to be as the others. Where
// all products are zero its simulator lets their exponents count; here they do not. No
// public vectors.
func BlackwellMXFP8() Model {
	return Model{Name: "blackwell-mxfp8", Unit: Scaled, K: 32, L: 32, F: 25, Keep: 23, Narrow: true,
		Evidence: "described (MMA-Sim), but for E2M3 and E3M2; no vectors"}
}

// BlackwellNVFP4 is kind::mxf4nvf4 with one UE4M3 scale for 16 codes of E2M1 on
// Blackwell: one step of 64 products in groups of 16, F=35, results in full
// float32. A group counts for the largest exponent whatever its sum. Described by
// MMA-Sim; no public vectors. The outer scales of NVFP4 are no part of the instruction:
// see [Kernel].
func BlackwellNVFP4() Model {
	return Model{Name: "blackwell-nvfp4", Unit: Grouped, K: 64, L: 64, F: 35, Keep: 23,
		Evidence: "described (MMA-Sim); no vectors"}
}

// BlackwellMXFP4 is kind::mxf4 with one E8M0 scale for 32 codes of E2M1 on Blackwell,
// which is kind::mxf4nvf4 with other scales: the arithmetic of [BlackwellNVFP4] under
// another name. MXFP4 by way of kind::mxf8f6f4 is [BlackwellMXFP8].
func BlackwellMXFP4() Model {
	m := BlackwellNVFP4()
	m.Name = "blackwell-mxfp4"
	return m
}

// CDNA3MFMA is v_mfma for FP8 on CDNA3 (MI300X), for the FNUZ formats: steps of
// 16; products are cut at F=24, the sum of both halves rounded down at 31 bits, c
// at 24 or left out where it is 2^25 times too small. Float32 only; a NaN is
// 7FC00000. Described by MMA-Sim and by Khattak and Mikaitis; a later paper adds a
// rounding that neither code has.
func CDNA3MFMA() Model {
	return Model{Name: "cdna3-mfma", Unit: matrixCore, K: 16, L: 16, F: 24, Keep: 23,
		Evidence: "described (MMA-Sim; Khattak and Mikaitis)"}
}

// longerNVFP4 is [BlackwellNVFP4] with another K, all of which is one step.
func longerNVFP4(name string, k int, of string) Model {
	m := BlackwellNVFP4()
	m.Name, m.K, m.L = name, k, k
	m.Evidence = of + "; assumed: the arithmetic of blackwell-nvfp4 in one step of " + strconv.Itoa(k)
	return m
}

// coming are models of units that no public results are of.
func coming() []Model {
	exact := Model{Unit: SingleRounding, K: 4, L: 4, F: 24, Keep: 23}
	arm, ace, amx := exact, exact, exact
	arm.Name = "arm-fdot4"
	arm.Evidence = "specified (Arm ARM, FDOT of FEAT_FP8DOT4): four products and c added without intermediate rounding, LSCALE = 0; " +
		"assumed: FPCR as programs find it, so to nearest and nothing flushed"
	ace.Name, ace.Last, ace.Flush, ace.E8M0 = "ace-top4mx", true, true, true
	ace.Evidence = "specified (ACE v1, 14.1.6 and 16.5, as Bochs has them): four exact products under scales, rounded once, then c, flushed; " +
		"assumed: NaN and infinities among codes, of which the pseudocode has no case"
	amx.Name, amx.K, amx.L, amx.Last, amx.Flush = "amx-fp8", 64, 64, true, true
	amx.Evidence = "specified (Intel ISE 319433-057, as Bochs has it): all products of a tile exact, rounded once, then c, flushed; " +
		"other public readings contradict it, and octavo identify tries them"
	return []Model{ace, arm, amx,
		longerNVFP4("nvfp4-k96", 96, "K specified (CUTLASS, sm_103)"), longerNVFP4("nvfp4-k128", 128, "K expected of Rubin")}
}

// Models returns the models of this package.
func Models() []Model {
	models := []Model{AdaMMA(), HopperWGMMA(), HopperMMA(), BlackwellMMA(), BlackwellTCGen05(),
		BlackwellMXFP8(), BlackwellNVFP4(), BlackwellMXFP4(), CDNA3MFMA()}
	models = append(append(models, coming()...), VoltaFP16())
	for _, of := range []func(Float) Model{Ampere, Ada, Hopper, Blackwell} {
		models = append(models, of(FP16), of(BF16), of(TF32))
	}
	return models
}

// ParseModel returns the model of the given name, in any case.
func ParseModel(name string) (Model, error) {
	var names []string
	for _, m := range Models() {
		if strings.EqualFold(name, m.Name) {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Model{}, sentinel.Errorf(ErrModel, "oracle: unknown model %q: want one of %s", name, strings.Join(names, ", "))
}

// Check returns an error unless the parameters are in the ranges in which a model
// computes exactly what is documented: K and L from 1 to 65536, and K at most 32 for
// Emulated, 16 for matrixCore and a multiple of 16 up to 128 for Grouped; F from 0 to
// 31 for matrixCore, to 39 for Grouped, to 45 for Emulated and else to 50 less log2 of L;
// Keep from 0 to 23. F and Keep of SingleRounding are 24 and 23.
func (m Model) Check() error {
	if err := m.checkFields(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

func (m *Model) checkFields() error {
	if err := units.Check(m.Unit); err != nil {
		return sentinel.Errorf(ErrModel, "model %q: %w", m.Name, err)
	}
	if err := floats.Check(m.Float); err != nil {
		return sentinel.Errorf(ErrModel, "model %q: %w", m.Name, err)
	}
	if m.Narrow && (m.Float != NoFloat || m.Unit != Fused && m.Unit != Scaled) {
		return sentinel.Errorf(ErrModel, "model %q of unit %v: narrow operands are of fused and scaled models of FP8 only", m.Name, m.Unit)
	}
	if m.Float != NoFloat && m.Unit != Fused {
		return sentinel.Errorf(ErrModel, "model %q of unit %v: operands in %v are of fused models only", m.Name, m.Unit, m.Float)
	}
	if m.Unit != SingleRounding && (m.Last || m.Flush || m.E8M0) {
		return sentinel.Errorf(ErrModel, "model %q of unit %v: Last, Flush and E8M0 are of %v models only", m.Name, m.Unit, SingleRounding)
	}
	// A term has up to 2 bits more than F, and a sum of L+1 terms must fit the 53 of a
	// float64, in which errors are computed.
	mostK, mostF, other := 1<<16, 51-bits.Len(uint(max(m.L, 1))), false
	switch m.Unit {
	case SingleRounding:
		other = m.F != 24 || m.Keep != 23
	case Emulated:
		mostK, mostF = 32, 45 // First may say that one sum has all products
	case Grouped:
		mostK, mostF = mostGroups*groupLength, 39
	case matrixCore:
		mostK, mostF = 16, 31
	}
	if m.K < 1 || m.K > mostK || m.L < 1 || m.L > 1<<16 || m.F < 0 || m.F > mostF || m.Keep < 0 || m.Keep > 23 ||
		m.Unit == Grouped && m.K%groupLength != 0 || other {
		return sentinel.Errorf(ErrModel, "model %q of unit %v: parameters K=%d, L=%d, F=%d, Keep=%d are out of range",
			m.Name, m.Unit, m.K, m.L, m.F, m.Keep)
	}
	return nil
}

// String returns the model's name.
func (m Model) String() string { return m.Name }

// Takes reports whether the model has operands of format f. Those of models of BF16, FP16
// and TF32 are of no such format.
func (m Model) Takes(f fp8.Format) bool {
	if m.Float != NoFloat {
		return false
	}
	switch f {
	case fp8.E4M3, fp8.E5M2:
		return m.Unit != matrixCore && m.Unit != Grouped
	case fp8.E4M3FNUZ, fp8.E5M2FNUZ:
		return m.Unit == matrixCore
	case fp8.E2M1:
		return m.Narrow || m.Unit == Grouped
	case fp8.E2M3, fp8.E3M2:
		return m.Narrow
	}
	return false
}

// ScalesInside reports whether instructions apply the scales themselves.
func (m *Model) ScalesInside() bool { return m.Unit == Scaled || m.Unit == Grouped || m.E8M0 }

// HasFloat16 reports whether there are float16 results.
func (m Model) HasFloat16() bool {
	return (m.Unit == Fused || m.Unit == Emulated) && m.Float != BF16 && m.Float != TF32
}

// nan returns the bits of the NaN that results.
func (m *Model) nan(l layout) uint64 {
	if m.Unit == matrixCore || m.Unit == SingleRounding {
		return nan.bits(l)
	}
	return l.sign() - 1
}

// special returns the bits of a class that is not finite.
func (m *Model) special(c class, l layout) uint64 {
	if c == nan {
		return m.nan(l)
	}
	return c.bits(l)
}
