package checkpoint_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// differ compares two checkpoints and returns what is found by name.
func differ(t *testing.T, a, b *checkpoint.Checkpoint, o checkpoint.Options) map[string]checkpoint.Difference {
	t.Helper()
	all, err := checkpoint.Diff(t.Context(), a, b, nil, o)
	require.NoError(t, err)
	found := map[string]checkpoint.Difference{}
	for _, d := range all {
		found[d.Name] = d
	}
	require.Len(t, found, len(all))
	return found
}

// opened opens a checkpoint of the given tensors in a directory of its own.
func opened(t *testing.T, tensors ...safetensors.Tensor) *checkpoint.Checkpoint {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "model.safetensors", tensors...)
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// converted opens what a checkpoint becomes in a layout.
func converted(t *testing.T, c *checkpoint.Checkpoint, layoutName string) *checkpoint.Checkpoint {
	t.Helper()
	p, err := checkpoint.NewPlan(c, layout(t, layoutName), checkpoint.PlanOptions{})
	require.NoError(t, err)
	all, _ := convert(t, p, checkpoint.Options{})
	var tensors []safetensors.Tensor
	for _, s := range p.Shards {
		for _, info := range s.Infos() {
			tensors = append(tensors, all[info.Name])
		}
	}
	return opened(t, tensors...)
}

// everything returns the stored tensors of a checkpoint.
func everything(t *testing.T, c *checkpoint.Checkpoint) (tensors []safetensors.Tensor) {
	t.Helper()
	for _, e := range c.Entries() {
		v := safetensors.Tensor{Info: e.Info, Data: make([]byte, e.Bytes())}
		require.NoError(t, c.ReadBytes(e, 0, v.Data))
		tensors = append(tensors, v)
	}
	return tensors
}

