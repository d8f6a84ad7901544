package scaling

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// Delayed says how a delayed scale follows from the amax of earlier steps. The
// zero value is TransformerEngine's default: the maximum over 1024 steps,
// without a margin.
type Delayed struct {
	Length    int // number of steps kept; 0 means 1024
	Margin    int // the scale leaves this many powers of two of room
	Algorithm AmaxAlgorithm
}

// AmaxAlgorithm is how one amax is taken from a history.
type AmaxAlgorithm uint8

const (
	AmaxMax        AmaxAlgorithm = iota // the largest of the history; NaN left out
	AmaxMostRecent                      // that of the last step
)

// DefaultLength is the number of steps that a history keeps by default.
const DefaultLength = 1024

func (d Delayed) length() int {
	if d.Length == 0 {
		return DefaultLength
	}
	return d.Length
}

func (d Delayed) check() error {
	const longest = 1 << 20
	switch {
	case d.Length < 0 || d.Length > longest:
		return fmt.Errorf("scaling: history of %d steps: want 1 to %d, or 0 for %d", d.Length, longest, DefaultLength)
	case d.Margin < -126 || d.Margin > 126:
		return fmt.Errorf("scaling: margin %d: want -126 to 126", d.Margin)
	case d.Algorithm > AmaxMostRecent:
		return fmt.Errorf("scaling: unknown amax algorithm %d", d.Algorithm)
	}
	return nil
}

// History is the amax of a tensor over the last steps and the scale that
// follows from it, kept as TransformerEngine's delayed_scaling.cu keeps them.
// Not safe for concurrent use.
type History struct {
	format fp8.Format
	config Delayed
	scale  float32 // what values are multiplied by
	// amax[0] gathers the current step; amax[1:] are the steps before it,
	// oldest first.
	amax []float32
}

// NewHistory returns an empty history for a delayed recipe. Its scale is 1
// until an amax has been seen and [History.Update] called.
func NewHistory(r Recipe) (*History, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if !r.Profile.Delayed() {
		return nil, fmt.Errorf("scaling: recipe %v is not delayed and has no history", r)
	}
	return &History{format: r.Format, config: r.Delayed, scale: 1, amax: make([]float32, r.Delayed.length())}, nil
}

// checkRecipe makes sure that h belongs to a recipe: a scale for one format
// would saturate another, or waste its range.
func (h *History) checkRecipe(r Recipe) error {
	if h.format != r.Format || h.config != r.Delayed {
		return fmt.Errorf("scaling: recipe %v %+v cannot use the history of %v %+v", r, r.Delayed, h.format, h.config)
	}
	return nil
}

// Scale returns the scale of the current step.
func (h *History) Scale() fp8.Scale { return multiplyBy(h.scale) }

// Observe records an amax of the current step; the largest counts. A NaN is left
// out: as in the kernels, fmaxf drops it.
func (h *History) Observe(amax float32) { h.amax[0] = fmax(h.amax[0], amax) }

// Update ends the step: the scale of the next one is computed, and the current
// amax enters the history. Where nothing or only zeros were observed neither
// moves, since the tensor may not have been used in this step.
//
// The scale becomes max*2^-margin / amax. It stays what it was if that amax is
// infinite or NaN, is the largest float32 if the quotient is infinite, and the
// smallest above 0 if it is 0.
func (h *History) Update() {
	last := h.amax[0]
	if last == 0 {
		return
	}
	amax := last
	if h.config.Algorithm == AmaxMax {
		for _, a := range h.amax[1:] {
			amax = fmax(amax, a)
		}
	}
	if amax > 0 && isFinite(amax) {
		scale := float32(math.Ldexp(float64(h.format.Max()), -h.config.Margin)) / amax
		h.scale = min(max(scale, math.SmallestNonzeroFloat32), math.MaxFloat32)
	}
	copy(h.amax, h.amax[1:])
	h.amax[len(h.amax)-1] = last
	h.amax[0] = 0
}

// fmax is C's fmaxf: the larger, and the other where one is NaN.
func fmax(a, b float32) float32 {
	switch {
	case a != a:
		return b
	case b != b || a > b:
		return a
	}
	return b
}
