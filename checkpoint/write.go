package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/deviation"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Sink is where the bytes of tensors go, in any order and by several goroutines at once. A
// [safetensors.WriterAt] is one.
type Sink interface {
	WriteAt(name string, p []byte, off int64) error
}

// Write converts targets and writes their parts to w. It reads and writes strips of rows,
// several at once: memory is a few times [Options.Strip] for each worker, whatever the size
// of a weight. Weights that share a scale are read twice, and so is one with a single scale.
// What is written does not depend on options.
//
// Results are in the order of targets. After an error, or the end of ctx, w has a part of the
// bytes.
func Write(ctx context.Context, targets []*Target, w Sink, o Options) ([]Result, error) {
	if err := surveyAll(ctx, targets, o); err != nil {
		return nil, err
	}
	j := &writing{ctx: ctx, sink: w, o: o}
	for _, t := range targets {
		if err := j.add(t); err != nil {
			return nil, err
		}
	}
	if err := eachStrip(ctx, o, "write", j.strips, j.strip); err != nil {
		return nil, err
	}
	return j.results(targets), nil
}

// valuesOf returns the type that the values of a weight are read in: their own, and float32
// for those that are quantized.
func valuesOf(w *Weight) safetensors.DType {
	if w.Scheme != nil {
		return safetensors.F32
	}
	return w.Parts[Codes].DType
}

// writing is the work of one call of Write.
type writing struct {
	ctx    context.Context
	sink   Sink
	o      Options
	jobs   []job
	strips []span
	stats  []fp8.Stats
	errors []Error
}

// job is a target at work.
type job struct {
	*Target
	encoder
	first int // of its strips
}

// add plans the strips of a target, and writes what is one number.
func (j *writing) add(t *Target) error {
	one := job{Target: t, first: len(j.strips)}
	if t.Scheme != nil {
		one.encoder = encoder{scheme: t.Scheme, block: t.Scheme.Block, arithmetic: t.Arithmetic}
		if t.group != nil {
			one.amax = t.group.amax
		}
	}
	j.jobs = append(j.jobs, one)
	if err := j.scalars(t, &one.encoder); err != nil {
		return err
	}
	if t.Weight == nil {
		return nil
	}
	for _, s := range t.spans(j.o.strip()) {
		s.target = len(j.jobs) - 1
		j.strips = append(j.strips, s)
	}
	j.stats = append(j.stats, make([]fp8.Stats, len(j.strips)-len(j.stats))...)
	j.errors = append(j.errors, make([]Error, len(j.strips)-len(j.errors))...)
	return nil
}

// spans cuts the work of a target into strips.
func (t *Target) spans(strip int) (spans []span) {
	switch {
	case t.Weight == nil:
		return nil
	case t.Copied():
		for part, role := range t.copies() {
			size := t.Weight.Parts[role].Bytes()
			for at := int64(0); at < size; at += int64(strip) {
				spans = append(spans, span{part: part, from: at, size: min(int64(strip), size-at)})
			}
		}
		return spans
	}
	matrices, rows, cols, step := t.matrices(strip)
	return spansOf(t.Weight, matrices, rows, cols, step)
}

// matrices returns the size of the stack that is read of a weight that is not copied, and the
// most rows of a strip of it.
func (t *Target) matrices(strip int) (matrices, rows, cols, step int) {
	if t.crosses() {
		strip *= 8 // since what is read or written at a time is a piece of a row
	}
	var block tensor.Block
	if t.Scheme != nil {
		block = t.Scheme.Block
	}
	matrices, rows, cols = t.dims()
	return matrices, rows, cols, stripRows(t.Weight, rows, cols, block, strip)
}

// scalars writes the scale of a layer's input, and one that belongs to no weight.
func (j *writing) scalars(t *Target, e *encoder) error {
	for i, role := range t.Roles {
		if role != Input || t.kept {
			continue
		}
		x := t.extra
		if t.Weight != nil {
			x = inputScale(e, t.InputAmax, valuesOf(t.Weight))
		}
		data, err := appendNumbers(nil, []float32{x}, t.Parts[i].DType, tensor.Float32Scales, t.Parts[i].Name)
		if err != nil {
			return err
		}
		if err := j.sink.WriteAt(t.Parts[i].Name, data, 0); err != nil {
			return err
		}
	}
	return nil
}

// strip writes a strip.
func (j *writing) strip(s *scratch, i int) error {
	p := j.strips[i]
	t := &j.jobs[p.target]
	switch {
	case t.Copied():
		return j.copy(s, t, p)
	case t.Scheme == nil:
		return j.convert(s, t, i)
	}
	switch valuesOf(t.Weight) {
	case safetensors.BF16:
		return encode(j, s, t, i, &s.halves)
	case safetensors.F16:
		return encode(j, s, t, i, &s.floats16)
	}
	return encode(j, s, t, i, &s.floats)
}

