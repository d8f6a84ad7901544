package cache

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/judge/quantizer"
)

// Options say how to judge.
type Options struct {
	Workers int // goroutines at most; 0 means GOMAXPROCS
}

// Check judges what an engine made of K and V, of which one may be nil. Nothing is kept of them.
//
// It returns an error, [ErrSide], for parts that do not fit together and for a claim that is not
// for them, and ends when ctx does; what is wrong is no error but a verdict, which does not
// depend on Workers. Safe for concurrent use.
func Check(ctx context.Context, k, v *Side, c Claim, o Options) (*Verdict, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	x := &job{claim: c, workers: o.Workers}
	for n, s := range []*Side{k, v} {
		name := [...]string{"K", "V"}[n]
		if s == nil || s.Codes == nil && s.Read == nil {
			x.without = append(x.without, name)
			continue
		}
		if err := s.check(name); err != nil {
			return nil, err
		}
		j := &judged{name: name, s: s}
		x.sides = append(x.sides, j)
		if s.Codes == nil {
			continue
		}
		if err := x.measure(ctx, j); err != nil {
			return nil, err
		}
	}
	if len(x.sides) == 2 {
		x.sides[0].other, x.sides[1].other = x.sides[1], x.sides[0]
	}
	written := false
	for _, j := range x.sides {
		written = written || j.s.Codes != nil
	}
	if !written {
		return nil, sentinel.Errorf(ErrSide, "cache: neither of K and V was written: there is nothing to judge")
	}
	return x.verdict(ctx)
}

// job is what is judged.
type job struct {
	claim   Claim
	workers int
	sides   []*judged
	without []string // of K and V those of which there is nothing
}

// judged is a side and what is wrong with it.
type judged struct {
	name  string
	s     *Side
	rule  string
	p     *quantizer.Parts
	given bool    // outer scales, or all, were not made from the input
	other *judged // or nil

	scales      []bool // wrong ones
	codes, wide []bool
	reads       []bool
	factorFirst bool          // reads multiply the scale by the outer one first
	outer       bool          // the outer scale is wrong
	skip        []bool        // groups whose codes are not judged
	unclaimed   string        // what was not claimed and has to be so
	rowKinds    map[Kind]bool // what rows were found to hold
	moved       map[[2]int]bool
}

// measure compares a side with what its rule says or, where none is claimed, with that of the
// rules that is nearest.
func (x *job) measure(ctx context.Context, j *judged) error {
	var best *judged
	for _, rule := range x.claim.rules(j.s) {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := x.claim.parts(ctx, j.s, rule, x.workers)
		if err != nil {
			return err
		}
		t := &judged{name: j.name, s: j.s, rule: rule, p: p, given: x.claim.OuterGiven || rule == Static, rowKinds: map[Kind]bool{}, moved: map[[2]int]bool{}}
		t.compareScales()
		t.codes = t.compareCodes(x.workers)
		if best == nil || t.wrong() < best.wrong() {
			best = t
		}
		if t.wrong() == 0 {
			break
		}
	}
	if best == nil {
		return sentinel.Errorf(ErrSide, "cache: %s: no rule is known of scales in %v of codes in %v: claim one", j.name, j.s.ScaleFormat, j.s.Format)
	}
	*j = *best
	if x.claim.Rule == "" && j.rule != Amax {
		j.unclaimed = j.rule
	}
	j.compareWide()
	j.reads = j.compareReads(x.workers, x.claim.ScaleBFloat16, false)
	if j.s.Outer != nil && count(j.reads) > 0 {
		if other := j.compareReads(x.workers, x.claim.ScaleBFloat16, true); count(other) < count(j.reads) {
			j.reads, j.factorFirst = other, true
		}
	}
	return nil
}

