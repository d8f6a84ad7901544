package inspect

import (
	"sync/atomic"

	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// measurement is what is known of a tensor from the strips done so far.
type measurement struct {
	input *Input
	info  safetensors.Info
	plan  plan
	left  atomic.Int64 // tasks that are not done; a tensor that was not begun has some

	surveys loss.InOrder[*surveyed]
	whole   *surveyed // all strips' so far; nil if there are none

	late    loss.InOrder[[]encoded]
	one     []attempt // of the plan's late recipes
	recipes []encoded // by place in the job's list
	begun   []bool    // recipes that have a first strip
	scales  *ScalesReport
}

func (m *measurement) begin(recipes int) {
	tasks := 1 + m.plan.count() // scales, strips
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
	none, err := tensorfile.NewBuffer(m.plan.of).Read(m.input.File, m.info.Name, 0, 0)
	if err != nil {
		return err
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

// readScales describes the scales of a tensor of codes, where its file has them.
func (m *measurement) readScales() error {
	info, ok := tensorfile.ScalesOf(m.input.File, m.info)
	if !ok {
		return nil
	}
	scales, err := tensorfile.ReadScales(m.input.File, info)
	if err != nil {
		return err
	}
	m.scales = &ScalesReport{Name: info.Name, DType: info.DType, Shape: info.Shape}
	m.scales.describe(&scales)
	return nil
}

// worker inspects strips one at a time, in memory that it keeps.
type worker struct {
	buffers map[tensorfile.Type]tensorfile.Buffer
	wide    []float32
	scratch []byte
	tensor  tensor.Tensor
}

func newWorker() *worker { return &worker{buffers: map[tensorfile.Type]tensorfile.Buffer{}} }

// read returns the values of a strip, in their own type and widened.
func (w *worker) read(m *measurement, s span) (values, wide tensorfile.Array, err error) {
	b := w.buffers[m.plan.of]
	if b == nil {
		b = tensorfile.NewBuffer(m.plan.of)
		w.buffers[m.plan.of] = b
	}
	first, n := m.plan.elements(s)
	if values, err = b.Read(m.input.File, m.info.Name, first, n); err != nil {
		return nil, nil, err
	}
	return values, values.Widen(&w.wide), nil
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
	found := &surveyed{stats: values.Measure(w.scratch[:n]), first: -1}
	if m.plan.of.Codes {
		found.countLargest(values, m.plan.of.Format)
	}
	if found.stats.NonFinite() > 0 {
		k, _ := values.FirstNonFinite()
		found.first = first + int64(k)
	}
	if len(m.plan.late) > 0 {
		found.extremes = values.Extremes()
	}
	found.spread(wide)
	for _, r := range m.plan.ready {
		e, err := in.encode(w, m, s, values, wide, tryRecipe(in.recipes[r], nil))
		if err != nil {
			return err
		}
		found.recipes = append(found.recipes, e)
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
	var found []encoded
	for k := range m.plan.late {
		e, err := in.encode(w, m, s, values, wide, m.one[k])
		if err != nil {
			return err
		}
		found = append(found, e)
	}
	m.late.Add(i, found, func(e []encoded) { m.merge(m.plan.late, e) })
	in.read(m, s, len(m.plan.late))
	return nil
}

// read tells the progress that a strip was tried under some of a tensor's recipes: what is
// read twice counts once.
func (in *inspector) read(m *measurement, s span, recipes int) {
	first, n := m.plan.elements(s)
	bits := int64(m.info.DType.Bits())
	bytes, all := (first+int64(n))*bits/8-first*bits/8, int64(len(m.plan.ready)+len(m.plan.late))
	if all > 0 {
		bytes = bytes * int64(recipes) / all
	}
	in.progress.Add(bytes)
}
