package checkpoint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// stored returns a tensor whose bytes are all the same.
func stored(name string, d safetensors.DType, fill byte, shape ...int) safetensors.Tensor {
	info := safetensors.Info{Name: name, DType: d, Shape: shape}
	data := make([]byte, info.Bytes())
	for i := range data {
		data[i] = fill
	}
	return safetensors.Tensor{Info: info, Data: data}
}

// write makes a file of tensors in a directory.
func write(t testing.TB, dir, name string, tensors ...safetensors.Tensor) {
	t.Helper()
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, name), tensors, checkpoint.Metadata()))
}

// text makes a file of text in a directory.
func text(t *testing.T, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

func TestOpenForms(t *testing.T) {
	dir := t.TempDir()
	a, b := stored("a.weight", safetensors.BF16, 1, 2, 4), stored("b.weight", safetensors.BF16, 2, 2, 4)
	write(t, dir, "one.safetensors", a)
	write(t, dir, "two.safetensors", b)
	text(t, dir, "config.json", `{"tie_word_embeddings": true}`)
	text(t, dir, "tokenizer.json", `{}`)
	for path, want := range map[string]int{dir: 2, filepath.Join(dir, "two.safetensors"): 1} {
		c, err := checkpoint.Open(path)
		require.NoError(t, err)
		require.Len(t, c.Weights(), want)
		require.True(t, c.Config.TiedHead())
		require.Nil(t, c.Index)
		require.NoError(t, c.Close())
	}
	text(t, dir, "model.safetensors.index.json", `{"metadata":{"total_size":16},"weight_map":{"b.weight":"two.safetensors"}}`)
	for _, path := range []string{dir, filepath.Join(dir, "model.safetensors.index.json")} {
		c, err := checkpoint.Open(path)
		require.NoError(t, err)
		require.Equal(t, []string{"two.safetensors"}, c.Files())
		require.Equal(t, []string{"config.json", "one.safetensors", "tokenizer.json"}, c.Others())
		require.Equal(t, c.Index.TotalSize, c.TotalSize())
		data := make([]byte, 4)
		e, ok := c.Entry("b.weight")
		require.True(t, ok)
		require.NoError(t, c.ReadBytes(e, 12, data))
		require.Equal(t, []byte{2, 2, 2, 2}, data)
		require.NoError(t, c.Close())
	}
}

// TestOpenDamaged has, of everything that can be wrong with files, one line that names it.
func TestOpenDamaged(t *testing.T) {
	a, b := stored("a.weight", safetensors.BF16, 1, 2, 4), stored("b.weight", safetensors.BF16, 2, 2, 4)
	index := func(m string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			write(t, dir, "one.safetensors", a)
			write(t, dir, "two.safetensors", b)
			text(t, dir, checkpoint.IndexName, `{"weight_map":`+m+`}`)
		}
	}
	for name, c := range map[string]struct {
		make func(*testing.T, string)
		want string
		kind error
	}{
		"nothing": {func(*testing.T, string) {}, "it has no index and no .safetensors file", checkpoint.ErrIndex},
		"below": {func(t *testing.T, dir string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "models/m00/deeper"), 0o777))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o777))
			for i := range 14 {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, fmt.Sprintf("models/m%02d", i)), 0o777))
				write(t, dir, fmt.Sprintf("models/m%02d/one.safetensors", i), a)
				write(t, dir, fmt.Sprintf("models/m%02d/two.safetensors", i), b)
			}
			write(t, dir, "models/m00/deeper/one.safetensors", a)
			text(t, dir, "other/config.json", "{}")
		}, "no .safetensors file; directories in it that have: models/m00, models/m01, models/m02, models/m03, models/m04, " +
			"models/m05, models/m06, models/m07, models/m08, models/m09, models/m10, models/m11 and 2 others", checkpoint.ErrIndex},
		"no map":      {func(t *testing.T, dir string) { text(t, dir, checkpoint.IndexName, `{}`) }, "it has no weight_map", checkpoint.ErrIndex},
		"empty map":   {index(`{}`), "it names no tensor", checkpoint.ErrIndex},
		"no index":    {func(t *testing.T, dir string) { text(t, dir, checkpoint.IndexName, `[1`) }, "unexpected end of JSON", checkpoint.ErrIndex},
		"absent file": {index(`{"a.weight":"one.safetensors","c.weight":"three.safetensors"}`), `three.safetensors: the index names it, for tensor "c.weight"`, checkpoint.ErrIndex},
		"absent":      {index(`{"a.weight":"one.safetensors","c.weight":"one.safetensors"}`), `one.safetensors: it lacks tensor "c.weight"`, checkpoint.ErrIndex},
		"elsewhere":   {index(`{"a.weight":"two.safetensors","b.weight":"two.safetensors"}`), `two.safetensors: it lacks tensor "a.weight", which the index has in it`, checkpoint.ErrIndex},
		"moved":       {index(`{"a.weight":"two.safetensors","b.weight":"one.safetensors"}`), `tensor "a.weight" is here, and the index has it in two.safetensors (and 3 problems more)`, checkpoint.ErrIndex},
		"unlisted": {func(t *testing.T, dir string) {
			index(`{"a.weight":"both.safetensors"}`)(t, dir)
			write(t, dir, "both.safetensors", a, b)
		}, `both.safetensors: tensor "b.weight" is not in the index`, checkpoint.ErrIndex},
		"outside":     {index(`{"a.weight":"../one.safetensors"}`), `file "../one.safetensors" does not lie in the checkpoint's directory`, checkpoint.ErrIndex},
		"no name":     {index(`{"a.weight":1}`), `tensor "a.weight": its file is 1`, checkpoint.ErrIndex},
		"named twice": {index(`{"a.weight":"one.safetensors","a.weight":"two.safetensors"}`), `tensor "a.weight" is named twice`, checkpoint.ErrIndex},
		"duplicate": {func(t *testing.T, dir string) {
			write(t, dir, "1.safetensors", a)
			write(t, dir, "2.safetensors", b, a)
		}, `2.safetensors: tensor "a.weight" is in 1.safetensors, too`, checkpoint.ErrIndex},
		"config": {func(t *testing.T, dir string) {
			write(t, dir, "1.safetensors", a)
			text(t, dir, "config.json", `{"a":`)
		}, "config.json: unexpected end", checkpoint.ErrConfig},
		"null": {func(t *testing.T, dir string) { write(t, dir, "1.safetensors", a); text(t, dir, "config.json", `null`) }, "config.json: it is null", checkpoint.ErrConfig},
		"quantization": {func(t *testing.T, dir string) {
			write(t, dir, "1.safetensors", a)
			text(t, dir, "config.json", `{"quantization_config":[]}`)
		}, "quantization_config: json: cannot unmarshal", checkpoint.ErrConfig},
		"total size": {func(t *testing.T, dir string) {
			text(t, dir, checkpoint.IndexName, `{"metadata":{"total_size":-1},"weight_map":{}}`)
		}, "total_size is -1", checkpoint.ErrIndex},
		"truncated": {func(t *testing.T, dir string) {
			write(t, dir, "1.safetensors", a)
			require.NoError(t, os.Truncate(filepath.Join(dir, "1.safetensors"), 100))
		}, "1.safetensors", safetensors.ErrFile},
		"two indexes": {func(t *testing.T, dir string) {
			text(t, dir, "a.safetensors.index.json", ``)
			text(t, dir, "b.safetensors.index.json", ``)
		}, "it has 2 indexes", checkpoint.ErrIndex},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(t, dir)
			_, err := checkpoint.Open(dir)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, c.kind)
		})
	}
	_, err := checkpoint.Open(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOpenLenient(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "1.safetensors", stored("a.weight", safetensors.BF16, 1, 2, 4), stored("b.weight", safetensors.BF16, 1, 2, 4))
	write(t, dir, "2.safetensors", stored("a.weight", safetensors.BF16, 2, 2, 4))
	text(t, dir, checkpoint.IndexName, `{"weight_map":{"a.weight":"2.safetensors","c.weight":"3.safetensors","b.weight":"1.safetensors"}}`)
	c, problems, err := checkpoint.OpenLenient(dir)
	require.NoError(t, err)
	defer c.Close()
	require.Len(t, problems, 2)
	require.Len(t, c.Weights(), 2)
	data := make([]byte, 1)
	require.NoError(t, c.ReadBytes(c.Weight("a.weight").Parts[checkpoint.Codes], 0, data))
	require.Equal(t, byte(2), data[0], "what the index names")
}

