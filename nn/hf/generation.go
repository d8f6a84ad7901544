package hf

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/inputfile"
)

// generationName is the file that says how transformers generates with a model.
const generationName = "generation_config.json"

// mostGeneration is more bytes than any generation_config.json has.
const mostGeneration = 1 << 20

// Ends returns the tokens that end a text: eos_token_id of generation_config.json, or else of
// config.json; none where neither has any. The error is [ErrConfig], or that of reading.
func Ends(c *checkpoint.Checkpoint) ([]int32, error) {
	path := filepath.Join(c.Dir(), generationName)
	data, err := inputfile.ReadAll(path, mostGeneration)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		f := &fields{file: path}
		if err := json.Unmarshal(data, &f.values); err != nil {
			return nil, configError(path, "want a JSON object: %w", err)
		}
		if ends := f.ends(); ends != nil || f.err != nil {
			return ends, f.err
		}
	}
	f := &fields{file: filepath.Join(c.Dir(), checkpoint.ConfigName), values: c.Config.Model}
	return f.ends(), f.err
}

// ends reads tokens that end a text: a number or a list of them.
func (f *fields) ends() (ids []int32) {
	const key = "eos_token_id"
	var one int32
	var list []*int32 // nil for null
	raw := f.values[key]
	switch {
	case raw == nil || string(raw) == "null":
		return nil
	case json.Unmarshal(raw, &one) == nil:
		list = []*int32{&one}
	case json.Unmarshal(raw, &list) != nil || slices.Contains(list, nil):
		f.refuse(key, "the ID of a token, or a list of them")
		return nil
	}
	ids = []int32{}
	for _, id := range list {
		if *id < 0 {
			f.refuse(key, "IDs of tokens, which are not negative")
		}
		ids = append(ids, *id)
	}
	return ids
}

// CacheScales returns the scales of cached keys and values of every layer, by the names that
// calibrated checkpoints in FP8 have them under: code·scale is the value. They are nil for a
// checkpoint without any, and for one whose cache is to be of another format. The error is
// [ErrTensor] where a layer lacks one that others have, or one is no positive number, or that
// of reading.
func CacheScales(c *checkpoint.Checkpoint, layers int) (keys, values []float32, err error) {
	if !cachedInFP8(c) {
		return nil, nil, nil
	}
	absent := ""
	for layer := range layers {
		module := "model.layers." + strconv.Itoa(layer) + ".self_attn"
		for _, of := range []struct {
			which string
			list  *[]float32
		}{{"k", &keys}, {"v", &values}} {
			e, ok := findScale(c, module, of.which)
			if !ok {
				absent = module + "." + of.which + "_scale"
				continue
			}
			scale, err := readScale(c, e)
			if err != nil {
				return nil, nil, err
			}
			*of.list = append(*of.list, scale)
		}
	}
	if absent != "" && len(keys)+len(values) > 0 {
		return nil, nil, tensorError("%s: %s is missing, which other layers have", c.Dir(), absent)
	}
	return keys, values, nil
}

// cachedInFP8 reports whether a checkpoint does not say that its cache is of another format.
func cachedInFP8(c *checkpoint.Checkpoint) bool {
	if scheme, ok := c.Config.Quantization["kv_cache_scheme"].(map[string]any); ok {
		bits, ok := scheme["num_bits"].(float64)
		return (!ok || bits == 8) && scheme["type"] != "int"
	}
	if q, ok := c.Config.ModelOpt["quantization"].(map[string]any); ok {
		algo, ok := q["kv_cache_quant_algo"].(string)
		return !ok || algo == "FP8"
	}
	return true
}

// findScale finds the scale of keys, "k", or of values, "v", of an attention.
func findScale(c *checkpoint.Checkpoint, module, which string) (checkpoint.Entry, bool) {
	for _, name := range []string{
		"." + which + "_scale", "." + which + "_proj." + which + "_scale",
		"." + which + "_proj.output_scale", ".attn." + which + "_scale", ".kv_scale",
	} {
		if e, ok := c.Entry(module + name); ok {
			return e, true
		}
	}
	return checkpoint.Entry{}, false
}

// readScale reads a tensor of one positive number.
func readScale(c *checkpoint.Checkpoint, e checkpoint.Entry) (float32, error) {
	path := filepath.Join(c.Dir(), e.File)
	if e.Len() != 1 {
		return 0, tensorError("%s: %s is %s %v: want one number", path, e.Name, e.DType, e.Shape)
	}
	values, err := c.File(e.File).Float32s(e.Name)
	if err != nil {
		return 0, err
	}
	if x := values[0]; !(x > 0) || x > math.MaxFloat32 {
		return 0, tensorError("%s: %s is %v: want a positive number", path, e.Name, x)
	}
	return values[0], nil
}