func count(all []bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// wrong is how far a side is from a rule: what says most counts first.
func (j *judged) wrong() int {
	n := count(j.codes) + len(j.s.Codes)*count(j.scales)
	if j.outer {
		n += len(j.s.Codes)
	}
	return n
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// compareScales sets which scales are not those of the rule.
func (j *judged) compareScales() {
	s := j.s
	n := s.grid()
	groups := min(len(s.Scales), (s.written()+s.Grid.Tokens-1)/s.Grid.Tokens*n.head*n.tile)
	j.scales, j.skip = make([]bool, groups), make([]bool, groups)
	for g := range groups {
		stored := s.Scales[g]
		usable := stored >= 0 && number.IsFinite(stored)
		j.skip[g] = !usable
		j.scales[g] = !same(stored, j.p.Scales[g]) || !usable && j.p.Open[g] && j.p.Amax[g] == 0
	}
	j.outer = s.Outer != nil && !j.given && !same(*s.Outer, j.p.Outer)
}

// outerOf is the outer scale that is stored, or 1.
func (s *Side) outerOf() float32 {
	if s.Outer == nil {
		return 1
	}
	return *s.Outer
}

// compareCodes returns which codes are not those of the input under the stored scales.
func (j *judged) compareCodes(workers int) []bool {
	s := j.s
	wrong := make([]bool, s.written()*s.Heads*s.Cols)
	parallel.For(s.written()*s.Heads, 8, workers, func(from, to int) {
		want := make([]byte, s.Cols)
		for row := from; row < to; row++ {
			t, h := row/s.Heads, row%s.Heads
			values, got := s.row(t, h), s.codes(t, h)
			for c := range s.grid().tile {
				g := s.group(t, h, c)
				lo, hi := s.tile(c)
				if j.skip[g] {
					continue
				}
				j.p.Encode(want[lo:hi], values[lo:hi], g, s.Scales[g], s.outerOf())
				for i := lo; i < hi; i++ {
					wrong[row*s.Cols+i] = got[i] != want[i] && number.IsFinite(values[i])
				}
			}
		}
	})
	return wrong
}

// bfloat16 is what the columns without codes hold.
func bfloat16(x float32) float32 { return number.BF16.Round(x) }

// compareWide sets which of the columns without codes are not the input's.
func (j *judged) compareWide() {
	s := j.s
	n := s.Dim - s.Cols
	if s.Wide == nil || n == 0 {
		return
	}
	j.wide = make([]bool, min(len(s.Wide), s.Tokens*s.Heads*n))
	for i := range j.wide {
		j.wide[i] = !same(s.Wide[i], bfloat16(s.Input[i/n*s.Dim+s.Cols+i%n]))
	}
}

// value is what a code is read as.
func (s *Side) value(code, scale, outer float32, factorFirst bool) float32 {
	x := code * scale
	switch {
	case s.Outer != nil && s.Divides && factorFirst:
		x = code * float32(scale/outer)
	case s.Outer != nil && s.Divides:
		x /= outer
	case s.Outer != nil && factorFirst:
		x = code * float32(scale*outer)
	case s.Outer != nil:
		x = float32(x * outer)
	}
	return s.rounded(x)
}

// rounded is a value in the type that is read.
func (s *Side) rounded(x float32) float32 {
	switch s.ReadAs {
	case BFloat16:
		return number.BF16.Round(x)
	case Float16:
		return number.FP16.Round(x)
	}
	return x
}

// compareReads returns which values that were read are not those of the codes and scales, or
// of what was written without codes.
func (j *judged) compareReads(workers int, scaleBFloat16, factorFirst bool) []bool {
	s := j.s
	if s.Read == nil {
		return nil
	}
	tokens := min(s.read(), s.written())
	wrong := make([]bool, tokens*s.Heads*s.Dim)
	parallel.For(tokens, 8, workers, func(from, to int) {
		want := make([]float32, s.Dim)
		for t := from; t < to; t++ {
			for h := range s.Heads {
				at := (t*s.Heads + h) * s.Dim
				s.readRow(want, t, h, scaleBFloat16, factorFirst)
				for i, got := range s.Read[at : at+s.Dim] {
					wrong[at+i] = !same(got, want[i])
				}
			}
		}
	})
	return wrong
}

// readRow writes what is to be read of a token's head.
func (s *Side) readRow(want []float32, t, h int, scaleBFloat16, factorFirst bool) {
	outer, codes := s.outerOf(), s.codes(t, h)
	for c := range s.grid().tile {
		lo, hi := s.tile(c)
		scale := s.Scales[s.group(t, h, c)]
		if scaleBFloat16 {
			scale = bfloat16(scale)
		}
		if s.Outer == nil {
			fp8.DecodeScaled(want[lo:hi], codes[lo:hi], s.Format, scale)
			continue
		}
		fp8.Decode(want[lo:hi], codes[lo:hi], s.Format)
		for i := lo; i < hi; i++ {
			want[i] = s.value(want[i], scale, outer, factorFirst)
		}
	}
	row, n := t*s.Heads+h, s.Dim-s.Cols
	for i := s.Cols; i < s.Dim; i++ {
		if at := row*n + i - s.Cols; at < len(s.Wide) {
			want[i] = s.Wide[at]
		} else {
			want[i] = bfloat16(s.Input[row*s.Dim+i])
		}
	}
	switch s.ReadAs {
	case BFloat16:
		rounding.NearestBF16(want, want)
	case Float16:
		for i, x := range want {
			want[i] = number.FP16.Round(x)
		}
	}
}
