package train

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// runs are the kinds of run that a checkpoint must carry on.
func runs() map[string]struct {
	nn.Config
	optim.Moments
} {
	type run = struct {
		nn.Config
		optim.Moments
	}
	smoothed := func(cfg nn.Config, s swiglu.Smoothing) nn.Config {
		cfg.Smoothing = &s
		return cfg
	}
	delayed := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*nn.Operands{&delayed.Forward, &delayed.InputGradient, &delayed.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 16, 16
	}
	random := nn.DefaultRounding(nn.NarrowE3M2)
	random.Stochastic = true
	all := map[string]run{
		"fp32":                {small(), optim.Moments{}},
		"fp8 just in time":    {withFP8(small(), nn.DefaultFP8()), optim.Moments{}},
		"fp8 delayed":         {withFP8(small(), delayed), optim.Moments{}},
		"smooth per channel":  {smoothed(withFP8(small(), nn.DefaultFP8()), swiglu.Smoothing{}), optim.Moments{}},
		"smooth delayed":      {smoothed(withFP8(small(), delayed), swiglu.Smoothing{Delay: 2}), optim.Moments{}},
		"stochastic fp8":      {small(), optim.Moments{Format: optim.MomentsFP8, Stochastic: true, Seed: 7, Block: 100}},
		"stochastic bf16":     {small(), optim.Moments{Format: optim.MomentsBF16, Stochastic: true}},
		"stochastic expanded": {small(), optim.Moments{Format: optim.MomentsFP8Expanded, Stochastic: true}},
		"gradients at random": {withFP8(small(), stochasticFP8(delayed, math.MaxUint64)), optim.Moments{}},
		"rounded":             {withRounding(small(), nn.DefaultRounding(nn.NarrowBF16)), optim.Moments{}},
		"rounded at random":   {withRounding(small(), random), optim.Moments{}},
		"rounded operators":   {withOperators(small()), optim.Moments{}},
	}
	for _, f := range nn.ActivationFormats()[1:] {
		all["activations in "+f.String()] = run{smoothed(withFP8(kept(small(), f), delayed), swiglu.Smoothing{Delay: 1}), optim.Moments{}}
	}
	for _, f := range optim.MomentFormats() {
		all["moments in "+f.String()] = run{smoothed(withFP8(small(), delayed), swiglu.Smoothing{Delay: 1}), optim.Moments{Format: f}}
	}
	return all
}

func newRun(t *testing.T, cfg nn.Config, m optim.Moments, seed uint64) (*nn.Llama, *optim.AdamW) {
	model, err := nn.NewLlama(cfg, seed)
	require.NoError(t, err)
	return model, &optim.AdamW{Clip: 1, WeightDecay: 0.01, Moments: m, Workers: cfg.Workers}
}

// bitsOf is all that a run is.
func bitsOf(m *nn.Llama, o *optim.AdamW) map[string][]byte {
	c, err := contentsOf(m, o, Position{})
	if err != nil {
		panic(err)
	}
	all := map[string][]byte{"state": fmt.Append(nil, m.Shared().Scaling().State(), o.State())}
	for _, a := range c.all {
		data := make([]byte, a.Count()*a.DType.Size())
		a.Put(data, 0, a.Count())
		all[a.Name] = data
	}
	return all
}

// TestResume runs 2n steps in one go, and n, a checkpoint and n others, which must be
// the same to the bit.
func TestResume(t *testing.T) {
	const n = 3
	for name, r := range runs() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run")
			model, optimizer := newRun(t, r.Config, r.Moments, 5)
			want := resume(t, model, optimizer, 0, n)
			position := Position{
				Step: n, Seed: math.MaxUint64, Batch: 4, Seq: 16,
				Schedule: optim.Schedule{Peak: 0.1, Warmup: 3}, Notes: map[string]string{"a": "ü"},
				Spikes: map[string]SpikeDetector{"loss": {Window: 3, Past: []float64{0.1, 1e-300}}}, Mu: []float64{1 / 3.0},
			}
			require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, position))
			want = append(want, resume(t, model, optimizer, n, n)...)

			cfg := r.Config
			cfg.Workers = 3
			restored, again := newRun(t, cfg, r.Moments, 99)
			resume(t, restored, again, 0, 1) // what was before does not matter
			got, err := LoadCheckpoint(t.Context(), path, restored, again)
			require.NoError(t, err)
			require.Equal(t, position, got)
			require.EqualValues(t, n, again.Steps())
			require.Equal(t, want[n:], resume(t, restored, again, n, n))
			require.True(t, reflect.DeepEqual(bitsOf(model, optimizer), bitsOf(restored, again)))
		})
	}
}

