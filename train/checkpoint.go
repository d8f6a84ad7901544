package train

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/safetensors"
)

// Progress is how far a run is, beyond what its model and optimizer know. What the
// next step sees follows from it: [Corpus.Batch] and [Schedule.At] depend on a seed
// and the number of the step alone.
type Progress struct {
	Step     int      `json:"step"` // steps done, and the number of the next one
	Seed     uint64   `json:"seed"` // of the data, as given to [NewCorpus]
	Batch    int      `json:"batch"`
	Seq      int      `json:"seq"`
	Schedule Schedule `json:"schedule"`

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
func SaveCheckpoint(path string, m *Llama, o *AdamW, progress Progress) error {
	arrays, metadata, err := checkpointOf(m, o, progress)
	if err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	if err := writeArrays(path, arrays, metadata); err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	return nil
}

// LoadCheckpoint makes m and o what they were when the checkpoint at path was
// saved, and returns the progress. It is [OpenCheckpoint] and [Checkpoint.Restore].
func LoadCheckpoint(path string, m *Llama, o *AdamW) (Progress, error) {
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
	Config   Config // without Workers
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
func (c *Checkpoint) Restore(m *Llama, o *AdamW) error {
	if err := c.restore(m, o); err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	return nil
}

func (c *Checkpoint) restore(m *Llama, o *AdamW) error {
	if err := c.state.checkAgainst(m, o); err != nil {
		return err
	}
	values, moments := c.empty(m, o)
	arrays := arraysOf(m.params, values, moments)
	if err := checkNames(c.file, arrays); err != nil {
		return err
	}
	for _, a := range arrays {
		if err := a.read(c.file, c.state.Checksums[a.Name]); err != nil {
			return err
		}
	}
	if err := m.RestoreScaling(c.state.Scaling); err != nil {
		return err
	}
	for i, p := range m.params {
		copy(p.Value, values[i])
	}
	m.haveLoss = false
	o.restore(c.state.Optimizer, moments)
	return nil
}

// empty returns memory for the values of m's parameters and for o's moments, nil if
// no step was taken.
func (c *Checkpoint) empty(m *Llama, o *AdamW) (values [][]float32, moments [][2]moment) {
	for _, p := range m.params {
		values = append(values, make([]float32, len(p.Value)))
		if c.state.Optimizer.Steps > 0 {
			moments = append(moments, o.Moments.pair(len(p.Value)))
		}
	}
	return values, moments
}

// checkpointOf returns what a checkpoint consists of.
func checkpointOf(m *Llama, o *AdamW, progress Progress) ([]array, map[string]string, error) {
	if progress.Step < 0 {
		return nil, nil, fmt.Errorf("Progress.Step is %d: it must not be negative", progress.Step)
	}
	if err := o.check(m.params, 0); err != nil {
		return nil, nil, err
	}
	values := make([][]float32, len(m.params))
	for i, p := range m.params {
		values[i] = p.Value
	}
	arrays := arraysOf(m.params, values, o.moments)
	state := stateOf(m, o, progress)
	for _, a := range arrays {
		if err := a.check(); err != nil {
			return nil, nil, err
		}
		state.Checksums[a.Name] = a.checksum()
	}
	metadata, err := state.metadata()
	return arrays, metadata, err
}

// arraysOf returns the tensors of a checkpoint, those with the largest elements
// first, as alignment asks for.
func arraysOf(params []*Param, values [][]float32, moments [][2]moment) (arrays []array) {
	for i, p := range params {
		shape := []int{p.Rows, p.Cols}
		if !p.Decay {
			shape = []int{p.Cols}
		}
		arrays = append(arrays, newArray(p.Name, safetensors.F32, shape, floats(values[i]), finite))
		if moments == nil {
			continue
		}
		for w, m := range moments[i] {
			arrays = append(arrays, m.arrays("optimizer."+which(w).String()+"."+p.Name, shape, which(w))...)
		}
	}
	slices.SortStableFunc(arrays, func(a, b array) int { return cmp.Compare(b.DType.Size(), a.DType.Size()) })
	return arrays
}

// checkNames returns an error that names the first tensor that is missing or
// superfluous.
func checkNames(f *safetensors.File, arrays []array) error {
	known := map[string]bool{}
	for _, a := range arrays {
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