// TestProblems has what is wrong with codes and scales.
func TestProblems(t *testing.T) {
	e4m3, f32, u8 := safetensors.F8E4M3, safetensors.F32, safetensors.U8
	for name, c := range map[string]struct {
		config  string
		tensors []safetensors.Tensor
		want    string // "" for none
	}{
		"sound":            {``, []safetensors.Tensor{stored("m.weight", e4m3, 1, 130, 4), stored("m.weight_scale_inv", f32, 1, 2, 1)}, ""},
		"no scale":         {``, []safetensors.Tensor{stored("m.weight", e4m3, 1, 130, 4)}, `tensor "m.weight", F8_E4M3 [130 4], has codes without scales: as fp8-block: there is no "m.weight_scale_inv"`},
		"transposed":       {``, []safetensors.Tensor{stored("m.weight", e4m3, 1, 130, 4), stored("m.weight_scale_inv", f32, 1, 1, 2)}, `"m.weight_scale_inv" has shape [1 2]: want [2 1] for blocks of 128x128`},
		"other block":      {`{"quantization_config":{"quant_method":"fp8","weight_block_size":[64,64]}}`, []safetensors.Tensor{stored("m.weight", e4m3, 1, 130, 4), stored("m.weight_scale_inv", f32, 1, 3, 1)}, ""},
		"scale of a norm":  {``, []safetensors.Tensor{stored("norm.scale", f32, 1, 64)}, ""},
		"integers":         {``, []safetensors.Tensor{stored("m.weight", e4m3, 1, 130, 4), stored("m.weight_scale_inv", safetensors.I32, 1, 2, 1)}, `"m.weight_scale_inv" is I32`},
		"no codes":         {``, []safetensors.Tensor{stored("m.weight", safetensors.BF16, 1, 130, 4), stored("m.weight_scale", f32, 1)}, `tensor "m.weight_scale" looks like the scales of a weight "m.weight"`},
		"no outer":         {``, []safetensors.Tensor{stored("m.weight_packed", u8, 1, 4, 16), stored("m.weight_scale", e4m3, 1, 4, 2)}, `there is no "m.weight_global_scale"`},
		"half of the grid": {``, []safetensors.Tensor{stored("m.weight_packed", u8, 1, 4, 32), stored("m.weight_scale", u8, 1, 4, 1)}, `"m.weight_scale" has shape [4 1]: want [4 2]`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "model.safetensors", c.tensors...)
			if c.config != "" {
				text(t, dir, "config.json", c.config)
			}
			model, err := checkpoint.Open(dir)
			require.NoError(t, err)
			defer model.Close()
			problems := model.Problems()
			if c.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.ErrorContains(t, problems[0], c.want)
			require.ErrorIs(t, problems[0], checkpoint.ErrLayout)
			_, err = checkpoint.NewPlan(model, checkpoint.Layouts()[0], checkpoint.PlanOptions{})
			require.ErrorIs(t, err, checkpoint.ErrLayout)
		})
	}
}

