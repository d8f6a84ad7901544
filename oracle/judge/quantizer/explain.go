package quantizer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

const (
	mostFindings = 3
	mostHasty    = 16 // segments that are looked at before a rule that explains none is given up
	mostKept     = 24 // ways to make scales that are tried with ways to make codes
)

// fit is how a rule fits segments: of each whether it differs from the claim, and whether it
// has all bits that were got.
type fit struct {
	tally        explain.Tally
	scales       int // of wrong blocks that are explained
	units        []unit
	explained    int // segments
	missed       int
	contradicted int
	outer        bool // outer scales fit
	loose        bool // as the rule
}

type unit struct{ wrong, fits bool }

// evidence of one thing that is as a fault predicts and not as is claimed, in bits. Codes are
// often next to each other, and so are exponents.
const (
	outerBits  = 28
	scaleBits  = 24
	narrowBits = 2
	codeBits   = 1
	placeBits  = 2
)

// explain looks for the faults that explain what is wrong, each in what others leave.
func (j *job) explain(ctx context.Context, v *Verdict) error {
	rest := j.segments()
	for len(v.Findings) < mostFindings && len(rest) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("quantizer: %w", err)
		}
		f, left, err := j.find(v, rest, false)
		if f == nil && err == nil && len(v.Findings) == 0 {
			f, left, err = j.find(v, rest, true)
		}
		if err != nil {
			return err
		}
		if f == nil {
			break
		}
		v.Findings = append(v.Findings, *f)
		if !slices.ContainsFunc(left, func(s segment) bool { return j.isWrong(s) }) {
			return nil
		}
		rest = left
	}
	if len(v.Findings) == 0 {
		v.Interval = j.interval()
	}
	return nil
}

// isWrong reports whether something of a segment is.
func (j *job) isWrong(s segment) bool {
	return j.scaleState[s.block] == wrong || slices.Contains(j.codeState[s.row*j.cols+s.from:s.row*j.cols+s.to], wrong)
}

// pick returns up to so many segments that are wrong, evenly, and then of others.
func (j *job) pick(all []segment, wrongs, rights int) (some []segment) {
	var bad, good []int
	for n, s := range all {
		if j.isWrong(s) {
			bad = append(bad, n)
		} else {
			good = append(good, n)
		}
	}
	for _, n := range explain.Spread(len(bad), wrongs) {
		some = append(some, all[bad[n]])
	}
	for _, n := range explain.Spread(len(good), rights) {
		some = append(some, all[good[n]])
	}
	return some
}

