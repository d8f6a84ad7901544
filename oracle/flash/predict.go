package flash

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
)

// Prediction is what a kernel returns, for the rows that were asked for.
type Prediction struct {
	Out []float32 // [rows, ValueDim]
	LSE []float32 // [rows], without the sink; -Inf where a row has no keys
	Max []float32 // [rows], the largest M of all splits, in base 2
	Sum []float32 // [rows], l without the sink; nil where there are several splits

	Saturated int64 // u that was too large for P's format
	Flushed   int64 // u above 0 whose P is 0
	Trace     *Trace
}

// Trace is a row, tile by tile in the order in which the kernel takes them, without those
// that have no kept keys.
type Trace struct {
	Row
	Z     []float32 // scores in base 2, of all keys; NaN where they are masked
	Tiles []Tile
}

// Tile is what a tile of keys does to a row.
type Tile struct {
	Split    int
	From, To int       // keys
	P, Cast  []float32 // before and after the cast, lifted; 0 where masked
	Alpha    float32
	Max, Sum float32   // M and l afterwards
	Out      []float32 // O afterwards
}

// Predict returns what kernel k returns for p, bit for bit. Every NaN is 7FC00000. A row
// without kept keys has output 0 and log-sum-exp -Inf, sink or not.
//
// Where scales of V vary from token to token and along its rows, or it has outer scales, as
// caches in NVFP4 and MXFP8 do, a kernel multiplies P by values that carry their scales: code
// times scale, times or divided by the outer one, rounded to float32 once, as package tensor
// defines it. Neither P nor the output is scaled then.
//
// Errors are those of p.Check, of [Kernel.Check], an [ErrKernel] where the kernel does not
// compute such operands, [ErrRows], and that of ctx when it ends. It takes some nanoseconds
// for each product that is exact, and about ten where a tensor core adds.
func Predict(ctx context.Context, p *attention.Problem, k Kernel, o Options) (*Prediction, error) {
	m, err := newModel(p, k)
	if err != nil {
		return nil, err
	}
	return m.predict(ctx, o)
}

func (m *model) predict(ctx context.Context, o Options) (*Prediction, error) {
	rows, err := o.rows(m.s)
	if err != nil {
		return nil, err
	}
	r := &Prediction{Out: make([]float32, len(rows)*m.s.ValueDim), LSE: make([]float32, len(rows)),
		Max: make([]float32, len(rows))}
	if m.splits() == 1 {
		r.Sum = make([]float32, len(rows))
	}
	count := meter.New(ctx, o.Progress, "predict", int64(len(rows)))
	var saturated, flushed atomic.Int64
	err = byHead(rows, m.s, func(kv, from, to int) error {
		head := m.head(kv)
		return each(ctx, from, to, o.Workers, count, func() *worker { return newWorker(m, head) },
			func(w *worker, at int) {
				h, i := rows[at]/m.s.Queries, rows[at]%m.s.Queries
				w.trace = nil
				if o.Trace != nil && *o.Trace == (Row{h, i}) {
					w.trace = &Trace{Row: *o.Trace}
					r.Trace = w.trace
				}
				w.saturated, w.flushed = 0, 0
				out := r.Out[at*m.s.ValueDim:][:m.s.ValueDim]
				end := w.row(h, i, out)
				m.Out.round(out)
				r.LSE[at], r.Max[at] = end.lse, end.max
				if r.Sum != nil {
					r.Sum[at] = end.sum
				}
				saturated.Add(w.saturated)
				flushed.Add(w.flushed)
			})
	})
	if err != nil {
		return nil, err
	}
	r.Saturated, r.Flushed = saturated.Load(), flushed.Load()
	return r, nil
}

// model is a kernel and a problem that it computes.
type model struct {
	Kernel
	p        *attention.Problem
	s        attention.Sizes
	q, k, v  operand
	sl       float32 // SL
	cast     caster
	plainQK  bool
	plainPV  bool
	fault    Fault // what is computed in another way; see faultmodel.go
	tail     int   // keys that are not padding, where the fault pads them
	byTokenV bool
	scaledV  bool // values carry their scales
}

