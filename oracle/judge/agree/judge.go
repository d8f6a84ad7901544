package agree

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const (
	stripRows  = 128
	wholeRows  = 2  // tokens that are looked at with all columns
	wholeCols  = 4  // columns that are looked at with all tokens
	someTokens = 14 // of pairs, beside those where something was found
	someStrips = 3
	someCols   = 16 // of a strip
	suspects   = 2  // tokens and columns of pairs where something was found
	alike      = 1.5
	enough     = 64 // elements whose errors together say which candidate is likelier
)

// Check judges a layer. The error is [ErrLayer], that of a recipe or of reading the weight,
// or the context's. The verdict does not depend on Workers. Nothing is kept of the layer.
func Check(ctx context.Context, l *Layer, c Claim, o Options) (*Verdict, error) {
	if err := l.check(&c); err != nil {
		return nil, err
	}
	named := *l // its types have names
	named.InputOf, named.Of, named.Weight.Of = cmp.Or(l.InputOf, F32), cmp.Or(l.Of, F32), cmp.Or(l.Weight.Of, F32)
	l = &named
	s, err := newSource(l, &c)
	if err != nil {
		return nil, err
	}
	claimed := s.claimed(&c)
	switch {
	case !s.makesInput(claimed.input):
		return nil, layerError("%s: blocks of several tokens are not recomputed", c.Recipe.Name)
	case !s.makesWeight(claimed.weight):
		return nil, layerError("%s: blocks of the weight are not recomputed in strips of %d rows", c.Recipe.Name, s.height)
	}
	j := &judge{source: s, claim: &c, claimed: claimed, ctx: ctx, workers: o.Workers}
	v := &Verdict{
		Claim: c.Recipe.Name, Input: claimed.input.text(string(l.InputOf)), Weight: claimed.weight.text(s.stored()),
		InputOf: l.InputOf, Of: l.Of, Tokens: l.Tokens, In: l.Weight.Cols, Out: l.Weight.Rows,
		input: claimed.input, weight: claimed.weight,
	}
	if c.Kernel.Model.Name != "" {
		v.Sums = c.Kernel.Model.Name
	}
	if err := j.screen(v); err != nil {
		return nil, err
	}
	if err := j.pairs(); err != nil {
		return nil, err
	}
	if err := j.compete(v, s.candidates(&c, o.Recipes)); err != nil {
		return nil, err
	}
	j.decide(v)
	return v, nil
}

// stored says how the weight is stored.
func (s *source) stored() string {
	if c := s.Weight.Codes; c != nil {
		return c.Format.String() + " as stored"
	}
	return string(s.Weight.Of)
}

// judge is a judgement under way.
type judge struct {
	*source
	claim   *Claim
	claimed candidate
	ctx     context.Context
	workers int

	badTokens, badCols []int // where something is outside, the worst first

	tokens []int // of pairs
	strips []int // where they begin
	first  int   // where that begins which is looked at first
	cols   []int // of pairs
	want   []element
	fits   []bool
	noise  float64 // of the claim

	mu      sync.Mutex
	inputs  map[Treatment]*operand
	weights map[weightKey]*operand
}

func (j *judge) bias(col int) float64 {
	if j.Bias == nil {
		return 0
	}
	return float64(j.Bias[col])
}

