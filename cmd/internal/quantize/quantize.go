// Package quantize is what octavo quantize does: it writes a safetensors file whose
// float matrices are those of another file in FP8, FP6 or FP4.
package quantize

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/counter"
	"github.com/octavo-fp8/octavo/cmd/internal/loss"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/cmd/internal/workpool"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// stripBytes is how much of a tensor is read at a time, unless one row of its blocks
// is more: what stays in a core's cache until it is encoded and written.
const stripBytes = 1 << 20

// mostWorkers bounds the goroutines, and so the memory: a few keep a disk busy.
const mostWorkers = 8

// Job says what to quantize, and how.
type Job struct {
	In, Out string // paths of different files
	Recipe  scaling.Recipe
	Only    *regexp.Regexp // matches the names of the matrices to quantize; nil: all

	// Requantize has matrices of codes decoded with their scales, exactly, and encoded
	// anew. Without it they are an error.
	Requantize bool

	Progress progress.Reporter // hears of bytes written; nil: silent

	strip int64 // bytes; 0: stripBytes
}

// Run writes the file In, with its selected matrices quantized, to Out, which is
// left as it was if there is an error.
func (j Job) Run(ctx context.Context) (*Summary, error) {
	start := time.Now()
	file, err := tensorfile.Open(j.In)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parts, err := j.planParts(file)
	if err != nil {
		return nil, err
	}
	infos, total := declare(parts)
	q := newQuantizer(ctx, file, j.Recipe, cmp.Or(j.strip, stripBytes), counter.New(j.Progress, "quantizing", total))
	var results map[string]*result
	err = safetensors.WriteFileAtFunc(j.Out, infos, withRecipe(file.Metadata(), j.Recipe, parts), func(w *safetensors.WriterAt) (err error) {
		q.out = w
		results, err = q.write(parts)
		return err
	})
	if err != nil {
		return nil, err
	}
	s := j.summary(file, parts, results)
	s.took(time.Since(start))
	return s, nil
}

func declare(parts []part) (infos []safetensors.Info, total int64) {
	for _, p := range parts {
		infos = append(infos, p.Info)
		total += p.Bytes()
	}
	return infos, total
}

func (j Job) summary(file *safetensors.File, parts []part, results map[string]*result) *Summary {
	s := &Summary{
		Input: j.In, Output: j.Out, Profile: j.Recipe.Profile, Format: j.Recipe.Format.String(), Block: j.Recipe.Block.String(),
		NonFinite: []NonFinite{}, Tensors: []TensorLoss{},
	}
	for _, p := range parts {
		switch p.content {
		case copied:
			s.Copied.add(p)
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

func (c *TensorCount) add(p part) {
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
	decoder  *loss.Decoder
	progress *counter.Counter
	pool     *workpool.Pool[worker]
}

func newQuantizer(ctx context.Context, file *safetensors.File, r scaling.Recipe, strip int64, progress *counter.Counter) *quantizer {
	return &quantizer{ctx: ctx, file: file, recipe: r, strip: strip, decoder: loss.NewDecoder(r.Format), progress: progress}
}

// write writes the data of all parts, and returns what became of the matrices, by
// name.
func (q *quantizer) write(parts []part) (map[string]*result, error) {
	results := map[string]*result{}
	q.pool = workpool.New(min(runtime.GOMAXPROCS(0), mostWorkers), func() *worker { return newWorker(q) })
	for _, p := range parts {
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
func (q *quantizer) copy(p part) {
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
			m.codes, err = newCodesSource(q.file, m.Info)
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
