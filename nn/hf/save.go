package hf

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// SaveOptions are those of [Save]. The zero value writes FP32.
type SaveOptions struct {
	// Type is that of the values, F32 or BF16, to which they are rounded once, to nearest
	// even; "" is F32.
	Type safetensors.DType

	// Bytes says that tokens are bytes: a tokenizer is written that takes them so. The
	// model must have a vocabulary of 256.
	Bytes bool

	// Progress, unless nil, hears of values that were written, as "save".
	Progress progress.Reporter
}

// weightsName is the name of the file that [Save] writes weights to.
const weightsName = "model.safetensors"

// SavedFiles returns the names of the files that [Save] writes, in their order:
// model.safetensors, tokenizer.json and tokenizer_config.json where tokens are bytes, and
// config.json.
func SavedFiles(o SaveOptions) []string {
	files := []string{weightsName}
	if o.Bytes {
		files = append(files, tokenizerName, tokenizerConfigName)
	}
	return append(files, checkpoint.ConfigName)
}

// Save writes a model into a directory, which is made if need be, as transformers does: a
// LlamaForCausalLM with rows of q_proj and k_proj in the order of rotated halves, or, where it
// has MLA, a DeepseekV3ForCausalLM with those of interleaved pairs. Each file takes the place
// of one of its name when it is complete, and config.json comes last. [Load] then gives the
// same values, to the bit where Type is F32.
//
// What is written are the weights, and the biases of routers, always in F32: not gradients,
// nor what scales remember, nor recipes.
// A Smoothing of the model is a way of quantizing, which leaves weights as they are: what is
// written computes what the model does but for that rounding.
//
// max_position_embeddings is Config.Context: of a model that [Load] has read with a shorter
// one, that.
//
// The error is [ErrConfig] for options that do not fit the model, for what no layout has a
// name for, such as a CapacityFactor of experts, and for a directory with the index of another
// model, which loaders would read instead, or one of the file system or of the context.
func Save(ctx context.Context, m *nn.Llama, dir string, o SaveOptions) error {
	if err := o.complete(m.Config()); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	index := filepath.Join(dir, checkpoint.IndexName)
	if _, err := os.Lstat(index); err == nil {
		return configError(index, "it is of another model, which loaders would read: save to another directory")
	}
	if err := saveWeights(ctx, m, filepath.Join(dir, weightsName), o); err != nil {
		return err
	}
	documents := map[string]any{checkpoint.ConfigName: configOf(m.Config(), o.Type)}
	if o.Bytes {
		documents[tokenizerName] = byteTokenizer()
		documents[tokenizerConfigName] = tokenizerConfig(m.Config().Context)
	}
	for _, name := range SavedFiles(o)[1:] {
		err := atomicfile.Write(filepath.Join(dir, name), func(w io.Writer) error {
			return writeJSON(w, documents[name])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *SaveOptions) complete(c nn.Config) error {
	switch o.Type {
	case "":
		o.Type = safetensors.F32
	case safetensors.F32, safetensors.BF16:
	default:
		return configError("SaveOptions", "Type is %q: want F32 or BF16", o.Type)
	}
	if o.Bytes && c.Vocab != byteValues {
		return configError("SaveOptions", "tokens are bytes and the vocabulary is %d: want %d",
			c.Vocab, byteValues)
	}
	return unsaved(c)
}

// savedTensor is a tensor as it is written.
type savedTensor struct {
	safetensors.Info
	values []float32
	cols   int
	halves rotation // rows that are put in the order of rotated halves
}

// savedTensors returns those of a model: its parameters in their order, the biases of a router
// behind its weight.
func savedTensors(m *nn.Llama, d safetensors.DType) (all []savedTensor) {
	c, params, layer := m.Config(), m.Params(), 0
	for s := range c.Shapes() {
		t := savedTensor{values: params[0].Value, cols: s.Cols}
		t.Info = safetensors.Info{Name: s.Name, DType: d, Shape: shapeOf(s)}
		if params = params[1:]; c.MLA == nil {
			t.halves = rotationOf(c, s.Name)
		}
		all = append(all, t)
		if bias := biasOf(s.Name); bias != "" {
			values := make([]float32, s.Rows)
			copy(values, m.Blocks()[c.Dense+layer].Experts.Router.Bias())
			t := savedTensor{values: values, cols: s.Rows}
			t.Info = safetensors.Info{Name: bias, DType: safetensors.F32, Shape: []int{s.Rows}}
			all, layer = append(all, t), layer+1
		}
	}
	return all
}

// saveWeights writes the tensors.
func saveWeights(ctx context.Context, m *nn.Llama, path string, o SaveOptions) error {
	tensors := savedTensors(m, o.Type)
	var infos []safetensors.Info
	total := int64(0)
	for _, t := range tensors {
		infos = append(infos, t.Info)
		total += int64(len(t.values))
	}
	count := meter.New(ctx, o.Progress, "save", total)
	write := func(w *safetensors.Writer) error {
		for _, t := range tensors {
			if err := w.Next(t.Name); err != nil {
				return err
			}
			values := t.values
			if t.halves.rows > 0 {
				values = slices.Clone(values)
				t.halves.halve(values, t.cols)
			}
			if err := writeValues(w, values, t.DType, count); err != nil {
				return err
			}
		}
		return nil
	}
	return safetensors.WriteFileFunc(path, infos, checkpoint.Metadata(), write)
}

// writeValues writes values as numbers of a type.
func writeValues(w io.Writer, values []float32, d safetensors.DType, count *meter.Meter) error {
	var data []byte
	for some := range slices.Chunk(values, stripValues) {
		data = data[:0]
		for _, x := range some {
			if d == safetensors.BF16 {
				data = binary.LittleEndian.AppendUint16(data, uint16(fp8.BFloat16FromFloat32(x)))
			} else {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			}
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		if err := count.Add(int64(len(some))); err != nil {
			return err
		}
	}
	return nil
}
