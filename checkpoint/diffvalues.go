package checkpoint

import (
	"errors"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// compareValues compares the values of what differs in bytes, or is not stored alike.
func (j *comparing) compareValues() error {
	total := int64(0)
	for i, p := range j.pairs {
		if p.Why != "" || !p.numbers || p.alike && !p.unlike.Load() {
			continue
		}
		if err := p.inputs(); err != nil {
			p.problems = append(p.problems, err)
		}
		for _, s := range p.spans(j.o.strip()) {
			s.target = i
			j.strips = append(j.strips, s)
			total += s.size
		}
	}
	j.tallies = make([]tally, len(j.strips))
	j.meter.Start(j.ctx, j.o.Progress, "values", total)
	err := j.run(j.o.Workers, len(j.strips), func(s *scratch, i int) error {
		x := j.strips[i]
		if err := j.meter.Err(); err != nil {
			return err
		}
		t, err := j.pairs[x.target].compare(s, x, j.o.strip())
		if errors.Is(err, ErrLayout) {
			t, err = tally{first: -1, firstNonFinite: -1, problem: err}, nil
		}
		if err != nil {
			return err
		}
		j.tallies[i] = t
		return j.meter.Add(x.size)
	})
	for i, x := range j.strips {
		j.pairs[x.target].merge(&j.tallies[i])
	}
	return err
}

// spans cuts the weights into strips: of elements where neither is quantized, and otherwise
// of whole blocks of both.
func (p *pair) spans(strip int) (spans []span) {
	size := p.A.Parts[Codes].Bytes() + p.B.Parts[Codes].Bytes()
	if p.flat() {
		n, step := p.Elements, int64(max(strip/2, 1))
		for at := int64(0); at < n; at += step {
			count := min(step, n-at)
			spans = append(spans, span{from: at, hi: int(count), size: size / n * count})
		}
		return spans
	}
	m, rows, cols := p.A.Dims()
	block := tensor.Block{Rows: 1}
	switch {
	case p.cross:
		strip *= 8 // since all of the other is read for each
	case p.B.Scheme != nil:
		block = p.B.Block
	}
	spans = spansOf(p.A, m, rows, cols, block, strip)
	for i := range spans {
		spans[i].size = size / (int64(m) * int64(rows)) * int64(spans[i].hi-spans[i].lo)
	}
	return spans
}

func (p *pair) flat() bool { return p.A.Scheme == nil && p.B.Scheme == nil }

// compare reads a strip of both and compares it.
func (p *pair) compare(s *scratch, x span, strip int) (tally, error) {
	if p.flat() {
		s.floats, s.floats2 = grow(s.floats, x.hi), grow(s.floats2, x.hi)
		if err := readPlain(&s.reader, p.A, x.from, s.floats); err != nil {
			return tally{}, err
		}
		if err := readPlain(&s.reader, p.B, x.from, s.floats2); err != nil {
			return tally{}, err
		}
		return p.tally(s.floats, s.floats2, x.from), nil
	}
	_, rows, cols := p.A.Dims()
	n := (x.hi - x.lo) * cols
	s.floats, s.floats2 = grow(s.floats, n), grow(s.floats2, n)
	if err := ReadValues(&s.reader, p.A, x.matrix, x.lo, s.floats); err != nil {
		return tally{}, err
	}
	var err error
	if p.cross {
		err = readAcross(s, p.B, x.matrix, x.lo, x.hi, strip, s.floats2)
	} else {
		err = ReadValues(&s.reader, p.B, x.matrix, x.lo, s.floats2)
	}
	if err != nil {
		return tally{}, err
	}
	return p.tally(s.floats, s.floats2, (int64(x.matrix)*int64(rows)+int64(x.lo))*int64(cols)), nil
}

// readPlain reads values that are not quantized, whatever their rows are.
func readPlain(r *Reader, w *Weight, first int64, dst []float32) error {
	e := w.Parts[Codes]
	size := e.DType.Size()
	r.bytes = grow(r.bytes, len(dst)*size)
	if err := w.from.ReadBytes(e, first*int64(size), r.bytes); err != nil {
		return err
	}
	decodeScales(dst, r.bytes, e.DType, tensor.Float32Scales)
	return nil
}

// readAcross reads rows [lo, hi) of the transpose of a matrix of a weight, of which it reads
// the whole in strips.
func readAcross(s *scratch, w *Weight, matrix, lo, hi, strip int, dst []float32) error {
	_, rows, cols := w.Dims()
	for _, x := range spansOf(w, 1, rows, cols, tensor.Block{Rows: 1}, strip) {
		s.values = grow(s.values, (x.hi-x.lo)*cols)
		if err := ReadValues(&s.reader, w, matrix, x.lo, s.values); err != nil {
			return err
		}
		for c := x.lo; c < x.hi; c++ {
			from := s.values[(c-x.lo)*cols:][lo:hi]
			for r, v := range from {
				dst[r*rows+c] = v
			}
		}
	}
	return nil
}

// tally compares values, of which the first is the given element.
func (p *pair) tally(a, b []float32, first int64) tally {
	t := tally{first: -1, firstNonFinite: -1}
	for i, x := range a {
		y := b[i]
		u, d := float64(x), float64(y)-float64(x)
		switch {
		case d == 0:
			t.Signal += float64(u * u)
			if x == 0 && math.Float32bits(x) != math.Float32bits(y) {
				t.zeroSigns++
			}
			continue
		case d-d == 0:
			t.Signal += float64(u * u)
			t.Squared += float64(d * d)
			if d = math.Abs(d); d > t.Largest {
				t.Largest, t.Where = d, first+int64(i)
			}
		case sameValue(x, y): // NaN, or an infinity of the same sign
			continue
		default:
			if t.nonFinite++; t.firstNonFinite < 0 {
				t.firstNonFinite = first + int64(i)
			}
		}
		if t.differ++; t.first < 0 {
			t.first = first + int64(i)
		}
		if p.Type == "" || !sameValue(roundTo(p.Type, x), roundTo(p.Type, y)) {
			t.rounded++
		}
	}
	return t
}

// sameValue reports whether two numbers are the same, all NaN being one.
func sameValue(x, y float32) bool { return x == y || x != x && y != y }

func roundTo(d safetensors.DType, x float32) float32 {
	if d == safetensors.F16 {
		return float16.Fromfloat32(x).Float32()
	}
	return fp8.BFloat16FromFloat32(x).Float32()
}