// screen looks at some tokens with all columns and at some columns with all tokens.
func (j *judge) screen(v *Verdict) error {
	tokens := explain.Spread(j.Tokens, wholeRows)
	some, err := j.input(j.ctx, tokens, j.claimed.input)
	if err != nil {
		return err
	}
	n := j.Weight.Rows
	strips := (n + j.height - 1) / j.height
	bad := make([]float64, n) // of columns
	worstOf := make([][wholeRows]float64, strips)
	stats := make([]screened, strips)
	errs := make([]error, strips)
	parallel.For(strips, 1, j.workers, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			if errs[p] = j.ctx.Err(); errs[p] != nil {
				return
			}
			w, err := j.strip(j.ctx, p*j.height, nil, j.claimed.weight)
			if err != nil {
				errs[p] = err
				return
			}
			r := rulesOf(j.Of, j.claim.Kernel, some, w)
			for i, token := range tokens {
				for c := range len(w.values) / w.cols {
					col := p*j.height + c
					e := r.element(some.row(i), w.row(c), some.magnitudes(i), w.magnitudes(c), j.bias(col), j.Bias != nil)
					size := stats[p].count(e, j.Output[token*n+col])
					bad[col] = max(bad[col], size)
					worstOf[p][i] = max(worstOf[p][i], size)
				}
			}
		}
	})
	for p, err := range errs {
		if err != nil {
			return err
		}
		v.screened.add(stats[p])
	}
	cols := explain.Spread(n, wholeCols)
	rows, missed := make([]float64, j.Tokens), make([][]float64, j.Tokens)
	errs = make([]error, j.Tokens)
	stats = make([]screened, j.Tokens)
	var weights []*operand
	for _, col := range cols {
		lo := col / j.height * j.height
		w, err := j.strip(j.ctx, lo, []int{col - lo}, j.claimed.weight)
		if err != nil {
			return err
		}
		weights = append(weights, w)
	}
	parallel.For(j.Tokens, 8, j.workers, func(lo, hi int) {
		for token := lo; token < hi; token++ {
			x, err := j.input(j.ctx, []int{token}, j.claimed.input)
			if err == nil {
				err = j.ctx.Err()
			}
			if err != nil {
				errs[token] = err
				return
			}
			for i, col := range cols {
				r := rulesOf(j.Of, j.claim.Kernel, x, weights[i])
				e := r.element(x.row(0), weights[i].row(0), x.magnitudes(0), weights[i].magnitudes(0), j.bias(col), j.Bias != nil)
				size := stats[token].count(e, j.Output[token*n+col])
				rows[token] = max(rows[token], size)
				missed[token] = append(missed[token], size)
			}
		}
	})
	for token, err := range errs {
		if err != nil {
			return err
		}
		if !slices.Contains(tokens, token) {
			v.screened.add(stats[token])
		}
		for i, size := range missed[token] {
			bad[cols[i]] = max(bad[cols[i]], size)
		}
	}
	for _, of := range worstOf {
		for i, token := range tokens {
			rows[token] = max(rows[token], of[i])
		}
	}
	j.badTokens, j.badCols = worst(rows), worst(bad)
	return nil
}

// screened counts elements.
type screened struct {
	elements, outside, unbounded int
	largest                      float64 // error over bound
}

func (s *screened) add(t screened) {
	s.elements += t.elements
	s.outside += t.outside
	s.unbounded += t.unbounded
	s.largest = max(s.largest, t.largest)
}

// count counts an element and returns how far outside it is, 0 for one that is not.
func (s *screened) count(e element, got float32) float64 {
	s.elements++
	fits, bounded, off := e.fit(got)
	size := off / e.bound
	switch {
	case fits && bounded && e.bound > 0:
		s.largest = max(s.largest, size)
		return 0
	case fits && !bounded && off != 0:
		s.unbounded++
		return 0
	case fits:
		return 0
	}
	s.outside++
	if !(size <= math.MaxFloat64) {
		size = math.MaxFloat64
	}
	s.largest = max(s.largest, size)
	return size
}

