package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/meter"
	floating "github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/workpool"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/progress"
)

// Options of an audit.
type Options struct {
	// Faults are those that are tried; nil: all that the product could have, whole and
	// in some elements only.
	Faults []fault.Fault
	// NoProposal leaves the proposal out.
	NoProposal bool
	// Seed is that of the operands that are proposed.
	Seed uint64

	// Progress, unless nil, hears of "the reference", "correct kernels", "faults" and, of each set of operands, "a better test on exact-sums".
	Progress progress.Reporter
	Workers  int // goroutines at most; 0 means GOMAXPROCS, and negative is an error
}

// Outcome says what a fault makes of C, and what the test says of that.
type Outcome uint8

const (
	// Survives: a C that no correct kernel computes passes the test.
	Survives Outcome = iota
	// Caught: a C that no correct kernel computes fails the test. That speaks for the test
	// only where correct kernels pass it: one that fails all of them catches every fault. See
	// FalseFailures of [Report].
	Caught
	// Rounding: every element is within the bound of what correct kernels compute, so that
	// this C alone proves nothing.
	Rounding
	// Unchanged: C has the bits of a correct kernel's.
	Unchanged
)

var outcomes = enum.Enum[Outcome]{Type: "Outcome", What: "outcome", Prefix: "audit", Names: []string{"survives", "caught", "rounding", "unchanged"}}

// String returns a name such as "survives". UnmarshalText takes it in any case.
func (v Outcome) String() string                   { return outcomes.String(v) }
func (v Outcome) MarshalText() ([]byte, error)     { return outcomes.MarshalText(v) }
func (v *Outcome) UnmarshalText(text []byte) error { return outcomes.UnmarshalText(v, text) }

// Trial is a fault and what became of it.
type Trial struct {
	Fault   fault.Fault `json:"fault"`
	Text    string      `json:"text"`
	Outcome Outcome     `json:"verdict"`
	// Pass says that the test passes, whatever the verdict.
	Pass   bool    `json:"pass"`
	Values []Value `json:"values"` // of the test's criteria
	Distance

	flat bool // it is within the largest bound everywhere
}

// Distance is how far a C is from the right one.
type Distance struct {
	// Different is the number of elements whose bits are not those of a correct kernel,
	// and Outside of those that are beyond the bound.
	Different int `json:"different"`
	Outside   int `json:"outside"`
	// Worst is the element with the largest error in units of its bound, Error, if any.
	Worst *oracle.ElementError `json:"worst,omitempty"`
	// RelativeL2 is the length of the error over that of the right C.
	RelativeL2 oracle.Number `json:"relativeL2"`
}

// Honest is a correct kernel and what the test says of it.
type Honest struct {
	Name string `json:"name"`
	// Claimed says that it is what the kernel is claimed to be: float32 sums or, if a model
	// is claimed, that. Other models may have sums of fewer bits.
	Claimed bool    `json:"claimed"`
	Pass    bool    `json:"pass"`
	Values  []Value `json:"values"`
	Distance
}

// right reports whether its C is one that the claimed kernel may compute: sums in other orders are
// not where bits are demanded.
func (h *Honest) right(bits bool) bool { return h.Outside == 0 || h.Claimed && !bits }

// Report is the verdict on a test. Its JSON is stable: keys are added, never changed.
type Report struct {
	Case *CaseResult `json:"case,omitempty"` // where the test is one of Cases

	Type       fault.Type    `json:"type"` // of C
	M          int           `json:"m"`
	N          int           `json:"n"`
	K          int           `json:"k"`
	A          judge.Operand `json:"a"`
	B          judge.Operand `json:"b"`
	Bias       bool          `json:"bias"`
	Accumulate bool          `json:"accumulate"`

	Test Test `json:"test"`
	// Bits says that a correct kernel has the bits of the claimed model: errors are in units in
	// the last place then, and there is no bound.
	Bits bool `json:"bits"`
	// Largest and RMS are the largest magnitude of the right C, and the root of the mean
	// of its squares; Bound is the largest bound and BoundRMS the same of the bounds.
	Largest  oracle.Number `json:"largest"`
	RMS      oracle.Number `json:"rms"`
	Bound    oracle.Number `json:"bound"`
	BoundRMS oracle.Number `json:"boundRMS"`

	// Reference is how far the test's reference is from the right C; nil where it is the
	// kernel itself.
	Reference *Distance `json:"reference,omitempty"`

	// Honest are correct kernels, and FalseFailures the number of those that fail the test
	// although they are claimed or within the bound of what is.
	Honest        []Honest `json:"honest"`
	FalseFailures int      `json:"falseFailures"`

	// Faults are all that were tried: those that survive first, the worst of them before
	// others.
	Faults    []Trial `json:"faults"`
	Survive   int     `json:"survive"`
	Caught    int     `json:"caught"`
	Rounding  int     `json:"rounding"`
	Unchanged int     `json:"unchanged"`

	Proposal *Proposal `json:"proposal,omitempty"`
}

