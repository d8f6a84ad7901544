package train

import (
	"bytes"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// fuzzedRun is as small as it can be and has every kind of state.
func fuzzedRun(tb testing.TB) (*Llama, *AdamW) {
	recipes := ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*Operands{&recipes.Forward, &recipes.InputGradient, &recipes.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 2, 2
	}
	m, err := NewLlama(Config{
		Vocab: 2, Dim: 2, Layers: 1, Heads: 1, Hidden: 1, Context: 2, Workers: 1,
		FP8: &recipes, Smoothing: &swiglu.Smoothing{Delay: 1},
	}, 1)
	if err != nil {
		tb.Fatal(err)
	}
	o := &AdamW{Moments: Moments{Format: MomentsFP8Expanded}, Workers: 1}
	if _, err := m.Loss([]int32{0, 1}, []int32{1, 0}, 1, 2); err != nil {
		tb.Fatal(err)
	}
	if err := m.Backward(); err != nil {
		tb.Fatal(err)
	}
	if _, err := o.Step(m.Params(), 0.1); err != nil {
		tb.Fatal(err)
	}
	m.EndStep()
	return m, o
}

// FuzzRestore restores from any description and any data, both with the checksums
// that belong to them: either all is as it was, or it can be saved again.
func FuzzRestore(f *testing.F) {
	m, o := fuzzedRun(f)
	arrays, metadata, err := checkpointOf(m, o, Progress{Step: 1})
	if err != nil {
		f.Fatal(err)
	}
	var data bytes.Buffer
	for _, a := range arrays {
		a.WriteTo(&data)
	}
	f.Add(metadata[checkpointKey], data.Bytes())
	f.Add(`{"version":1,"optimizer":{"steps":-1}}`, []byte{})
	f.Fuzz(func(t *testing.T, description string, data []byte) {
		m, o := fuzzedRun(t)
		before := bitsOf(m, o)
		file, err := fuzzedFile(description, data, arrays)
		if err != nil {
			return // such as text that is not UTF-8
		}
		c, err := ReadCheckpoint(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		if err := c.Restore(m, o); err != nil {
			if !reflect.DeepEqual(before, bitsOf(m, o)) {
				t.Fatal("changed in spite of", err)
			}
			return
		}
		if _, _, err := checkpointOf(m, o, c.Progress); err != nil {
			t.Fatal(err)
		}
	})
}

// fuzzedFile is a checkpoint whose tensors are cut from data, with checksums
// that are right where the description has any.
func fuzzedFile(description string, data []byte, arrays []array) ([]byte, error) {
	var infos []safetensors.Info
	var all []byte
	state, stateErr := parseCheckpointState(map[string]string{
		checkpointKey: description, checkpointSumKey: checksumText(crc32.Checksum([]byte(description), castagnoli)),
	})
	for _, a := range arrays {
		n := min(a.Bytes(), int64(len(data)))
		part := make([]byte, a.Bytes())
		copy(part, data[:n])
		data = data[n:]
		infos, all = append(infos, a.Info), append(all, part...)
		if state.Checksums != nil {
			state.Checksums[a.Name] = checksumText(crc32.Checksum(part, castagnoli))
		}
	}
	metadata := map[string]string{checkpointKey: description}
	if stateErr == nil {
		var err error
		if metadata, err = state.metadata(); err != nil {
			return nil, err
		}
	}
	var file bytes.Buffer
	if _, err := safetensors.NewWriter(&file, infos, metadata); err != nil {
		return nil, err
	}
	file.Write(all)
	return file.Bytes(), nil
}

// FuzzReadCheckpoint reads files that are anything.
func FuzzReadCheckpoint(f *testing.F) {
	m, o := fuzzedRun(f)
	path := filepath.Join(f.TempDir(), "seed")
	if err := SaveCheckpoint(path, m, o, Progress{}); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadCheckpoint(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		m, o := fuzzedRun(t)
		before := bitsOf(m, o)
		if err := c.Restore(m, o); err != nil && !reflect.DeepEqual(before, bitsOf(m, o)) {
			t.Fatal("changed in spite of", err)
		}
	})
}
