package inspect

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/quantize"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// measurement is what is known of a tensor from the strips done so far.
type measurement struct {
	input  *Input
	info   safetensors.Info
	weight *checkpoint.Weight // whose codes the tensor has; nil: the tensor is what it says
	own    *quantize.Source   // the same of a matrix that octavo quantize wrote in blocks of its own
	shape  []int              // of the weight
	isPart bool               // of a weight, such as its scales
	why    string             // the values are not judged; "": they are
	method string             // of quantization, where that is why
	plan   plan
	left   atomic.Int64 // tasks that are not done; a tensor that was not begun has some

	surveys loss.InOrder[*surveyed]
	whole   *surveyed // all strips' so far; nil if there are none

	late    loss.InOrder[[]encoded]
	one     []attempt // of the plan's late recipes
	recipes []encoded // by place in the job's list
	begun   []bool    // recipes that have a first strip
	scales  *ScalesReport
}

func newMeasurement(in *Input, info safetensors.Info) *measurement {
	m := &measurement{input: in, info: info, shape: info.Shape}
	switch w, role := in.weight(info.Name); {
	case w == nil && info.DType == safetensors.C64:
		m.why = "complex numbers are not read"
	case w == nil:
	case role == checkpoint.Codes:
		m.weight, m.shape = w, w.Shape
	default:
		m.isPart = true
	}
	_, named := tensorfile.ScalesOf(in.File, info)
	named = named && info.DType == safetensors.U8 // whose format the metadata say
	m.isPart = m.isPart || m.weight == nil && in.isScale(info.Name)
	if method, ok := in.unread[info.Name]; ok && !named && !(m.isPart && method == unknownMethod) {
		m.weight, m.shape = nil, info.Shape
		m.method, m.why = method, "quantized by "+method+", which is not read"
		if method == unknownMethod {
			m.why = "integers that may be codes"
		}
	}
	return m
}

// unknownMethod is what package checkpoint calls the method of integers that may be codes.
var unknownMethod = checkpoint.Unread{}.String()

// isMatrix reports whether recipes are for the values of a tensor.
func (m *measurement) isMatrix() bool {
	switch {
	case m.isPart || m.why != "":
		return false
	case m.dequantized():
		return m.elements() > 0
	}
	return tensorfile.IsMatrix(m.input.File, m.info)
}

// dequantized reports whether values are those of codes under their scales.
func (m *measurement) dequantized() bool { return m.weight != nil || m.own != nil }

func (m *measurement) elements() int64 {
	if m.weight != nil {
		return m.weight.Len()
	}
	return m.info.Len()
}

func (m *measurement) begin(recipes int) {
	tasks := m.plan.count()
	if len(m.plan.late) > 0 {
		tasks += 1 + m.plan.count() // settling, strips again
	}
	m.left.Store(int64(tasks))
	m.recipes, m.begun = make([]encoded, recipes), make([]bool, recipes)
}

// finished reports whether all of a tensor was inspected.
func (m *measurement) finished() bool { return m.begun != nil && m.left.Load() == 0 }

// survey merges what a strip shows.
func (m *measurement) survey(s *surveyed) {
	m.merge(m.plan.ready, s.recipes)
	if m.whole == nil {
		m.whole = s
		return
	}
	m.whole.merge(s)
}

// merge merges what became of a strip under the given recipes.
func (m *measurement) merge(recipes []int, strip []encoded) {
	for i, e := range strip {
		r := recipes[i]
		if !m.begun[r] {
			m.recipes[r], m.begun[r] = e, true
			continue
		}
		m.recipes[r].merge(e)
	}
}