// Run says which faults of a kernel the test would let pass for product p. The kernel is
// one that is honest but for the fault: that of p.Kernel or, where it has no model, package
// gemm. What a correct kernel may compute follows from p.Accumulation as in [oracle.Bound]
// or, where p.Bits says so, is the bits of p.Kernel.
//
// It returns an error if the test is none (ErrTest), if the operands or those of the
// reference make no product, and when ctx ends. It returns an error, too, if the bias or the old C is not
// of the right length. The report does not depend on Workers. Safe for concurrent use.
func Run[T gemm.Output](ctx context.Context, p fault.Product, test Test, o Options) (*Report, error) {
	if err := test.check(); err != nil {
		return nil, err
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("audit: %d workers: want 0 or more", o.Workers)
	}
	r, err := newReport(typeOf[T](), p, test)
	if err != nil {
		return nil, err
	}
	s, err := newSubject[T](ctx, p, test.Criteria, o)
	if err != nil {
		return nil, err
	}
	r.Largest, r.RMS = s.size(s.right)
	r.Bound, r.BoundRMS = s.size(s.bound)
	if s.reference, err = test.Reference.values(ctx, typeOf[T](), p, o.Workers); err != nil {
		return nil, err
	}
	if len(s.reference) != 0 && len(s.reference) != len(s.want) {
		return nil, fmt.Errorf("audit: the reference has %d elements, C has %d", len(s.reference), len(s.want))
	}
	if s.reference != nil {
		d := s.referenceDistance()
		r.Reference = &d
	}
	if r.Honest, err = s.honestKernels(ctx, p, false, o); err != nil {
		return nil, err
	}
	for _, h := range r.Honest {
		if h.right(r.Bits) && !h.Pass {
			r.FalseFailures++
		}
	}
	faults := o.Faults
	if faults == nil {
		faults = Faults(typeOf[T](), p)
	}
	if r.Faults, err = s.try(ctx, p, faults, o, "faults"); err != nil {
		return nil, err
	}
	r.count()
	if !o.NoProposal {
		if r.Proposal, err = propose[T](ctx, p, faults, r, o); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// RunType is [Run] for a type of C that is known when the program runs.
func RunType(ctx context.Context, t fault.Type, p fault.Product, test Test, o Options) (*Report, error) {
	switch t {
	case fault.BFloat16:
		return Run[fp8.BFloat16](ctx, p, test, o)
	case fault.Float16:
		return Run[float16.Float16](ctx, p, test, o)
	case fault.Float32:
		return Run[float32](ctx, p, test, o)
	}
	return nil, fmt.Errorf("audit: %v", t)
}

// newReport describes the product and the test.
func newReport(t fault.Type, p fault.Product, test Test) (*Report, error) {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	// Live at once are three of C (of an honest kernel, the right one and one with a fault) and, in
	// float64, the last two of these, the bound and the reference.
	what, perElement := fmt.Sprintf("an audit of %dx%d elements", size.M, size.N), int64(3*2+4*8)
	if t == fault.Float32 {
		perElement = 3*4 + 4*8
	}
	if err := memory.Check(int64(size.M)*int64(size.N), perElement, what, "take operands of fewer rows"); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return &Report{Type: t, M: size.M, N: size.N, K: size.K, A: judge.NewOperand(p.A), B: judge.NewOperand(p.B),
		Bias: p.Bias != nil, Accumulate: p.Old != nil, Test: test, Bits: p.Bits, Honest: []Honest{}, Faults: []Trial{}}, nil
}

// subject is what is known of a product before faults are put into it.
type subject[T gemm.Output] struct {
	rows, cols int
	want       []T       // the right C: exact or, where bits are demanded, of the kernel
	right      []float64 // the same
	bound      []float64 // nil: bits are demanded
	honest     []T       // of the kernel without a fault
	criteria   []Criterion
	reference  []float64 // nil: it is what was got
}

func newSubject[T gemm.Output](ctx context.Context, p fault.Product, criteria []Criterion, o Options) (*subject[T], error) {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	s := &subject[T]{rows: size.M, cols: size.N, criteria: criteria, honest: make([]T, size.M*size.N)}
	m := meter.New(ctx, o.Progress, "the reference", 3)
	if err := fault.Inject(ctx, s.honest, fault.Fault{}, p, fault.Options{Workers: o.Workers}); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if err := m.Add(1); err != nil {
		return nil, err
	}
	s.want = s.honest
	if p.Accumulation.Kernel.Model == (oracle.Model{}) {
		p.Accumulation.Kernel = p.Kernel
	}
	if !p.Bits {
		s.want = make([]T, len(s.honest))
		if err := exact(ctx, s.want, p, o.Workers); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		if err := m.Add(1); err != nil {
			return nil, err
		}
		if s.bound, err = bounds[T](ctx, p, o.Workers); err != nil {
			return nil, err
		}
	} else if err := m.Add(1); err != nil {
		return nil, err
	}
	s.right = widened(s.want)
	return s, m.Add(1)
}

// bounds returns the bounds of what a correct kernel computes.
func bounds[T gemm.Output](ctx context.Context, p fault.Product, workers int) ([]float64, error) {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	var old []T
	if p.Old != nil {
		old = make([]T, len(p.Old))
		narrow(old, p.Old)
	}
	bound := make([]float64, size.M*size.N)
	if err := oracle.Bound(ctx, bound, old, p.A, p.B, p.Accumulation, oracle.Options{Bias: p.Bias, Accumulate: old != nil, Workers: workers}); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return bound, nil
}

// size returns the largest magnitude of finite values, and the root of the mean of
// their squares.
func (s *subject[T]) size(v []float64) (largest, rms oracle.Number) {
	var most, sum float64
	n := 0
	for _, x := range v {
		x = math.Abs(x)
		if x != x || math.IsInf(x, 0) {
			continue
		}
		n++
		most = max(most, x)
		sum += float64(x * x)
	}
	return oracle.Number(most), oracle.Number(math.Sqrt(over(sum, float64(n))))
}

// judge says what is true of a C, got being the same, and what the test says of it.
func (s *subject[T]) judge(ctx context.Context, c []T, got []float64, o Options) (Distance, []Value, bool, error) {
	d, err := s.distance(ctx, c, got, o)
	if err != nil {
		return d, nil, false, err
	}
	reference := s.reference
	if reference == nil {
		reference = got
	}
	values, pass := apply(s.criteria, got, reference)
	return d, values, pass, nil
}

// distance compares a C, got being the same, with the right one.
func (s *subject[T]) distance(ctx context.Context, c []T, got []float64, o Options) (Distance, error) {
	r, err := oracle.Compare(ctx, c, s.want, s.bound, oracle.CompareOptions{Rows: s.rows, Cols: s.cols, Workers: o.Workers})
	if err != nil {
		return Distance{}, fmt.Errorf("audit: %w", err)
	}
	d := Distance{Outside: r.Outside, Worst: r.MaxBound}
	if s.bound == nil {
		d.Worst = r.MaxULP
	}
	var all sums
	for i, x := range c {
		if math.Float32bits(floating.Float32(x)) != math.Float32bits(floating.Float32(s.honest[i])) {
			d.Different++
		}
		if w := s.right[i]; w-w == 0 { // of elements that have a size
			all.square(got[i], w)
		}
	}
	d.RelativeL2 = oracle.Number(all.relativeL2())
	return d, nil
}

// referenceDistance is that of the reference.
func (s *subject[T]) referenceDistance() Distance {
	var d Distance
	var all sums
	for i, v := range s.reference {
		w := s.right[i]
		all.add(v, w)
		if v != floating.Float64(s.honest[i]) && (v == v || w == w) {
			d.Different++
		}
		e, limit := math.Abs(v-w), 0.0
		if v == w || v != v && w != w {
			continue
		}
		if s.bound != nil {
			limit = s.bound[i]
		}
		if e > limit || e != e {
			d.Outside++
		}
		at := Distance{Worst: &oracle.ElementError{Row: i / s.cols, Col: i % s.cols, Got: oracle.Number(v), Want: oracle.Number(w), Bound: oracle.Number(limit), Error: oracle.Number(e / limit)}}
		if d.Worst == nil || at.units() > d.units() {
			d.Worst = at.Worst
		}
	}
	d.RelativeL2 = oracle.Number(all.relativeL2())
	return d
}

// honestKernels tries the test on correct kernels: those that are claimed or all.
func (s *subject[T]) honestKernels(ctx context.Context, p fault.Product, claimed bool, o Options) ([]Honest, error) {
	all := corrects[T](p)
	if claimed {
		all = slices.DeleteFunc(all, func(k correct[T]) bool { return !k.claimed })
	}
	m := meter.New(ctx, o.Progress, "correct kernels", int64(len(all)))
	honest := make([]Honest, 0, len(all))
	c := make([]T, len(s.want))
	for _, k := range all {
		if err := k.compute(ctx, c, p, o.Workers); err != nil {
			return nil, fmt.Errorf("audit: %s: %w", k.name, err)
		}
		d, values, pass, err := s.judge(ctx, c, widened(c), o)
		if err != nil {
			return nil, err
		}
		honest = append(honest, Honest{Name: k.name, Claimed: k.claimed, Pass: pass, Values: values, Distance: d})
		if err := m.Add(1); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
	}
	return honest, nil
}

// atOnce is the number of elements, at most, of a C of which each worker has one of its own.
const atOnce = 1 << 18

// try puts faults into the product, and returns what becomes of those that it can have.
func (s *subject[T]) try(ctx context.Context, p fault.Product, faults []fault.Fault, o Options, op string) ([]Trial, error) {
	m := meter.New(ctx, o.Progress, op, int64(len(faults)))
	outcomes := make([]*Trial, len(faults)) // by fault
	workers, inside := o.Workers, o
	if inside.Workers = 1; len(s.want) > atOnce {
		workers, inside = 1, o
	}
	err := workpool.Each(len(faults), workers, func(c *[]T, i int) error {
		if *c == nil {
			*c = make([]T, len(s.want))
		}
		err := fault.Inject(ctx, *c, faults[i], p, fault.Options{Workers: inside.Workers})
		if err == nil {
			outcomes[i], err = s.outcome(ctx, *c, faults[i], inside)
		}
		if err != nil && !errors.Is(err, fault.ErrNotHere) {
			return fmt.Errorf("audit: %w", err)
		}
		if err := m.Add(1); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	trials := make([]Trial, 0, len(faults))
	for _, out := range outcomes {
		if out != nil {
			trials = append(trials, *out)
		}
	}
	slices.SortStableFunc(trials, worse)
	return trials, nil
}

// outcome judges the C that a fault made.
func (s *subject[T]) outcome(ctx context.Context, c []T, f fault.Fault, o Options) (*Trial, error) {
	got := widened(c)
	d, values, pass, err := s.judge(ctx, c, got, o)
	largest, _ := s.size(s.bound)
	flat := Criterion{Atol: float64(largest), EqualNaN: true}
	out := &Trial{Fault: f, Text: f.String(), Pass: pass, Values: values, Distance: d, flat: flat.far(got, s.right) == 0}
	switch {
	case d.Different == 0:
		out.Outcome = Unchanged
	case d.Outside == 0:
		out.Outcome = Rounding
	case !pass:
		out.Outcome = Caught
	}
	return out, err
}

// worse orders trials: survivors first, and the one with the largest error in units of
// the bound before others.
func worse(x, y Trial) int {
	return cmp.Or(cmp.Compare(x.Outcome, y.Outcome), cmp.Compare(y.units(), x.units()), cmp.Compare(y.RelativeL2, x.RelativeL2))
}

// units is the largest error in units of the bound.
func (d *Distance) units() float64 {
	if d.Worst == nil {
		return 0
	}
	if e := float64(d.Worst.Error); e == e {
		return e
	}
	return math.Inf(1)
}

// count counts trials.
func (r *Report) count() {
	for i := range r.Faults {
		switch r.Faults[i].Outcome {
		case Survives:
			r.Survive++
		case Caught:
			r.Caught++
		case Rounding:
			r.Rounding++
		case Unchanged:
			r.Unchanged++
		}
	}
}

// Worst returns the fault that survives with the largest error in units of the bound, or
// nil if none does.
func (r *Report) Worst() *Trial {
	if r.Survive == 0 {
		return nil
	}
	return &r.Faults[0]
}
