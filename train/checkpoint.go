package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Position is how far a run is, beyond what its model and optimizer know. What the
// next step sees follows from it: [Corpus.Batch] and [optim.Schedule.At] depend on a
// seed and the number of the step alone.
type Position struct {
	Step     int            `json:"step"` // steps done, and the number of the next one
	Seed     uint64         `json:"seed"` // of the data, as given to [NewCorpus]
	Batch    int            `json:"batch"`
	Seq      int            `json:"seq"`
	Schedule optim.Schedule `json:"schedule"`

	Spikes map[string]SpikeDetector `json:"spikes,omitempty"` // by series, such as "loss"
	Mu     []float64                `json:"mu,omitempty"`     // of a [collective.Reducer]
	Notes  map[string]string        `json:"notes,omitempty"`  // whatever else the caller must know
}

// checkpointVersion is the version that this package writes and reads, in files, parts and
// manifests.
const checkpointVersion = 3

// SaveCheckpoint writes all that a run needs to go on, to the bit, to one safetensors
// file: parameters under their names, moments in their own format, the optimizer's
// steps and options, the scaling state, the description of the model and position, and
// a CRC-32C of each tensor. Call it between steps: gradients are not saved.
//
// The file is written under another name and then renamed, so that a crash at any
// moment leaves the old file or the new one, whole; a file beside it whose name
// begins with .safetensors- is then left over. Nothing replaces the old one
// either if ctx ends, if a value is not finite or if the optimizer belongs to another
// model; the error names the tensor, the index and the value. The model's [nn.Shared]
// hears of progress, as it does of that of [LoadCheckpoint].
func SaveCheckpoint(ctx context.Context, path string, m Model, o *optim.AdamW, position Position) error {
	if err := save(ctx, path, m, o, position); err != nil {
		return fmt.Errorf("train: saving a checkpoint: %w", err)
	}
	return nil
}

func save(ctx context.Context, path string, m Model, o *optim.AdamW, position Position) error {
	c, err := contentsOf(m, o, position)
	if err != nil {
		return err
	}
	return c.save(ctx, m.Shared().Progress, path)
}

// LoadCheckpoint makes m and o what they were when the checkpoint at path was
// saved, and returns the position. It is [OpenCheckpoint] and [Checkpoint.Restore].
func LoadCheckpoint(ctx context.Context, path string, m Model, o *optim.AdamW) (Position, error) {
	c, err := OpenCheckpoint(path)
	if err != nil {
		return Position{}, err
	}
	defer c.Close()
	return c.Position, c.Restore(ctx, m, o)
}

// Checkpoint is an open checkpoint: what describes it has been read, its tensors
// have not.
type Checkpoint struct {
	Model    nn.Description // its Config is a [json.RawMessage]
	Position Position
	Scaling  nn.ScalingState // of all ranks

	source source
	state  checkpointState
}

// OpenCheckpoint opens the checkpoint at path, a file or a directory of parts that
// [Snapshot.Commit] made a checkpoint. The caller must Close it. The errors are those of
// [ReadCheckpoint] and the file system's. Of parts all descriptions are read, and it is
// [ErrCheckpoint] if one is missing or not what the manifest says.
func OpenCheckpoint(path string) (*Checkpoint, error) {
	if stat, err := os.Stat(path); err == nil && stat.IsDir() {
		c, err := openParts(path)
		if err != nil {
			return nil, fmt.Errorf("train: checkpoint %s: %w", path, err)
		}
		return c, nil
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("train: reading a checkpoint: %w", fileError(err))
	}
	c, err := newCheckpoint(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("train: checkpoint %s: %w", path, err), f.Close())
	}
	return c, nil
}

// ReadCheckpoint is [OpenCheckpoint] for the first size bytes of r, from which it
// reads for as long as the Checkpoint is used. It is an error if they are no
// safetensors file, no checkpoint, or if what describes it is damaged, which is
// [ErrCheckpoint], or if it is of another version, which is [ErrVersion], or what r
// returns.
func ReadCheckpoint(r io.ReaderAt, size int64) (*Checkpoint, error) {
	if r == nil {
		return nil, inputError("train: reading a checkpoint: there is no reader: it is nil")
	}
	f, err := safetensors.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("train: reading a checkpoint: %w", fileError(err))
	}
	c, err := newCheckpoint(f)
	if err != nil {
		return nil, fmt.Errorf("train: reading a checkpoint: %w", err)
	}
	return c, nil
}

// fileError makes what is wrong with a file ErrCheckpoint, but not a failure to read it.
func fileError(err error) error {
	if errors.Is(err, safetensors.ErrFile) || errors.Is(err, arrays.ErrDamaged) {
		return damaged("%w", err)
	}
	return err
}

func newCheckpoint(f *safetensors.File) (*Checkpoint, error) {
	if _, ok := f.Metadata()[partKey]; ok {
		return nil, damaged("it is a part of a checkpoint: open the directory that it is in")
	}
	state, err := parseCheckpointState(f.Metadata())
	if err != nil {
		return nil, err
	}
	return checkpointOf(wholeFile{f, state.Checksums}, state), nil
}

func checkpointOf(s source, state checkpointState) *Checkpoint {
	return &Checkpoint{
		Model: state.Model.description(), Position: state.Position, Scaling: state.Scaling,
		source: s, state: state,
	}
}

