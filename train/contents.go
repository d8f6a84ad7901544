package train

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// contents are what a checkpoint or a part of one is made of.
type contents struct {
	state checkpointState
	part  Partition
	all   []share
}

// contentsOf returns those of a whole run, whose memory the shares are.
func contentsOf(m Model, o *optim.AdamW, position Position) (c contents, err error) {
	if err := checkModel(m); err != nil {
		return c, err
	}
	return piecesOf(WholeOf(m), o, position, Partition{}, wholePieces(m.Params()))
}

// checkTaken returns an error if there is nothing that could be taken.
func checkTaken(o *optim.AdamW, position Position, part Partition) error {
	if o == nil {
		return errNoOptimizer
	}
	if err := part.Check(); err != nil {
		return err
	}
	if position.Step < 0 {
		return inputError("Position.Step is %d: it must not be negative", position.Step)
	}
	return nil
}

// save writes a file that has all of a run.
func (c contents) save(ctx context.Context, r progress.Reporter, path string) error {
	// Each byte is read once for checks and checksums, and once more to be written.
	done := meter.New(ctx, r, "save", 2*sizeOf(c.all))
	metadata, err := c.metadata(done)
	if err != nil {
		return err
	}
	return arrays.Write(done, path, c.arrays(), metadata)
}

// metadata returns that of the file, for which the tensors are checked.
func (c contents) metadata(done *meter.Meter) (map[string]string, error) {
	sums, err := c.checksums(done)
	if err != nil {
		return nil, err
	}
	c.state.Checksums = sums
	return sealed(checkpointKey, c.state)
}

func (c contents) checksums(done *meter.Meter) (sums map[string]string, err error) {
	sums = make(map[string]string, len(c.all))
	for _, s := range c.all {
		if sums[s.Name], err = s.Checksum(done); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// cut returns the contents of a part.
func (c contents) cut(part Partition) contents {
	all := make([]share, len(c.all))
	for i, s := range c.all {
		all[i] = s.cut(part)
	}
	return contents{state: c.state, part: part, all: all}
}

// arrays are the shares as a file has them: flat where they are not all of a tensor.
func (c contents) arrays() []arrays.Array {
	list := make([]arrays.Array, len(c.all))
	for i, s := range c.all {
		list[i] = s.Array
		if c.part.isWhole() {
			list[i].Shape = s.whole.Shape
		}
	}
	return list
}

// tensors are those of the whole run.
func (c contents) tensors() (infos []safetensors.Info) {
	for _, s := range c.all {
		infos = append(infos, s.whole)
	}
	return infos
}