// TestCheckpointBeforeTheFirstStep has no moments yet.
func TestCheckpointBeforeTheFirstStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	model, optimizer := newRun(t, small(), optim.Moments{}, 5)
	require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
	restored, again := newRun(t, small(), optim.Moments{}, 6)
	resume(t, restored, again, 0, 1)
	_, err := LoadCheckpoint(t.Context(), path, restored, again)
	require.NoError(t, err)
	require.Zero(t, again.MomentBytes())
	require.Equal(t, resume(t, model, optimizer, 0, 2), resume(t, restored, again, 0, 2))
}

// TestMatrixWithoutDecay: weight decay does not matter to the shape of a matrix.
func TestMatrixWithoutDecay(t *testing.T) {
	for _, format := range optim.MomentFormats() {
		path := filepath.Join(t.TempDir(), "run")
		model, optimizer := newRun(t, small(), optim.Moments{Format: format}, 5)
		embedding := model.Params()[0]
		embedding.Decay = false
		want := resume(t, model, optimizer, 0, 1)
		require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
		want = append(want, resume(t, model, optimizer, 1, 1)...)

		f, err := safetensors.Open(path)
		require.NoError(t, err)
		for _, name := range []string{embedding.Name, "optimizer.first." + embedding.Name, "optimizer.second." + embedding.Name} {
			info, _ := f.Info(name)
			require.Equal(t, []int{embedding.Rows, embedding.Cols}, info.Shape, name)
		}
		info, _ := f.Info("optimizer.first." + someGain)
		require.Equal(t, []int{small().Dim}, info.Shape)
		require.NoError(t, f.Close())
		c, err := OpenCheckpoint(path)
		require.NoError(t, err)
		restored, err := c.NewLlama(1)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		restored.Params()[0].Decay = false
		_, again := newRun(t, small(), optim.Moments{Format: format}, 5)
		_, err = LoadCheckpoint(t.Context(), path, restored, again)
		require.NoError(t, err)
		require.Equal(t, want[1:], resume(t, restored, again, 1, 1))
	}
}

// TestCheckpointIsALlama: its parameters load by name, and its configuration makes
// the model.
func TestCheckpointIsALlama(t *testing.T) {
	r := runs()["smooth delayed"]
	path := filepath.Join(t.TempDir(), "run")
	model, optimizer := newRun(t, r.Config, r.Moments, 5)
	require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
	c, err := OpenCheckpoint(path)
	require.NoError(t, err)
	defer c.Close()
	made, err := c.NewLlama(0)
	require.NoError(t, err)
	require.Equal(t, model.Config(), made.Config())
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range model.Params() {
		values, err := f.Float32s(p.Name)
		require.NoError(t, err)
		require.Equal(t, p.Value, values)
	}
	norm, _ := f.Info("model.norm.weight")
	require.Equal(t, []int{32}, norm.Shape)
}

// savedRun returns a run of every kind of state, and the path of its checkpoint.
func savedRun(t *testing.T) (*nn.Llama, *optim.AdamW, string) {
	r := runs()["smooth delayed"]
	r.Moments.Format = optim.MomentsFP8
	model, optimizer := newRun(t, r.Config, r.Moments, 5)
	resume(t, model, optimizer, 0, 2)
	path := filepath.Join(t.TempDir(), "run")
	require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{Step: 2}))
	return model, optimizer, path
}

// forged is what a checkpoint consists of, to be changed.
type forged struct {
	state    checkpointState
	metadata map[string]string
	tensors  []safetensors.Tensor
}

func (f *forged) tensor(name string) *safetensors.Tensor {
	for i := range f.tensors {
		if f.tensors[i].Name == name {
			return &f.tensors[i]
		}
	}
	return nil
}

// forge changes the checkpoint at path, checksums included.
func forge(t *testing.T, path string, change func(f *forged)) string {
	file, err := safetensors.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var f forged
	f.state, err = parseCheckpointState(file.Metadata())
	require.NoError(t, err)
	for _, info := range file.Tensors() {
		data, err := file.Bytes(info.Name)
		require.NoError(t, err)
		f.tensors = append(f.tensors, safetensors.Tensor{Info: info, Data: data})
	}
	change(&f)
	for _, x := range f.tensors {
		f.state.Checksums[x.Name] = arrays.Checksum(x.Data)
	}
	if f.metadata == nil {
		f.metadata, err = sealed(checkpointKey, f.state)
		require.NoError(t, err)
	}
	out := filepath.Join(t.TempDir(), "forged")
	require.NoError(t, safetensors.WriteFile(out, f.tensors, f.metadata))
	return out
}