func named(t *testing.T, tensors []safetensors.Tensor, name string) *safetensors.Tensor {
	t.Helper()
	i := slices.IndexFunc(tensors, func(v safetensors.Tensor) bool { return v.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return &tensors[i]
}

// blockFP8 returns the values of a golden DeepSeek weight by their definition.
func blockFP8(t *testing.T, tensors []safetensors.Tensor, name string) (values []float32) {
	codes, scales := named(t, tensors, name), named(t, tensors, name+"_scale_inv")
	for i, c := range codes.Data {
		row, col := i/codes.Shape[1], i%codes.Shape[1]
		at := row/128*scales.Shape[1] + col/128
		s := math.Float32frombits(binary.LittleEndian.Uint32(scales.Data[4*at:]))
		values = append(values, fp8.E4M3.Float32(c)*s)
	}
	return values
}

func halves(v *safetensors.Tensor) (values []float32) {
	for i := 0; i < len(v.Data); i += 2 {
		values = append(values, fp8.BFloat16(binary.LittleEndian.Uint16(v.Data[i:])).Float32())
	}
	return values
}

// TestDiffGolden compares golden checkpoints with what one loop over their values finds.
func TestDiffGolden(t *testing.T) {
	quantized, plain, source := golden(t, "llama-deepseek-fp8"), golden(t, "llama-dequant-bf16"), golden(t, "llama-bf16")
	codes, rounded := everything(t, quantized), everything(t, plain)
	found := differ(t, quantized, plain, checkpoint.Options{Strip: 1 << 12, Workers: 3})
	lossy := differ(t, source, quantized, checkpoint.Options{Strip: 1 << 12, Workers: 3})
	require.Len(t, found, len(rounded))
	for _, w := range quantized.Weights() {
		d, l := found[w.Name], lossy[w.Name]
		require.Equal(t, w.Len(), d.Elements)
		if w.Scheme == nil {
			require.Equal(t, checkpoint.SameBytes, d.Same, w.Name)
			require.True(t, d.Within(checkpoint.Tolerance{}))
			continue
		}
		require.Equal(t, safetensors.BF16, d.Type)
		want, got := blockFP8(t, codes, w.Name), halves(named(t, rounded, w.Name))
		requireFound(t, d, want, got)
		require.Zero(t, d.Rounded)
		if d.Differ > 0 {
			require.Equal(t, checkpoint.RoundedValues, d.Same, "values of float32 scales are no BF16")
			require.False(t, d.Within(checkpoint.Tolerance{}))
		}
		require.True(t, d.Within(checkpoint.Tolerance{Rounded: true}))
		requireFound(t, l, halves(named(t, everything(t, source), w.Name)), want)
		if l.Differ > 0 {
			require.Equal(t, checkpoint.Different, l.Same)
			require.True(t, l.Within(checkpoint.Tolerance{SQNR: l.SQNR(), Largest: l.Error.Largest}))
			require.False(t, l.Within(checkpoint.Tolerance{SQNR: l.SQNR() + 0.1, Largest: 1}))
			require.False(t, l.Within(checkpoint.Tolerance{SQNR: 1, Largest: l.Error.Largest * 0.9}))
		}
	}
}

// requireFound compares a difference with one loop over all values.
func requireFound(t *testing.T, d checkpoint.Difference, a, b []float32) {
	t.Helper()
	signal, noise, largest := 0.0, 0.0, 0.0
	differ, first, where := int64(0), int64(-1), int64(0)
	for i := range a {
		x, e := float64(a[i]), math.Abs(float64(a[i])-float64(b[i]))
		signal += x * x
		noise += e * e
		if e > largest {
			largest, where = e, int64(i)
		}
		if e > 0 {
			if differ++; first < 0 {
				first = int64(i)
			}
		}
	}
	require.Equal(t, []int64{differ, first, where}, []int64{d.Differ, d.First, d.Error.Where}, d.Name)
	require.Equal(t, largest, d.Error.Largest)
	if noise > 0 {
		require.InEpsilon(t, 10*math.Log10(signal/noise), d.SQNR(), 1e-9)
	} else {
		require.True(t, math.IsInf(d.SQNR(), 1))
	}
	require.Zero(t, d.NonFinite)
}

// TestDiffItself compares every golden checkpoint with itself.
func TestDiffItself(t *testing.T) {
	for name := range readManifest(t).Checkpoints {
		c := golden(t, name)
		for _, d := range differ(t, c, c, checkpoint.Options{Strip: 1000}) {
			require.Equal(t, checkpoint.SameBytes, d.Same, d.Name)
		}
	}
}

// TestDiffPlanted finds what was changed where it was changed.
func TestDiffPlanted(t *testing.T) {
	const name, norm, gone = "model.layers.1.mlp.up_proj.weight", "model.norm.weight", "lm_head.weight"
	a := golden(t, "llama-bf16")
	tensors := everything(t, a)
	put := func(name string, element int, x float32) {
		binary.LittleEndian.PutUint16(named(t, tensors, name).Data[2*element:], uint16(fp8.BFloat16FromFloat32(x)))
	}
	shape := a.Weight(name).Shape
	put(name, 3*shape[1]+5, 100)
	put(name, 7*shape[1]+1, float32(math.NaN()))
	put(name, 9*shape[1], float32(math.Inf(-1)))
	put(norm, 17, 1e-3)
	tensors = slices.DeleteFunc(tensors, func(v safetensors.Tensor) bool { return v.Name == gone })
	tensors = append(tensors, stored("more", safetensors.F32, 0, 2))
	b := opened(t, tensors...)
	for _, strip := range []int{100, 3000, 0} {
		all, err := checkpoint.Diff(t.Context(), a, b, nil, checkpoint.Options{Strip: strip})
		require.NoError(t, err)
		require.Equal(t, []string{gone, "more", name, norm}, []string{all[0].Name, all[1].Name, all[2].Name, all[3].Name})
		require.Equal(t, checkpoint.SameBytes, all[4].Same)
		require.Nil(t, all[0].B)
		require.Nil(t, all[1].A)
		require.Equal(t, checkpoint.Incomparable, all[1].Same)

		d := all[2]
		require.Equal(t, []int64{3, 2}, []int64{d.Differ, d.NonFinite})
		require.Equal(t, []int{3, 5}, d.Index(d.Error.Where))
		require.Equal(t, []int{3, 5}, d.Index(d.First))
		require.Equal(t, []int{7, 1}, d.Index(d.FirstNonFinite))
		require.InDelta(t, 100, d.Error.Largest, 1)
		require.False(t, d.Within(checkpoint.Tolerance{SQNR: -1000, Largest: 1000}), "a NaN is never allowed")
		require.Equal(t, []int{17}, all[3].Index(all[3].Error.Where))
		require.EqualValues(t, 1, all[3].Differ)
		require.True(t, all[3].Within(checkpoint.Tolerance{Largest: 10}))
	}
	some, err := checkpoint.Diff(t.Context(), a, b, func(weight string) bool { return weight == norm || weight == "more" }, checkpoint.Options{})
	require.NoError(t, err)
	require.Len(t, some, 2)
}

// TestDiffCodes changes a code and a scale of each of several layouts.
func TestDiffCodes(t *testing.T) {
	for name, part := range map[string]struct {
		codes, scales string
		differ        int // elements with the scale
	}{
		"llama-ct-mxfp4":       {"model.layers.1.mlp.up_proj.weight_packed", "model.layers.1.mlp.up_proj.weight_scale", 32},
		"llama-ct-fp8-dynamic": {"model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight_scale", 160},
		"llama-deepseek-fp8":   {"model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight_scale_inv", 128 * 128},
	} {
		a := golden(t, name)
		tensors := everything(t, a)
		named(t, tensors, part.codes).Data[11] ^= 1 // of a pair the first, as nibbles are
		d := differ(t, a, opened(t, tensors...), checkpoint.Options{Strip: 1 << 11})["model.layers.1.mlp.up_proj.weight"]
		at := []int{0, 11}
		if name == "llama-ct-mxfp4" {
			at = []int{0, 22}
		}
		require.EqualValues(t, 1, d.Differ, name)
		require.Equal(t, at, d.Index(d.Error.Where), name)

		tensors = everything(t, a)
		scales := named(t, tensors, part.scales)
		scales.Data[scales.DType.Size()-1]++
		d = differ(t, a, opened(t, tensors...), checkpoint.Options{Strip: 1 << 11})["model.layers.1.mlp.up_proj.weight"]
		require.Equal(t, checkpoint.Different, d.Same, name)
		zeros := int64(0)
		for i, x := range valuesOf(t, a.Weight("model.layers.1.mlp.up_proj.weight")) {
			row, col := i/160, i%160
			in := map[string]bool{"llama-ct-mxfp4": row == 0 && col < 32, "llama-ct-fp8-dynamic": row == 0, "llama-deepseek-fp8": row < 128 && col < 128}[name]
			if in && x == 0 {
				zeros++
			}
		}
		require.EqualValues(t, part.differ, d.Differ+zeros, name)
	}
}

func valuesOf(t *testing.T, w *checkpoint.Weight) []float32 {
	t.Helper()
	m, rows, cols := w.Dims()
	all := make([]float32, m*rows*cols)
	for i := range m {
		require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), w, i, 0, all[i*rows*cols:][:rows*cols]))
	}
	return all
}