// Close closes the file that [OpenCheckpoint] opened.
func (c *Checkpoint) Close() error { return c.source.Close() }

// checkShapes returns an error unless the checkpoint has a parameter of each name and
// size, and no other. To be called before a model of sizes that the checkpoint itself
// names is made, so that a damaged or forged file cannot ask for more memory than it
// has. The error is [ErrCheckpoint].
func (c *Checkpoint) checkShapes(shapes iter.Seq[nn.Shape]) error {
	known := map[string]bool{}
	for s := range shapes {
		info, ok := c.source.info(s.Name)
		if !ok {
			return damaged("train: reading a checkpoint: there is no tensor %q, which the model that it describes has", s.Name)
		}
		vector := s.Rows == 1 && slices.Equal(info.Shape, []int{s.Cols})
		if info.DType != safetensors.F32 || !vector && !slices.Equal(info.Shape, []int{s.Rows, s.Cols}) {
			return damaged("train: reading a checkpoint: tensor %q is %s %v: the model that it describes has F32 [%d %d]", s.Name, info.DType, info.Shape, s.Rows, s.Cols)
		}
		known[s.Name] = true
	}
	for _, info := range c.source.tensors() {
		if !known[info.Name] && !isMoment(info.Name) {
			return damaged("train: reading a checkpoint: tensor %q: the model that it describes has none of that name", info.Name)
		}
	}
	return nil
}

// NewLlama makes a model of the configuration that the checkpoint describes, once it
// was found to have the tensors of one. Its parameters are not those of the checkpoint
// until [Checkpoint.Restore].
func (c *Checkpoint) NewLlama(workers int) (*nn.Llama, error) {
	cfg, err := nn.ParseConfig(c.Model)
	if err != nil {
		return nil, fmt.Errorf("train: reading a checkpoint: %w", err)
	}
	if err := c.checkShapes(cfg.Shapes()); err != nil {
		return nil, err
	}
	cfg.Workers = workers
	return nn.NewZeroLlama(cfg)
}

// Restore makes m and o what they were. They must have the description and the
// options of those that were saved; whether they have run before does not matter.
// Gradients stay as they are.
//
// It returns an error, and changes nothing, if they have not, which names the
// field and both values ([ErrMismatch]); if a tensor is missing, unknown, of another
// type or shape ([ErrMismatch]), or not what its checksum says; if a value is not
// finite, a scale not above 0 or a second moment negative, which names the tensor, the
// index and the value ([ErrCheckpoint]); if reading fails or ctx ends.
func (c *Checkpoint) Restore(ctx context.Context, m Model, o *optim.AdamW) error {
	return restoring(c.restore(ctx, m, o))
}

func restoring(err error) error {
	if err != nil {
		return fmt.Errorf("train: restoring a checkpoint: %w", err)
	}
	return nil
}

func (c *Checkpoint) restore(ctx context.Context, m Model, o *optim.AdamW) error {
	if o == nil {
		return errNoOptimizer
	}
	if err := checkModel(m); err != nil {
		return err
	}
	w, scaling := WholeOf(m), m.Shared().Scaling()
	if err := c.checkModel(w); err != nil {
		return err
	}
	if err := scaling.Check(c.state.Scaling); err != nil {
		return mismatch("%w", err)
	}
	if err := c.fill(ctx, w, o, wholePieces(w.Params)); err != nil {
		return err
	}
	return scaling.Restore(c.state.Scaling)
}

// fill reads the values of pieces and the moments of o, and changes nothing unless all can
// be read.
func (c *Checkpoint) fill(ctx context.Context, w Whole, o *optim.AdamW, pieces []Piece) error {
	params := paramsOf(pieces)
	values := make([][]float32, len(params))
	for i, p := range params {
		values[i] = make([]float32, len(p.Value))
	}
	err := o.Restore(c.state.Optimizer, params, func(moments []optim.Tensor) error {
		all := pieceShares(w.Params, pieces, values, moments, blockOf(o))
		return c.read(meter.New(ctx, w.Progress, "load", sizeOf(all)), all)
	})
	switch {
	case errors.Is(err, optim.ErrState):
		return mismatch("%w", err)
	case err != nil:
		return err
	}
	for i, p := range params {
		copy(p.Value, values[i])
	}
	return nil
}

// read fills shares of all tensors that the checkpoint has.
func (c *Checkpoint) read(done *meter.Meter, all []share) error {
	if err := c.checkTensors(all); err != nil {
		return err
	}
	return fileError(c.source.read(done, all))
}

// checkTensors returns an error that names the first tensor that is missing, of another
// type or shape, or superfluous.
func (c *Checkpoint) checkTensors(all []share) error {
	known := map[string]bool{}
	for _, s := range all {
		known[s.Name] = true
		info, ok := c.source.info(s.Name)
		switch {
		case !ok:
			return mismatch("there is no tensor %q, which the model has", s.Name)
		case info.DType != s.whole.DType || !slices.Equal(info.Shape, s.whole.Shape):
			return mismatch("tensor %q is %s %v: the model's is %s %v", s.Name, info.DType, info.Shape, s.whole.DType, s.whole.Shape)
		}
	}
	for _, info := range c.source.tensors() {
		if !known[info.Name] {
			return mismatch("tensor %q: the model has none of that name", info.Name)
		}
	}
	return nil
}

var errNoOptimizer = inputError("there is no optimizer: it is nil")