// TestDamagedScales has scales that cannot be.
func TestDamagedScales(t *testing.T) {
	dir := t.TempDir()
	nan := stored("a.weight_scale_inv", safetensors.F32, 0, 2, 1)
	copy(nan.Data[4:], []byte{0, 0, 0xC0, 0x7F})
	negative := stored("b.weight_scale", safetensors.F8E4M3, 0x38, 4, 1)
	negative.Data[3] = 0xB8
	write(t, dir, "model.safetensors",
		stored("a.weight", safetensors.F8E4M3, 1, 130, 4), nan,
		stored("b.weight_packed", safetensors.U8, 1, 4, 8), negative, stored("b.weight_global_scale", safetensors.F32, 0x3f, 1),
		stored("c.weight_packed", safetensors.U8, 1, 4, 8), stored("c.weight_scale", safetensors.F8E4M3, 0x38, 4, 1), stored("c.weight_global_scale", safetensors.F32, 0, 1))
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	for name, want := range map[string]string{
		"a.weight": "NaN", "b.weight": "scale 3 is 0xb8, a negative E4M3", "c.weight": "divisor",
	} {
		_, err := c.Weight(name).Matrix(0)
		require.ErrorContains(t, err, name[:1])
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, checkpoint.ErrLayout)
	}
	var r checkpoint.Reader
	first, err := r.Tensor(c.Weight("a.weight"), 0, 0, 128)
	require.NoError(t, err, "the scale that is none is not of these rows")
	require.Equal(t, []int{128, 4}, first.Shape)
}

