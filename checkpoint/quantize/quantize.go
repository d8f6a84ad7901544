// Package quantize writes a safetensors file whose float matrices are those of another file
// in FP8, FP6 or FP4, by any recipe: what octavo quantize does. Package checkpoint does the
// same for whole models, in the layouts that loaders read.
//
// For a matrix NAME the output of [File] has
//
//	NAME            codes, of the same shape: F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ,
//	                F4, F6_E2M3 or F6_E3M2, side by side; U8 for formats without a type
//	NAME_scale_inv  the grid of scales, [rows, columns] of blocks: F32, F8_E8M0, or F8_E4M3
//	                for UE4M3
//
// and under an outer scale, in F32, one for the matrix or one for each row,
//
//	NAME_outer_scale    which values are multiplied by, or
//	NAME_outer_divisor  which they are divided by
//
// The file's metadata are kept, and octavo.profile, octavo.format, octavo.block and, where
// there are any, octavo.outer added. Bytes depend on the input and the recipe alone.
//
// Errors say what octavo quantize would have its user do: --only and --requantize are
// [Options.Only] and [Options.Requantize].
package quantize

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/octavo-fp8/octavo/internal/counter"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/workpool"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// stripBytes is how much of a tensor is read at a time, unless one row of its blocks
// is more: what stays in a core's cache until it is encoded and written.
const stripBytes = 1 << 20

// mostWorkers bounds the goroutines, and so the memory: a few keep a disk busy.
const mostWorkers = 8

// Options say how to quantize a file. The zero value quantizes all matrices but those that models
// keep as they are by the zero recipe, silently.
type Options struct {
	// Recipe is how every matrix is quantized. Its profile must not be a delayed one: that
	// needs the amax of earlier steps.
	Recipe scaling.Recipe

	// Only matches the names of the matrices to quantize; the others are copied. Nil matches all.
	Only *regexp.Regexp
	// Keep copies what models keep as it is, too: see [checkpoint.Kept].
	Keep bool

	// Requantize has matrices of codes decoded with their scales, exactly, and encoded
	// anew. Without it they are an error.
	Requantize bool

	// AllowNone has a file without a matrix to quantize copied, as a shard of a model may be.
	// Without it that is an error.
	AllowNone bool

	// Workers is the number of goroutines at most; 0 means GOMAXPROCS. More than 8 are not
	// used. Each holds a strip of about 1 MiB: what is written does not depend on it.
	Workers int

	// Progress, unless nil, hears of bytes that are written.
	Progress progress.Reporter

	strip int64 // bytes; 0: stripBytes
}

func (o Options) workers() int { return min(parallel.Workers(o.Workers), mostWorkers) }

// File writes the safetensors file in, with its selected matrices quantized, to out, another
// path. A matrix is a tensor of two or more dimensions, F64, F32, F16 or BF16, that is not
// empty and holds no scales; its columns are the last dimension. What becomes of it is said
// in the package's comment; all other tensors are copied byte for byte.
//
// Memory is that of a strip for each worker: at least one row of blocks, and a whole tensor
// where rounding is stochastic. Scales of codes to be requantized are held too.
//
// An error names the tensor, or wraps the cause of the end of ctx. It leaves out as it was. It
// is one to have nothing to quantize. Values that are NaN or infinite are no error: they are
// encoded as the profile does it, and the summary names the first of each tensor.
//
// Several calls may run at once, on different out.
func File(ctx context.Context, in, out string, o Options) (*Summary, error) {
	start := time.Now()
	file, err := tensorfile.Open(in)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	outputs, err := o.planOutputs(file)
	if err != nil {
		return nil, err
	}
	infos, total := declare(outputs)
	q := newQuantizer(ctx, file, o, total)
	var results map[string]*result
	err = safetensors.WriteFileAtFunc(out, infos, withRecipe(file.Metadata(), o.Recipe, outputs), func(w *safetensors.WriterAt) (err error) {
		q.out = w
		results, err = q.write(outputs)
		return err
	})
	if err != nil {
		return nil, err
	}
	s := newSummary(file, o.Recipe, outputs, results)
	s.Input, s.Output = in, out
	s.Took(time.Since(start))
	return s, nil
}

