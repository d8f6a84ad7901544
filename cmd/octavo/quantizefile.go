package main

import (
	"context"
	"io"
	"regexp"
	"runtime"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// stripBytes is how much of a tensor is read at a time, unless one row of its blocks
// is more: what stays in a core's cache until it is encoded and written.
const stripBytes = 1 << 20

// mostWorkers bounds the goroutines, and so the memory: a few keep a disk busy.
const mostWorkers = 8

// quantizing is what the quantize command is asked for.
type quantizing struct {
	in, out string
	recipe  scaling.Recipe
	only    *regexp.Regexp // nil selects all
	strip   int64          // bytes
}

// run writes the file at in, with its selected matrices quantized, to out.
func (j quantizing) run(ctx context.Context, stderr io.Writer) (*quantizeSummary, error) {
	start := time.Now()
	if err := sameFile(j.in, j.out); err != nil {
		return nil, err
	}
	file, err := open(j.in)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parts, err := planParts(file, j.recipe, j.only)
	if err != nil {
		return nil, err
	}
	infos, total := declare(parts)
	q := quantizer{ctx: ctx, file: file, recipe: j.recipe, strip: j.strip, progress: newProgress(stderr, total, "quantizing")}
	var outcomes map[string]*outcome
	err = safetensors.WriteFileAtFunc(j.out, infos, withRecipe(file.Metadata(), j.recipe), func(w *safetensors.WriterAt) (err error) {
		q.out = w
		outcomes, err = q.write(parts)
		return err
	})
	q.progress.Finish()
	if err != nil {
		return nil, unwritten(j.out, err)
	}
	s := j.summary(parts, outcomes)
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

func (j quantizing) summary(parts []part, outcomes map[string]*outcome) *quantizeSummary {
	s := &quantizeSummary{
		Input: j.in, Output: j.out, Profile: j.recipe.Profile, Format: j.recipe.Format.String(), Block: j.recipe.Block.String(),
		NonFinite: []nonFiniteWarning{},
	}
	for _, p := range parts {
		switch p.content {
		case copied:
			s.Copied.add(p)
		case scales:
			s.Quantized.BytesAfter += p.Bytes()
		case codes:
			s.Quantized.add(p)
			o := outcomes[p.Name]
			s.add(&o.stats)
			if n := o.stats.NonFinite(); n > 0 {
				s.NonFinite = append(s.NonFinite, nonFiniteWarning{p.Name, p.Shape, o.first.Index, jsonout.Number(o.first.Value), n})
			}
		}
	}
	s.BytesRead = s.Copied.BytesBefore + s.Quantized.BytesBefore
	return s
}

func (c *tensorCount) add(p part) {
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
	progress *progressbar.ProgressBar
	crew     *crew[worker]
}

// write writes the data of all parts, and returns what became of the matrices, by
// name.
func (q *quantizer) write(parts []part) (map[string]*outcome, error) {
	outcomes := map[string]*outcome{}
	q.crew = newCrew(min(runtime.GOMAXPROCS(0), mostWorkers), func() *worker { return newWorker(q) })
	for _, p := range parts {
		switch p.content {
		case copied:
			q.copy(p)
		case codes:
			m := newMatrix(p.source, q.recipe, q.strip)
			outcomes[p.Name] = &m.outcome
			q.quantize(m)
		}
	}
	return outcomes, q.crew.finish()
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
func (q *quantizer) quantize(m *matrix) {
	if m.oneScale {
		q.eachStrip(m, (*worker).survey)
		if q.crew.wait() != nil {
			return
		}
		q.give(func(w *worker) error { return w.settle(m) })
		if q.crew.wait() != nil {
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

// give has the crew do a task, unless the command is interrupted.
func (q *quantizer) give(task func(*worker) error) {
	q.crew.give(func(w *worker) error {
		if err := interrupted(q.ctx); err != nil {
			return err
		}
		return task(w)
	})
}
