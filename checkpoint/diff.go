package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Sameness is how much two weights have in common.
type Sameness uint8

const (
	Incomparable  Sameness = iota // one is absent, or types or shapes do not go together
	Different                     // some values, or the scales of the input, are not the same
	RoundedValues                 // all values are, once rounded to the type of one of them
	SameValues                    // all values are, zeros of either sign being the same
	SameBytes                     // stored alike, byte for byte
)

var samenessNames = [...]string{"incomparable", "different", "same once rounded", "same values", "same bytes"}

// String returns it in words, such as "same values".
func (s Sameness) String() string {
	if int(s) >= len(samenessNames) {
		return fmt.Sprintf("Sameness(%d)", uint8(s))
	}
	return samenessNames[s]
}

// Difference is what tells two weights of one name apart, in whatever layouts. The first is
// taken for what is right. Indexes are of elements of the first, in row-major order.
type Difference struct {
	Name string
	A, B *Weight // nil where there is none
	Same Sameness

	// Why says what kept values from being compared; "" if they were.
	Why string

	// Elements were compared: values as float32, which [ReadValues] gives, and bytes of what
	// holds no floats. Differ are those that are not the same, and First is the first of
	// them; -1 for none.
	Elements, Differ, First int64

	// Rounded to Type, the narrower of the types of values that are not quantized, so many
	// elements differ. Type is "" where there is none or it is that of both.
	Type    safetensors.DType
	Rounded int64

	// NonFinite elements are NaN or infinite in one and something else in the other, and
	// FirstNonFinite is the first of them; -1 for none.
	NonFinite, FirstNonFinite int64

	ZeroSigns int64 // zeros of different sign, which are the same value

	// Error is that of B where both are finite.
	Error Error

	// Inputs says that both have a scale of the layer's input, which InputA and InputB are,
	// that is not the same.
	Inputs         bool
	InputA, InputB float32
}

// Tolerance says which differences count. The zero value wants the same values.
type Tolerance struct {
	SQNR    float64 // in decibels, at least that; 0 asks for none
	Largest float64 // error, at most that; 0 allows none where SQNR is 0, and any otherwise
	Rounded bool    // what is the same once rounded is the same
}

// Within reports whether the weights are the same but for what t allows. Other shapes, a NaN
// or an infinity in one of them and other scales of inputs are never allowed.
func (d *Difference) Within(t Tolerance) bool {
	switch {
	case d.Same >= SameValues || d.Same == RoundedValues && t.Rounded:
		return true
	case d.Same == Incomparable || d.Inputs || d.NonFinite > 0 || !d.numeric():
		return false
	}
	return (t.SQNR != 0 || t.Largest != 0) &&
		(t.SQNR == 0 || d.SQNR() >= t.SQNR) && (t.Largest == 0 || d.Error.Largest <= t.Largest)
}

// SQNR returns the signal-to-quantization-noise ratio in decibels: +Inf if nothing differs, -Inf
// where there is noise alone, NaN where what differs has none, as bytes and infinities.
func (d *Difference) SQNR() float64 {
	switch {
	case d.Error.Squared == 0 && d.Differ > 0:
		return math.NaN()
	case d.Error.Squared == 0:
		return math.Inf(1)
	case d.Error.Signal == 0:
		return math.Inf(-1)
	}
	return d.Error.SQNR()
}

// Index returns the indexes along the dimensions of the first weight of an element.
func (d *Difference) Index(element int64) []int {
	shape := d.A.Shape
	at := make([]int, len(shape))
	for i, n := range slices.Backward(shape) {
		at[i] = int(element % int64(n))
		element /= int64(n)
	}
	return at
}

// numeric reports whether values were compared, rather than bytes.
func (d *Difference) numeric() bool {
	return d.A != nil && d.B != nil && isNumeric(d.A) && isNumeric(d.B)
}

func isNumeric(w *Weight) bool { return w.Scheme != nil || isFloat(w.Parts[Codes].DType) }

// Diff compares the weights of two checkpoints by value, in whatever layouts they are: those
// that choose returns true for, or all if it is nil. The result has those that differ most
// first: what is in one alone or cannot be compared, then the largest share of NaN or
// infinities that are no such thing in the other, then the lowest SQNR; what is equal comes in
// the order of names.
//
// Weights are matched by their names, whatever those of their codes and scales are; one that a
// scheme stores transposed is compared with the transpose. Weights that are stored alike are
// compared by bytes first. Only what is left is decoded: in strips, on all processors, in
// memory of a few strips for each worker. Sums do not depend on how many there are.
//
// A scale that is none is no error: it is among the differences, with what is wrong in Why.
func Diff(
	ctx context.Context, a, b *Checkpoint, choose func(weight string) bool, o Options,
) ([]Difference, error) {
	j := &comparing{ctx: ctx, o: o}
	j.match(a, b, choose)
	if err := j.compareBytes(); err != nil {
		return nil, err
	}
	if err := j.compareValues(); err != nil {
		return nil, err
	}
	all := make([]Difference, len(j.pairs))
	for i, p := range j.pairs {
		all[i] = *p.conclude()
	}
	slices.SortStableFunc(all, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(y.nonFiniteShare(), x.nonFiniteShare()),
			cmp.Compare(x.SQNR(), y.SQNR()), cmp.Compare(x.Name, y.Name))
	})
	return all, nil
}

