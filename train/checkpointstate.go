package train

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// checkpointState is what a checkpoint holds besides tensors: JSON in the metadata
// of the file, with a checksum of its own beside it.
type checkpointState struct {
	Version   int               `json:"version"`
	Model     savedModel        `json:"model"`
	Optimizer optim.State       `json:"optimizer"`
	Scaling   nn.ScalingState   `json:"scaling"`
	Position  Position          `json:"position"`
	Checksums map[string]string `json:"crc32c"` // of each tensor's data; none where there are parts

	Parts *savedParts `json:"parts,omitempty"` // in a manifest only
}

// savedModel is an [nn.Description] in a file.
type savedModel struct {
	Kind    string          `json:"kind"`
	Version int             `json:"version"`
	Config  json.RawMessage `json:"config"`
}

const (
	checkpointKey    = "octavo.checkpoint"
	checkpointSumKey = "octavo.checkpoint.crc32c"
)

func saveModel(d nn.Description) (savedModel, error) {
	config, err := json.Marshal(d.Config)
	if err != nil {
		return savedModel{}, inputError("the description of the model: %w", err)
	}
	return savedModel{d.Kind, d.Version, config}, nil
}

func (s savedModel) description() nn.Description {
	return nn.Description{Kind: s.Kind, Version: s.Version, Config: s.Config}
}

// compare returns an error that names the first field in which a model is not s, and
// both values.
func (s savedModel) compare(d nn.Description, text differenceText) error {
	present, err := saveModel(d)
	if err != nil {
		return err
	}
	if s.Kind != present.Kind || s.Version != present.Version {
		return mismatch(text.kind, s.Kind, s.Version, present.Kind, present.Version)
	}
	return compareJSON("model.config", s.Config, present.Config, text)
}

// stateOf returns the state of a run, none of whose memory the run has.
func stateOf(w Whole, o *optim.AdamW, position Position) (checkpointState, error) {
	model, err := saveModel(w.Model)
	return checkpointState{
		Version:   checkpointVersion,
		Model:     model,
		Optimizer: o.State(),
		Scaling:   w.Scaling,
		Position:  position.clone(),
		Checksums: map[string]string{},
	}, err
}

func (p Position) clone() Position {
	p.Mu, p.Notes, p.Spikes = slices.Clone(p.Mu), maps.Clone(p.Notes), maps.Clone(p.Spikes)
	for name, detector := range p.Spikes {
		detector.Past = slices.Clone(detector.Past)
		p.Spikes[name] = detector
	}
	return p
}

// metadata returns the state as metadata of a file.
func (s checkpointState) metadata() (map[string]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return map[string]string{checkpointKey: string(text), checkpointSumKey: arrays.Checksum(text)}, nil
}

// parseCheckpointState is the inverse of metadata. It checks what does not depend on
// a model.
func parseCheckpointState(metadata map[string]string) (s checkpointState, err error) {
	text, ok := metadata[checkpointKey]
	if !ok {
		return s, damaged("it is no checkpoint of a run: its metadata lacks %s", checkpointKey)
	}
	var version struct{ Version int }
	if err := json.Unmarshal([]byte(text), &version); err != nil {
		return s, damaged("metadata %s: %w", checkpointKey, err)
	}
	if err := checkVersion(version.Version); err != nil {
		return s, err
	}
	if got, want := arrays.Checksum([]byte(text)), metadata[checkpointSumKey]; got != want {
		return s, damaged("metadata %s is damaged: its CRC-32C is %s and not %.40q", checkpointKey, got, want)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, damaged("metadata %s: %w", checkpointKey, err)
	}
	return s, s.check()
}

// withoutParts is the version before that of parts.
const withoutParts = 2

func checkVersion(version int) error {
	if version != checkpointVersion && version != withoutParts {
		return versionError("it is of version %d: this package reads versions %d and %d", version, withoutParts, checkpointVersion)
	}
	return nil
}

// check returns an error that names the first value that no run can have.
func (s checkpointState) check() error {
	if s.Position.Step < 0 {
		return damaged("Position.Step is %d: it must not be negative", s.Position.Step)
	}
	if err := s.Optimizer.Check(); err != nil {
		return damaged("%w", err)
	}
	return nil
}