func (j *writing) copy(s *scratch, t *job, p span) error {
	s.bytes = grow(s.bytes, int(p.size))
	from := t.Weight.Parts[t.copies()[p.part]]
	if err := t.Weight.from.ReadBytes(from, p.from, s.bytes); err != nil {
		return err
	}
	return j.sink.WriteAt(t.Parts[p.part].Name, s.bytes, p.from)
}

// convert writes values in another type, or those of a quantized weight.
func (j *writing) convert(s *scratch, t *job, i int) error {
	switch t.Parts[0].DType {
	case safetensors.BF16:
		return convert(j, s, t, i, &s.halves)
	case safetensors.F16:
		return convert(j, s, t, i, &s.floats16)
	}
	return convert(j, s, t, i, &s.floats)
}

func convert[T fp8.Float](j *writing, s *scratch, t *job, i int, buffer *[]T) error {
	p := j.strips[i]
	_, rows, cols := t.Weight.Dims()
	*buffer = grow(*buffer, (p.hi-p.lo)*cols)
	first := (int64(p.matrix)*int64(rows) + int64(p.lo)) * int64(cols)
	if j.o.Errors {
		e, err := convertMeasured(s, t.Weight, p, *buffer, first)
		if err != nil {
			return err
		}
		j.errors[i] = e
	} else if err := ReadValues(&s.reader, t.Weight, p.matrix, p.lo, *buffer); err != nil {
		return err
	}
	s.bytes = valuesBytes(s.bytes, *buffer)
	size := int64(t.Parts[0].DType.Size())
	if !t.crosses() {
		return j.sink.WriteAt(t.Parts[0].Name, s.bytes, first*size)
	}
	n := int64(p.hi - p.lo)
	column := make([]byte, n*size)
	for c := range int64(cols) {
		for r := range n {
			copy(column[r*size:][:size], s.bytes[(r*int64(cols)+c)*size:])
		}
		at := ((int64(p.matrix)*int64(cols)+c)*int64(rows) + int64(p.lo)) * size
		if err := j.sink.WriteAt(t.Parts[0].Name, column, at); err != nil {
			return err
		}
	}
	return nil
}

// convertMeasured is ReadValues of a strip, and returns the error of what it reads; the first
// element of the strip is element first.
func convertMeasured[T fp8.Float](
	s *scratch, w *Weight, p span, dst []T, first int64,
) (e Error, err error) {
	n := p.hi - p.lo
	if isDouble(w) {
		if err := ReadValues(&s.reader, w, p.matrix, p.lo, dst); err != nil {
			return e, err
		}
		return measureDoubles(dst, s.reader.doubles, first), nil
	}
	if err := s.reader.load(w, p.matrix, p.lo, n); err != nil {
		return e, err
	}
	_, _, cols := w.Dims()
	step := rowsAtATime(cols)
	for i := 0; i < n; i += step {
		piece := dst[i*cols : min(i+step, n)*cols]
		s.before, s.values = grow(s.before, len(piece)), grow(s.values, len(piece))
		s.reader.rows(w, s.before, i)
		copy(s.values, s.before)
		narrow(piece, s.values)
		widen(s.values, piece)
		if e.add(s.values, s.before) {
			e.Where = first + int64(i*cols) + int64(deviation.Where(s.values, s.before, e.Largest))
		}
	}
	return e, nil
}

// valuesBytes writes values to b, which grows, as files have them.
func valuesBytes[T fp8.Float](b []byte, values []T) []byte {
	switch values := any(values).(type) {
	case []float32:
		b = grow(b, 4*len(values))
		for i, x := range values {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
		}
	case []float16.Float16:
		b = grow(b, 2*len(values))
		for i, x := range values {
			binary.LittleEndian.PutUint16(b[2*i:], x.Bits())
		}
	case []fp8.BFloat16:
		b = grow(b, 2*len(values))
		for i, x := range values {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(x))
		}
	}
	return b
}

