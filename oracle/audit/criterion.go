package audit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// ErrTest is of a test that cannot be: one without criteria, or with a limit that is
// negative or no number.
var ErrTest = errors.New("audit: not a test")

// Measure is what a criterion measures between a C and the reference. Elements of C
// are g, those of the reference w.
type Measure uint8

const (
	// Close is the share of elements with |g-w| > Atol + Rtol·|w|, as of torch.allclose,
	// torch.testing.assert_close and numpy.allclose with the reference as the second
	// argument. A test that calls allclose(want, got) has Rtol·|g| in place of Rtol·|w|, and
	// may judge elements near the limit otherwise. Its limit is 1 - Within.
	Close Measure = iota
	// MeanError is the mean of |g-w|.
	MeanError
	// RelativeMean is the sum of |g-w| over that of |w|.
	RelativeMean
	// RelativeL2 is the root of the sum of (g-w)² over that of w².
	RelativeL2
	// RelativeMax is the largest |g-w| over the largest |w|.
	RelativeMax
	// CosineDistance is 1 - Σgw / sqrt(Σg²·Σw²), and not less than 0.
	CosineDistance
	// CalcDiff is 1 - 2Σgw / Σ(g²+w²), DeepGEMM's calc_diff.
	CalcDiff
)

// measureTable has the names of measures, how they are written and, but for Close, what
// they are of sums.
var measureTable = [...]struct {
	name, text string
	of         func(s *sums) float64
}{
	Close:          {name: "close"},
	MeanError:      {"mean-error", "mean |got - want|", func(s *sums) float64 { return over(s.errors, float64(s.n)) }},
	RelativeMean:   {"relative-mean", "sum |got - want| / sum |want|", func(s *sums) float64 { return over(s.errors, s.wants) }},
	RelativeL2:     {"relative-l2", "‖got - want‖ / ‖want‖", (*sums).relativeL2},
	RelativeMax:    {"relative-max", "max |got - want| / max |want|", func(s *sums) float64 { return over(s.maxError, s.maxWanted) }},
	CosineDistance: {"cosine-distance", "1 - cosine", (*sums).cosineDistance},
	CalcDiff:       {"calc-diff", "calc_diff", func(s *sums) float64 { return over(s.got2+s.want2-float64(2*s.dot), s.got2+s.want2) }},
}

var measures = enum.Enum[Measure]{Type: "Measure", What: "measure", Prefix: "audit", Names: measureNames()}

func measureNames() (names []string) {
	for _, m := range measureTable {
		names = append(names, m.name)
	}
	return names
}

// String returns a name such as "relative-l2". UnmarshalText takes it in any case.
func (m Measure) String() string                   { return measures.String(m) }
func (m Measure) MarshalText() ([]byte, error)     { return measures.MarshalText(m) }
func (m *Measure) UnmarshalText(text []byte) error { return measures.UnmarshalText(m, text) }

// Criterion is a condition of a test: that a measure is at most its limit. The zero
// Criterion demands equal numbers. Where both sum to 0 a relative measure is 0, and a cosine
// of zeros is 0, as PyTorch has it. Of a C without elements every measure is 0, but a
// CosineDistance, which is 1, and all criteria hold.
type Criterion struct {
	Measure Measure `json:"measure"`
	// Limit is the most that the measure may be. It does not count for Close.
	Limit float64 `json:"limit,omitempty"`

	// Rtol and Atol are those of Close, and Within the share of elements that must be
	// close, as in tests of flashinfer; 0 means 1, all of them.
	Rtol   float64 `json:"rtol,omitempty"`
	Atol   float64 `json:"atol,omitempty"`
	Within float64 `json:"within,omitempty"`
	// EqualNaN, of Close, says that two NaN are equal.
	EqualNaN bool `json:"equalNaN,omitempty"`

	// NaNPasses says that the test asks whether the measure is over its limit, or an
	// element not close, which NaN is not.
	NaNPasses bool `json:"nanPasses,omitempty"`
}

// AssertClose returns the criterion of torch.testing.assert_close for a type of C, where
// no tolerance is given.
func AssertClose(t fault.Type) Criterion {
	switch t {
	case fault.BFloat16:
		return Criterion{Rtol: 1.6e-2, Atol: 1e-5}
	case fault.Float16:
		return Criterion{Rtol: 1e-3, Atol: 1e-5}
	}
	return Criterion{Rtol: 1.3e-6, Atol: 1e-5}
}

// AllClose returns the criterion of torch.allclose and numpy.allclose where no tolerance
// is given.
func AllClose() Criterion { return Criterion{Rtol: 1e-5, Atol: 1e-8} }

// AssertAllClose returns the criterion of numpy.testing.assert_allclose where no
// tolerance is given.
func AssertAllClose() Criterion { return Criterion{Rtol: 1e-7, EqualNaN: true} }