// find returns what explains most of the segments, and those that it leaves. Where it is weak it
// takes one change that explains everything, though chance may do so as well.
func (j *job) find(v *Verdict, all []segment, weak bool) (*Finding, []segment, error) {
	few, many := j.pick(all, 128, 96), j.pick(all, 1024, 512)
	scaleRules, codeRules := j.rules(ofScales, 0), j.rules(ofCodes, 0)
	faults := len(scaleRules) + len(codeRules)
	type candidate struct {
		rule rule
		fit
	}
	outerWrong := v.Outer.Wrong > 0
	try := func(rules []rule, scalesOnly bool) ([]candidate, error) {
		return explain.Compete(rules, j.workers, func(r rule, whole bool) (candidate, bool, error) {
			on := few
			if whole {
				on = many
			}
			f := j.weigh(&r, on, scalesOnly, !whole)
			if weak && !scalesOnly {
				all := f.explained > 0 && f.missed == 0 && f.contradicted == 0
				return candidate{r, f}, all && !r.fitted && f.tally.Explained+f.scales > 0, nil
			}
			return candidate{r, f}, f.convinces(faults, scalesOnly) && (scalesOnly || f.together(on)), nil
		})
	}
	better := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.missed, b.missed), compareBool(a.rule.fitted, b.rule.fitted), cmp.Compare(min(a.contradicted, 1), min(b.contradicted, 1)),
			cmp.Compare(len(a.rule.changes), len(b.rule.changes)), cmp.Compare(a.contradicted, b.contradicted))
	}
	var found []candidate // the best first
	look := func(rules []rule) error {
		more, err := try(rules, false)
		found = append(found, more...)
		slices.SortStableFunc(found, better)
		return err
	}
	bases := []rule{j.claimed()}
	anyScale := outerWrong || slices.ContainsFunc(few, func(s segment) bool { return j.scaleState[s.block] == wrong })
	if anyScale {
		kept, err := try(scaleRules, true)
		if err != nil {
			return nil, nil, err
		}
		slices.SortStableFunc(kept, better)
		bases = nil
		for _, c := range kept[:min(len(kept), mostKept)] {
			bases = append(bases, c.rule)
		}
		if err := look(bases); err != nil {
			return nil, nil, err
		}
	}
	unexplained := func() bool { return len(found) == 0 || found[0].missed > 0 }
	if unexplained() && !(weak && anyScale) {
		// The change of scales alone is not enough, or there is none.
		var both []rule
		for _, base := range bases {
			for _, c := range codeRules {
				if base.codes == nil && !(base.loose && c.with != nil) { // codes have to be those of what is stored
					both = append(both, base.and(c))
				}
			}
		}
		if err := look(both); err != nil {
			return nil, nil, err
		}
		if !weak && !anyScale && unexplained() {
			if err := look(pairs(codeRules)); err != nil {
				return nil, nil, err
			}
		}
	}
	if len(found) == 0 && len(bases) > 0 && anyScale && !weak {
		// Scales are explained and codes are not.
		for _, b := range bases {
			f := j.weigh(&b, many, true, false)
			if f.convinces(faults, false) {
				b = b.changed("", "what is wrong with codes is not explained", func(*rule) {})
				found = append(found, candidate{b, f})
				break
			}
		}
	}
	if len(found) == 0 {
		return nil, nil, nil
	}
	best := found[0]
	scalesOnly := best.rule.changes[len(best.rule.changes)-1].Kind == ""
	whole := j.weigh(&best.rule, all, scalesOnly, false)
	f := &Finding{Changes: best.rule.changes, Scales: whole.scales, Codes: whole.tally.Explained, Missed: whole.tally.Missed,
		Contradicted: whole.tally.Contradicted, Outer: outerWrong && whole.outer, Evidence: math.Round(whole.tally.Evidence), Where: j.where(all, &whole), Weak: weak}
	if weak && (whole.missed > 0 || whole.contradicted > 0) {
		return nil, nil, nil
	}
	for _, o := range found[1:] {
		alike := better(best, o) == 0 || j.part.blocks() == 1 && o.rule.fitted && len(o.rule.changes) == 1
		if alike && slices.Equal(o.units, best.units) && !f.says(o.rule.changes) {
			f.Others = append(f.Others, o.rule.changes)
		}
	}
	var left []segment
	for n, u := range whole.units {
		if u.wrong && !u.fits || !u.wrong && whole.contradicted == 0 {
			left = append(left, all[n])
		}
	}
	return f, left, nil
}

func compareBool(a, b bool) int {
	of := map[bool]int{true: 1}
	return of[a] - of[b]
}

// says reports whether a finding has these changes already.
func (f *Finding) says(changes []Change) bool {
	return slices.Equal(f.Changes, changes) || slices.ContainsFunc(f.Others, func(o []Change) bool { return slices.Equal(o, changes) })
}

// rules are those of the table, each a change of one part.
func (j *job) rules(p, without part) (all []rule) {
	for _, k := range table.Kinds() {
		r, _ := table.Row(k)
		if r.part&p == 0 || r.part&without != 0 || !j.has(r.part) {
			continue
		}
		some := r.vary(j)
		for n := range some {
			some[n].changes[0].Kind = k
		}
		all = append(all, some...)
	}
	return all
}

// pairs are two changes of codes, of different parts. What both change is as the first has it.
func pairs(rules []rule) (all []rule) {
	for n, a := range rules {
		for _, b := range rules[n+1:] {
			apart := a.changes[0].Kind != b.changes[0].Kind && len(a.changes)+len(b.changes) == 2
			if !apart || a.turn || b.turn || a.with != nil && b.with != nil {
				continue
			}
			c := b.and(a)
			c.changes = append(slices.Clip(a.changes), b.changes...)
			all = append(all, c)
		}
	}
	return all
}