// settle chooses the one scale of each late recipe.
func (m *measurement) settle(recipes []scaling.Recipe) error {
	var none tensorfile.Array = tensorfile.Values[float32](nil)
	switch {
	case m.own != nil:
		none = tensorfile.Values[float64](nil)
	case m.weight == nil:
		var err error
		if none, err = tensorfile.NewBuffer(m.plan.of).Read(m.input.File, m.info.Name, 0, 0); err != nil {
			return err
		}
	}
	for _, r := range m.plan.late {
		if recipe := recipes[r]; recipe.Profile.Outer() {
			m.one = append(m.one, tryRecipe(recipe, tensorfile.OuterAmax(recipe, m.whole.extremes)))
			continue
		}
		scale, err := none.Scale(recipes[r], m.whole.extremes)
		if err != nil {
			return err
		}
		m.one = append(m.one, tryScale(recipes[r], scale))
	}
	return nil
}

// readScales describes the scales of a tensor of codes, where there are some. Codes under
// scales that are none have no values.
func (m *measurement) readScales() error {
	file, info, ok := m.input.File, safetensors.Info{}, false
	var format tensor.ScaleFormat
	if w := m.weight; w != nil {
		e := w.Parts[checkpoint.Scales]
		file, info, ok = m.input.model.File(e.File), e.Info, true
		if e.DType.Size() == 1 {
			format = w.Scheme.ScaleFormat
		}
	} else if info, ok = tensorfile.ScalesOf(file, m.info); ok {
		format, _ = operands.ScaleFormatIn(file, info)
	}
	if !ok {
		return nil
	}
	scales, err := tensorfile.ReadScalesOf(file, info, format)
	if err != nil {
		return err
	}
	m.scales = &ScalesReport{Name: info.Name, DType: info.DType, Shape: info.Shape}
	m.scales.describe(&scales)
	if m.scales.None != nil {
		m.why = "some of its scales are no scales"
		return nil
	}
	if m.weight == nil {
		m.own, _ = quantize.NewSource(file, m.info) // or codes alone
		return nil
	}
	_, err = new(checkpoint.Reader).Tensor(m.weight, 0, 0, 0) // checks the outer scale
	if errors.Is(err, checkpoint.ErrLayout) {
		m.why, err = err.Error(), nil
	}
	return err
}

// worker inspects strips one at a time, in memory that it keeps.
type worker struct {
	buffers map[tensorfile.Type]tensorfile.Buffer
	wide    []float32
	scratch []byte
	tensor  tensor.Tensor
	reader  checkpoint.Reader
	exact   quantize.Buffer
	largest int64     // codes of the strip that was read, of the largest finite magnitude
	energy  []float64 // of the blocks of the strip
	noise   []float64 // the same, under a recipe
}

func newWorker() *worker { return &worker{buffers: map[tensorfile.Type]tensorfile.Buffer{}} }

// read returns the values of a strip, in their own type and widened.
func (w *worker) read(m *measurement, s span) (values, wide tensorfile.Array, err error) {
	w.largest = 0
	if m.weight != nil {
		values, err := w.dequantize(m.weight, s)
		return values, values, err
	}
	first, n := m.plan.elements(s)
	if m.own != nil {
		exact, codes, err := m.own.Read(&w.exact, first, n)
		w.wide = slices.Grow(w.wide[:0], len(codes))[:len(codes)]
		fp8.Decode(w.wide, codes, m.own.Format())
		w.countLargest(w.wide, m.own.Format())
		return tensorfile.Values[float64](exact), tensorfile.Values[float64](exact), err
	}
	b := w.buffers[m.plan.of]
	if b == nil {
		b = tensorfile.NewBuffer(m.plan.of)
		w.buffers[m.plan.of] = b
	}
	if values, err = b.Read(m.input.File, m.info.Name, first, n); err != nil {
		return nil, nil, err
	}
	if decoded, ok := values.(tensorfile.Values[float32]); ok && m.plan.of.Codes {
		w.countLargest(decoded, m.plan.of.Format)
	}
	return values, values.Widen(&w.wide), nil
}

