package judge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/subset"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/tensor"
)

// Alarms says what comes of the tests of all errors taken together, which accuse a
// correct kernel at a rate of [power.Rate] if the hypotheses of package power hold.
type Alarms uint8

const (
	// Fail fails the result.
	Fail Alarms = iota
	// Warn reports an alarm, and leaves the verdict to the bound or the bits.
	Warn
	// Ignore leaves the tests out, and what would have been seen.
	Ignore
)

var alarms = enum.Enum[Alarms]{Type: "Alarms", What: "treatment of alarms", Prefix: "judge", Names: []string{"fail", "warn", "ignore"}}

// String returns a name such as "warn". UnmarshalText takes it in any case.
func (a Alarms) String() string                   { return alarms.String(a) }
func (a Alarms) MarshalText() ([]byte, error)     { return alarms.MarshalText(a) }
func (a *Alarms) UnmarshalText(text []byte) error { return alarms.UnmarshalText(a, text) }

// Power says what would have been seen of a kernel's faults, and what the errors say that
// are allowed one by one.
type Power struct {
	// Rows and Cols are how many of C's were looked at, evenly spread.
	Rows int `json:"rows"`
	Cols int `json:"cols"`
	// Reason says why errors were not tested together: the result fails anyway, its bits
	// are demanded, or package power has nothing to say of such sums.
	Reason string `json:"reason,omitempty"`
	// Result is of those tests, unless there is a reason.
	Result *power.Result `json:"report,omitempty"`
	// Sights are what would have been seen where there is no Result, which has its own.
	Sights []power.Sight `json:"sights,omitempty"`
}

// Alarm reports whether there is one.
func (p *Power) Alarm() bool { return p != nil && p.Result != nil && p.Result.Alarm }

const (
	// mostTogether is the number of elements, at most, whose errors are taken together,
	// and mostAcross that of rows, and of columns where there are as many rows.
	mostTogether = 1 << 16
	mostAcross   = 256
	// mostForBits is the same where each fault is tried in a product of its own.
	mostForBits = 32
)

// lookTogether fills in the power of a verdict, and fails it where an alarm does.
func lookTogether[T gemm.Output](ctx context.Context, v *Verdict, j *job, got, old []T) error {
	if j.claim.Alarms == Ignore || v.elements() == 0 {
		return nil
	}
	v.Power = &Power{}
	if v.Demand == "bits" {
		v.Power.Reason = "every change of a bit fails"
		rows, cols := v.subproduct(mostForBits*mostForBits, mostForBits)
		sub := newSubproduct(j, rows, cols, got, old)
		v.Power.Rows, v.Power.Cols = sub.rows, sub.cols
		kernel := j.claim.Kernel
		if j.claim.Want == Canonical {
			kernel = oracle.Kernel{}
		}
		sights, err := power.Bits(ctx, sub.old, sub.a, sub.b, kernel, sub.options)
		v.Power.Sights = sights
		return err
	}
	rows, cols := v.subproduct(mostTogether, mostAcross)
	sub := newSubproduct(j, rows, cols, got, old)
	v.Power.Rows, v.Power.Cols = sub.rows, sub.cols
	if !v.Pass {
		// Sights are those of a kernel that is as near as can be.
		v.Power.Reason = "the result fails"
		if err := sub.exact(ctx); err != nil {
			return err
		}
	}
	r, err := power.Measure(ctx, sub.got, sub.old, sub.a, sub.b, sub.options)
	switch {
	case errors.Is(err, power.ErrRefused):
		v.Power.Reason = strings.TrimPrefix(err.Error(), power.ErrRefused.Error()+": ")
		return nil
	case err != nil:
		return err
	case !v.Pass:
		v.Power.Sights = r.Sights
		return nil
	}
	v.Power.Result = r
	v.Pass = !r.Alarm || j.claim.Alarms == Warn
	return nil
}

// subproduct returns how many rows and columns errors are looked at together in: of so many
// elements at most, and no more than were looked at one by one, in a part as square as C
// allows; across is its side where C has as many rows.
func (v *Verdict) subproduct(most, across int) (rows, cols int) {
	if n := v.elements(); n < most {
		most, across = n, max(int(math.Sqrt(float64(n))), 1)
	}
	rows = min(v.M, across)
	cols = min(v.N, most/rows)
	return min(v.M, most/cols), cols
}

