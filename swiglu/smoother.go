package swiglu

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/scaling"
)

// Smoothing says how smoothing scales are chosen. The zero value is the paper's:
// per channel, powers of two, just in time.
type Smoothing struct {
	Axis  Axis
	Exact bool // s = 1/amax instead of a power of two

	// Delay, where positive, takes each scale from the largest amax of that
	// many earlier steps instead of from this one's. A channel or row that has
	// none yet is scaled just in time. Rows are told apart by their position.
	Delay int
}

// Check returns an error, [ErrSmoothing], if c cannot be used.
func (c Smoothing) Check() error {
	const longest = 1 << 20
	if c.Delay < 0 || c.Delay > longest {
		return sentinel.Errorf(ErrSmoothing, "swiglu: smoothing delay of %d steps: want 0 to %d", c.Delay, longest)
	}
	return axes.Check(c.Axis)
}

const unknownSmoothing = "swiglu: smoothing does not pass its Check"

// Scale returns the scale that belongs to an amax: about its inverse, or 1 where
// it is 0, infinite or NaN. The exponent of a power of two is kept within ±126,
// so that scale and inverse are normal numbers.
func (c Smoothing) Scale(amax float32) float32 {
	if !(amax > 0) || math.IsInf(float64(amax), 0) {
		return 1
	}
	if c.Exact {
		return min(1/amax, math.MaxFloat32)
	}
	_, exponent := math.Frexp(float64(amax))
	return float32(math.Ldexp(1, -min(max(exponent-1, -126), 126)))
}

// Smoother chooses the scales of one SwiGLU from step to step. The zero Smoother
// is ready to use and has the zero [Smoothing]. Not safe for concurrent use.
type Smoother struct {
	Smoothing Smoothing

	current []float32   // largest amax of this step
	past    [][]float32 // those of earlier steps, newest first
}

// Scales returns the scales for the linear branch u, [tokens, channels], and
// records its amax for later steps. It panics if u is not of whole rows or the
// Smoothing does not pass its Check.
func (s *Smoother) Scales(u []float32, channels int) Scales {
	scales, amax := s.choose(u, channels)
	if s.Smoothing.Delay > 0 {
		s.current = largest(s.current, amax)
	}
	return scales
}

// Peek returns what [Smoother.Scales] would, and records nothing, as an evaluation does
// between training steps.
func (s *Smoother) Peek(u []float32, channels int) Scales {
	scales, _ := s.choose(u, channels)
	return scales
}

// choose returns the scales for u, and its amax.
func (s *Smoother) choose(u []float32, channels int) (Scales, []float32) {
	if s.Smoothing.Check() != nil {
		panic(unknownSmoothing)
	}
	if channels <= 0 || len(u)%channels != 0 {
		panic(unequal)
	}
	amax := s.amax(u, channels)
	scales := Scales{Axis: s.Smoothing.Axis, Values: make([]float32, len(amax))}
	for i, a := range amax {
		if known, ok := s.known(i); ok {
			a = known
		}
		scales.Values[i] = s.Smoothing.Scale(a)
	}
	return scales, amax
}

// amax returns the largest magnitude of each channel or row; a NaN stays one.
func (s *Smoother) amax(u []float32, channels int) []float32 {
	tokens := len(u) / channels
	n := channels
	if s.Smoothing.Axis == PerToken {
		n = tokens
	}
	amax := make([]float32, n)
	for token := range tokens {
		for channel, v := range u[token*channels : (token+1)*channels] {
			i := channel
			if s.Smoothing.Axis == PerToken {
				i = token
			}
			amax[i] = max(amax[i], float32(math.Abs(float64(v))))
		}
	}
	return amax
}

// known returns the largest amax of channel or row i in earlier steps.
func (s *Smoother) known(i int) (amax float32, ok bool) {
	for _, step := range s.past {
		if i < len(step) {
			amax, ok = max(amax, step[i]), true
		}
	}
	return amax, ok
}

// Update ends a step: what was recorded since the last becomes the newest of the
// steps before. Without a Delay, and where nothing was recorded, it does nothing.
func (s *Smoother) Update() {
	if len(s.current) == 0 {
		s.current = nil
		return
	}
	s.past = append([][]float32{s.current}, s.past...)
	s.past = s.past[:min(len(s.past), max(s.Smoothing.Delay, 0))]
	s.current = nil
}

// DropStep forgets what was recorded since the last Update or DropStep.
func (s *Smoother) DropStep() { s.current = nil }

// largest returns the elementwise maximum; the longer of both lends its rest.
func largest[T ~float32](a, b []T) []T {
	if len(a) < len(b) {
		a, b = b, a
	}
	m := slices.Clone(a)
	for i, v := range b {
		m[i] = max(m[i], v)
	}
	return m
}

// State is what a delayed [Smoother] saves, as plain data: amax by step, newest
// first, and those of the step that has not ended.
type State struct {
	Version int               `json:"version"`
	Current []scaling.Float   `json:"current,omitempty"`
	Past    [][]scaling.Float `json:"past,omitempty"`
}

// stateVersion is the version of [State] that this package writes and reads.
const stateVersion = 1

// State returns a copy of what s has recorded.
func (s *Smoother) State() State {
	state := State{Version: stateVersion, Current: convert[scaling.Float](s.current)}
	for _, step := range s.past {
		state.Past = append(state.Past, convert[scaling.Float](step))
	}
	return state
}

// Restore replaces what s has recorded. Steps beyond its Delay are dropped, the
// oldest first. It returns an error, and changes nothing, if the state or s's
// Smoothing does not pass its Check.
func (s *Smoother) Restore(state State) error {
	if err := s.Smoothing.Check(); err != nil {
		return err
	}
	if err := state.Check(); err != nil {
		return err
	}
	s.current, s.past = convert[float32](state.Current), nil
	for _, step := range state.Past[:min(len(state.Past), s.Smoothing.Delay)] {
		s.past = append(s.past, convert[float32](step))
	}
	return nil
}

// Check returns an error, [ErrVersion] if the state is of another version, and
// [ErrState] that names the first value that no amax can have.
func (state State) Check() error {
	if state.Version != stateVersion {
		return sentinel.Errorf(ErrVersion, "swiglu: state of version %d: this package reads version %d", state.Version, stateVersion)
	}
	for i, step := range append([][]scaling.Float{state.Current}, state.Past...) {
		for j, a := range step {
			if a < 0 {
				return sentinel.Errorf(ErrState, "swiglu: state: amax %d of %d steps ago is %v: want no negative number", j, i, a)
			}
		}
	}
	return nil
}

// Merge returns the state of data-parallel workers as one, as [scaling.Merge]
// does: each amax becomes the largest, step by step counted from the newest, and a
// NaN of any worker stays a NaN. It returns an error if a state does not pass its
// Check.
func Merge(states ...State) (State, error) {
	merged := State{Version: stateVersion}
	for i, s := range states {
		if err := s.Check(); err != nil {
			return State{}, fmt.Errorf("worker %d: %w", i, err)
		}
		merged.Current = largest(merged.Current, s.Current)
		for j, step := range s.Past {
			if j == len(merged.Past) {
				merged.Past = append(merged.Past, nil)
			}
			merged.Past[j] = largest(merged.Past[j], step)
		}
	}
	return merged, nil
}

func convert[To, From ~float32](from []From) []To {
	if from == nil {
		return nil
	}
	to := make([]To, len(from))
	for i, v := range from {
		to[i] = To(v)
	}
	return to
}