const (
	someWeight = "model.layers.1.mlp.up_proj.weight"
	someGain   = "model.layers.1.input_layernorm.weight"
)

func TestRestoreRefuses(t *testing.T) {
	model, optimizer, path := savedRun(t)
	resume(t, model, optimizer, 2, 1)
	before := bitsOf(model, optimizer)
	nan, inf := math.Float32frombits(0x7FC00000), float32(math.Inf(1))
	set := func(f *forged, name string, i int, v float32) { arrays.Floats{v}.Put(f.tensor(name).Data[4*i:], 0, 1) }
	config := func(f *forged, old, new string) {
		f.state.Model.Config = []byte(strings.Replace(string(f.state.Model.Config), old, new, 1))
	}
	for want, change := range map[string]func(f *forged){
		"it is of version 2: this package reads version 3":                     func(f *forged) { f.state.Version = 2 },
		"model.config.dim was 64 when it was saved and is 32":                  func(f *forged) { config(f, `"dim":32`, `"dim":64`) },
		"model.config.vocab was -1 when":                                       func(f *forged) { config(f, `"vocab":128`, `"vocab":-1`) },
		`of kind "mixer", version 1, when it was saved and is of kind "llama"`: func(f *forged) { f.state.Model.Kind = "mixer" },
		`model.config was "x" when it was saved and is set`:                    func(f *forged) { f.state.Model.Config = []byte(`"x"`) },
		"model.config.fp8 was not set when it was saved and is set":            func(f *forged) { config(f, `"fp8":{`, `"fp8":null,"was":{`) },
		"AdamW.Beta1 was 0.8 when it was saved and is 0.9":                     func(f *forged) { f.state.Optimizer.Options.Beta1 = 0.8 },
		"AdamW.Beta2 was 0.8 when it was saved and is 0.95":                    func(f *forged) { f.state.Optimizer.Options.Beta2 = 0.8 },
		"AdamW.Eps was 1 when it was saved and is 1e-08":                       func(f *forged) { f.state.Optimizer.Options.Eps = 1 },
		"AdamW.WeightDecay was 1 when it was saved and is 0.01":                func(f *forged) { f.state.Optimizer.Options.WeightDecay = 1 },
		"AdamW.Clip was 2 when it was saved and is 1":                          func(f *forged) { f.state.Optimizer.Options.Clip = 2 },
		"AdamW.Moments.Block was 64 when it was saved and is 128":              func(f *forged) { f.state.Optimizer.Options.Moments.Block = 64 },
		"steps are -1":                              func(f *forged) { f.state.Optimizer.Steps = -1 },
		"power2 is 1: it must be at least 0":        func(f *forged) { f.state.Optimizer.Power2 = 1 },
		"Position.Step is -3":                       func(f *forged) { f.state.Position.Step = -3 },
		"there is no tensor \"" + someWeight + "\"": func(f *forged) { f.tensor(someWeight).Name = "x" },
		"tensor \"x\": the model has none of that name": func(f *forged) {
			f.tensors = append(f.tensors, safetensors.Tensor{Info: safetensors.Info{Name: "x", DType: "U8", Shape: []int{0}}})
		},
		"is F32 [32 48]: the model's is F32 [48 32]":                                   func(f *forged) { f.tensor(someWeight).Shape = []int{32, 48} },
		"is F8_E5M2 [48 32]: the model's is F8_E4M3":                                   func(f *forged) { f.tensor("optimizer.first." + someWeight).DType = "F8_E5M2" },
		"tensor \"" + someWeight + "\": element 7 is NaN: want a finite number":        func(f *forged) { set(f, someWeight, 7, nan) },
		someGain + "\": element 3 is +Inf":                                             func(f *forged) { set(f, someGain, 3, inf) },
		"optimizer.first." + someWeight + ".scale\": element 11 is NaN":                func(f *forged) { set(f, "optimizer.first."+someWeight+".scale", 11, nan) },
		"optimizer.second." + someGain + ".scale\": element 0 is 0: want a finite num": func(f *forged) { set(f, "optimizer.second."+someGain+".scale", 0, 0) },
		"optimizer.first." + someWeight + "\": element 5 is NaN":                       func(f *forged) { f.tensor("optimizer.first." + someWeight).Data[5] = 0x7F },
		"optimizer.second." + someWeight + "\": element 6 is -0: want a finite number that is not negative": func(f *forged) {
			f.tensor("optimizer.second." + someWeight).Data[6] = 0x80
		},
		`state of "model.layers.0.mlp.up_proj.input forward": scale NaN`: func(f *forged) {
			h := f.state.Scaling.Histories.Histories["model.layers.0.mlp.up_proj.input forward"]
			h.Blocks[0].Scale = scaling.Float(nan)
			f.state.Scaling.Histories.Histories["model.layers.0.mlp.up_proj.input forward"] = h
		},
		"has 1 steps, the model's 15": func(f *forged) {
			h := f.state.Scaling.Histories.Histories["model.layers.0.mlp.up_proj.input forward"]
			h.Blocks[0].Past = h.Blocks[0].Past[:1]
			f.state.Scaling.Histories.Histories["model.layers.0.mlp.up_proj.input forward"] = h
		},
		"there is no scaling history of \"model.layers.0.mlp.up_proj.input forward\"": func(f *forged) {
			delete(f.state.Scaling.Histories.Histories, "model.layers.0.mlp.up_proj.input forward")
		},
		"scaling history of \"x\": the model has none": func(f *forged) {
			f.state.Scaling.Histories.Histories["x"] = f.state.Scaling.Histories.Histories["model.layers.0.mlp.up_proj.input forward"]
		},
		`there is no smoothing state of "model.layers.1.mlp"`: func(f *forged) { delete(f.state.Scaling.Smoothers, "model.layers.1.mlp") },
		"it is no checkpoint of a run":                        func(f *forged) { f.metadata = map[string]string{"format": "pt"} },
		"is damaged: its CRC-32C is": func(f *forged) {
			f.metadata, _ = sealed(checkpointKey, f.state)
			f.metadata[checkpointKey] = strings.Replace(f.metadata[checkpointKey], `"steps":2`, `"steps":3`, 1)
		},
		`unknown field "future"`: func(f *forged) {
			f.metadata, _ = sealed(checkpointKey, f.state)
			text := `{"future":1,` + f.metadata[checkpointKey][1:]
			f.metadata = map[string]string{checkpointKey: text, checkpointKey + sumSuffix: arrays.Checksum([]byte(text))}
		},
	} {
		_, err := LoadCheckpoint(t.Context(), forge(t, path, change), model, optimizer)
		require.ErrorContains(t, err, want)
		require.Regexp(t, "^train: (restoring a )?checkpoint", err.Error())
		require.True(t, reflect.DeepEqual(before, bitsOf(model, optimizer)), want)
	}
	tokens := []int32{1, 2}
	_, err := model.Loss(t.Context(), tokens, tokens, 1, 2)
	require.NoError(t, err)
	_, err = LoadCheckpoint(t.Context(), forge(t, path, func(*forged) {}), model, optimizer)
	require.NoError(t, err, "without a change")
	require.ErrorContains(t, model.Backward(t.Context()), "without Loss")
	first, _ := optimizer.MomentStats()
	require.Zero(t, first.Elements)
}

