package scaling

import (
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
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

// traits is what a profile fixes. Blocks that are not given are the whole tensor.
type traits struct {
	profile    Profile
	scale      arithmetic
	row        rowArithmetic // scale of many, where that is worth a loop of its own
	leavesNaN  bool          // amax is taken over what is not NaN
	activation tensor.Block  // inputs and gradients
	weight     tensor.Block
	epsilon    bool // Recipe.Epsilon applies
	e8m0       bool // scales are E8M0 in memory
	delayed    bool
}

var (
	wholeRow = tensor.Block{Rows: 1}
	tile     = tensor.Block{Rows: 1, Cols: 128}
	square   = tensor.Block{Rows: 128, Cols: 128}
	micro    = tensor.Block{Rows: 1, Cols: 32}
)

var profiles = []traits{
	{profile: TEDelayed, leavesNaN: true, delayed: true},
	{profile: TECurrent, epsilon: true, scale: teCurrent, row: teCurrentRow, leavesNaN: true},
	{profile: TECurrentPow2, epsilon: true, scale: floorPow2(teCurrent), row: floorPow2Row(teCurrentRow), leavesNaN: true},
	{profile: TEBlock, epsilon: true, scale: teBlock, row: teBlockRow, leavesNaN: true, activation: tile, weight: square},
	{profile: TEBlockPow2, epsilon: true, scale: floorPow2(teBlock), row: floorPow2Row(teBlockRow), leavesNaN: true, activation: tile, weight: square},
	{profile: TorchAOTensorwise, scale: torchAO},
	{profile: TorchAOTensorwisePow2, scale: torchAOPow2},
	{profile: TorchAORowwise, scale: torchAO, activation: wholeRow, weight: wholeRow},
	{profile: TorchAORowwisePow2, scale: torchAOPow2, activation: wholeRow, weight: wholeRow},
	{profile: DeepGEMM, scale: deepGEMM, row: deepGEMMRow, activation: tile, weight: square},
	{profile: DeepGEMMUE8M0, scale: deepGEMMUE8M0, activation: tile, weight: square},
	{profile: DeepSeek, scale: deepSeek, row: deepSeekRow, leavesNaN: true, activation: tile, weight: square},
	{profile: DeepSeekUE8M0, scale: deepSeekUE8M0, leavesNaN: true, activation: tile, weight: square},
	{profile: MTFP8, scale: mtfp8, leavesNaN: true, activation: tile, weight: square},
	{profile: MXFloor, scale: mxFloor, activation: micro, weight: micro, e8m0: true},
	{profile: MXRCeil, scale: mxRCeil, row: mxRCeilRow, leavesNaN: true, activation: micro, weight: micro, e8m0: true},
}

// Profiles returns all profiles, in a fixed order.
func Profiles() []Profile {
	names := make([]Profile, len(profiles))
	for i := range profiles {
		names[i] = profiles[i].profile
	}
	return names
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

// blockScale returns the scale of a block with the given amax, NaN left out.
func (t *traits) blockScale(amax float32, nan bool, l limits) fp8.Scale {
	if nan && !t.leavesNaN {
		amax = float32(math.NaN())
	}
	return t.scale(amax, l)
}

// scaleRow sets scales[i] to the scale of a block with amax[i] and without NaN.
func (t *traits) scaleRow(scales []fp8.Scale, amax []float32, l limits) {
	if t.row != nil {
		t.row(scales, amax, l)
		return
	}
	for i, a := range amax {
		scales[i] = t.scale(a, l)
	}
}

// Valid reports whether p is one of the profiles, or empty.
func (p Profile) Valid() bool { return p.traits() != nil }

// Delayed reports whether p takes its scale from a [History].
func (p Profile) Delayed() bool { t := p.traits(); return t != nil && t.delayed }

// E8M0 reports whether p's scales are kept as E8M0, one byte each.
func (p Profile) E8M0() bool { t := p.traits(); return t != nil && t.e8m0 }

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