// TestDiffTransposed compares experts of gpt-oss, which are stored as transposes, with values
// and with blocks of the same orientation as those.
func TestDiffTransposed(t *testing.T) {
	const name = "model.layers.0.mlp.experts.gate_up_proj"
	source := opened(t, random(name, 5, 3, 64, 96)) // 3 experts of 96 rows by 64 columns
	oss := converted(t, source, "gpt-oss")
	require.True(t, oss.Weight(name).Scheme.Transposed)
	back := converted(t, oss, "bf16")
	for _, strip := range []int{1 << 8, 1 << 10, 0} {
		d := differ(t, oss, back, checkpoint.Options{Strip: strip})[name]
		require.Equal(t, checkpoint.SameValues, d.Same, d.Why)
		require.EqualValues(t, 3*64*96, d.Elements)
	}
	tensors := everything(t, back)
	v := named(t, tensors, name)
	binary.LittleEndian.PutUint16(v.Data[2*(2*64*96+7*96+50):], uint16(fp8.BFloat16FromFloat32(9)))
	planted := opened(t, tensors...)
	for _, strip := range []int{1 << 8, 1 << 10, 0} {
		d := differ(t, oss, planted, checkpoint.Options{Strip: strip})[name]
		require.EqualValues(t, 1, d.Differ)
		require.Equal(t, []int{2, 50, 7}, d.Index(d.Error.Where))
		d = differ(t, planted, oss, checkpoint.Options{Strip: strip})[name]
		require.EqualValues(t, 1, d.Differ)
		require.Equal(t, []int{2, 7, 50}, d.Index(d.Error.Where))
	}
	blocks := converted(t, back, "deepseek-v3")
	require.NotNil(t, blocks.Weight(name).Scheme)
	want := differ(t, back, blocks, checkpoint.Options{})[name]
	got := differ(t, oss, blocks, checkpoint.Options{Strip: 1})[name]
	require.Equal(t, want.Differ, got.Differ)
	require.InEpsilon(t, want.SQNR(), got.SQNR(), 1e-9)
}