// worst returns the places of the largest values above 0.
func worst(sizes []float64) (at []int) {
	for i, x := range sizes {
		if x > 0 {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int {
		switch {
		case sizes[a] > sizes[b]:
			return -1
		case sizes[a] < sizes[b]:
			return 1
		}
		return 0
	})
	return at
}

// first returns up to n of places, spread over them, so that not only the worst are looked at.
func first(at []int, n int) (some []int) {
	for _, i := range explain.Spread(len(at), n) {
		some = append(some, at[i])
	}
	return some
}

// pairs chooses tokens and columns of which all pairs are looked at, and computes what is
// claimed of them.
func (j *judge) pairs() error {
	j.tokens = append(explain.Spread(j.Tokens, someTokens), first(j.badTokens, suspects)...)
	slices.Sort(j.tokens)
	j.tokens = slices.Compact(j.tokens)
	n := j.Weight.Rows
	count := (n + j.height - 1) / j.height
	chosen := append(explain.Spread(count, someStrips-1), count-1)
	for _, col := range first(j.badCols, suspects) {
		chosen = append(chosen, col/j.height)
	}
	slices.Sort(chosen)
	for _, p := range slices.Compact(chosen) {
		lo := p * j.height
		height := min(j.height, n-lo)
		j.strips = append(j.strips, lo)
		cols := explain.Spread(height, someCols)
		var bad []int
		for _, col := range j.badCols {
			if col/j.height == p {
				bad = append(bad, col-lo)
			}
		}
		cols = append(cols, first(bad, someCols/2)...)
		slices.Sort(cols)
		for _, c := range slices.Compact(cols) {
			j.cols = append(j.cols, lo+c)
		}
	}
	j.first = j.strips[0]
	if len(j.badCols) > 0 {
		j.first = j.badCols[0] / j.height * j.height
	}
	if !slices.Contains(j.strips, j.first) {
		j.first = j.strips[0]
	}
	j.inputs, j.weights = map[Treatment]*operand{}, map[weightKey]*operand{}
	var err error
	j.want, _, err = j.elements(j.claimed, true)
	if err != nil {
		return err
	}
	j.fits = make([]bool, len(j.want))
	for i, e := range j.want {
		j.fits[i], _, _ = e.fit(j.got(i))
	}
	j.noise = noise(j.want, j.got)
	return nil
}

// got returns the result of a pair.
func (j *judge) got(i int) float32 {
	return j.Output[j.tokens[i/len(j.cols)]*j.Weight.Rows+j.cols[i%len(j.cols)]]
}

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

// weightKey is what is kept of the weight: all columns of pairs, or those of a strip.
type weightKey struct {
	Treatment
	whole bool
}

// operands returns those of a candidate, which are kept: of all columns of pairs, or of those
// of the strip that is looked at first.
func (j *judge) operands(c candidate, whole bool) (x, w *operand, err error) {
	key := weightKey{c.weight, whole}
	j.mu.Lock()
	x, w = j.inputs[c.input], j.weights[key]
	j.mu.Unlock()
	if x == nil {
		if x, err = j.input(j.ctx, j.tokens, c.input); err != nil {
			return nil, nil, err
		}
	}
	if w == nil {
		var all operand
		for _, lo := range j.strips {
			if !whole && lo != j.first {
				continue
			}
			var rows []int
			for _, col := range j.cols {
				if col >= lo && col < lo+j.height {
					rows = append(rows, col-lo)
				}
			}
			part, err := j.strip(j.ctx, lo, rows, c.weight)
			if err != nil {
				return nil, nil, err
			}
			if all.cols != 0 {
				part.values, part.raised = append(all.values, part.values...), append(all.raised, part.raised...)
				part.scale = max(part.scale, all.scale)
			}
			all = *part
		}
		w = &all
	}
	j.mu.Lock()
	j.inputs[c.input], j.weights[key] = x, w
	j.mu.Unlock()
	return x, w, nil
}

// step is how far apart those of the pairs of the first strip are that are looked at first.
const step = 4

// chosen returns the pairs that are looked at: all, or some of one strip.
func (j *judge) chosen(whole bool) (all []int) {
	n := len(j.tokens) * len(j.cols)
	if whole {
		return explain.Spread(n, n)
	}
	for i := range n {
		if lo := j.cols[i%len(j.cols)] / j.height * j.height; lo == j.first && i%step == 0 {
			all = append(all, i)
		}
	}
	return all
}

// elements returns what pairs must be, and which those are.
func (j *judge) elements(c candidate, whole bool) (all []element, at []int, err error) {
	if err := j.ctx.Err(); err != nil {
		return nil, nil, err
	}
	x, w, err := j.operands(c, whole)
	if err != nil {
		return nil, nil, err
	}
	before := 0 // columns of strips that are left out
	if !whole {
		for j.cols[before] < j.first {
			before++
		}
	}
	r := rulesOf(j.Of, j.claim.Kernel, x, w)
	at = j.chosen(whole)
	all = make([]element, 0, len(at))
	for _, i := range at {
		t, k := i/len(j.cols), i%len(j.cols)
		bias := j.bias(j.cols[k])
		if c.noBias {
			bias = 0
		}
		all = append(all, r.element(x.row(t), w.row(k-before), x.magnitudes(t), w.magnitudes(k-before), bias, j.Bias != nil && !c.noBias))
	}
	return all, at, nil
}

// weighed is a candidate and how it fits.
type weighed struct {
	candidate
	tally explain.Tally
	noise float64
	same  bool // it has the claim's elements
}

// compete weighs all candidates.
func (j *judge) compete(v *Verdict, all []candidate) error {
	found, err := explain.Compete(all, j.workers, func(c candidate, whole bool) (weighed, bool, error) {
		elements, at, err := j.elements(c, whole)
		if err != nil {
			return weighed{}, false, err
		}
		w := weighed{candidate: c, same: true}
		got := func(i int) float32 { return j.got(at[i]) }
		for i, e := range elements {
			claimed := j.want[at[i]]
			w.same = w.same && (e.exact == claimed.exact || e.exact != e.exact && claimed.exact != claimed.exact)
			fits, bounded, _ := e.fit(got(i))
			outcome := explain.Refuted
			if fits {
				outcome = explain.Fits
			}
			if !bounded {
				outcome = explain.Open
			}
			_, _, off := claimed.fit(got(i))
			w.tally.Count(!j.fits[at[i]], outcome, explain.Evidence(off, e.bound, 16))
		}
		w.noise = noise(elements, got)
		return w, w.tally.Missed == 0 && w.tally.Contradicted == 0, nil
	})
	if err != nil {
		return err
	}
	v.candidates = len(all)
	wrong := slices.Contains(j.fits, false)
	for _, w := range found {
		if !wrong || w.tally.Convinces(1, len(all)) {
			v.found = append(v.found, w)
		}
	}
	return nil
}

// decide says what came of it.
func (j *judge) decide(v *Verdict) {
	v.noise = j.noise
	v.Pairs, v.Looked, v.Outside, v.Largest = len(j.want), v.screened.elements, v.screened.outside, jsonfloat.Number(v.screened.largest)
	if v.Outside > 0 {
		v.WrongTokens, v.WrongColumns = len(j.badTokens), len(j.badCols)
	}
	best := math.Inf(1)
	for _, w := range v.found {
		best = min(best, w.noise)
	}
	outside := 0
	for _, fits := range j.fits {
		if !fits {
			outside++
		}
	}
	if v.Outside == 0 && outside > 0 {
		v.Outside = outside
	}
	near := func(noise float64) bool {
		return len(j.want) < enough || noise <= alike*max(best, 1)
	}
	switch {
	case v.Outside == 0 && v.screened.unbounded > 0:
		v.Outcome = verdict.Undecided
		v.Why = "elements differ that have no bound, since sums may overflow"
	case v.Outside == 0 && !near(j.noise) && j.noise > 4:
		v.Outcome = verdict.Undecided
		v.Why = "all is within the bound, but another candidate is far nearer"
		v.explain(v.found, near, j.explanation)
	case v.Outside == 0 && j.noise > 4 && j.claim.Kernel.Model.Name == "" && j.sums(v):
		v.Outcome = verdict.Fail
	case v.Outside == 0:
		v.Outcome = verdict.Pass
		for _, w := range v.found {
			if len(j.want) < enough || w.noise <= alike*max(j.noise, 1) {
				v.Alike = append(v.Alike, j.explanation(w))
			}
		}
	default:
		v.Outcome = verdict.Fail
		v.explain(v.found, near, j.explanation)
		if len(v.Explained) == 0 {
			j.sums(v)
		}
		if len(v.Explained) == 0 && j.Passes == nil && whole(j.claim.Recipe.Input) && !j.claim.Static && j.Tokens > 1 {
			v.Outcome = verdict.Undecided
			v.Why = "the input's scale is that of a pass of the engine, and the dump does not say which tokens were in one"
		}
	}
}

// whole reports whether a scale of a recipe is that of all tokens.
func whole(r *scaling.Recipe) bool {
	return r != nil && (r.Block == tensor.Block{} || r.Profile.Outer() && !r.PerRow())
}
