package nn

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/varint"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// stepAmaxVersion is the version of [StepAmax] that this package writes and reads.
const stepAmaxVersion = 1

// StepAmax is what a [Scaling] has recorded since its last step ended: all that
// data-parallel workers need to exchange for delayed scales, if each then ends the
// step by itself. Each takes out its own by [Scaling.StepAmax]; those of all, by
// [MergeStepAmax], go back into each by [Scaling.SetStepAmax] before
// [Scaling.EndStep]. Workers that began alike then stay alike, to the bit, as if
// [MergeScaling] had been used in every step.
//
// It is plain data, kept as JSON or in a binary form that is many times shorter: with a
// scale for each tensor about 20 bytes for each operand that was quantized, since names
// are replaced by their positions.
type StepAmax struct {
	Version int `json:"version"`

	// Names is a hash of the names of what the numbers belong to, so that those of
	// another model are refused.
	Names uint64 `json:"names,string"`

	// Histories are the maxima of histories by the position of their name among those
	// of the model, in alphabetical order, in base 36; and Smoothers those of
	// delayed Smooth-SwiGLU, in the order of their names.
	Histories scaling.Amaxes  `json:"histories"`
	Smoothers []swiglu.Amaxes `json:"smoothers,omitempty"`

	// Loads are the tokens that have chosen each expert, of routers with biases, in the
	// order of their names. They are what is added up.
	Loads [][]int64 `json:"loads,omitempty"`

	Backwards uint64 `json:"backwards,omitempty"` // as in [ScalingState]
}

// StepAmax returns a copy of what was recorded since the last step ended.
func (s *Scaling) StepAmax() StepAmax {
	a := StepAmax{Version: stepAmaxVersion, Names: s.hashNames(), Histories: s.histories.Amaxes()}
	if s.stochastic {
		a.Backwards = s.passes
	}
	byName := a.Histories.Histories
	a.Histories.Histories = make(map[string]scaling.HistoryAmaxes, len(byName))
	for i, name := range s.names() {
		if h, ok := byName[name]; ok {
			a.Histories.Histories[position(i)] = h
		}
	}
	for _, name := range s.smootherNames() {
		a.Smoothers = append(a.Smoothers, s.smoothers[name].Amaxes())
	}
	for _, name := range s.routerNames() {
		a.Loads = append(a.Loads, slices.Clone(s.routers[name].load))
	}
	return a
}

// position is how a history is called in a [StepAmax].
func position(i int) string { return strconv.FormatInt(int64(i), 36) }

// names returns the names of all histories in alphabetical order.
func (s *Scaling) names() []string { return slices.Sorted(maps.Keys(s.historyNames)) }

func (s *Scaling) hashNames() uint64 {
	h := fnv.New64a()
	for _, name := range s.names() {
		h.Write([]byte(name + "\x00"))
	}
	for _, name := range s.smootherNames() {
		h.Write([]byte(name + "\x01"))
	}
	for _, name := range s.routerNames() {
		h.Write([]byte(name + "\x02"))
	}
	return h.Sum64()
}

// SetStepAmax replaces what was recorded since the last step ended, by what
// [MergeStepAmax] made of all workers' for example; a history that a lacks keeps what
// it has. It returns an error, [ErrState], and changes nothing, if a is of another
// version, another step or another model, or does not pass the checks of
// [scaling.Histories.SetAmaxes] and [swiglu.Smoother.SetAmaxes].
func (s *Scaling) SetStepAmax(a StepAmax) error {
	if err := a.check(s.hashNames(), len(s.smoothers), len(s.routers)); err != nil {
		return stateError("%w", err)
	}
	for i, name := range s.routerNames() {
		if err := checkLoad(a.Loads[i], len(s.routers[name].load)); err != nil {
			return stateError("%s: %w", name, err)
		}
	}
	for i, name := range s.smootherNames() {
		trial := swiglu.Smoother{Smoothing: s.smoothers[name].Smoothing}
		if err := trial.SetAmaxes(a.Smoothers[i]); err != nil {
			return stateError("%s: %w", name, err)
		}
	}
	named := a.Histories
	named.Histories = make(map[string]scaling.HistoryAmaxes, len(a.Histories.Histories))
	for i, name := range s.names() {
		if h, ok := a.Histories.Histories[position(i)]; ok {
			named.Histories[name] = h
		}
	}
	if len(named.Histories) != len(a.Histories.Histories) {
		return stateError("what a step recorded has histories that the model has not")
	}
	if err := s.histories.SetAmaxes(named); err != nil {
		return stateError("%w", err)
	}
	for i, name := range s.smootherNames() {
		if err := s.smoothers[name].SetAmaxes(a.Smoothers[i]); err != nil {
			return stateError("%s: %w", name, err)
		}
	}
	for i, name := range s.routerNames() {
		copy(s.routers[name].load, a.Loads[i])
	}
	s.passes = max(s.passes, a.Backwards)
	return nil
}