func (d *Difference) nonFiniteShare() float64 {
	return float64(d.NonFinite) / float64(max(d.Elements, 1))
}

// rank puts what differs most first.
func (d *Difference) rank() int {
	if d.Same == Different && d.NonFinite > 0 {
		return 1
	}
	return 2 * int(d.Same)
}

// comparing is the work of one call of Diff.
type comparing struct {
	pool
	ctx     context.Context
	o       Options
	meter   meter.Meter
	pairs   []*pair
	strips  []span // of which target is the pair
	tallies []tally
}

// pair are two weights at work.
type pair struct {
	Difference
	cross    bool        // one is stored as the transpose of the other
	alike    bool        // in the same parts, of the same types and shapes
	numbers  bool        // values are compared, rather than bytes
	unlike   atomic.Bool // some byte differs
	problems []error
}

// tally is what was counted in a strip.
type tally struct {
	differ, rounded, nonFinite, zeroSigns int64
	first, firstNonFinite                 int64 // -1: none
	Error
	problem error
}

// match pairs the weights.
func (j *comparing) match(a, b *Checkpoint, choose func(string) bool) {
	if choose == nil {
		choose = func(string) bool { return true }
	}
	in := map[string]*Weight{}
	for _, w := range b.weights {
		in[w.Name] = w
	}
	for _, w := range a.weights {
		if choose(w.Name) {
			j.pairs = append(j.pairs, newPair(w, in[w.Name]))
		}
		delete(in, w.Name)
	}
	for _, w := range b.weights {
		if in[w.Name] != nil && choose(w.Name) {
			j.pairs = append(j.pairs, newPair(nil, w))
		}
	}
}

func newPair(a, b *Weight) *pair {
	p := &pair{Difference: Difference{A: a, B: b, First: -1, FirstNonFinite: -1}}
	if a == nil {
		p.Name, p.Why = b.Name, "it is only in the second"
		return p
	}
	p.Name = a.Name
	if b == nil {
		p.Why = "it is only in the first"
		return p
	}
	p.cross = transposed(a.Scheme) != transposed(b.Scheme)
	p.alike = alike(a, b)
	p.numbers = isNumeric(a) && isNumeric(b)
	p.Type = commonType(a, b)
	shape := slices.Clone(b.Shape)
	if n := len(shape); p.cross && n > 1 {
		shape[n-1], shape[n-2] = shape[n-2], shape[n-1]
	}
	switch one := a.Len() == 1 && b.Len() == 1; {
	case !one && !slices.Equal(a.Shape, shape):
		p.Why = fmt.Sprintf("its shape is %v and %v", a.Shape, shape)
	case !p.numbers && a.Parts[Codes].DType != b.Parts[Codes].DType:
		p.Why = fmt.Sprintf("it is %s and %s", kind(a), kind(b))
	default:
		p.Elements = a.Len()
	}
	return p
}

// kind says what a weight is stored as.
func kind(w *Weight) string {
	switch d := w.Parts[Codes].DType; {
	case w.Scheme != nil:
		return w.Scheme.Name
	case hasCodesName(w.Parts[Codes]):
		return string(d) + " without scales"
	default:
		return string(d)
	}
}

// alike reports whether two weights are stored in the same way, so that the same bytes are
// the same values.
func alike(a, b *Weight) bool {
	if a.Scheme != b.Scheme || a.Block != b.Block {
		return false
	}
	for r := range roles {
		x, y := a.Parts[r], b.Parts[r]
		if a.Has(r) != b.Has(r) || x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) {
			return false
		}
	}
	return true
}

// commonType returns the type in which values that were rounded to it are the same.
func commonType(a, b *Weight) safetensors.DType {
	x, y := valuesOf(a), valuesOf(b)
	switch {
	case x == y || x != safetensors.F32 && y != safetensors.F32:
		return "" // the same, or BF16 and F16, of which neither has the other's values
	case x == safetensors.F32:
		x = y
	}
	if !isFloat(x) {
		return ""
	}
	return x
}