// dequantize returns the values of a strip of a quantized weight, whose matrices lie one below
// the other.
func (w *worker) dequantize(of *checkpoint.Weight, s span) (tensorfile.Values[float32], error) {
	_, rows, cols := of.Dims()
	blockRows, _ := of.Block.Extents(rows, cols)
	if of.Block.Rows == 0 {
		blockRows = 1
	}
	w.wide = slices.Grow(w.wide[:0], (s.hi-s.lo)*cols)[:(s.hi-s.lo)*cols]
	for at := s.lo; at < s.hi; {
		matrix, lo := at/rows, at%rows
		hi := min(rows, lo+s.hi-at)
		from := lo / blockRows * blockRows
		t, err := w.reader.Tensor(of, matrix, from, hi)
		if err != nil {
			return nil, err
		}
		values := w.wide[(at-s.lo)*cols:][:(hi-lo)*cols]
		fp8.Decode(values, t.Codes[(lo-from)*cols:], t.Format)
		w.countLargest(values, t.Format)
		tensor.DequantizeRows(values, t, lo-from)
		at += hi - lo
	}
	return w.wide, nil
}

// countLargest counts the codes that stand for the largest value of their format, of
// either sign.
func (w *worker) countLargest(decoded []float32, f fp8.Format) {
	for _, v := range decoded {
		if v = max(v, -v); v >= f.Max() && v-v == 0 {
			w.largest++
		}
	}
}

// energies returns the sums of squares of the blocks of a strip.
func (w *worker) energies(m *measurement, s span, wide tensorfile.Array, allFinite bool) []float64 {
	cols := m.plan.cols
	if _, n := m.plan.elements(s); !m.isMatrix() {
		cols = n
	}
	w.energy = loss.BlockEnergies(w.energy[:0], wide, allFinite, cols)
	return w.energy
}

// survey notes what strip i shows, and what becomes of it under the recipes that are
// ready.
func (in *inspector) survey(w *worker, m *measurement, i int, s span) error {
	values, wide, err := w.read(m, s)
	if err != nil {
		return err
	}
	first, n := m.plan.elements(s)
	if cap(w.scratch) < n {
		w.scratch = make([]byte, n)
	}
	found := &surveyed{stats: values.Measure(w.scratch[:n]), first: -1, largest: w.largest}
	if found.stats.NonFinite() > 0 {
		k, _ := values.FirstNonFinite()
		found.first = first + int64(k)
	}
	if len(m.plan.late) > 0 {
		found.extremes = values.Extremes()
	}
	found.spread(wide)
	for _, e := range w.energies(m, s, wide, found.stats.NonFinite() == 0) {
		found.squares += e
	}
	var tries []attempt
	for _, r := range m.plan.ready {
		tries = append(tries, tryRecipe(in.recipes[r], nil))
	}
	if found.recipes, err = in.encode(w, m, s, values, wide, tries); err != nil {
		return err
	}
	m.surveys.Add(i, found, m.survey)
	in.read(m, s, len(m.plan.ready))
	return nil
}

// encodeLate notes what becomes of strip i under the recipes with one scale.
func (in *inspector) encodeLate(w *worker, m *measurement, i int, s span) error {
	values, wide, err := w.read(m, s)
	if err != nil {
		return err
	}
	w.energies(m, s, wide, m.whole.stats.NonFinite() == 0)
	found, err := in.encode(w, m, s, values, wide, m.one)
	if err != nil {
		return err
	}
	m.late.Add(i, found, func(e []encoded) { m.merge(m.plan.late, e) })
	in.read(m, s, len(m.plan.late))
	return nil
}

// read tells the progress that a strip was tried under some of a tensor's recipes: what is
// read twice counts once.
func (in *inspector) read(m *measurement, s span, recipes int) {
	first, n := m.plan.elements(s)
	bits := 8 * m.info.Bytes() / max(m.elements(), 1)
	bytes, all := (first+int64(n))*bits/8-first*bits/8, int64(len(m.plan.ready)+len(m.plan.late))
	if all > 0 {
		bytes = bytes * int64(recipes) / all
	}
	in.progress.Add(bytes)
}
