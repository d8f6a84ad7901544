package hf

import (
	"cmp"
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
	// even; "" is F32, or that of the tensors of Like which are of one of both.
	Type safetensors.DType

	// Like, unless nil, is the checkpoint that the model was loaded from: config.json is its,
	// without quantization, and tensors have its names, experts fused or apart as they are there.
	Like *checkpoint.Checkpoint

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

// Save writes a model into a directory, which is made if need be, as transformers does: under the
// first architecture that the documentation of the package lists of those that have all that the
// model is made of, or as SaveOptions.Like is. Each file takes the place of one of its name when it
// is complete, and config.json comes last. [Load] then gives the same values, to the bit where Type
// is F32.
//
// What is written are the weights, and the biases of routers for choosing, in F32 where Like has no
// other type: not gradients, nor what scales remember, nor recipes.
// A Smoothing of the model is a way of quantizing, which leaves weights as they are: what is
// written computes what the model does but for that rounding.
//
// max_position_embeddings is Config.Context, of a model that [Load] has read with a shorter one
// that, or that of Like.
//
// The error is [ErrConfig] for options that do not fit the model, for what no architecture has,
// such as a CapacityFactor of experts, and for a directory with the index of another
// model, which loaders would read instead, or one of the file system or of the context.
func Save(ctx context.Context, m *nn.Llama, dir string, o SaveOptions) error {
	d, config, err := o.complete(m.Config())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	index := filepath.Join(dir, checkpoint.IndexName)
	if _, err := os.Lstat(index); err == nil {
		return configError(index, "it is of another model, which loaders would read: save to another directory")
	}
	if err := saveWeights(ctx, m, d, filepath.Join(dir, weightsName), o); err != nil {
		return err
	}
	documents := map[string]any{checkpoint.ConfigName: config}
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

// complete returns how the model is described in files.
func (o *SaveOptions) complete(c nn.Config) (d described, config members, err error) {
	switch o.Type {
	case "", safetensors.F32, safetensors.BF16:
	default:
		return d, nil, configError("SaveOptions", "Type is %q: want F32 or BF16", o.Type)
	}
	if o.Bytes && c.Vocab != byteValues {
		return d, nil, configError("SaveOptions", "tokens are bytes and the vocabulary is %d: want %d",
			c.Vocab, byteValues)
	}
	if o.Like != nil {
		return likeConfig(c, o.Like, o.Type)
	}
	o.Type = cmp.Or(o.Type, safetensors.F32)
	return newConfig(c, o.Type)
}

// savedTensor is a tensor as it is written.
type savedTensor struct {
	safetensors.Info
	parts map[int][]savedPart // by the matrix that they are in
}

// savedPart is a parameter at its place in a tensor.
type savedPart struct {
	place
	nn.Shape
	values []float32
	halves rotation // rows that are put in the order of rotated halves
}

// savedTensors returns those of a model in the order of its parameters, the biases of a router
// behind its weight.
func savedTensors(m *nn.Llama, d described, o SaveOptions) (all []*savedTensor, err error) {
	c, params, layer := m.Config(), m.Params(), 0
	byName := map[string]*savedTensor{}
	add := func(places []place, part savedPart, usual safetensors.DType) error {
		p := places[0]
		if o.Like != nil {
			var w *checkpoint.Weight
			if p, w = find(o.Like, places); w == nil {
				return tensorError("%s: %s is missing", o.Like.Dir(), p.tensor)
			}
			if own := w.Parts[checkpoint.Codes].DType; o.Type == "" && w.Scheme == nil && (own == safetensors.F32 || own == safetensors.BF16) {
				usual = own
			}
		}
		t := byName[p.tensor]
		if t == nil {
			t = &savedTensor{parts: map[int][]savedPart{}}
			t.Info = safetensors.Info{Name: p.tensor, DType: cmp.Or(usual, safetensors.F32), Shape: p.shape}
			byName[p.tensor], all = t, append(all, t)
		}
		part.place = p
		t.parts[p.matrix] = append(t.parts[p.matrix], part)
		return nil
	}
	for s := range c.Shapes() {
		part := savedPart{Shape: s, values: params[0].Value}
		if params = params[1:]; !d.interleaved {
			part.halves = rotationOf(c, s.Name)
		}
		if err := add(d.places(s), part, o.Type); err != nil {
			return nil, err
		}
		if bias := d.biasOf(s); bias != nil {
			values := make([]float32, s.Rows)
			for x := m.Blocks()[layer].Experts; x == nil; x = m.Blocks()[layer].Experts {
				layer++
			}
			copy(values, m.Blocks()[layer].Experts.Router.Bias())
			layer++
			part := savedPart{Shape: nn.Shape{Name: bias[0].tensor, Rows: 1, Cols: s.Rows}, values: values}
			if err := add(bias, part, safetensors.F32); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// matrix returns the values of one of the matrices of a tensor.
func (t *savedTensor) matrix(i, rows, cols int) []float32 {
	var all []float32
	for _, part := range t.parts[i] {
		values := part.values
		if part.halves.rows > 0 {
			values = slices.Clone(values)
			part.halves.halve(values, rowLength(part.Name, part.Cols))
		}
		if part.Rows*part.Cols == rows*cols && !part.transposed {
			return values
		}
		if all == nil {
			all = make([]float32, rows*cols)
		}
		for i := range part.Rows {
			for j := range part.Cols {
				row, col := part.at(i, j)
				all[row*cols+col] = values[i*part.Cols+j]
			}
		}
	}
	return all
}

// saveWeights writes the tensors.
func saveWeights(ctx context.Context, m *nn.Llama, d described, path string, o SaveOptions) error {
	tensors, err := savedTensors(m, d, o)
	if err != nil {
		return err
	}
	var infos []safetensors.Info
	total := int64(0)
	for _, t := range tensors {
		infos = append(infos, t.Info)
		total += t.Len()
	}
	count := meter.New(ctx, o.Progress, "save", total)
	write := func(w *safetensors.Writer) error {
		for _, t := range tensors {
			if err := w.Next(t.Name); err != nil {
				return err
			}
			matrices, rows, cols := dims(t.Shape)
			for i := range matrices {
				if err := writeValues(w, t.matrix(i, rows, cols), t.DType, count); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return safetensors.WriteFileFunc(path, infos, checkpoint.Metadata(), write)
}

// dims returns the size of the stack of matrices that a shape is seen as.
func dims(shape []int) (matrices, rows, cols int) {
	w := checkpoint.Weight{Shape: shape}
	return w.Dims()
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