// TestDiffDoesNotDepend compares in strips of several sizes, by several workers.
func TestDiffDoesNotDepend(t *testing.T) {
	a, b := golden(t, "moe-bf16"), golden(t, "moe-ct-nvfp4a16")
	one, err := checkpoint.Diff(t.Context(), a, b, nil, checkpoint.Options{Workers: 1, Strip: 1 << 12})
	require.NoError(t, err)
	two, err := checkpoint.Diff(t.Context(), a, b, nil, checkpoint.Options{Workers: 5, Strip: 1 << 12})
	require.NoError(t, err)
	large, err := checkpoint.Diff(t.Context(), a, b, nil, checkpoint.Options{})
	require.NoError(t, err)
	for i := range one {
		require.Equal(t, one[i], two[i])
		require.Equal(t, one[i].Differ, large[i].Differ)
		require.Equal(t, one[i].Error.Where, large[i].Error.Where)
		if i > 0 && one[i].Same == checkpoint.Different && one[i-1].Same == checkpoint.Different {
			require.GreaterOrEqual(t, one[i].SQNR(), one[i-1].SQNR(), "the lowest first")
		}
	}
}

// TestDiffOdd compares what is no matrix of floats, or damaged.
func TestDiffOdd(t *testing.T) {
	ids := stored("ids", safetensors.I32, 0, 4)
	other := stored("ids", safetensors.I32, 0, 4)
	other.Data[9] = 1 // of element 2
	zero := stored("zero", safetensors.F32, 0, 2)
	negative := stored("zero", safetensors.F32, 0, 2)
	negative.Data[7] = 0x80
	nan := stored("nan", safetensors.F32, 0xFF, 2)
	odd := stored("nan", safetensors.F32, 0xFE, 2) // large numbers
	odd.Data[6], odd.Data[7], nan.Data[3], nan.Data[7] = 0x7F, 0x7F, 0x7F, 0x7F
	for i := range 4 {
		odd.Data[i] = []byte{1, 0, 0x80, 0x7F}[i] // another NaN; the second is 3.4e38
	}
	lost := stored("lost.weight", safetensors.F8E4M3, 1, 2, 2)
	scaled := stored("bad.weight", safetensors.F8E4M3, 1, 2, 2)
	scale := stored("bad.weight_scale_inv", safetensors.F32, 0xFF, 1, 1)
	good := stored("bad.weight_scale_inv", safetensors.F32, 0x3F, 1, 1)
	a := opened(t, ids, zero, nan, lost, scaled, scale, stored("shape", safetensors.F32, 0, 2, 3), stored("empty", safetensors.F32, 0, 0, 3),
		stored("type", safetensors.I32, 0, 2), stored("one", safetensors.F32, 0, 1))
	b := opened(t, other, negative, odd, lost, scaled, good, stored("shape", safetensors.F32, 0, 3, 2), stored("empty", safetensors.F32, 0, 0, 3),
		stored("type", safetensors.F32, 0, 2), stored("one", safetensors.F32, 0))
	found := differ(t, a, b, checkpoint.Options{})
	require.Equal(t, []int64{1, 2, 4}, []int64{found["ids"].Differ, found["ids"].First, found["ids"].Elements})
	require.Equal(t, checkpoint.Different, found["ids"].Same)
	ints := found["ids"]
	require.False(t, ints.Within(checkpoint.Tolerance{SQNR: 1}), "bytes have no error")
	require.True(t, math.IsNaN(ints.SQNR()))
	require.Equal(t, checkpoint.SameValues, found["zero"].Same)
	require.EqualValues(t, 1, found["zero"].ZeroSigns)
	require.EqualValues(t, 1, found["nan"].NonFinite)
	require.EqualValues(t, 1, found["nan"].FirstNonFinite)
	require.Equal(t, checkpoint.SameBytes, found["lost.weight"].Same)
	require.Equal(t, checkpoint.Incomparable, found["bad.weight"].Same)
	require.Contains(t, found["bad.weight"].Why, "NaN")
	require.Equal(t, "its shape is [2 3] and [3 2]", found["shape"].Why)
	require.Equal(t, "it is I32 and F32", found["type"].Why)
	require.Equal(t, checkpoint.SameBytes, found["empty"].Same)
	require.Equal(t, checkpoint.SameValues, found["one"].Same, "one scale may be [] or [1]")
}

