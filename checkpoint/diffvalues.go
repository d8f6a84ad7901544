package checkpoint

import (
	"errors"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// compareValues compares the values of what differs in bytes, or is not stored alike.
func (j *comparing) compareValues() error {
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
		}
	}
	j.tallies = make([]tally, len(j.strips))
	err := eachStrip(j.ctx, j.o, "values", j.strips, func(s *scratch, i int) error {
		x := j.strips[i]
		t, err := j.pairs[x.target].compare(s, x, j.o.strip())
		if errors.Is(err, ErrLayout) {
			t, err = tally{first: -1, firstNonFinite: -1, problem: err}, nil
		}
		if err != nil {
			return err
		}
		j.tallies[i] = t
		return nil
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
	spans = spansOf(p.A, m, rows, cols, stripRows(p.A, rows, cols, block, strip))
	for i := range spans {
		spans[i].size = size / (int64(m) * int64(rows)) * int64(spans[i].hi-spans[i].lo)
	}
	return spans
}

func (p *pair) flat() bool { return p.A.Scheme == nil && p.B.Scheme == nil }

// compare reads a strip of both and compares it.
func (p *pair) compare(s *scratch, x span, strip int) (tally, error) {
	if isDouble(p.A) || isDouble(p.B) {
		return compareAs(p, s, x, strip, [3]*[]float64{&s.doubles, &s.doubles2, &s.doubles3})
	}
	return compareAs(p, s, x, strip, [3]*[]float32{&s.floats, &s.floats2, &s.values})
}

// compareAs compares values of a type that holds those of both, in buffers that grow.
func compareAs[T float32 | float64](p *pair, s *scratch, x span, strip int, buffers [3]*[]T) (tally, error) {
	_, rows, cols := p.A.Dims()
	n := x.hi
	if !p.flat() {
		n = (x.hi - x.lo) * cols
	}
	*buffers[0], *buffers[1] = grow(*buffers[0], n), grow(*buffers[1], n)
	a, b := *buffers[0], *buffers[1]
	if p.flat() {
		if err := readPlain(&s.reader, p.A, x.from, a); err != nil {
			return tally{}, err
		}
		if err := readPlain(&s.reader, p.B, x.from, b); err != nil {
			return tally{}, err
		}
		return tallyOf(p, a, b, x.from), nil
	}
	if err := ReadValues(&s.reader, p.A, x.matrix, x.lo, a); err != nil {
		return tally{}, err
	}
	var err error
	if p.cross {
		err = readAcross(s, p.B, x.matrix, x.lo, x.hi, strip, b, buffers[2])
	} else {
		err = ReadValues(&s.reader, p.B, x.matrix, x.lo, b)
	}
	if err != nil {
		return tally{}, err
	}
	return tallyOf(p, a, b, (int64(x.matrix)*int64(rows)+int64(x.lo))*int64(cols)), nil
}

// readPlain reads values that are not quantized, whatever their rows are.
func readPlain[T float32 | float64](r *Reader, w *Weight, first int64, dst []T) error {
	e := w.Parts[Codes]
	if isDouble(w) {
		return safetensors.ReadElements(w.from.files[e.File], e.Name, first, dst)
	}
	size := e.DType.Size()
	r.bytes = grow(r.bytes, len(dst)*size)
	if err := w.from.ReadBytes(e, first*int64(size), r.bytes); err != nil {
		return err
	}
	if dst, ok := any(dst).([]float32); ok {
		decodeScales(dst, r.bytes, e.DType, tensor.Float32Scales)
		return nil
	}
	r.wide = grow(r.wide, len(dst))
	decodeScales(r.wide, r.bytes, e.DType, tensor.Float32Scales)
	for i, x := range r.wide {
		dst[i] = T(x)
	}
	return nil
}

// readAcross reads rows [lo, hi) of the transpose of a matrix of a weight, of which it reads
// the whole in strips.
func readAcross[T float32 | float64](s *scratch, w *Weight, matrix, lo, hi, strip int, dst []T, buffer *[]T) error {
	_, rows, cols := w.Dims()
	for _, x := range spansOf(w, 1, rows, cols, stripRows(w, rows, cols, tensor.Block{Rows: 1}, strip)) {
		*buffer = grow(*buffer, (x.hi-x.lo)*cols)
		values := *buffer
		if err := ReadValues(&s.reader, w, matrix, x.lo, values); err != nil {
			return err
		}
		for c := x.lo; c < x.hi; c++ {
			from := values[(c-x.lo)*cols:][lo:hi]
			for r, v := range from {
				dst[r*rows+c] = v
			}
		}
	}
	return nil
}

// tallyOf compares values, of which the first is the given element.
func tallyOf[T float32 | float64](p *pair, a, b []T, first int64) tally {
	t := tally{first: -1, firstNonFinite: -1}
	for i, x := range a {
		y := b[i]
		u, d := float64(x), float64(y)-float64(x)
		switch {
		case d == 0:
			t.Signal += float64(u * u)
			if x == 0 && math.Signbit(u) != math.Signbit(float64(y)) {
				t.zeroSigns++
			}
			continue
		case number.IsFinite(d):
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
		if p.Type == "" || !sameValue(roundTo(p.Type, u), roundTo(p.Type, float64(y))) {
			t.rounded++
		}
	}
	return t
}

// sameValue reports whether two numbers are the same, all NaN being one.
func sameValue[T float32 | float64](x, y T) bool { return x == y || x != x && y != y }

// roundTo rounds a value once.
func roundTo(d safetensors.DType, x float64) float32 {
	switch d {
	case safetensors.F32:
		return float32(x)
	case safetensors.F16:
		return float16.Fromfloat32(odd(x)).Float32()
	}
	return fp8.BFloat16FromFloat32(odd(x)).Float32()
}