// check returns an error unless a is of the model with these names.
func (a StepAmax) check(names uint64, smoothers, routers int) error {
	switch {
	case a.Version != stepAmaxVersion:
		return fmt.Errorf("what a step recorded is of version %d: this package reads version %d", a.Version, stepAmaxVersion)
	case a.Names != names || len(a.Smoothers) != smoothers || len(a.Loads) != routers:
		return errors.New("what a step recorded is of another model")
	}
	return nil
}

// MergeStepAmax returns what several workers recorded in a step as if one had: the
// largest of each number, and NaN where one is; the sums of Loads; and the largest
// Backwards. It is
// commutative and associative, and changes none of its arguments. It is an error,
// [ErrState], if there is none or they are not of the same model and step.
func MergeStepAmax(all ...StepAmax) (StepAmax, error) {
	if len(all) == 0 {
		return StepAmax{}, stateError("there is nothing to merge")
	}
	m := StepAmax{Version: stepAmaxVersion, Names: all[0].Names}
	histories := make([]scaling.Amaxes, len(all))
	for i, a := range all {
		if err := a.check(m.Names, len(all[0].Smoothers), len(all[0].Loads)); err != nil {
			return StepAmax{}, stateError("worker %d: %w", i, err)
		}
		histories[i] = a.Histories
		m.Backwards = max(m.Backwards, a.Backwards)
	}
	var err error
	if m.Histories, err = scaling.MergeAmaxes(histories...); err != nil {
		return StepAmax{}, stateError("%w", err)
	}
	for i := range all[0].Smoothers {
		smoothers := make([]swiglu.Amaxes, len(all))
		for j, a := range all {
			smoothers[j] = a.Smoothers[i]
		}
		merged, err := swiglu.MergeAmaxes(smoothers...)
		if err != nil {
			return StepAmax{}, stateError("%w", err)
		}
		m.Smoothers = append(m.Smoothers, merged)
	}
	for i, load := range all[0].Loads {
		for j, a := range all[1:] {
			if load, err = addLoads(load, a.Loads[i]); err != nil {
				return StepAmax{}, stateError("worker %d: %w", j+1, err)
			}
		}
		m.Loads = append(m.Loads, slices.Clone(load))
	}
	return m, nil
}

// MarshalBinary implements [encoding.BinaryMarshaler]: the version, Backwards and the
// number of smoothers as unsigned varints, Names in eight bytes, little end first, and
// then the binary forms of Histories and of each smoother, each behind its length. Loads
// follow where there are any: for each router the number of its experts and their loads,
// as unsigned varints.
func (a StepAmax) MarshalBinary() ([]byte, error) {
	data := varint.Append(varint.Append(varint.Append(nil, a.Version), a.Backwards), len(a.Smoothers))
	data = binary.LittleEndian.AppendUint64(data, a.Names)
	parts := []encoding.BinaryMarshaler{a.Histories}
	for _, s := range a.Smoothers {
		parts = append(parts, s)
	}
	for _, p := range parts {
		part, err := p.MarshalBinary()
		if err != nil {
			return nil, stateError("%w", err)
		}
		data = varint.AppendPart(data, part)
	}
	for _, load := range a.Loads {
		data = varint.Append(data, len(load))
		for _, n := range load {
			data = varint.Append(data, n)
		}
	}
	return data, nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. It returns [ErrState], and
// leaves a as it is, if the data cannot be right.
func (a *StepAmax) UnmarshalBinary(data []byte) error {
	damaged := stateError("what a step recorded is damaged: %d bytes", len(data))
	r := varint.Reader{Data: data}
	version := r.Uint64()
	if !r.Failed && version != stepAmaxVersion {
		return stateError("what a step recorded is of version %d: this package reads version %d", version, stepAmaxVersion)
	}
	read := StepAmax{Version: stepAmaxVersion, Backwards: r.Uint64()}
	smoothers, names := r.Count(), r.Bytes(8)
	if r.Failed {
		return damaged
	}
	read.Names = binary.LittleEndian.Uint64(names)
	parts := []encoding.BinaryUnmarshaler{&read.Histories}
	if smoothers > 0 {
		read.Smoothers = make([]swiglu.Amaxes, smoothers)
	}
	for i := range read.Smoothers {
		parts = append(parts, &read.Smoothers[i])
	}
	for _, part := range parts {
		form := r.Part()
		if r.Failed {
			return damaged
		}
		if err := part.UnmarshalBinary(form); err != nil {
			return stateError("%w", err)
		}
	}
	for len(r.Data) > 0 && !r.Failed {
		load := make([]int64, r.Count())
		for i := range load {
			load[i] = int64(r.Int())
		}
		r.Failed = r.Failed || len(load) == 0
		read.Loads = append(read.Loads, load)
	}
	if r.Failed {
		return damaged
	}
	*a = read
	return nil
}
