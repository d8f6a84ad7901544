package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// The names of the files that say how a model is built and quantized.
const (
	ConfigName   = "config.json"
	ModelOptName = "hf_quant_config.json" // of NVIDIA's ModelOpt, beside config.json
)

// quantizationKey is where config.json says how weights are quantized, and compressionKey
// where compressed-tensors said so at first.
const (
	quantizationKey = "quantization_config"
	compressionKey  = "compression_config"
)

// textKey is where config.json of a model of more than text has what is of text.
const textKey = "text_config"

// Config is what a checkpoint says of itself. Its maps are nil where a file, or that part
// of it, is absent.
type Config struct {
	// Model is config.json. Values keep their text, so that what is not understood can be
	// written as it was.
	Model map[string]json.RawMessage

	// Quantization is its quantization_config, or compression_config, as compressed-tensors
	// called it at first, or one of its text_config.
	Quantization map[string]any

	// ModelOpt is hf_quant_config.json.
	ModelOpt map[string]any
}

// ReadConfig reads the configuration of a model without its weights: path is its config.json,
// or the directory that has one. The error is [ErrConfig] where there is none, or where it is no
// JSON object, and names the file.
func ReadConfig(path string) (Config, error) {
	dir, file := path, filepath.Join(path, ConfigName)
	stat, err := os.Stat(path)
	if err == nil && !stat.IsDir() || err != nil && filepath.Ext(path) == ".json" {
		dir, file = "", path
	}
	var c Config
	if dir != "" {
		c, err = readConfig(dir)
	} else if err = readJSON(file, &c.Model); err == nil {
		if c.Quantization, err = quantizationOf(c.Model); err != nil {
			err = sentinel.Errorf(ErrConfig, "%s: %w", file, err)
		}
	}
	if err == nil && c.Model == nil {
		err = sentinel.Errorf(ErrConfig, "%s: there is no such file", file)
	}
	return c, err
}

// readConfig reads the configuration of a directory.
func readConfig(dir string) (c Config, err error) {
	if err := readJSON(filepath.Join(dir, ConfigName), &c.Model); err != nil {
		return c, err
	}
	if err := readJSON(filepath.Join(dir, ModelOptName), &c.ModelOpt); err != nil {
		return c, err
	}
	if c.Quantization, err = quantizationOf(c.Model); err != nil {
		return c, sentinel.Errorf(ErrConfig, "%s: %w", filepath.Join(dir, ConfigName), err)
	}
	return c, nil
}

// readJSON reads the object in a file, if the file is there.
func readJSON[V any](path string, to *map[string]V) error {
	data, err := inputfile.ReadAll(path, mostJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return sentinel.Errorf(ErrConfig, "%s: %w", path, err)
	}
	if *to == nil {
		return sentinel.Errorf(ErrConfig, "%s: it is null: want an object", path)
	}
	return nil
}

func quantizationOf(model map[string]json.RawMessage) (q map[string]any, err error) {
	for _, key := range []string{quantizationKey, compressionKey} {
		if raw, ok := model[key]; ok {
			if err := json.Unmarshal(raw, &q); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			return q, nil
		}
	}
	if text := textOf(model); text != nil {
		delete(text, textKey)
		return quantizationOf(text)
	}
	return nil, nil
}

// textOf returns the text_config of a configuration, nil for none.
func textOf(model map[string]json.RawMessage) (text map[string]json.RawMessage) {
	if json.Unmarshal(model[textKey], &text) != nil {
		return nil
	}
	return text
}

// forgetQuantization removes what a configuration says of how weights are quantized.
func forgetQuantization(model map[string]json.RawMessage) {
	for _, key := range []string{quantizationKey, compressionKey, "expert_dtype"} {
		delete(model, key)
	}
}

// TiedHead reports whether the head is the embedding, so that there is no tensor of it.
func (c Config) TiedHead() bool {
	var tied bool
	return json.Unmarshal(c.Model["tie_word_embeddings"], &tied) == nil && tied
}

// Method returns the name of the method of quantization, such as "fp8"; "" for none.
func (c Config) Method() string {
	if method, ok := lookUp(c.Quantization, "quant_method").(string); ok {
		return method
	}
	if _, ok := lookUp(c.ModelOpt, "quantization", "quant_algo").(string); ok {
		return "modelopt"
	}
	return ""
}

// Block returns the block that share a scale as the configuration has it: weight_block_size
// of fp8, block_structure or group_size of compressed-tensors. ok is false where it says
// nothing that is a block.
func (c Config) Block() (b tensor.Block, ok bool) {
	if b, ok := blockOf(lookUp(c.Quantization, "weight_block_size")); ok {
		return b, true
	}
	groups, _ := lookUp(c.Quantization, "config_groups").(map[string]any)
	if len(groups) != 1 {
		return b, false
	}
	for group := range maps.Values(groups) {
		weights, _ := lookUp(group, "weights").(map[string]any)
		if b, ok := blockOf(weights["block_structure"]); ok {
			return b, true
		}
		if n, ok := size(weights["group_size"]); ok {
			return tensor.Block{Rows: 1, Cols: n}, true
		}
	}
	return b, false
}

// blockOf reads a list of two sizes.
func blockOf(value any) (b tensor.Block, ok bool) {
	list, _ := value.([]any)
	if len(list) != 2 {
		return b, false
	}
	rows, isSize := size(list[0])
	cols, areSizes := size(list[1])
	return tensor.Block{Rows: rows, Cols: cols}, isSize && areSizes
}

func size(value any) (n int, ok bool) {
	f, _ := value.(float64)
	n = int(f)
	return n, f >= 1 && f <= 1<<30 && float64(n) == f
}

// lookUp returns what lies at a path of keys in objects, or nil.
func lookUp(value any, keys ...string) any {
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// encodeJSON returns indented JSON, as transformers writes it.
func encodeJSON(value any) ([]byte, error) {
	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	return buffer.Bytes(), err
}
