package swiglu

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/varint"
	"github.com/octavo-fp8/octavo/scaling"
)

// amaxesVersion is the version of [Amaxes] that this package writes and reads.
const amaxesVersion = 1

// Amaxes are what a delayed [Smoother] recorded in the step that has not ended: all
// that data-parallel workers have to tell each other in a step. Each takes out its own
// by [Smoother.Amaxes]; those of all, by [MergeAmaxes], go back into each by
// [Smoother.SetAmaxes] before [Smoother.Update]. The smoothers of workers that began
// alike then stay the same, to the bit, as if [Merge] had been used in every step.
//
// Amaxes are plain data, kept as JSON or in a binary form.
type Amaxes struct {
	Version int             `json:"version"`
	Axis    Axis            `json:"axis"`
	Amax    []scaling.Float `json:"amax"` // of each channel or token; none if nothing was recorded
}

// Amaxes returns a copy of what was recorded since the last [Smoother.Update].
func (s *Smoother) Amaxes() Amaxes {
	return Amaxes{Version: amaxesVersion, Axis: s.Smoothing.Axis, Amax: convert[scaling.Float](s.current)}
}

// SetAmaxes replaces what was recorded since the last [Smoother.Update]. It returns an
// error, and changes nothing, if s's Smoothing or a does not pass its Check,
// or a is of another axis. Without a Delay it does nothing else.
func (s *Smoother) SetAmaxes(a Amaxes) error {
	if err := s.Smoothing.Check(); err != nil {
		return err
	}
	if err := a.Check(); err != nil {
		return err
	}
	if a.Axis != s.Smoothing.Axis {
		return sentinel.Errorf(ErrState, "swiglu: amaxes %v cannot go into a smoother %v", a.Axis, s.Smoothing.Axis)
	}
	if s.Smoothing.Delay > 0 {
		s.current = convert[float32](a.Amax)
	}
	return nil
}

// Check returns an error, [ErrVersion] or [ErrState], that names the first value that
// nothing can have recorded.
func (a Amaxes) Check() error {
	if a.Version != amaxesVersion {
		return sentinel.Errorf(ErrVersion, "swiglu: amaxes of version %d: this package reads version %d", a.Version, amaxesVersion)
	}
	if err := axes.Check(a.Axis); err != nil {
		return sentinel.Errorf(ErrState, "%w", err)
	}
	for i, x := range a.Amax {
		if x < 0 {
			return sentinel.Errorf(ErrState, "swiglu: amax %d is %v: want no negative number", i, x)
		}
	}
	return nil
}

// MergeAmaxes returns what data-parallel workers recorded as one: of each channel or
// token the largest, and a NaN where any worker has one; workers that recorded nothing
// do not count, and where one has more tokens the others' count as 0. MergeAmaxes is
// commutative and associative, of one worker's it is a copy, and of none it is empty.
//
// It returns an error if one does not pass [Amaxes.Check], and [ErrState] if they
// differ in axis, or in the number of channels.
func MergeAmaxes(all ...Amaxes) (Amaxes, error) {
	merged := Amaxes{Version: amaxesVersion}
	for i, a := range all {
		if err := a.Check(); err != nil {
			return Amaxes{}, fmt.Errorf("worker %d: %w", i, err)
		}
		if i == 0 {
			merged.Axis = a.Axis
		}
		if a.Axis != merged.Axis {
			return Amaxes{}, sentinel.Errorf(ErrState, "worker %d: swiglu: amaxes %v, those of workers before are %v", i, a.Axis, merged.Axis)
		}
		if n := len(merged.Amax); a.Axis == PerChannel && n > 0 && len(a.Amax) > 0 && len(a.Amax) != n {
			return Amaxes{}, sentinel.Errorf(ErrState, "worker %d: swiglu: amaxes of %d channels, those of workers before are of %d", i, len(a.Amax), n)
		}
		merged.Amax = largest(merged.Amax, a.Amax)
	}
	return merged, nil
}

// MarshalBinary implements [encoding.BinaryMarshaler]: the version, the text of the
// axis after its length, the number of amaxes, and each in four bytes, little end
// first. Other numbers are unsigned varints. A NaN becomes 7FC00000.
func (a Amaxes) MarshalBinary() ([]byte, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	data := varint.AppendPart(varint.Append(nil, a.Version), a.Axis.String())
	data = slices.Grow(varint.Append(data, len(a.Amax)), 4*len(a.Amax))
	return varint.AppendFloats(data, a.Amax), nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. It returns [ErrVersion]
// or [ErrState], and leaves a as it is, if the data cannot be right.
func (a *Amaxes) UnmarshalBinary(data []byte) error {
	r := varint.Reader{Data: data}
	read := Amaxes{Version: r.Int()}
	if !r.Failed && read.Version != amaxesVersion {
		return read.Check()
	}
	if read.Axis.UnmarshalText(r.Part()) != nil {
		r.Failed = true
	}
	n := r.Int()
	read.Amax = varint.Floats[scaling.Float](&r, n, 1)
	if r.Failed || len(r.Data) > 0 {
		return errDamaged
	}
	if n == 0 {
		read.Amax = nil
	}
	if err := read.Check(); err != nil {
		return err
	}
	*a = read
	return nil
}

var errDamaged = sentinel.Errorf(ErrState, "swiglu: amaxes in binary are damaged")