// TestRowsThatAreNotThere: they are an error that names the file, the tensor and the rows.
func TestRowsThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "model.safetensors", stored("a.weight", safetensors.F8E4M3, 1, 130, 4), stored("a.weight_scale_inv", safetensors.F32, 0x3f, 2, 1),
		stored("b.weight", safetensors.BF16, 1, 2, 3, 4), stored("c.weight", safetensors.F32, 1, 3, 0))
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	var r checkpoint.Reader
	for _, x := range []struct {
		name          string
		matrix, lo, n int
		says          string
	}{
		{"a.weight", 0, 128, 12, `tensor "a.weight" has shape [130 4], and not rows [128, 131) of matrix 0`},
		{"a.weight", 1, 0, 4, `tensor "a.weight" has shape [130 4], and not rows [0, 1) of matrix 1`},
		{"a.weight", 0, -1, 4, "and not rows [-1, 0) of matrix 0"},
		{"a.weight", 0, 1, 4, `tensor "a.weight": row 1 is inside a block of 128 rows`},
		{"a.weight", 0, 0, 5, `tensor "a.weight" has rows of 4 columns, of which 5 values are not a whole number`},
		{"b.weight", 1, 2, 8, `tensor "b.weight" has shape [2 3 4], and not rows [2, 4) of matrix 1`},
		{"b.weight", -1, 0, 4, "of matrix -1"},
		{"c.weight", 0, 0, 1, `tensor "c.weight" has rows of 0 columns`},
	} {
		err := checkpoint.ReadValues(&r, c.Weight(x.name), x.matrix, x.lo, make([]float32, x.n))
		require.ErrorContains(t, err, filepath.Join(dir, "model.safetensors")+": tensor ")
		require.ErrorContains(t, err, x.says)
	}
	require.NoError(t, checkpoint.ReadValues(&r, c.Weight("a.weight"), 0, 128, make([]float32, 8)))
}