// weigh compares what a rule gives with what was got, in the given segments. Where it is hasty it
// gives a rule up that explains none of the first.
func (j *job) weigh(r *rule, on []segment, scalesOnly, hasty bool) (f fit) {
	f.outer, f.loose = true, r.loose
	for i, want := range j.want.Outer.Scales {
		predicted := want
		if r.outer != nil {
			predicted = r.outer(i)
		}
		if got := j.storedOuter(i); !same(predicted, got) {
			f.outer = false
			if !r.loose {
				f.missed = len(on)
				return f
			}
		} else if !same(got, want) {
			f.tally.Evidence += outerBits
			f.explained++
		}
	}
	plain := *r
	if j.random && plain.policy.Rounding == fp8.Stochastic {
		plain.policy.Rounding = fp8.TowardZero
	}
	f.units = make([]unit, len(on))
	seen := -1
	scratch, dst := make([]float32, segmentCols), make([]byte, segmentCols)
	for n, s := range on {
		evidence := 0.0 // of this segment, which counts if all of it fits
		u := unit{wrong: j.scaleState[s.block] == wrong, fits: true}
		if j.scaleState[s.block] != open && !r.loose {
			stored := j.want.Scales[s.block]
			if r.scale != nil {
				stored = r.scale(s.block).Stored
			}
			u.fits = same(stored, j.scales[s.block])
		}
		if u.wrong && u.fits && s.block != seen {
			seen = s.block
			f.scales++
			if !r.loose {
				evidence = j.scaleEvidence()
			}
		}
		if !scalesOnly {
			j.encode(dst[:s.to-s.from], &plain, s, scratch)
			for k := s.from; k < s.to; k++ {
				at := s.row*j.cols + k
				got, want := j.codes[at], j.want.Codes[at]
				state := j.codeState[at]
				if state == open {
					continue
				}
				outcome := explain.Refuted
				if j.gives(dst[k-s.from], got) {
					outcome = explain.Fits
				}
				u.wrong = u.wrong || state == wrong
				u.fits = u.fits && outcome == explain.Fits
				// A code that is predicted as it is claimed says nothing.
				if state == wrong || outcome == explain.Refuted {
					f.tally.Count(state == wrong, outcome, 0)
					evidence += j.codeEvidence(got, want)
				}
			}
		}
		f.units[n] = u
		switch {
		case u.wrong && u.fits:
			f.explained++
			f.tally.Evidence += evidence
		case u.wrong:
			f.missed++
		case !u.fits:
			f.contradicted++
		}
		if hasty && f.explained == 0 && (f.missed == mostHasty || !u.wrong) {
			break
		}
	}
	return f
}

func (j *job) scaleEvidence() float64 {
	if j.recipe.Profile.ScaleFormat() == 0 && !j.recipe.Profile.E8M0() {
		return scaleBits
	}
	return narrowBits
}

// codeEvidence is more for codes that are far from each other.
func (j *job) codeEvidence(got, want byte) float64 {
	f := j.recipe.Format
	if v, w := f.Float32(got), f.Float32(want); (v-v != 0) != (w-w != 0) {
		return 4
	}
	return codeBits + min(3, math.Log2(math.Abs(float64(got)-float64(want))))
}

// convinces reports whether a rule fits so much that chance does not explain it: all of some
// segments. Segments that are right and do not fit have to be paid for, since it is not known
// beforehand where a fault is.
func (f *fit) convinces(faults int, scalesOnly bool) bool {
	if f.explained == 0 {
		return false
	}
	if scalesOnly {
		return f.missed == 0 || float64(f.explained) >= 0.05*float64(f.explained+f.missed)
	}
	t := f.tally
	if t.Contradicted == 0 && t.Missed == 0 && !f.loose {
		// It says which codes are wrong, too, and not only what they are.
		t.Evidence += placeBits * float64(t.Explained)
	}
	n, k := float64(f.explained+f.contradicted+f.missed), float64(f.explained)
	if p := k / n; p < 1 {
		t.Evidence += n * (p*math.Log2(p) + (1-p)*math.Log2(1-p))
	}
	return t.Convinces(0, faults)
}

// box is the rows and columns in which a rule explains what is wrong, and the blocks.
func (f *fit) box(on []segment) (i0, i1, j0, j1 int, blocks map[int]bool) {
	i0, j0, blocks = math.MaxInt, math.MaxInt, map[int]bool{}
	for n, u := range f.units {
		if s := on[n]; u.wrong && u.fits {
			i0, i1, j0, j1 = min(i0, s.row), max(i1, s.row), min(j0, s.from), max(j1, s.to-1)
			blocks[s.block] = true
		}
	}
	return i0, i1, j0, j1, blocks
}