// subproduct is some rows and columns of a product.
type subproduct[T gemm.Output] struct {
	rows, cols int
	a, b       *tensor.Tensor
	got, old   []T
	options    power.Options
}

// newSubproduct takes so many rows and columns, evenly spread.
func newSubproduct[T gemm.Output](j *job, rows, cols int, got, old []T) *subproduct[T] {
	p := &subproduct[T]{rows: rows, cols: cols, a: j.a, b: j.b, got: got, old: old}
	p.options = power.Options{Accumulation: j.claim.accumulation(), Bias: j.options.Bias, Workers: j.options.Workers, Progress: j.options.Progress}
	if rows == j.m && cols == j.n {
		return p
	}
	inRows, inCols := subset.Evenly(j.m, rows), subset.Evenly(j.n, cols)
	p.a, p.b = subset.Rows(j.a, inRows), subset.Rows(j.b, inCols)
	if j.options.Bias != nil {
		p.options.Bias = gather(j.options.Bias, inCols)
	}
	at := make([]int, 0, rows*cols)
	for _, i := range inRows {
		for _, k := range inCols {
			at = append(at, i*j.n+k)
		}
	}
	p.got = gather(got, at)
	if old != nil {
		p.old = gather(old, at)
	}
	return p
}

// exact puts the exact result in place of the kernel's.
func (p *subproduct[T]) exact(ctx context.Context) error {
	p.got = make([]T, p.rows*p.cols)
	copy(p.got, p.old)
	return oracle.Exact(ctx, p.got, p.a, p.b, oracle.Options{
		Bias: p.options.Bias, Accumulate: p.old != nil, Workers: p.options.Workers, Progress: p.options.Progress})
}

// Together says what the errors say that were taken together, and is "" where they were
// not looked at.
func (v *Verdict) Together() string {
	p := v.Power
	switch {
	case p == nil:
		return ""
	case p.Result == nil:
		return "Errors were not tested together: " + p.Reason
	case p.Result.Alarm && v.modeled():
		return fmt.Sprintf("ALARM: taken together, the errors of %s are not those of %s: they are larger", p.looked(v), v.sums())
	case v.modeled():
		return fmt.Sprintf("Taken together, the errors of %s raise no alarm; none of the results of correct kernels that were measured raises one", p.looked(v))
	case p.Result.Alarm:
		return fmt.Sprintf("ALARM: taken together, the errors of %s are not those of %s: of the results of correct kernels at most one in %s looks like this",
			p.looked(v), v.sums(), count(1/max(float64(p.Result.P), 1e-15)))
	}
	return fmt.Sprintf("Taken together, the errors of %s raise no alarm; of the results of correct kernels at most one in %s raises one", p.looked(v), count(1/float64(p.Result.Rate)))
}

// sums names the sums that errors are compared with.
func (v *Verdict) sums() string {
	if v.Bound == "float32" || v.Bound == "dequantized" {
		return "sums in float32"
	}
	return "sums of " + v.Bound
}

// modeled reports whether errors are compared with those of a model's sums.
func (v *Verdict) modeled() bool { return v.sums() != "sums in float32" }

// count returns a large number in few digits.
func count(x float64) string {
	if x < 1e9 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

func (p *Power) looked(v *Verdict) string {
	if p.Rows == v.M && p.Cols == v.N {
		return fmt.Sprintf("all %d elements", v.M*v.N)
	}
	return fmt.Sprintf("%d rows and %d columns", p.Rows, p.Cols)
}

// tests lists the tests of an alarm, or those that say nothing.
func (v *Verdict) tests() (lines []Line) {
	if v.Power == nil || v.Power.Result == nil {
		return nil
	}
	for i := range v.Power.Result.Tests {
		if t := &v.Power.Result.Tests[i]; t.Alarm || t.Void {
			lines = append(lines, Line{Name: t.Name, Value: t.String()})
		}
	}
	return lines
}

// seen lists faults, and whether they would have been seen.
func (v *Verdict) seen() (lines []Line) {
	if v.Power == nil {
		return nil
	}
	sights := v.Power.Sights
	if v.Power.Result != nil {
		sights = v.Power.Result.Sights
	}
	for i := range sights {
		lines = append(lines, Line{Name: sights[i].Fault, Value: sights[i].String()})
	}
	return lines
}
