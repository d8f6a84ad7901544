package train

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

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
	checkpointKey = "octavo.checkpoint"
	partKey       = "octavo.part"
	sumSuffix     = ".crc32c" // of the key of a checksum
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

// sealed returns what describes a file as metadata of it, with a checksum beside.
func sealed(key string, description any) (map[string]string, error) {
	text, err := json.Marshal(description)
	return map[string]string{key: string(text), key + sumSuffix: arrays.Checksum(text)}, err
}

// unseal is the inverse of sealed. What the file should be is for errors.
func unseal(metadata map[string]string, key, what string, description any) error {
	text, ok := metadata[key]
	if !ok {
		return damaged("it is no %s: its metadata lacks %s", what, key)
	}
	var version struct{ Version int }
	if err := json.Unmarshal([]byte(text), &version); err != nil {
		return damaged("metadata %s: %w", key, err)
	}
	if version.Version != checkpointVersion {
		return versionError("it is of version %d: this package reads version %d", version.Version, checkpointVersion)
	}
	if got, want := arrays.Checksum([]byte(text)), metadata[key+sumSuffix]; got != want {
		return damaged("metadata %s is damaged: its CRC-32C is %s and not %.40q", key, got, want)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(description); err != nil {
		return damaged("metadata %s: %w", key, err)
	}
	return nil
}

// parseCheckpointState checks what does not depend on a model.
func parseCheckpointState(metadata map[string]string) (s checkpointState, err error) {
	if err := unseal(metadata, checkpointKey, "checkpoint of a run", &s); err != nil {
		return s, err
	}
	return s, s.check()
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