// TestDiffNibbles counts elements of less than a byte, wherever strips end.
func TestDiffNibbles(t *testing.T) {
	for _, c := range []struct {
		safetensors.DType
		at, bit int // a bit of a byte that differs
		first   int64
	}{
		{safetensors.F4, 5, 3, 10}, {safetensors.F4, 5, 4, 11}, {safetensors.F6E2M3, 2, 1, 2}, {safetensors.F6E3M2, 4, 5, 6},
	} {
		a, b := stored("w", c.DType, 0, 2, 8), stored("w", c.DType, 0, 2, 8)
		b.Data[c.at] ^= 1 << c.bit
		last := len(b.Data) - 1
		b.Data[last] ^= 1 << 7 // of the last element
		for _, strip := range []int{1, 4, 1 << 20} {
			d := differ(t, opened(t, a), opened(t, b), checkpoint.Options{Strip: strip})["w"]
			require.Equal(t, []int64{16, 2, c.first}, []int64{d.Elements, d.Differ, d.First}, "%v, strips of %d", c.DType, strip)
		}
	}
}

// TestDiffInputs compares scales of inputs.
func TestDiffInputs(t *testing.T) {
	a := golden(t, "llama-fp8-static")
	tensors := everything(t, a)
	named(t, tensors, "model.layers.0.mlp.up_proj.input_scale").Data[2]++
	found := differ(t, a, opened(t, tensors...), checkpoint.Options{})
	for name, d := range found {
		if name != "model.layers.0.mlp.up_proj.weight" {
			require.Equal(t, checkpoint.SameBytes, d.Same, name)
			continue
		}
		require.Equal(t, checkpoint.Different, d.Same)
		require.True(t, d.Inputs)
		require.NotEqual(t, d.InputA, d.InputB)
		require.Zero(t, d.Differ)
		require.False(t, d.Within(checkpoint.Tolerance{SQNR: 1}))
	}
}

// TestDiffStops checks that a context stops it, and that files that end are an error.
func TestDiffStops(t *testing.T) {
	a, b := golden(t, "llama-bf16"), golden(t, "llama-ct-mxfp4")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := checkpoint.Diff(ctx, a, b, nil, checkpoint.Options{})
	require.ErrorIs(t, err, context.Canceled)

	var mu sync.Mutex
	heard := map[string]int64{}
	_, err = checkpoint.Diff(t.Context(), a, b, nil, checkpoint.Options{Strip: 1 << 12, Progress: progress.Func(func(op string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		heard[op] = total - done
	})})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"bytes": 0, "values": 0}, heard)

	dir := t.TempDir()
	write(t, dir, "model.safetensors", random("w", 1, 64, 64))
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 1000))
	_, err = checkpoint.Diff(t.Context(), c, opened(t, random("w", 2, 64, 64)), nil, checkpoint.Options{})
	require.ErrorContains(t, err, "model.safetensors")
	require.Equal(t, "same values", checkpoint.SameValues.String())
}
