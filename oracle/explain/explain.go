package explain

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/parallel"
)

// Outcome is how a fault fits an element.
type Outcome uint8

const (
	Open    Outcome = iota // the fault does not say what the element is
	Refuted                // the element is not what the fault makes of it
	Fits
)

// Tally is how a fault fits the elements that were looked at.
type Tally struct {
	Explained, Missed, Open int // wrong elements: they fit, are refuted or open
	Contradicted            int // right elements that the fault would make wrong
	// Evidence is how unlikely it is, in bits, that a result that is wrong for another
	// reason fits so well.
	Evidence float64
}

// Count takes in how the fault fits an element. Evidence, in bits, counts where the
// element is wrong and fits.
func (t *Tally) Count(wrong bool, o Outcome, evidence float64) {
	switch {
	case wrong && o == Fits:
		t.Explained++
		t.Evidence += evidence
	case wrong && o == Refuted:
		t.Missed++
	case wrong:
		t.Open++
	case o == Refuted:
		t.Contradicted++
	}
}

// Explains reports whether the fault says of at least half of the wrong elements what
// they should be, and explains the given share of those.
func (t *Tally) Explains(share float64) bool {
	known := t.Explained + t.Missed
	return known >= t.Open && float64(t.Explained) >= share*float64(known)
}

// Hopeless reports whether the fault will not explain the share, whatever the rest of so
// many wrong elements is.
func (t *Tally) Hopeless(share float64, wrong int) bool {
	return float64(wrong-t.Missed) < share*float64(wrong) || 2*t.Open > wrong
}

// chance is how improbable a false explanation must be, in bits: one in a million.
const chance = 20

// Convinces reports whether the fault [Tally.Explains] the share and a result that is
// wrong by chance would fit one of the given number of faults so well less than once in a
// million times.
func (t *Tally) Convinces(share float64, faults int) bool {
	return t.Evidence >= chance+math.Log2(float64(faults)) && t.Explains(share)
}

// Evidence is how unlikely it is, in bits, that an element whose error is off would be
// within tolerance of something else by chance: the window's share of the distance. It is
// at most most, which is also that of an error that is not finite and of a tolerance of 0.
func Evidence(off, tolerance, most float64) float64 {
	if !(off <= math.MaxFloat64) || tolerance == 0 {
		return most
	}
	return min(max(math.Log2(off/tolerance), 0), most)
}

// Compete weighs faults and returns, in their order, those of which weigh says so. It
// weighs each on a part of the sample first, which spares the whole of it for most. The
// result does not depend on workers, of which each weighs some faults; 0 means GOMAXPROCS.
// The first error ends it.
func Compete[F, C any](faults []F, workers int, weigh func(f F, whole bool) (c C, fits bool, err error)) ([]C, error) {
	candidates, fit := make([]C, len(faults)), make([]bool, len(faults))
	errs := make([]error, len(faults))
	parallel.For(len(faults), 4, workers, func(lo, hi int) {
		for n := lo; n < hi; n++ {
			_, fits, err := weigh(faults[n], false)
			if fits && err == nil {
				candidates[n], fit[n], err = weigh(faults[n], true)
			}
			if errs[n] = err; err != nil {
				return
			}
		}
	})
	var all []C
	for n := range faults {
		if errs[n] != nil {
			return nil, errs[n]
		}
		if fit[n] {
			all = append(all, candidates[n])
		}
	}
	return all, nil
}

// With returns each fault with each of the values, in order, or the faults as they are if
// there are none. set sets the value in a copy of the fault.
func With[F, V any](faults []F, values []V, set func(f *F, v V)) (all []F) {
	if len(values) == 0 {
		return faults
	}
	for _, f := range faults {
		for _, v := range values {
			set(&f, v)
			all = append(all, f)
		}
	}
	return all
}