// together reports whether what a rule explains lies together, if there is more that is wrong: it
// explains most of what is wrong there.
func (f *fit) together(on []segment) bool {
	i0, i1, j0, j1, _ := f.box(on)
	missed := 0
	for n, u := range f.units {
		if s := on[n]; u.wrong && !u.fits && s.row >= i0 && s.row <= i1 && s.from >= j0 && s.from <= j1 {
			missed++
		}
	}
	return f.missed == 0 || missed*9 <= f.explained
}

// where says in which segments a rule holds, unless that is wherever it makes a difference.
func (j *job) where(all []segment, f *fit) string {
	if f.contradicted == 0 && f.missed == 0 {
		return ""
	}
	i0, i1, j0, j1, blocks := f.box(all)
	switch {
	case j.part.blocks() == 1:
		return fmt.Sprintf("in rows %d to %d and columns %d to %d", i0, i1, j0, j1)
	case len(blocks) == 1:
		for b := range blocks {
			return "in " + j.part.place(b)
		}
	}
	return fmt.Sprintf("in %d of %d blocks, rows %d to %d and columns %d to %d", len(blocks), j.part.blocks(), i0, i1, j0, j1)
}

// Interval is which scales the codes of a block admit, where nothing else explains them: 0 and
// infinity where no scale gives them.
type Interval struct {
	Block  string `json:"block"`
	Least  Number `json:"least"`
	Most   Number `json:"most"`
	Stored Number `json:"stored"`
	Blocks int    `json:"blocks"` // with wrong codes
	Admit  int    `json:"admit"`  // of those, whose codes are all of one scale
}

// interval finds the scales that codes of wrong blocks, or of some of many, admit, rounded to
// nearest.
func (j *job) interval() *Interval {
	if j.recipe.Format == fp8.MXINT8 || j.random {
		return nil
	}
	bad := make([]bool, len(j.scales))
	for i, s := range j.codeState {
		if s == wrong {
			bad[j.part.block(i/j.cols, i%j.cols)] = true
		}
	}
	var blocks []int
	for b, is := range bad {
		if is {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	between := betweenCodes(j.recipe.Format)
	found := &Interval{Block: j.part.place(blocks[0]), Stored: number64(j.scales[blocks[0]])}
	for n, at := range explain.Spread(len(blocks), mostIntervals) {
		i0, i1, j0, j1 := j.part.bounds(blocks[at])
		least, most := 0.0, math.Inf(1)
		for i := i0; i < i1; i++ {
			lo, hi := between.admit(j.x[i*j.cols+j0:i*j.cols+j1], j.codes[i*j.cols+j0:])
			least, most = max(least, lo), min(most, hi)
		}
		found.Blocks++
		if least <= most*(1+0x1p-22) {
			if found.Admit++; n == 0 {
				found.Least, found.Most = Number(least), Number(most)
			}
		}
	}
	return found
}

// mostIntervals is how many blocks are looked at.
const mostIntervals = 4096

// ends are those of what is rounded to each code, as magnitudes: 0 twice for codes that are no
// numbers.
type ends [256][2]float64

// admit returns the least and the most of the scales under which values are rounded, to the nearest, to
// codes: those of values that are not finite, and of NaN, say nothing.
func (e *ends) admit(x []float32, codes []byte) (least, most float64) {
	most = math.Inf(1)
	for i, v := range x {
		of, size := &e[codes[i]], float64(abs(v))
		if size > 0 && size <= math.MaxFloat32 && of[1] > 0 {
			most, least = min(most, size/of[0]), max(least, size/of[1])
		}
	}
	return least, most
}

func betweenCodes(f fp8.Format) *ends {
	var between ends
	for c := range 1 << f.Bits() {
		v := float64(abs(f.Float32(byte(c))))
		if v-v != 0 {
			continue
		}
		code := fp8.EncodeOne(float32(v), f, fp8.Policy{})
		below, above := v, math.Inf(1)
		if v > 0 {
			below = (v + float64(f.Float32(code-1))) / 2
		}
		if v < float64(f.Max()) {
			above = (v + float64(f.Float32(code+1))) / 2
		}
		between[c] = [2]float64{below, above}
	}
	return &between
}