func TestRestoreRefusesExpandedMoments(t *testing.T) {
	model, optimizer := newRun(t, small(), optim.Moments{Format: optim.MomentsFP8Expanded}, 5)
	resume(t, model, optimizer, 0, 1)
	path := filepath.Join(t.TempDir(), "run")
	require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
	name := "optimizer.first." + someGain
	for want, change := range map[string]func(f *forged){
		name + ".amax\": element 0 is -1: want a finite number that is not negative": func(f *forged) {
			arrays.Floats{-1}.Put(f.tensor(name+".amax").Data, 0, 1)
		},
		name + ".power\": element 0 is 0: want a finite number above 0": func(f *forged) { f.tensor(name + ".power").Data[0] = 0 },
	} {
		_, err := LoadCheckpoint(t.Context(), forge(t, path, change), model, optimizer)
		require.ErrorContains(t, err, want)
	}
}

// TestOptionsThatMeanTheSame do not keep a checkpoint from being loaded; others do.
func TestOptionsThatMeanTheSame(t *testing.T) {
	for _, test := range []struct {
		saved, present optim.Moments
		same           bool
	}{
		{optim.Moments{}, optim.Moments{Block: 7, Stochastic: true, Seed: 3}, true},
		{optim.Moments{Format: optim.MomentsFP8}, optim.Moments{Format: optim.MomentsFP8, Block: 128, Seed: 3}, true},
		{optim.Moments{Format: optim.MomentsBF16, Stochastic: true, Seed: 3}, optim.Moments{Format: optim.MomentsBF16, Stochastic: true, Seed: 3, Block: 9}, true},
		{optim.Moments{Format: optim.MomentsFP8, Stochastic: true, Seed: 3}, optim.Moments{Format: optim.MomentsFP8, Stochastic: true}, false},
		{optim.Moments{Format: optim.MomentsFP8}, optim.Moments{Format: optim.MomentsFP8Expanded}, false},
	} {
		model, optimizer := newRun(t, small(), test.saved, 5)
		resume(t, model, optimizer, 0, 1)
		path := filepath.Join(t.TempDir(), "run")
		require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
		optimizer = &optim.AdamW{Clip: 1, WeightDecay: 0.01, Beta1: 0.9, Eps: 1e-8, Moments: test.present}
		_, err := LoadCheckpoint(t.Context(), path, model, optimizer)
		if test.same {
			require.NoError(t, err, "%+v", test)
		} else {
			require.ErrorContains(t, err, "AdamW.Moments.", "%+v", test)
		}
	}
}

