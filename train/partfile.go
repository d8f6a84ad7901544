package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// A checkpoint in parts is a directory: a safetensors file for each rank, with what
// [Partition] says of every tensor, flat, and a manifest, which is written last and says what
// the run is besides and which files belong together.

// partState is what a part says of itself: JSON in the metadata of its file, with a
// checksum of its own beside it.
type partState struct {
	Version   int               `json:"version"`
	Rank      int               `json:"rank"`
	Ranks     int               `json:"ranks"`
	Run       string            `json:"run_crc32c"` // of the state of the run
	Checksums map[string]string `json:"crc32c"`     // of each tensor's data
}

// partName is the file of a part.
func partName(p Partition) string {
	return fmt.Sprintf("part-%05d-of-%05d.safetensors", p.Rank, p.Ranks)
}

// runSum is a checksum of all that the parts of a checkpoint have in common.
func (s checkpointState) runSum() (string, error) {
	s.Checksums, s.Parts = nil, nil
	text, err := json.Marshal(s)
	return arrays.Checksum(text), err
}

// SavePart writes the file of the part that s was taken of to a directory, which is made
// if need be. It is the first half of a checkpoint in parts: all ranks do it, wherever
// they run, each as [SaveCheckpoint] writes a file, and when all have, one calls Commit.
// The errors are those of [SaveCheckpoint]; a directory that has a checkpoint already is
// one ([ErrInput]), and s of a whole run too.
func (s *Snapshot) SavePart(ctx context.Context, dir string) error {
	c, err := s.saved()
	if err == nil && c.part.isWhole() {
		err = inputError("the snapshot is of the whole run: save it by Directory.Save")
	}
	if err == nil {
		err = c.savePart(ctx, s.Progress, dir)
	}
	return savingError(err)
}

func (c contents) savePart(ctx context.Context, r progress.Reporter, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, manifestName)); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return inputError("%s has a checkpoint: name another directory", dir)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	run, err := c.state.runSum()
	if err != nil {
		return err
	}
	done := meter.New(ctx, r, "save", 2*sizeOf(c.all))
	state := partState{Version: checkpointVersion, Rank: c.part.Rank, Ranks: c.part.Ranks, Run: run}
	if state.Checksums, err = c.checksums(done); err != nil {
		return err
	}
	metadata, err := sealed(partKey, state)
	if err != nil {
		return err
	}
	return arrays.Write(done, filepath.Join(dir, partName(c.part)), c.arrays(), metadata)
}

// partFile is what is known of a part without its tensors.
type partFile struct {
	savedPart
	state partState
	infos map[string]safetensors.Info
}

// readPartFile reads what describes a part.
func readPartFile(path string) (p partFile, err error) {
	stat, err := os.Stat(path)
	if err != nil {
		return p, err
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return p, fileError(err)
	}
	defer f.Close()
	if err := unseal(f.Metadata(), partKey, "part of a checkpoint", &p.state); err != nil {
		return p, err
	}
	p.savedPart = savedPart{Bytes: stat.Size(), Checksum: f.Metadata()[partKey+sumSuffix]}
	p.infos = map[string]safetensors.Info{}
	for _, info := range f.Tensors() {
		p.infos[info.Name] = info
	}
	return p, nil
}
