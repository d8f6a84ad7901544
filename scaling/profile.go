package scaling

import (
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/fouroversix"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Profile names the arithmetic of a scale. The package documentation says what
// each computes. The empty Profile is [TEBlockPow2].
type Profile string

// The profiles.
const (
	TEDelayed             Profile = "te-delayed"
	TECurrent             Profile = "te-current"
	TECurrentPow2         Profile = "te-current-pow2"
	TEBlock               Profile = "te-block"
	TEBlockPow2           Profile = "te-block-pow2"
	TorchAOTensorwise     Profile = "torchao-tensorwise"
	TorchAOTensorwisePow2 Profile = "torchao-tensorwise-pow2"
	TorchAORowwise        Profile = "torchao-rowwise"
	TorchAORowwisePow2    Profile = "torchao-rowwise-pow2"
	DeepGEMM              Profile = "deepgemm"
	DeepGEMMUE8M0         Profile = "deepgemm-ue8m0"
	DeepSeek              Profile = "deepseek"
	DeepSeekUE8M0         Profile = "deepseek-ue8m0"
	MTFP8                 Profile = "mtfp8"
	MXFloor               Profile = "mx-floor"
	MXRCeil               Profile = "mx-rceil"
)

// Those of OCP's MX formats, blocks of 32 under a power of two.
const (
	MXRCeilTorchAO      Profile = "mx-rceil-torchao"
	MXCeil              Profile = "mx-ceil"
	MXEven              Profile = "mx-even"
	MXCompressedTensors Profile = "mx-compressed-tensors"
	MXModelOpt          Profile = "mx-modelopt"
	MXTEPow2            Profile = "mx-te-pow2"
	MXFourOverSix       Profile = "mx-fouroversix"
	DeepGEMMFP4         Profile = "deepgemm-fp4"
	DeepGEMMFP4UE8M0    Profile = "deepgemm-fp4-ue8m0"
)

// Those of NVFP4, blocks of 16 under a UE4M3 scale under one float32. 4over6 and
// fouroversix choose between two scales of a block: arXiv 2512.02010.
const (
	NVFP4TE                 Profile = "nvfp4-te"
	NVFP4TERow              Profile = "nvfp4-te-row"
	NVFP4TE4Over6MAE448     Profile = "nvfp4-te-4over6-mae448"
	NVFP4TE4Over6MAE256     Profile = "nvfp4-te-4over6-mae256"
	NVFP4TE4Over6MSE448     Profile = "nvfp4-te-4over6-mse448"
	NVFP4TE4Over6MSE256     Profile = "nvfp4-te-4over6-mse256"
	NVFP4TE4Over6MAE448Fast Profile = "nvfp4-te-4over6-mae448-fast"
	NVFP4TE4Over6MAE256Fast Profile = "nvfp4-te-4over6-mae256-fast"
	NVFP4TE4Over6MSE448Fast Profile = "nvfp4-te-4over6-mse448-fast"
	NVFP4TE4Over6MSE256Fast Profile = "nvfp4-te-4over6-mse256-fast"
	NVFP4TorchAO            Profile = "nvfp4-torchao"
	NVFP4TorchAOGlobal      Profile = "nvfp4-torchao-global"
	NVFP4CompressedTensors  Profile = "nvfp4-compressed-tensors"
	NVFP4ModelOpt           Profile = "nvfp4-modelopt"
	NVFP4FourOverSixStatic6 Profile = "nvfp4-fouroversix-static6"
	NVFP4FourOverSixStatic4 Profile = "nvfp4-fouroversix-static4"
	NVFP4FourOverSixMAE     Profile = "nvfp4-fouroversix-mae"
	NVFP4FourOverSixMSE     Profile = "nvfp4-fouroversix-mse"
	NVFP4FourOverSixAbsMax  Profile = "nvfp4-fouroversix-absmax"
)

// traits is what a profile fixes. Blocks that are not given are the whole tensor.
type traits struct {
	profile    Profile
	scale      arithmetic
	row        rowArithmetic // scale of many, where that is worth a loop of its own
	pow2       bool          // scales are powers of two, of many by steps
	divide     bool          // values are divided by a scale
	leavesNaN  bool          // amax is taken over what is not NaN
	activation tensor.Block  // inputs and gradients
	weight     tensor.Block
	epsilon    bool // Recipe.Epsilon applies
	delayed    bool

	scaleFormat tensor.ScaleFormat
	formats     []fp8.Format // that it is for, its own first; nil: all
	policy      fp8.Policy   // the library's own rounding, where that is E2M1's
	outer       *outerRule   // scales on two levels
	choice      *fourOverSix // between two scales, in place of scale
}

var (
	wholeRow = tensor.Block{Rows: 1}
	tile     = tensor.Block{Rows: 1, Cols: 128}
	square   = tensor.Block{Rows: 128, Cols: 128}
	micro    = tensor.Block{Rows: 1, Cols: 32}
	sixteen  = tensor.Block{Rows: 1, Cols: 16}
	square16 = tensor.Block{Rows: 16, Cols: 16}
)

// Formats that profiles are for, and how libraries round to E2M1.
var (
	e2m1 = []fp8.Format{fp8.E2M1}

	positiveZero = fp8.Policy{Zero: fp8.ZeroPositive}
	castFP4      = fp8.Policy{Zero: fp8.ZeroPositive, NaN: fp8.NaNZero}
	deepGEMMFP4  = fp8.Policy{Rounding: fp8.NearestTowardZero, Zero: fp8.ZeroUnsigned, NaN: fp8.NaNZero}
	modelOptFP4  = fp8.Policy{Rounding: fp8.NearestTowardZero, Zero: fp8.ZeroNegative}
)

var profiles = []traits{
	{profile: TEDelayed, leavesNaN: true, delayed: true},
	{profile: TECurrent, epsilon: true, scale: teCurrent, row: teCurrentRow, leavesNaN: true},
	{profile: TECurrentPow2, epsilon: true, scale: floorPow2(teCurrent), pow2: true, leavesNaN: true},
	{profile: TEBlock, epsilon: true, scale: teBlock, row: teBlockRow, leavesNaN: true, activation: tile, weight: square},
	{profile: TEBlockPow2, epsilon: true, scale: floorPow2(teBlock), pow2: true, leavesNaN: true, activation: tile, weight: square},
	{profile: TorchAOTensorwise, scale: torchAO},
	{profile: TorchAOTensorwisePow2, scale: torchAOPow2, pow2: true},
	{profile: TorchAORowwise, scale: torchAO, activation: wholeRow, weight: wholeRow},
	{profile: TorchAORowwisePow2, scale: torchAOPow2, pow2: true, activation: wholeRow, weight: wholeRow},
	{profile: DeepGEMM, scale: deepGEMM, row: deepGEMMRow, activation: tile, weight: square},
	{profile: DeepGEMMUE8M0, scale: deepGEMMUE8M0, pow2: true, activation: tile, weight: square},
	{profile: DeepSeek, scale: deepSeek, row: deepSeekRow, divide: true, leavesNaN: true, activation: tile, weight: square},
	{profile: DeepSeekUE8M0, scale: scaleDeepSeekUE8M0, pow2: true, divide: true, leavesNaN: true, activation: tile, weight: square},
	{profile: MTFP8, scale: mtfp8, leavesNaN: true, activation: tile, weight: square},
	mx(traits{profile: MXFloor, scale: mxFloor}),
	mx(traits{profile: MXRCeil, scale: mxRCeil, leavesNaN: true}),
	mx(traits{profile: MXRCeilTorchAO, scale: mxRCeilTorchAO}),
	mx(traits{profile: MXCeil, scale: mxCeil}),
	mx(traits{profile: MXEven, scale: mxEven}),
	mx(traits{profile: MXCompressedTensors, scale: mxCompressedTensors, policy: castFP4}),
	mx(traits{profile: MXModelOpt, scale: mxModelOpt, formats: e2m1, policy: modelOptFP4}),
	mx(traits{profile: MXTEPow2, scale: mxTEPow2, formats: e2m1, policy: fp8.Policy{NaN: fp8.NaNZero}}),
	mx(traits{profile: MXFourOverSix, scale: mxFourOverSix, formats: e2m1, policy: positiveZero}),
	{profile: DeepGEMMFP4, scale: deepGEMM, row: deepGEMMRow, activation: tile, weight: tile, formats: e2m1, policy: deepGEMMFP4},
	mx(traits{profile: DeepGEMMFP4UE8M0, scale: deepGEMMUE8M0, pow2: true, formats: e2m1, policy: deepGEMMFP4}),
	te(traits{profile: NVFP4TE, weight: square16}),
	te(traits{profile: NVFP4TERow, outer: &outerRule{level: teOuter, rows: 1}}),
	teChoice(NVFP4TE4Over6MAE448, fouroversix.Absolute, 448, false),
	teChoice(NVFP4TE4Over6MAE256, fouroversix.Absolute, 256, false),
	teChoice(NVFP4TE4Over6MSE448, fouroversix.Square, 448, false),
	teChoice(NVFP4TE4Over6MSE256, fouroversix.Square, 256, false),
	teChoice(NVFP4TE4Over6MAE448Fast, fouroversix.Absolute, 448, true),
	teChoice(NVFP4TE4Over6MAE256Fast, fouroversix.Absolute, 256, true),
	teChoice(NVFP4TE4Over6MSE448Fast, fouroversix.Square, 448, true),
	teChoice(NVFP4TE4Over6MSE256Fast, fouroversix.Square, 256, true),
	nvfp4(&nvfp4TorchAO, traits{profile: NVFP4TorchAO}),
	nvfp4(&nvfp4TorchAOGlobal, traits{profile: NVFP4TorchAOGlobal, outer: &outerRule{level: torchAOOuter}}),
	nvfp4(&nvfp4CompressedTensors, traits{profile: NVFP4CompressedTensors, policy: castFP4,
		outer: &outerRule{level: compressedTensorsOuter, divide: true}}),
	nvfp4(&nvfp4ModelOpt, traits{profile: NVFP4ModelOpt, policy: positiveZero, outer: &outerRule{level: torchAOOuter}}),
	nvfp4(&nvfp4FourOverSixStatic6, traits{profile: NVFP4FourOverSixStatic6, policy: positiveZero,
		outer: &outerRule{level: fourOverSixOuter(6, 448)}}),
	nvfp4(&nvfp4FourOverSixStatic4, traits{profile: NVFP4FourOverSixStatic4, policy: positiveZero,
		outer: &outerRule{level: fourOverSixOuter(4, 448)}}),
	fourOverSixOf(NVFP4FourOverSixMAE, fouroversix.Absolute),
	fourOverSixOf(NVFP4FourOverSixMSE, fouroversix.Square),
	fourOverSixOf(NVFP4FourOverSixAbsMax, fouroversix.Largest),
}

// mx completes the traits of a profile of MX formats.
func mx(t traits) traits {
	t.scaleFormat, t.pow2 = tensor.E8M0Scales, true
	t.activation, t.weight = micro, micro
	return t
}

// nvfp4 completes the traits of a profile of NVFP4.
func nvfp4(under *underLevel, t traits) traits {
	t.scale, t.row, t.divide = under.scale, under.row, under.divide
	t.scaleFormat, t.formats, t.activation = tensor.UE4M3Scales, e2m1, sixteen
	if t.weight == (tensor.Block{}) {
		t.weight = sixteen
	}
	return t
}

// te completes the traits of TransformerEngine's NVFP4.
func te(t traits) traits {
	t.leavesNaN, t.policy = true, castFP4
	if t.outer == nil {
		t.outer = &outerRule{level: teOuter}
	}
	return nvfp4(&nvfp4TE, t)
}

func teChoice(p Profile, rule fouroversix.Rule, largest float32, fast bool) traits {
	outer := &outerRule{level: func(amax float32) level { return teLevel(amax, maxE2M1*largest) }}
	return te(traits{profile: p, weight: square16, outer: outer, choice: teFourOverSix(rule, largest, fast)})
}

func fourOverSixOf(p Profile, rule fouroversix.Rule) traits {
	outer := &outerRule{level: fourOverSixOuter(maxE2M1, 256)}
	return nvfp4(&nvfp4FourOverSixStatic6, traits{profile: p, policy: positiveZero, outer: outer, choice: fourOverSixChoice(rule)})
}

// choiceBlock reports whether the error of a block has a defined order.
func choiceBlock(b tensor.Block) bool { return b == sixteen || b == square16 }

// Profiles returns all profiles, in a fixed order.
func Profiles() []Profile {
	names := make([]Profile, len(profiles))
	for i := range profiles {
		names[i] = profiles[i].profile
	}
	return names
}

// ProfilesFor returns the profiles that are for a format, in the order of Profiles.
func ProfilesFor(f fp8.Format) []Profile {
	return slices.DeleteFunc(Profiles(), func(p Profile) bool { return !p.For(f) })
}

// ParseProfile returns the profile of the given name.
func ParseProfile(name string) (Profile, error) {
	p := Profile(name)
	if name == "" || p.traits() == nil {
		return "", p.unknown()
	}
	return p, nil
}

func (p Profile) unknown() error {
	names := make([]string, len(profiles))
	for i := range profiles {
		names[i] = string(profiles[i].profile)
	}
	return sentinel.Errorf(ErrRecipe, "scaling: unknown profile %q: want one of %s", string(p), strings.Join(names, ", "))
}

// traits returns what p fixes, or nil for an unknown profile.
func (p Profile) traits() *traits {
	if p == "" {
		p = TEBlockPow2
	}
	for i := range profiles {
		if profiles[i].profile == p {
			return &profiles[i]
		}
	}
	return nil
}

// amax is what the amax of values without NaN counts as.
func (t *traits) amax(amax float32, nan bool) float32 {
	if nan && !t.leavesNaN {
		return float32(math.NaN())
	}
	return amax
}

// blockScale returns the scale of a block with the given amax, NaN left out.
func (t *traits) blockScale(amax float32, nan bool, l limits) fp8.Scale {
	return t.scale(t.amax(amax, nan), l)
}

// scaleOf is blockScale of an amax that is NaN where there is one in the block.
func (t *traits) scaleOf(amax float32, l limits) fp8.Scale {
	if amax != amax {
		return t.blockScale(0, true, l)
	}
	return t.blockScale(amax, false, l)
}

// scaleRow sets the scales of blocks with those amaxes and without NaN.
func (t *traits) scaleRow(stored, factors, amax []float32, l limits) {
	if t.row != nil {
		t.row(stored, factors, amax, l)
		return
	}
	for i, a := range amax {
		s := t.scale(a, l)
		stored[i], factors[i] = s.Stored, factorOf(s, t.divide)
	}
}

// Valid reports whether p is one of the profiles, or empty.
func (p Profile) Valid() bool { return p.traits() != nil }

// Delayed reports whether p takes its scale from a [History].
func (p Profile) Delayed() bool { t := p.traits(); return t != nil && t.delayed }

// E8M0 reports whether p's scales are kept as E8M0, one byte each.
func (p Profile) E8M0() bool { return p.ScaleFormat() == tensor.E8M0Scales }

// ScaleFormat returns how p's scales are kept, which is the ScaleFormat of a tensor that is
// quantized by it: float32 for an unknown profile.
func (p Profile) ScaleFormat() tensor.ScaleFormat {
	if t := p.traits(); t != nil {
		return t.scaleFormat
	}
	return tensor.Float32Scales
}

// Outer reports whether p gives a tensor scales above those of its blocks.
func (p Profile) Outer() bool { t := p.traits(); return t != nil && t.outer != nil }

// For reports whether p is for a format: the nvfp4- profiles, for one, are for E2M1 alone.
func (p Profile) For(f fp8.Format) bool {
	t := p.traits()
	return t != nil && (t.formats == nil || slices.Contains(t.formats, f))
}

// Policy returns how p's library rounds to a format, in which libraries differ where that
// is E2M1: ties, the sign of zero and what a NaN becomes. It is the zero Policy for others.
func (p Profile) Policy(f fp8.Format) fp8.Policy {
	if t := p.traits(); t != nil && f == fp8.E2M1 {
		return t.policy
	}
	return fp8.Policy{}
}

// Block returns the block that p gives a tensor of the given role: the zero
// Block, one scale for the tensor, for an unknown profile. It panics if the role is
// unknown.
func (p Profile) Block(role Role) tensor.Block {
	role.mustBeKnown()
	t := p.traits()
	switch {
	case t == nil:
		return tensor.Block{}
	case role == Weight:
		return t.weight
	}
	return t.activation
}