// compareBytes compares what is stored alike, until a byte differs.
func (j *comparing) compareBytes() error {
	total := int64(0)
	type piece struct {
		span
		role Role
	}
	var pieces []piece
	for i, p := range j.pairs {
		if p.Why != "" || !p.alike {
			continue
		}
		for r := range roles {
			size := int64(0)
			if p.A.Has(r) {
				size = p.A.Parts[r].Bytes()
			}
			step := wholeElements(j.o.strip(), p.A.Parts[r].DType)
			for at := int64(0); at < size; at += step {
				n := min(step, size-at)
				pieces = append(pieces, piece{span{target: i, from: at, size: n}, r})
				total += 2 * n
			}
		}
	}
	j.meter.Start(j.ctx, j.o.Progress, "bytes", total)
	tallies := make([]tally, len(pieces))
	err := j.run(j.o.Workers, len(pieces), func(s *scratch, i int) error {
		x := pieces[i]
		p := j.pairs[x.target]
		if p.numbers && p.unlike.Load() {
			return j.meter.Add(2 * x.size)
		}
		buffer := grow(s.bytes, 2*int(x.size))
		s.bytes = buffer
		one, other := buffer[:x.size], buffer[x.size:]
		if err := p.A.from.ReadBytes(p.A.Parts[x.role], x.from, one); err != nil {
			return err
		}
		if err := p.B.from.ReadBytes(p.B.Parts[x.role], x.from, other); err != nil {
			return err
		}
		if !bytes.Equal(one, other) {
			p.unlike.Store(true)
		}
		if !p.numbers {
			tallies[i] = tallyBytes(one, other, x.from, p.A.Parts[Codes].DType)
		}
		return j.meter.Add(2 * x.size)
	})
	for i, x := range pieces {
		if p := j.pairs[x.target]; !p.numbers {
			p.merge(&tallies[i])
		}
	}
	return err
}

// wholeElements returns the number of bytes, at most so many if possible, that whole elements
// fill.
func wholeElements(strip int, d safetensors.DType) int64 {
	unit := 1
	for unit*8%elementBits(d) != 0 {
		unit++
	}
	return int64(max(strip-strip%unit, unit))
}

// elementBits is the width of an element; of types that are not known, bytes are compared.
func elementBits(d safetensors.DType) int {
	if bits := d.Bits(); bits > 0 {
		return bits
	}
	return 8
}

// tallyBytes counts elements of a type that differ in their bits, the first of which begins at
// byte from. The first element in a byte is in its low bits.
func tallyBytes(a, b []byte, from int64, d safetensors.DType) tally {
	t := tally{first: -1, firstNonFinite: -1}
	if bytes.Equal(a, b) {
		return t
	}
	bits := elementBits(d)
	for i := range len(a) * 8 / bits {
		if sameBits(a, b, i*bits, bits) {
			continue
		}
		if t.differ++; t.first < 0 {
			t.first = from*8/int64(bits) + int64(i)
		}
	}
	return t
}

// sameBits compares elements of whole bytes, or of less than one.
func sameBits(a, b []byte, at, bits int) bool {
	if bits%8 == 0 {
		return bytes.Equal(a[at/8:][:bits/8], b[at/8:][:bits/8])
	}
	for i := at; i < at+bits; i++ {
		if (a[i/8]^b[i/8])>>(i%8)&1 != 0 {
			return false
		}
	}
	return true
}

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

// inputs compares the scales of inputs, where both have one with the same meaning.
func (p *pair) inputs() error {
	if !p.A.Has(Input) || !p.B.Has(Input) || p.A.Scheme.Divide != p.B.Scheme.Divide {
		return nil
	}
	var err, err2 error
	p.InputA, _, err = p.A.InputScale()
	p.InputB, _, err2 = p.B.InputScale()
	p.Inputs = p.InputA != p.InputB && (p.InputA == p.InputA || p.InputB == p.InputB)
	return cmp.Or(err, err2)
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

// merge adds what was counted in the next strip.
func (p *pair) merge(t *tally) {
	if p.First < 0 {
		p.First = t.first
	}
	if p.FirstNonFinite < 0 {
		p.FirstNonFinite = t.firstNonFinite
	}
	p.Differ += t.differ
	p.Rounded += t.rounded
	p.NonFinite += t.nonFinite
	p.ZeroSigns += t.zeroSigns
	p.Error.Merge(&t.Error)
	if t.problem != nil {
		p.problems = append(p.problems, t.problem)
	}
}

// conclude says how much is the same.
func (p *pair) conclude() *Difference {
	d := &p.Difference
	if len(p.problems) > 0 {
		d.Why = p.problems[0].Error()
	}
	if d.Type == "" {
		d.Rounded = 0
	}
	switch {
	case d.Why != "":
		d.Same = Incomparable
	case d.Inputs || d.Differ > 0 && (d.Type == "" || d.Rounded > 0):
		d.Same = Different
	case d.Differ > 0:
		d.Same = RoundedValues
	case p.alike && !p.unlike.Load():
		d.Same = SameBytes
	default:
		d.Same = SameValues
	}
	return d
}