// encode quantizes a strip and writes what it becomes.
func encode[T fp8.Float](j *writing, s *scratch, t *job, i int, buffer *[]T) error {
	p := j.strips[i]
	_, rows, cols := t.dims()
	*buffer = grow(*buffer, (p.hi-p.lo)*cols)
	src := *buffer
	read := ReadValues[T]
	if t.crosses() {
		read = readColumns[T]
	}
	if err := read(&s.reader, t.Weight, p.matrix, p.lo, src); err != nil {
		return err
	}
	s.t.Name, s.t.Shape = t.Weight.Name, append(s.t.Shape[:0], p.hi-p.lo, cols)
	o := tensor.Options{Op: "convert", Workers: 1, Stats: &j.stats[i], Reporter: j.o.Reporter}
	if err := quantize(j.ctx, &t.encoder, &s.t, src, o); err != nil {
		return err
	}
	if err := s.t.CheckScales(); err != nil {
		return fmt.Errorf("rows from %d of matrix %d: %w", p.lo, p.matrix, err)
	}
	first := int64(p.matrix)*int64(rows) + int64(p.lo)
	if j.o.Errors {
		j.errors[i] = measure(s, &s.t, src, first*int64(cols))
	}
	for k, role := range t.Roles {
		if err := j.writePart(s, t, p, role, t.Parts[k], first); err != nil {
			return err
		}
	}
	return nil
}

// readColumns is ReadValues of the transpose of a matrix of values.
func readColumns[T fp8.Float](r *Reader, w *Weight, matrix, lo int, dst []T) error {
	_, rows, cols := w.Dims()
	n := len(dst) / rows
	e := w.Parts[Codes]
	piece := make([]T, n)
	for i := range rows {
		first := (int64(matrix)*int64(rows)+int64(i))*int64(cols) + int64(lo)
		if err := safetensors.ReadElements(w.from.files[e.File], e.Name, first, piece); err != nil {
			return fmt.Errorf("%s: %w", e.File, err)
		}
		for k, x := range piece {
			dst[k*rows+i] = x
		}
	}
	return nil
}

// writePart writes a strip's share of a part; first is its first row in the whole stack.
func (j *writing) writePart(
	s *scratch, t *job, p span, role Role, part safetensors.Info, first int64,
) error {
	_, rows, cols := t.dims()
	alone := p.matrix == 0 && p.lo == 0 // the first strip, which writes what all share
	var at int64
	switch {
	case role == Input:
		return nil
	case role == Codes:
		at = first * int64(tensor.PackedLen(cols, t.Scheme.Format.Bits()))
	case role == Scales && t.block.Rows > 0:
		blockRows, _ := t.block.Extents(rows, cols)
		gridRows, gridCols := t.block.Grid(rows, cols)
		row := int64(p.matrix)*int64(gridRows) + int64(p.lo/blockRows)
		at = row * int64(gridCols) * int64(part.DType.Size())
	case !alone:
		return nil
	}
	if role == Codes && !t.Scheme.Packed() {
		return j.sink.WriteAt(part.Name, s.t.Codes, at)
	}
	var err error
	if s.bytes, err = t.Scheme.AppendPart(s.bytes[:0], role, part.DType, &s.t); err != nil {
		return err
	}
	return j.sink.WriteAt(part.Name, s.bytes, at)
}

// results merges what strips counted, in their order.
func (j *writing) results(targets []*Target) []Result {
	results := make([]Result, len(targets))
	for i, t := range j.jobs {
		r := &results[i]
		r.Name = t.Parts[0].Name
		for _, part := range t.Parts {
			r.Bytes += part.Bytes()
		}
		if t.Weight == nil {
			continue
		}
		r.Name = t.Weight.Name
		if t.Copied() {
			continue
		}
		if t.Scheme != nil {
			r.Scheme = t.Scheme.Name
		}
		if j.o.Errors {
			r.Error = new(Error)
		}
		end := len(j.strips)
		if i+1 < len(j.jobs) {
			end = j.jobs[i+1].first
		}
		for k := t.first; k < end; k++ {
			r.Stats.Merge(&j.stats[k])
			if j.o.Errors {
				r.Error.Merge(&j.errors[k])
			}
		}
	}
	return results
}

// inputScale returns the scale of a layer's input of the given largest magnitude, for a
// weight that is read in a type.
func inputScale(e *encoder, amax float32, d safetensors.DType) float32 {
	switch d {
	case safetensors.BF16:
		return inputScaleOf[fp8.BFloat16](e.scheme, amax)
	case safetensors.F16:
		return inputScaleOf[float16.Float16](e.scheme, amax)
	}
	return inputScaleOf[float32](e.scheme, amax)
}

func inputScaleOf[T fp8.Float](s *Scheme, amax float32) float32 {
	top := s.Format.Max()
	switch {
	case s.Divide:
		return ctOuter[T](amax)
	case !s.Parts[Outer].None():
		return amax / (448 * top)
	case s.Parts[Input].DTypes[0] != "":
		return amax / top
	}
	scale, _, _ := ownScale[T](CompressedTensors, amax, top)
	return scale
}
