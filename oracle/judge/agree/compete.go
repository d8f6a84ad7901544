package agree

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/oracle/explain"
)

const (
	someTokens = 14 // of pairs, beside those where something was found
	someStrips = 3
	someCols   = 16 // of a strip
	suspects   = 2  // tokens and columns of pairs where something was found
	step       = 4  // how far apart those pairs are that are looked at first
)

// pairs are tokens and columns of which all pairs are looked at.
type pairs struct {
	tokens, cols []int
	first        [2]int // which columns are looked at first: those of a strip
	want         []element
	fits         []bool
}

// some returns up to n of places, spread over them, so that not only the worst are looked at.
func some(at []int, n int) (all []int) {
	for _, i := range explain.Spread(len(at), n) {
		all = append(all, at[i])
	}
	return all
}

// ascending returns places in order, each once.
func ascending(at []int) []int {
	slices.Sort(at)
	return slices.Compact(at)
}

// pair chooses tokens and columns of which all pairs are looked at, and computes what is
// claimed of them.
func (j *judge) pair() error {
	bad := worst(j.seen.cols)
	j.tokens = ascending(append(explain.Spread(j.Tokens, someTokens), some(worst(j.seen.tokens), suspects)...))
	n := j.Weight.Rows
	count := (n + stripRows - 1) / stripRows
	chosen := append(explain.Spread(count, someStrips-1), count-1)
	for _, col := range some(bad, suspects) {
		chosen = append(chosen, col/stripRows)
	}
	for i, p := range ascending(chosen) {
		lo := p * stripRows
		cols := explain.Spread(min(stripRows, n-lo), someCols)
		for i := range cols {
			cols[i] += lo
		}
		wrong := slices.DeleteFunc(slices.Clone(bad), func(col int) bool { return col/stripRows != p })
		cols = ascending(append(cols, some(wrong, someCols/2)...))
		if i == 0 || len(bad) > 0 && p == bad[0]/stripRows {
			j.first = [2]int{len(j.cols), len(j.cols) + len(cols)}
		}
		j.cols = append(j.cols, cols...)
	}
	var err error
	j.want, _, err = j.elements(j.claimed, true)
	for i, e := range j.want {
		fits, _, _ := e.fit(j.result(i))
		j.fits = append(j.fits, fits)
	}
	j.noise = noise(j.want, j.result)
	return err
}

// result returns that of a pair.
func (j *judge) result(i int) float32 { return j.got(j.tokens[i/len(j.cols)], j.cols[i%len(j.cols)]) }

// noise is the root mean square of errors in units of roundings at random.
func noise(want []element, got func(i int) float32) float64 {
	sum, n := 0.0, 0
	for i, e := range want {
		_, _, off := e.fit(got(i))
		if e.unit > 0 && !math.IsNaN(off) {
			z := min(off/e.unit, 1e9)
			sum += z * z
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(n))
}

// operandKey is what is kept of an operand: its rows of all pairs, or of those that are looked
// at first.
type operandKey struct {
	*source
	Treatment
	whole bool
}

func (j *judge) operand(s *source, rows []int, t Treatment, whole bool) (*operand, error) {
	key := operandKey{s, t, whole}
	j.mu.Lock()
	o := j.kept[key]
	j.mu.Unlock()
	if o != nil {
		return o, nil
	}
	o, err := s.operand(j.ctx, rows, t)
	if err == nil {
		j.mu.Lock()
		j.kept[key] = o
		j.mu.Unlock()
	}
	return o, err
}

// elements returns what pairs must be, all or those that are looked at first, and which those
// are.
func (j *judge) elements(c candidate, whole bool) (all []element, at []int, err error) {
	lo, hi := 0, len(j.cols)
	if !whole {
		lo, hi = j.first[0], j.first[1]
	}
	x, err := j.operand(j.x, j.tokens, c.input, true)
	if err != nil {
		return nil, nil, err
	}
	w, err := j.operand(j.w, j.cols[lo:hi], c.weight, whole)
	if err != nil {
		return nil, nil, err
	}
	r := j.rulesOf(x, w)
	r.biased = r.biased && !c.noBias
	for t := range j.tokens {
		for k, col := range j.cols[lo:hi] {
			i := t*len(j.cols) + lo + k
			if !whole && i%step != 0 {
				continue
			}
			bias := 0.0
			if r.biased {
				bias = float64(j.bias(col))
			}
			all, at = append(all, r.element(t, k, bias)), append(at, i)
		}
	}
	return all, at, j.ctx.Err()
}

// weighed is a candidate and how it fits.
type weighed struct {
	candidate
	tally explain.Tally
	noise float64
	same  bool // it has the claim's elements
}

// compete weighs all candidates, and returns those that explain the pairs.
func (j *judge) compete(all []candidate) ([]weighed, error) {
	j.v.candidates = len(all)
	found, err := explain.Compete(all, j.workers, func(c candidate, whole bool) (weighed, bool, error) {
		elements, at, err := j.elements(c, whole)
		w := weighed{candidate: c, same: true}
		for i, e := range elements {
			claimed, got := j.want[at[i]], j.result(at[i])
			w.same = w.same && (e.exact == claimed.exact || e.exact != e.exact && claimed.exact != claimed.exact)
			fits, bounded, _ := e.fit(got)
			outcome := explain.Refuted
			if fits {
				outcome = explain.Fits
			}
			if !bounded {
				outcome = explain.Open
			}
			_, _, off := claimed.fit(got)
			w.tally.Count(!j.fits[at[i]], outcome, explain.Evidence(off, e.bound, 16))
		}
		w.noise = noise(elements, func(i int) float32 { return j.result(at[i]) })
		return w, w.tally.Missed == 0 && w.tally.Contradicted == 0, err
	})
	if slices.Contains(j.fits, false) {
		found = slices.DeleteFunc(found, func(w weighed) bool { return !w.tally.Convinces(1, len(all)) })
	}
	return found, err
}
