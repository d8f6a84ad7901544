package quantize

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/tensor"
)

// worker does a quantizer's strips one at a time, in memory that it keeps.
type worker struct {
	*quantizer
	buffers map[tensorfile.Type]tensorfile.Buffer
	exact   Buffer
	tensor  tensor.Tensor
	bytes   []byte // scales as they are written, or what is copied
}

func newWorker(q *quantizer) *worker {
	return &worker{quantizer: q, buffers: map[tensorfile.Type]tensorfile.Buffer{}}
}

func (w *worker) read(m *matrix, s span) (tensorfile.Array, error) {
	if m.codes != nil {
		first, n := m.elements(s)
		values, _, err := m.codes.Read(&w.exact, first, n)
		return tensorfile.Values[float64](values), err
	}
	t := tensorfile.TypeIn(w.file, m.Info)
	b := w.buffers[t]
	if b == nil {
		b = tensorfile.NewBuffer(t)
		w.buffers[t] = b
	}
	first, n := m.elements(s)
	return b.Read(w.file, m.Name, first, n)
}

// survey takes note of a strip's extremes.
func (w *worker) survey(m *matrix, s span) error {
	values, err := w.read(m, s)
	if err != nil {
		return err
	}
	m.survey(values.Extremes())
	return nil
}

// settle chooses the one scale of a matrix that has been surveyed, and writes it.
func (w *worker) settle(m *matrix) error {
	none, err := w.read(m, span{})
	if err != nil {
		return err
	}
	if m.scale, err = none.Scale(m.recipe, m.extremes); err != nil {
		return err
	}
	w.tensor.Scales = append(w.tensor.Scales[:0], m.scale.Stored)
	return w.writeScales(m, span{})
}

// encode quantizes a strip and writes what becomes of it.
func (w *worker) encode(m *matrix, s span) error {
	values, err := w.read(m, s)
	if err != nil {
		return err
	}
	st, err := m.quantize(w.ctx, &w.tensor, values, s)
	if err != nil {
		return err
	}
	first, n := m.elements(s)
	m.done.Add(m.place(s), w.judge(&st, values, first), m.add)
	if !m.oneScale {
		if err := w.writeScales(m, s); err != nil {
			return err
		}
	}
	return w.writeCodes(m, w.tensor.Codes[:n], first)
}

// writeCodes writes the codes of a strip, of which the first is the given element.
func (w *worker) writeCodes(m *matrix, codes []byte, first int64) error {
	bits := typeOf(m.recipe.Format).Bits()
	if bits == 8 {
		return w.write(m.Name, codes, first)
	}
	size := tensor.PackedLen(len(codes), bits)
	w.bytes = slices.Grow(w.bytes[:0], size)[:size]
	if err := tensor.PackCodes(w.bytes, codes, bits, tensor.LowFirst); err != nil {
		return fmt.Errorf("tensor %q: %w", m.Name, err)
	}
	return w.write(m.Name, w.bytes, first/8*int64(bits)+first%8*int64(bits)/8)
}

// judge says what became of values, of which the first is the given element of the
// matrix.
func (w *worker) judge(st *fp8.Stats, values tensorfile.Array, first int64) stripResult {
	allFinite := st.NonFinite() == 0
	r := stripResult{stats: *st, sums: w.decoder.Sums(values, allFinite, &w.tensor)}
	if !allFinite {
		i, value := values.FirstNonFinite()
		r.first = nonFinite{int(first) + i, value}
	}
	return r
}

func (w *worker) writeScales(m *matrix, s span) (err error) {
	if m.outer != nil && (m.outer.byRow || s.lo == 0) {
		if w.bytes, err = tensorfile.AppendScales(w.bytes[:0], w.tensor.Outer.Scales, tensor.Float32Scales, s.lo); err != nil {
			return fmt.Errorf("tensor %q: %w", m.Name, err)
		}
		if err := w.write(m.Name+m.outer.suffix(), w.bytes, int64(s.lo)*4); err != nil {
			return err
		}
	}
	first, format := m.firstScale(s), m.recipe.Profile.ScaleFormat()
	if w.bytes, err = tensorfile.AppendScales(w.bytes[:0], w.tensor.Scales, format, first); err != nil {
		return fmt.Errorf("tensor %q: %w", m.Name, err)
	}
	return w.write(m.Name+operands.ScaleSuffix, w.bytes, int64(first)*int64(tensorfile.ScaleTypeOf(format).Size()))
}

// copy copies n bytes of a tensor as they are.
func (w *worker) copy(name string, from int64, n int) error {
	w.bytes = slices.Grow(w.bytes[:0], n)[:n]
	if err := w.file.ReadBytes(name, from, w.bytes); err != nil {
		return err
	}
	return w.write(name, w.bytes, from)
}

func (w *worker) write(name string, data []byte, at int64) error {
	if err := w.out.WriteAt(name, data, at); err != nil {
		return err
	}
	w.progress.Add(int64(len(data)))
	return nil
}