// FuzzReadValues opens a damaged file and reads rows of what it holds, and rows that it does not.
func FuzzReadValues(f *testing.F) {
	for i, tensors := range [][]safetensors.Tensor{
		{stored("a.weight", safetensors.F8E4M3, 1, 130, 4), stored("a.weight_scale_inv", safetensors.F32, 0x3f, 2, 1)},
		{stored("a.weight", safetensors.F8E4M3, 1, 2, 3, 4), stored("a.weight_scale", safetensors.BF16, 0x3f, 2, 3, 1)},
		{stored("a.weight_packed", safetensors.U8, 1, 4, 8), stored("a.weight_scale", safetensors.F8E4M3, 0x38, 4, 1), stored("a.weight_global_scale", safetensors.F32, 0x3f, 1)},
		{stored("a", safetensors.BF16, 1, 2, 3), stored("b", safetensors.F16, 1, 3, 2), stored("c", safetensors.F32, 1, 6)},
	} {
		data, err := safetensors.Encode(tensors, checkpoint.Metadata())
		require.NoError(f, err)
		f.Add(data, i, 3*i, 4*i+1)
	}
	f.Fuzz(func(t *testing.T, data []byte, matrix, lo, n int) {
		dir := t.TempDir()
		text(t, dir, "model.safetensors", string(data))
		c, _, err := checkpoint.OpenLenient(dir)
		if err != nil {
			return
		}
		defer c.Close()
		var r checkpoint.Reader
		for _, w := range c.Weights() {
			matrices, rows, cols := w.Dims()
			for i := range min(matrices, 3) {
				_ = checkpoint.ReadValues(&r, w, i, 0, make([]float32, rows*cols))
			}
			if err := checkpoint.ReadValues(&r, w, matrix, lo, make([]fp8.BFloat16, n&0xfff)); err != nil {
				continue
			}
			require.True(t, n&0xfff == 0 || matrix >= 0 && matrix < matrices && lo >= 0 && cols*(rows-lo) >= n&0xfff)
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":16},"weight_map":{"b.weight":"two.safetensors"}}`))
	f.Add([]byte(`{"metadata":{"total_size":1.6e1},"weight_map":{"b":"x/y","b":""}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := new(checkpoint.Index)
		if json.Unmarshal(data, x) != nil {
			return
		}
		again, err := json.Marshal(x)
		require.NoError(t, err)
		y := new(checkpoint.Index)
		require.NoError(t, json.Unmarshal(again, y), string(again))
		require.Equal(t, x, y)
		for _, file := range x.Files {
			require.True(t, filepath.IsLocal(file), file)
		}
	})
}

// FuzzConfig opens a model with any configuration, names its layout and reads it.
func FuzzConfig(f *testing.F) {
	for _, l := range checkpoint.Layouts() {
		for _, d := range l.Documents {
			if d.Key != "" {
				f.Add([]byte(`{"quantization_config":` + d.JSON + `}`))
			}
		}
	}
	f.Add([]byte(`{"text_config":{"quantization_config":{"quant_method":"fp8","weight_block_size":[1e9,1]}}}`))
	// The weights are the same every time, and putting them on disk takes long.
	weights := filepath.Join(f.TempDir(), "model.safetensors")
	require.NoError(f, safetensors.WriteFile(weights, []safetensors.Tensor{
		stored("a.weight", safetensors.F8E4M3, 1, 130, 32), stored("a.weight_scale_inv", safetensors.F32, 1, 2, 1),
		stored("b.weight", safetensors.F8E4M3, 1, 4, 32), stored("b.weight_scale", safetensors.BF16, 1, 4, 1),
	}, nil))
	f.Fuzz(func(t *testing.T, config []byte) {
		dir := t.TempDir()
		require.NoError(t, os.Symlink(weights, filepath.Join(dir, "model.safetensors")))
		text(t, dir, "config.json", string(config))
		c, err := checkpoint.Open(dir)
		if err != nil {
			return
		}
		defer c.Close()
		_, err = c.Detect()
		require.NoError(t, err)
		for _, w := range c.Weights() {
			if w.Scheme != nil {
				_, err := w.Matrix(0)
				require.NoError(t, err)
			}
		}
		_, err = checkpoint.NewPlan(c, checkpoint.Layouts()[0], checkpoint.PlanOptions{})
		var unwritable *json.MarshalerError
		require.False(t, errors.As(err, &unwritable), "%v", err)
	})
}

// TestInexactScale has a scale that the type of its tensor cannot hold.
func TestInexactScale(t *testing.T) {
	for _, c := range []struct {
		scheme string
		d      safetensors.DType
		ok     bool
	}{
		{"ct-fp8-channel", safetensors.BF16, false}, {"ct-fp8-channel", safetensors.F16, false}, {"ct-fp8-channel", safetensors.F32, true},
		{"ct-mxfp8", safetensors.U8, false}, {"ct-nvfp4", safetensors.F8E4M3, false},
	} {
		for _, s := range checkpoint.Schemes() {
			if s.Name != c.scheme {
				continue
			}
			v := &tensor.Tensor{Name: "a", Shape: []int{1, 1}, Codes: []byte{1}, Scales: []float32{1.0001}}
			_, err := s.AppendPart(nil, checkpoint.Input, c.d, v)
			require.ErrorIs(t, err, checkpoint.ErrLayout)
			_, err = s.AppendPart(nil, checkpoint.Scales, c.d, v)
			if c.ok {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, checkpoint.ErrLayout)
			require.ErrorContains(t, err, `tensor "a": scale 0 is 1.0001, which `+string(c.d)+" cannot hold")
		}
	}
}
