package train

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Progress is how far a run is, beyond what its model and optimizer know. What the
// next step sees follows from it: [Corpus.Batch] and [optim.Schedule.At] depend on a seed
// and the number of the step alone.
type Progress struct {
	Step     int            `json:"step"` // steps done, and the number of the next one
	Seed     uint64         `json:"seed"` // of the data, as given to [NewCorpus]
	Batch    int            `json:"batch"`
	Seq      int            `json:"seq"`
	Schedule optim.Schedule `json:"schedule"`

	Spikes map[string]SpikeDetector `json:"spikes,omitempty"` // by series, such as "loss"
	Mu     []float64                `json:"mu,omitempty"`     // of a [Reducer]
	Notes  map[string]string        `json:"notes,omitempty"`  // whatever else the caller must know
}

// CheckpointVersion is the version that this package writes and reads.
const CheckpointVersion = 1

// SaveCheckpoint writes all that a run needs to go on, to the bit, to one
// safetensors file: parameters, under the names of a Llama checkpoint, moments in
// their own format, the optimizer's steps and options, the scaling state of delayed
// recipes and of Smooth-SwiGLU, the configuration and progress, and a CRC-32C of
// each tensor. Call it between steps: gradients are not saved.
//
// The file is written under another name and then renamed, so that a crash at any
// moment leaves the old file or the new one, whole; a file beside it whose name
// begins with .safetensors- is then left over. Nothing replaces the old one
// either if a value is not finite or the optimizer belongs to another model; the
// error names the tensor, the index and the value.
func SaveCheckpoint(path string, m *nn.Llama, o *optim.AdamW, progress Progress) error {
	all, metadata, err := checkpointOf(m, o, progress)
	if err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	if err := arrays.Write(path, all, metadata); err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	return nil
}

// LoadCheckpoint makes m and o what they were when the checkpoint at path was
// saved, and returns the progress. It is [OpenCheckpoint] and [Checkpoint.Restore].
func LoadCheckpoint(path string, m *nn.Llama, o *optim.AdamW) (Progress, error) {
	c, err := OpenCheckpoint(path)
	if err != nil {
		return Progress{}, err
	}
	defer c.Close()
	return c.Progress, c.Restore(m, o)
}

// Checkpoint is an open checkpoint: what describes it has been read, its tensors
// have not.
type Checkpoint struct {
	Config   nn.Config // without Workers
	Progress Progress

	file  *safetensors.File
	state checkpointState
}

// OpenCheckpoint opens the checkpoint at path, which the caller must Close. The
// errors are those of [ReadCheckpoint] and the file system's.
func OpenCheckpoint(path string) (*Checkpoint, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("train: checkpoint: %w", err)
	}
	c, err := newCheckpoint(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("train: checkpoint %s: %w", path, err)
	}
	return c, nil
}

// ReadCheckpoint is [OpenCheckpoint] for the first size bytes of r, from which it
// reads for as long as the Checkpoint is used. It is an error if they are no
// safetensors file, no checkpoint, one of another version, or if what describes it
// is damaged.
func ReadCheckpoint(r io.ReaderAt, size int64) (*Checkpoint, error) {
	f, err := safetensors.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("train: checkpoint: %w", err)
	}
	c, err := newCheckpoint(f)
	if err != nil {
		return nil, fmt.Errorf("train: checkpoint: %w", err)
	}
	return c, nil
}

func newCheckpoint(f *safetensors.File) (*Checkpoint, error) {
	state, err := parseCheckpointState(f.Metadata())
	if err != nil {
		return nil, err
	}
	return &Checkpoint{Config: state.Config, Progress: state.Progress, file: f, state: state}, nil
}

// Close closes the file that [OpenCheckpoint] opened.
func (c *Checkpoint) Close() error { return c.file.Close() }

// Restore makes m and o what they were. They must have the configuration and the
// options of those that were saved, but for Workers; whether they have run before
// does not matter. Gradients stay as they are.
//
// It returns an error, and changes nothing, if they have not, which names the
// field and both values; if a tensor is missing, unknown, of another type or shape,
// or not what its checksum says; if a value is not finite, a scale not above 0 or a
// second moment negative, which names the tensor, the index and the value; or if
// reading fails.
func (c *Checkpoint) Restore(m *nn.Llama, o *optim.AdamW) error {
	if err := c.restore(m, o); err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	return nil
}

func (c *Checkpoint) restore(m *nn.Llama, o *optim.AdamW) error {
	if err := c.state.checkAgainst(m, o); err != nil {
		return err
	}
	values := make([][]float32, len(m.Params()))
	for i, p := range m.Params() {
		values[i] = make([]float32, len(p.Value))
	}
	var fresh *optim.AdamW
	if c.state.Optimizer.Steps > 0 {
		fresh = o.Fresh(m.Params())
	}
	all := arraysOf(m.Params(), values, fresh)
	if err := checkNames(c.file, all); err != nil {
		return err
	}
	for _, a := range all {
		if err := a.Read(c.file, c.state.Checksums[a.Name]); err != nil {
			return err
		}
	}
	if err := m.RestoreScaling(c.state.Scaling); err != nil {
		return err
	}
	for i, p := range m.Params() {
		copy(p.Value, values[i])
	}
	o.Restore(c.state.Optimizer, fresh)
	return nil
}

// checkpointOf returns what a checkpoint consists of.
func checkpointOf(m *nn.Llama, o *optim.AdamW, progress Progress) ([]arrays.Array, map[string]string, error) {
	if progress.Step < 0 {
		return nil, nil, fmt.Errorf("Progress.Step is %d: it must not be negative", progress.Step)
	}
	if err := o.Check(m.Params()); err != nil {
		return nil, nil, err
	}
	values := make([][]float32, len(m.Params()))
	for i, p := range m.Params() {
		values[i] = p.Value
	}
	all := arraysOf(m.Params(), values, o)
	state := stateOf(m, o, progress)
	for _, a := range all {
		if err := a.Check(); err != nil {
			return nil, nil, err
		}
		state.Checksums[a.Name] = a.Checksum()
	}
	metadata, err := state.metadata()
	return all, metadata, err
}

// arraysOf returns the tensors of a checkpoint, those with the largest elements
// first, as alignment asks for.
func arraysOf(params []*nn.Param, values [][]float32, o *optim.AdamW) (all []arrays.Array) {
	for i, p := range params {
		shape := []int{p.Rows, p.Cols}
		if !p.Decay {
			shape = []int{p.Cols}
		}
		all = append(all, arrays.New(p.Name, safetensors.F32, shape, arrays.Floats(values[i]), arrays.Finite))
		if o != nil {
			all = append(all, o.MomentArrays(i, p.Name, shape)...)
		}
	}
	slices.SortStableFunc(all, func(a, b arrays.Array) int { return cmp.Compare(b.DType.Size(), a.DType.Size()) })
	return all
}

// checkNames returns an error that names the first tensor that is missing or
// superfluous.
func checkNames(f *safetensors.File, all []arrays.Array) error {
	known := map[string]bool{}
	for _, a := range all {
		known[a.Name] = true
		if _, ok := f.Info(a.Name); !ok {
			return fmt.Errorf("there is no tensor %q, which the model has", a.Name)
		}
	}
	for _, info := range f.Tensors() {
		if !known[info.Name] {
			return fmt.Errorf("tensor %q: the model has none of that name", info.Name)
		}
	}
	return nil
}

var errNoCheckpoint = errors.New("it is no checkpoint of a run: its metadata lacks " + checkpointKey)