// TestDamagedTensor: one bit of a weight is another number, which only the checksum
// tells.
func TestDamagedTensor(t *testing.T) {
	model, optimizer, path := savedRun(t)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	damaged := filepath.Join(t.TempDir(), "damaged")
	require.NoError(t, os.WriteFile(damaged, data, 0o666))
	_, err = LoadCheckpoint(t.Context(), damaged, model, optimizer)
	require.ErrorContains(t, err, "is damaged: its CRC-32C is")

	require.NoError(t, os.WriteFile(damaged, data[:len(data)-1], 0o666))
	_, err = LoadCheckpoint(t.Context(), damaged, model, optimizer)
	require.ErrorContains(t, err, "run past the data")
	_, err = LoadCheckpoint(t.Context(), filepath.Join(t.TempDir(), "none"), model, optimizer)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestSaveRefuses: what could not be restored does not replace what can.
func TestSaveRefuses(t *testing.T) {
	model, optimizer, path := savedRun(t)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	model.Param(someWeight).Value[9] = float32(math.NaN())
	require.ErrorContains(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}), "tensor \""+someWeight+"\": element 9 is NaN")
	model.Param(someWeight).Value[9] = 0
	require.ErrorContains(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{Step: -1}), "Position.Step is -1")
	other, _ := newRun(t, tiny, optim.Moments{}, 1)
	require.ErrorContains(t, SaveCheckpoint(t.Context(), path, other, optimizer, Position{}), "it had")
	requireOnly(t, path, old)
	require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
}

// requireOnly makes sure that there is a file and nothing beside it.
func requireOnly(t *testing.T, path string, content []byte) {
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, got)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// stalling is an array that calls stall when it is half written.
type stalling struct {
	arrays.Floats
	stall func()
}

func (s stalling) Put(dst []byte, lo, hi int) {
	if lo > 0 {
		s.stall()
	}
	s.Floats.Put(dst, lo, hi)
}

func stallingArrays(stall func()) []arrays.Array {
	const n = 1 << 15
	return []arrays.Array{arrays.New("x", []int{n}, stalling{make(arrays.Floats, n), stall}, arrays.Finite)}
}

// TestSaveFails: an error in the middle of writing leaves the old file and nothing
// else.
func TestSaveFails(t *testing.T) {
	_, _, path := savedRun(t)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.PanicsWithError(t, "disk", func() {
		arrays.Write(meter.New(t.Context(), nil, "save", 0), path, stallingArrays(func() { panic(errors.New("disk")) }), nil)
	})
	requireOnly(t, path, old)
}

// TestSaveIsKilled kills a process that is in the middle of a save.
func TestSaveIsKilled(t *testing.T) {
	const variable = "OCTAVO_TEST_SAVE"
	if path := os.Getenv(variable); path != "" {
		arrays.Write(meter.New(t.Context(), nil, "save", 0), path, stallingArrays(func() {
			fmt.Println("\nhalf written")
			select {}
		}), nil)
		return
	}
	model, optimizer, path := savedRun(t)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	child := exec.Command(os.Args[0], "-test.run=^TestSaveIsKilled$")
	child.Env = append(os.Environ(), variable+"="+path)
	output, err := child.StdoutPipe()
	require.NoError(t, err)
	testutil.NoProcess(t, child.Start())
	lines := bufio.NewScanner(output)
	for lines.Scan() && lines.Text() != "half written" {
	}
	require.Equal(t, "half written", lines.Text())
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, old, got)
	_, err = LoadCheckpoint(t.Context(), path, model, optimizer)
	require.NoError(t, err)
}
