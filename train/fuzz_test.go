package train

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// fuzzedRun is as small as it can be and has every kind of state.
func fuzzedRun(tb testing.TB) (*nn.Llama, *optim.AdamW) {
	recipes := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*nn.Operands{&recipes.Forward, &recipes.InputGradient, &recipes.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 2, 2
	}
	m, err := nn.NewLlama(nn.Config{
		Vocab: 2, Dim: 2, Layers: 1, Heads: 1, Hidden: 1, Context: 2, Workers: 1,
		FP8: &recipes, Smoothing: &swiglu.Smoothing{Delay: 1},
	}, 1)
	if err != nil {
		tb.Fatal(err)
	}
	o := &optim.AdamW{Moments: optim.Moments{Format: optim.MomentsFP8Expanded}, Workers: 1}
	if _, err := m.Loss(tb.Context(), []int32{0, 1}, []int32{1, 0}, 1, 2); err != nil {
		tb.Fatal(err)
	}
	if err := m.Backward(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	if _, err := o.Step(tb.Context(), m.Params(), 0.1); err != nil {
		tb.Fatal(err)
	}
	m.EndStep()
	return m, o
}

// FuzzRestore restores from any description and any data, both with the checksums
// that belong to them: either all is as it was, or it can be saved again.
func FuzzRestore(f *testing.F) {
	m, o := fuzzedRun(f)
	c, err := contentsOf(m, o, Position{Step: 1})
	if err != nil {
		f.Fatal(err)
	}
	all := c.arrays()
	metadata, err := c.metadata(meter.New(f.Context(), nil, "save", 0))
	if err != nil {
		f.Fatal(err)
	}
	var data bytes.Buffer
	for _, a := range all {
		a.WriteTo(&data)
	}
	f.Add(metadata[checkpointKey], data.Bytes())
	f.Add(`{"version":1,"optimizer":{"steps":-1}}`, []byte{})
	f.Fuzz(func(t *testing.T, description string, data []byte) {
		m, o := fuzzedRun(t)
		before := bitsOf(m, o)
		file, err := fuzzedFile(description, data, all)
		if err != nil {
			return // such as text that is not UTF-8
		}
		c, err := ReadCheckpoint(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		if err := c.Restore(t.Context(), m, o); err != nil {
			if !reflect.DeepEqual(before, bitsOf(m, o)) {
				t.Fatal("changed in spite of", err)
			}
			return
		}
		if err := SaveCheckpoint(t.Context(), filepath.Join(t.TempDir(), "again"), m, o, c.Position); err != nil {
			t.Fatal(err)
		}
	})
}

// fuzzedFile is a checkpoint whose tensors are cut from data, with checksums
// that are right where the description has any.
func fuzzedFile(description string, data []byte, all []arrays.Array) ([]byte, error) {
	var infos []safetensors.Info
	var whole []byte
	state, stateErr := parseCheckpointState(map[string]string{
		checkpointKey: description, checkpointKey + sumSuffix: arrays.Checksum([]byte(description)),
	})
	for _, a := range all {
		n := min(a.Bytes(), int64(len(data)))
		part := make([]byte, a.Bytes())
		copy(part, data[:n])
		data = data[n:]
		infos, whole = append(infos, a.Info), append(whole, part...)
		if state.Checksums != nil {
			state.Checksums[a.Name] = arrays.Checksum(part)
		}
	}
	metadata := map[string]string{checkpointKey: description}
	if stateErr == nil {
		var err error
		if metadata, err = sealed(checkpointKey, state); err != nil {
			return nil, err
		}
	}
	var file bytes.Buffer
	if _, err := safetensors.NewWriter(&file, infos, metadata); err != nil {
		return nil, err
	}
	file.Write(whole)
	return file.Bytes(), nil
}

// FuzzReadCheckpoint reads files that are anything.
func FuzzReadCheckpoint(f *testing.F) {
	m, o := fuzzedRun(f)
	path := filepath.Join(f.TempDir(), "seed")
	if err := SaveCheckpoint(f.Context(), path, m, o, Position{}); err != nil {
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
		if err := c.Restore(t.Context(), m, o); err != nil && !reflect.DeepEqual(before, bitsOf(m, o)) {
			t.Fatal("changed in spite of", err)
		}
	})
}

// FuzzManifest reads manifests that are anything, with the checksum that belongs to them,
// beside parts that are whole: either all is as it was, or it can be saved again.
func FuzzManifest(f *testing.F) {
	m, o := fuzzedRun(f)
	var s Snapshot
	if err := s.Take(m, o, Position{Step: 1}); err != nil {
		f.Fatal(err)
	}
	d := Directory{Path: f.TempDir(), Ranks: 2}
	if err := d.Save(f.Context(), &s); err != nil {
		f.Fatal(err)
	}
	dir := filepath.Join(d.Path, nameAfter(1))
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		f.Fatal(err)
	}
	begin := bytes.Index(data, []byte(`"checkpoint":`)) + len(`"checkpoint":`)
	f.Add(string(data[begin : len(data)-2]))
	f.Add(`{"version":3,"parts":{"tensors":[],"parts":[{"bytes":1,"crc32c":""}]}}`)
	f.Add(`{"version":3,"parts":{"tensors":[{"name":"x","dtype":"F32","shape":[9e9]}],"parts":[]}}`)
	f.Fuzz(func(t *testing.T, description string) {
		if _, err := parseManifest([]byte(description)); err == nil && description == "" {
			t.Fatal("nothing is a manifest")
		}
		text := fmt.Appendf(nil, `{"crc32c":%q,"checkpoint":%s}`, arrays.Checksum([]byte(description)), description)
		state, err := parseManifest(text)
		if err != nil {
			return
		}
		source, err := newPartsSource(dir, state)
		if err != nil {
			return
		}
		m, o := fuzzedRun(t)
		before := bitsOf(m, o)
		c := checkpointOf(source, state)
		if err := c.Restore(t.Context(), m, o); err != nil {
			if !reflect.DeepEqual(before, bitsOf(m, o)) {
				t.Fatal("changed in spite of", err)
			}
			return
		}
		if err := SaveCheckpoint(t.Context(), filepath.Join(t.TempDir(), "again"), m, o, c.Position); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSuspects: whatever is accepted goes on, and comes back as it was.
func FuzzSuspects(f *testing.F) {
	f.Add([]byte(`{"version":1,"operands":[{"tensor":"x","op":"forward","step":7,"steps":3,"saturated":[0,0.5,1]}]}`))
	f.Add([]byte(`{"version":1,"operands":[{"tensor":"x","steps":17},{"tensor":"x","steps":1,"flushed":[1e308]}]}`))
	f.Add([]byte(`{"version":1,"operands":[{"tensor":"x","op":"forward","step":8,"steps":1,"non_finite":[1]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s, again Suspects
		if s.UnmarshalJSON(text) != nil {
			return
		}
		first, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalJSON(first); err != nil {
			t.Fatal(err)
		}
		second, err := again.MarshalJSON()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s became %s: %v", first, second, err)
		}
		if err := s.Event(event(8, "x", fp8.Stats{NaN: 1})); err != nil {
			t.Fatal(err)
		}
		if e, ok := s.Of(8); !ok || e.Tensor != "x" {
			t.Fatalf("%s: a NaN is no evidence", first)
		}
	})
}

// FuzzWatch: whatever is accepted goes on, and comes back as it was.
func FuzzWatch(f *testing.F) {
	f.Add([]byte(`{"version":1,"series":[{"rule":0,"row":2,"first":3,"last":4,"past":[1,2,3]}]}`))
	f.Add([]byte(`{"version":1,"series":[{"rule":1,"tensor":"x","op":"forward","past":[-1e308]},{"rule":1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rules := []Rule{{Steps: 2}, {Series: SeriesAmax, Window: 4}}
		w, again := Watch{Rules: rules}, Watch{Rules: rules}
		if w.UnmarshalJSON(text) != nil {
			return
		}
		first, err := w.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalJSON(first); err != nil {
			t.Fatal(err)
		}
		second, err := again.MarshalJSON()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s became %s: %v", first, second, err)
		}
		w.Observe(SeriesLoss, 1<<40, math.NaN())
		w.Observe(SeriesLoss, 1<<40+1, math.NaN())
		if len(w.Alarms()) == 0 {
			t.Fatalf("%s: two NaN in a row raise no alarm", first)
		}
	})
}