// String returns the condition, such as "|got - want| <= 0.1 + 0.01·|want|".
func (c Criterion) String() string {
	if c.Measure != Close {
		return fmt.Sprintf("%s <= %s", measureTable[c.Measure].text, short(c.Limit))
	}
	var s string
	switch {
	case c.Rtol == 0:
		s = "|got - want| <= " + short(c.Atol)
	case c.Atol == 0:
		s = "|got - want| <= " + short(c.Rtol) + "·|want|"
	default:
		s = "|got - want| <= " + short(c.Atol) + " + " + short(c.Rtol) + "·|want|"
	}
	if c.Within != 0 && c.Within != 1 {
		s += fmt.Sprintf(" in %s %% of elements", short(100*c.Within))
	}
	return s
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// check returns an error unless the criterion can be one.
func (c *Criterion) check() error {
	if err := measures.Check(c.Measure); err != nil {
		return err
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"limit", c.Limit}, {"rtol", c.Rtol}, {"atol", c.Atol}, {"within", c.Within}} {
		if !(v.value >= 0) || math.IsInf(v.value, 0) || v.name == "within" && v.value > 1 {
			return sentinel.Errorf(ErrTest, "audit: %s of %v", v.name, v.value)
		}
	}
	return nil
}

// Value is what a criterion measured.
type Value struct {
	Value oracle.Number `json:"value"`
	Limit oracle.Number `json:"limit"`
	Pass  bool          `json:"pass"`
}

// sums are what measures are made of.
type sums struct {
	n                   int
	errors, wants       float64 // Σ|g-w|, Σ|w|
	errors2             float64 // Σ(g-w)²
	got2, want2, dot    float64 // Σg², Σw², Σgw
	maxError, maxWanted float64
}

// add takes one element in. Infinities that are equal differ by 0, as in torch.isclose.
func (s *sums) add(g, w float64) {
	e := s.square(g, w)
	s.n++
	s.errors += e
	s.wants += math.Abs(w)
	s.got2 += float64(g * g)
	s.dot += float64(g * w)
	s.maxError = larger(s.maxError, e)
	s.maxWanted = larger(s.maxWanted, math.Abs(w))
}

// square takes in what the relative L2 error is made of, and returns |g-w|.
func (s *sums) square(g, w float64) (e float64) {
	if g != w {
		e = math.Abs(g - w)
	}
	s.errors2 += float64(e * e)
	s.want2 += float64(w * w)
	return e
}

// larger is max, where NaN is larger than all.
func larger(x, y float64) float64 {
	if x != x || y != y {
		return math.NaN()
	}
	return max(x, y)
}

// over is x/y, or 0 where both are 0.
func over(x, y float64) float64 {
	if x == 0 && y == 0 {
		return 0
	}
	return x / y
}

func (s *sums) relativeL2() float64 { return math.Sqrt(over(s.errors2, s.want2)) }

func (s *sums) cosineDistance() float64 {
	if s.got2 == 0 || s.want2 == 0 {
		return 1
	}
	// The root of a square is exact, so that the cosine of equal numbers is 1. Squares of
	// float32 numbers are far from the ends of float64.
	return larger(0, 1-s.dot/math.Sqrt(s.got2*s.want2))
}

// far counts elements that are not close.
func (c *Criterion) far(got, want []float64) (n int) {
	for i, g := range got {
		w := want[i]
		if g == w {
			continue
		}
		limit := c.Atol + float64(c.Rtol*math.Abs(w))
		e := math.Abs(g - w)
		switch {
		case g != g || w != w:
			if !c.NaNPasses && !(c.EqualNaN && g != g && w != w) {
				n++
			}
		case math.IsInf(g, 0) || math.IsInf(w, 0):
			n++ // even where the limit is infinite
		case !(e <= limit):
			n++
		}
	}
	return n
}

// apply applies criteria to a C.
func apply(criteria []Criterion, got, want []float64) (values []Value, pass bool) {
	var s sums
	if slices.ContainsFunc(criteria, func(c Criterion) bool { return c.Measure != Close }) {
		for i, g := range got {
			s.add(g, want[i])
		}
	}
	pass = true
	for i := range criteria {
		c := &criteria[i]
		v, limit := 0.0, c.Limit
		if c.Measure != Close {
			v = measureTable[c.Measure].of(&s)
		} else if v, limit = over(float64(c.far(got, want)), float64(len(got))), 0; c.Within != 0 {
			limit = 1 - c.Within
		}
		ok := v <= limit || v != v && c.NaNPasses
		if len(got) == 0 {
			ok = true
		}
		pass = pass && ok
		values = append(values, Value{oracle.Number(v), oracle.Number(limit), ok})
	}
	return values, pass
}

// describe lists criteria.
func describe(criteria []Criterion) string {
	all := make([]string, len(criteria))
	for i, c := range criteria {
		all[i] = c.String()
	}
	return strings.Join(all, " and ")
}