func newModel(p *attention.Problem, k Kernel) (*model, error) {
	if err := checkProblem(p); err != nil {
		return nil, err
	}
	if err := k.Check(); err != nil {
		return nil, err
	}
	m := &model{Kernel: k, p: p, s: p.Sizes(), q: newOperand(p.Q), k: newOperand(p.K),
		v: newOperand(p.V), cast: newCaster(k.P)}
	m.sl = float32(float64(p.SoftmaxScale()) * math.Log2E)
	m.scaledV = m.v.scattered()
	m.byTokenV = m.v.byToken() && !m.scaledV
	if err := m.checkScales(); err != nil {
		return nil, err
	}
	if err := m.checkInstructions(); err != nil {
		return nil, err
	}
	if q, k := m.q.Codes, m.k.Codes; q != nil && k != nil {
		m.plainQK = plain(q.Format, k.Format, m.s.Dim)
	}
	if v := m.v.Codes; v != nil && !m.scaledV && (k.P == E4M3 || k.P == E5M2) {
		m.plainPV = plain(m.cast.format, v.Format, m.tile(m.s.Keys))
	}
	return m, nil
}

func (m *model) checkScales() error {
	bad := func(format string, args ...any) error {
		return sentinel.Errorf(ErrKernel, "flash: %s: "+format, append([]any{m.title()}, args...)...)
	}
	inside := m.Scores.Scaling == InProduct
	if !inside && (m.q.outer() || m.k.outer()) {
		return bad("outer scales have no place in it")
	}
	qe, ke := m.q.extent(), m.k.extent()
	if !inside && (qe < m.s.Dim || ke < m.s.Dim) {
		return bad("scales of Q and K vary along their rows")
	}
	if qe%ke != 0 && qe < m.s.Dim && ke%qe != 0 && ke < m.s.Dim {
		return bad("%d columns of Q share a scale and %d of K: one must divide the other", qe, ke)
	}
	raw := m.Scores.Frame == Raw || m.Scores.Frame == RawContracted
	if raw && !inside && m.k.byToken() {
		return bad("scales of K vary by token, and it compares scores before they are scaled, " +
			"which is right under one scale for a head only")
	}
	if m.scaledV && m.Values.Order == Instruction {
		return bad("its instruction multiplies codes of V, and the scales of these vary by token and " +
			"along its rows, or there are outer ones: such values are multiplied in float32")
	}
	return nil
}

func (m *model) checkInstructions() error {
	if p := m.Scores.Product; p.Order == Instruction {
		for _, o := range []operand{m.q, m.k} {
			if err := m.checkInstruction(p.Model, o); err != nil {
				return err
			}
		}
	}
	p := m.Values
	if p.Order != Instruction {
		return nil
	}
	if want := map[Cast]bool{E4M3: p.Model.Takes(fp8.E4M3), E5M2: p.Model.Takes(fp8.E5M2),
		BFloat16: p.Model.Float == oracle.BF16, Float16: p.Model.Float == oracle.FP16}; !want[m.P] {
		return sentinel.Errorf(ErrKernel, "flash: %s: model %q does not multiply P in %v", m.title(),
			p.Model.Name, m.P)
	}
	return m.checkInstruction(p.Model, m.v)
}

func (m *model) checkInstruction(i oracle.Model, o operand) error {
	switch {
	case o.Codes == nil && i.Float == oracle.BF16:
		return nil
	case o.Codes == nil:
		return sentinel.Errorf(ErrKernel, "flash: %s: model %q does not multiply BF16", m.title(),
			i.Name)
	case i.Float != oracle.NoFloat && (o.Codes.Format == fp8.E4M3 || o.Codes.Format == fp8.E5M2 ||
		o.Codes.Format.Bits() < 8):
		return nil
	case !i.Takes(o.Codes.Format):
		return sentinel.Errorf(ErrKernel, "flash: %s: model %q does not multiply %v", m.title(),
			i.Name, o.Codes.Format)
	}
	return nil
}
