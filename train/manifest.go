package train

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/safetensors"
)

// manifestName is the file that makes parts a checkpoint.
const manifestName = "manifest.json"

// maxManifest is the most bytes of a manifest that are read.
const maxManifest = 1 << 30

// manifest is that file: the state of a run, and the CRC-32C of its text.
type manifest struct {
	Checksum   string          `json:"crc32c"`
	Checkpoint json.RawMessage `json:"checkpoint"`
}

// savedParts are the tensors of a checkpoint in parts, and the parts by rank. What a part
// has of a tensor comes after what those of lower ranks have.
type savedParts struct {
	Tensors []savedTensor `json:"tensors"`
	Parts   []savedPart   `json:"parts"`
}

type savedTensor struct {
	Name  string            `json:"name"`
	DType safetensors.DType `json:"dtype"`
	Shape []int             `json:"shape"`
}

type savedPart struct {
	Bytes    int64  `json:"bytes"`  // of the file
	Checksum string `json:"crc32c"` // of its description, which has those of its tensors
}

// Commit makes the parts in a directory a checkpoint, once all ranks have saved theirs:
// it reads what describes them and writes the manifest, without which a directory is no
// checkpoint, and which appears whole or not at all. Any rank can do it, and one does.
//
// It is an error, and there is no checkpoint, if a part is missing or not what belongs
// there ([ErrCheckpoint]), or if parts are of different steps or of runs that differ in
// anything that all ranks have in common ([ErrMismatch]), such as the scaling state.
func (s *Snapshot) Commit(ctx context.Context, dir string) error {
	c, err := s.saved()
	if err == nil && c.part.isWhole() {
		err = inputError("the snapshot is of the whole run, and no part")
	}
	if err == nil {
		err = c.commit(ctx, dir)
	}
	return savingError(err)
}

func (c contents) commit(ctx context.Context, dir string) error {
	run, err := c.state.runSum()
	if err != nil {
		return err
	}
	state := c.state
	state.Parts = new(savedParts)
	for _, info := range c.tensors() {
		state.Parts.Tensors = append(state.Parts.Tensors, savedTensor{info.Name, info.DType, info.Shape})
	}
	for rank := range c.part.Ranks {
		if err := meter.Err(ctx); err != nil {
			return err
		}
		name := partName(Partition{rank, c.part.Ranks})
		p, err := readPartFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			return damaged("%s: %w", name, err)
		case p.state.Run != run:
			return mismatch("%s is of another step or another run than rank %d's part: CRC-32C of what they have in common is %s and %s", name, c.part.Rank, p.state.Run, run)
		}
		state.Parts.Parts = append(state.Parts.Parts, p.savedPart)
	}
	if _, err := newPartsSource(dir, state); err != nil {
		return err
	}
	return writeManifest(filepath.Join(dir, manifestName), state)
}

func writeManifest(path string, state checkpointState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if len(text) > maxManifest/2 {
		return fmt.Errorf("the manifest would have %d bytes: at most %d can be read again", len(text), maxManifest/2)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "{\"crc32c\":%q,\"checkpoint\":%s}\n", arrays.Checksum(text), text)
		return err
	})
}

func readManifest(path string) (checkpointState, error) {
	data, err := inputfile.ReadAll(path, maxManifest)
	if err != nil {
		return checkpointState{}, err
	}
	return parseManifest(data)
}

func parseManifest(data []byte) (s checkpointState, err error) {
	var m manifest
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return s, damaged("%s: %w", manifestName, err)
	}
	s, err = parseCheckpointState(map[string]string{checkpointKey: string(m.Checkpoint), checkpointKey + sumSuffix: m.Checksum})
	if err != nil {
		return s, fmt.Errorf("%s: %w", manifestName, err)
	}
	if err := s.Parts.check(); err != nil {
		return s, damaged("%s: %w", manifestName, err)
	}
	return s, nil
}

// check returns an error that names what no checkpoint in parts can have.
func (p *savedParts) check() error {
	if p == nil {
		return fmt.Errorf("it names no parts")
	}
	if n := len(p.Parts); n < 1 || n > maxRanks {
		return fmt.Errorf("it has %d parts: want 1 to %d", n, maxRanks)
	}
	known := make(map[string]bool, len(p.Tensors))
	for _, t := range p.Tensors {
		if known[t.Name] {
			return fmt.Errorf("it has two tensors %q", t.Name)
		}
		if t.info().Bytes() < 0 {
			return fmt.Errorf("tensor %q is %s %v, which no file can hold", t.Name, t.DType, t.Shape)
		}
		known[t.Name] = true
	}
	return nil
}

func (t savedTensor) info() safetensors.Info {
	return safetensors.Info{Name: t.Name, DType: t.DType, Shape: t.Shape}
}
