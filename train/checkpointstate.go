package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// checkpointState is what a checkpoint holds besides tensors: JSON in the metadata
// of the file, with a checksum of its own beside it.
type checkpointState struct {
	Version   int               `json:"version"`
	Config    nn.Config         `json:"config"`
	Optimizer optim.State       `json:"optimizer"`
	Scaling   nn.ScalingState   `json:"scaling"`
	Progress  Progress          `json:"progress"`
	Checksums map[string]string `json:"crc32c"` // of each tensor's data
}

const (
	checkpointKey    = "octavo.checkpoint"
	checkpointSumKey = "octavo.checkpoint.crc32c"
)

func stateOf(m *nn.Llama, o *optim.AdamW, progress Progress) checkpointState {
	return checkpointState{
		Version:   CheckpointVersion,
		Config:    withoutWorkers(m.Config()),
		Optimizer: o.State(),
		Scaling:   m.ScalingState(),
		Progress:  progress,
		Checksums: map[string]string{},
	}
}

func withoutWorkers(c nn.Config) nn.Config {
	c.Workers = 0
	return c
}

// metadata returns the state as metadata of a file.
func (s checkpointState) metadata() (map[string]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		checkpointKey:    string(text),
		checkpointSumKey: arrays.Checksum(text),
	}, nil
}

// parseCheckpointState is the inverse of metadata. It checks what does not depend on
// a model.
func parseCheckpointState(metadata map[string]string) (s checkpointState, err error) {
	text, ok := metadata[checkpointKey]
	if !ok {
		return s, errNoCheckpoint
	}
	var version struct{ Version int }
	if err := json.Unmarshal([]byte(text), &version); err != nil {
		return s, fmt.Errorf("metadata %s: %w", checkpointKey, err)
	}
	if version.Version != CheckpointVersion {
		return s, fmt.Errorf("it is of version %d: this package reads version %d", version.Version, CheckpointVersion)
	}
	if got, want := arrays.Checksum([]byte(text)), metadata[checkpointSumKey]; got != want {
		return s, fmt.Errorf("metadata %s is damaged: its CRC-32C is %s and not %q", checkpointKey, got, want)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, fmt.Errorf("metadata %s: %w", checkpointKey, err)
	}
	return s, s.check()
}

// check returns an error that names the first value that no run can have.
func (s checkpointState) check() error {
	o := s.Optimizer
	switch {
	case o.Steps < 0 || o.Skipped < 0:
		return fmt.Errorf("the optimizer's steps are %d, %d skipped: they must not be negative", o.Steps, o.Skipped)
	case o.Steps > 0 && !isPower(o.Power1):
		return fmt.Errorf("the optimizer's power1 is %v: it must be at least 0 and below 1", o.Power1)
	case o.Steps > 0 && !isPower(o.Power2):
		return fmt.Errorf("the optimizer's power2 is %v: it must be at least 0 and below 1", o.Power2)
	case s.Progress.Step < 0:
		return fmt.Errorf("Progress.Step is %d: it must not be negative", s.Progress.Step)
	}
	return s.Config.Validate()
}

// isPower reports whether p may be a power of a number below 1.
func isPower(p float64) bool { return p >= 0 && p < 1 }

// checkAgainst returns an error that names the first thing in which m or o is not
// what was saved.
func (s checkpointState) checkAgainst(m *nn.Llama, o *optim.AdamW) error {
	if err := o.Check(m.Params()); err != nil {
		return err
	}
	if err := difference("Config", s.Config, withoutWorkers(m.Config())); err != nil {
		return err
	}
	if err := difference("AdamW", s.Optimizer.Options, o.Options()); err != nil {
		return err
	}
	return s.checkHistories(m)
}

// difference returns an error that names the first field in which two structs of a
// type differ, and both values.
func difference[T any](name string, saved, present T) error {
	a, b := reflect.ValueOf(saved), reflect.ValueOf(present)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			return fmt.Errorf("%s.%s was %+v when it was saved and is %+v", name, a.Type().Field(i).Name, x, y)
		}
	}
	return nil
}

// checkHistories makes sure that the saved state has the histories of the model's
// delayed scales, and no others.
func (s checkpointState) checkHistories(m *nn.Llama) error {
	saved, present := s.Scaling.Histories.Histories, m.ScalingState().Histories.Histories
	for _, name := range slices.Sorted(maps.Keys(present)) {
		h, ok := saved[name]
		if !ok {
			return fmt.Errorf("there is no scaling history of %q, which the model has", name)
		}
		if len(h.Blocks) == 0 || len(present[name].Blocks) == 0 {
			continue // it is empty
		}
		if got, want := len(h.Blocks[0].Past), len(present[name].Blocks[0].Past); got != want {
			return fmt.Errorf("the scaling history of %q has %d steps, the model's %d", name, got, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		if _, ok := present[name]; !ok {
			return fmt.Errorf("scaling history of %q: the model has none of that name", name)
		}
	}
	return nil
}