func declare(outputs []outputTensor) (infos []safetensors.Info, total int64) {
	for _, p := range outputs {
		infos = append(infos, p.Info)
		total += p.Bytes()
	}
	return infos, total
}

func newSummary(file *safetensors.File, r scaling.Recipe, outputs []outputTensor, results map[string]*result) *Summary {
	s := &Summary{
		Profile: r.Profile, Format: r.Format.String(), Block: r.Block.String(),
		NonFinite: []NonFinite{}, Tensors: []TensorLoss{}, Kept: []KeptTensor{},
	}
	for _, p := range outputs {
		switch p.content {
		case copied:
			s.Copied.add(p)
			if p.stays != nil {
				s.Kept = append(s.Kept, p.kept())
			}
		case scales:
			s.Quantized.BytesAfter += p.Bytes()
		case codes:
			s.Quantized.add(p)
			if p.ofCodes {
				s.Requantized++
				old, _ := tensorfile.ScalesOf(file, p.source)
				s.Quantized.BytesBefore += old.Bytes()
			}
			s.addTensor(p, results[p.Name])
		}
	}
	s.BytesRead = s.Copied.BytesBefore + s.Quantized.BytesBefore
	return s
}

func (c *TensorCount) add(p outputTensor) {
	c.Tensors++
	c.BytesBefore += p.source.Bytes()
	c.BytesAfter += p.Bytes()
}

// quantizer copies and quantizes the tensors of a file in strips, several at once:
// a strip is read, encoded and written by one goroutine.
type quantizer struct {
	ctx      context.Context
	file     *safetensors.File
	out      *safetensors.WriterAt
	recipe   scaling.Recipe
	strip    int64 // bytes
	workers  int
	decoder  *loss.Decoder
	progress *counter.Counter
	pool     *workpool.Pool[worker]
}

func newQuantizer(ctx context.Context, file *safetensors.File, o Options, total int64) *quantizer {
	return &quantizer{
		ctx: ctx, file: file, recipe: o.Recipe, strip: cmp.Or(o.strip, stripBytes), workers: o.workers(),
		decoder: loss.NewDecoder(o.Recipe.Format), progress: counter.New(o.Progress, "quantizing", total),
	}
}

// write writes the data of all outputs, and returns what became of the matrices, by
// name.
func (q *quantizer) write(outputs []outputTensor) (map[string]*result, error) {
	results := map[string]*result{}
	q.pool = workpool.New(q.workers, func() *worker { return newWorker(q) })
	for _, p := range outputs {
		switch p.content {
		case copied:
			q.copy(p)
		case codes:
			m := newMatrix(p.source, p.ofCodes, q.recipe, q.strip)
			results[p.Name] = &m.result
			q.quantize(m, p.ofCodes)
		}
	}
	return results, q.pool.Finish()
}

// copy has a tensor copied.
func (q *quantizer) copy(p outputTensor) {
	for at, size := int64(0), p.Bytes(); at < size; {
		from, n := at, min(q.strip, size-at)
		q.give(func(w *worker) error { return w.copy(p.Name, from, int(n)) })
		at += n
	}
}

// quantize has a tensor quantized: read twice where the first scale depends on the
// last value.
func (q *quantizer) quantize(m *matrix, ofCodes bool) {
	if ofCodes {
		q.give(func(*worker) (err error) {
			m.codes, err = NewSource(q.file, m.Info)
			return err
		})
		if q.pool.Wait() != nil {
			return
		}
	}
	if m.surveyed() {
		q.eachStrip(m, (*worker).survey)
		if q.pool.Wait() != nil {
			return
		}
	}
	if m.oneScale {
		q.give(func(w *worker) error { return w.settle(m) })
		if q.pool.Wait() != nil {
			return
		}
	}
	q.eachStrip(m, (*worker).encode)
}

func (q *quantizer) eachStrip(m *matrix, do func(*worker, *matrix, span) error) {
	for s := range m.strips() {
		q.give(func(w *worker) error { return do(w, m, s) })
	}
}

// give has the pool do a task, unless the context has ended.
func (q *quantizer) give(task func(*worker) error) {
	q.pool.Give(func(w *worker) error {
		if q.ctx.Err() != nil {
			return fmt.Errorf("quantize: %w", context.Cause(q.ctx))
		}
		return task(w)
	})
}
