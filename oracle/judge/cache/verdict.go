package cache

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/tensor"
)

// Verdict is what is said of a cache. Its JSON is stable: keys are added, never changed.
type Verdict struct {
	Pass      bool      `json:"pass"`
	Outcome   string    `json:"outcome"` // "pass", "fail" or "undecided"
	Sides     []Judged  `json:"sides"`
	Findings  []Finding `json:"findings,omitempty"`
	NotJudged []string  `json:"notJudged,omitempty"`
	// Unclaimed is what nobody claimed and has to be so for the cache to be right.
	Unclaimed []string `json:"unclaimed,omitempty"`
}

// Judged is what is said of K or V.
type Judged struct {
	Side        string  `json:"side"`
	Tokens      int     `json:"tokens"` // of the input
	Heads       int     `json:"heads"`
	Dim         int     `json:"dim"`
	Format      string  `json:"format"`
	ScaleFormat string  `json:"scaleFormat"`
	Granularity string  `json:"granularity"`
	Rule        string  `json:"rule"`
	Stages      []Stage `json:"stages"`

	rows []float64 // of [tokens][heads], the share of wrong bits
}

// Stage counts what was judged of a stage, which is "outer", "scales", "codes", "wide" (what is
// kept without codes) or "read", and what is wrong.
type Stage struct {
	Name   string `json:"name"`
	Judged int    `json:"judged"`
	Wrong  int    `json:"wrong"`
	First  string `json:"first,omitempty"` // the first that is wrong
}

// Finding is a fault that explains all that is wrong in a stage of a side, or what is left of
// that by those before.
type Finding struct {
	Side  string   `json:"side"`
	Stage string   `json:"stage"`
	Kind  Kind     `json:"kind"`
	Text  string   `json:"text"`
	Seen  []string `json:"seen,omitempty"` // public reports
	Same  []string `json:"same,omitempty"` // what gives the same bits here
	Sure  bool     `json:"sure"`           // it is no chance

	opens bool
}

func (s stage) String() string {
	return map[stage]string{outers: "outer", scales: "scales", codes: "codes", reads: "read"}[s]
}

// String is a sentence.
func (f Finding) String() string {
	text := f.Text
	if len(f.Seen) > 0 {
		text += fmt.Sprintf(" (seen in %s)", strings.Join(f.Seen, ", "))
	}
	if len(f.Same) > 0 {
		text += "; cannot be told here from: " + strings.Join(f.Same, "; ")
	}
	return text
}

// verdict judges what was measured.
func (x *job) verdict(ctx context.Context) (*Verdict, error) {
	v := &Verdict{}
	for _, name := range x.without {
		v.NotJudged = append(v.NotJudged, name+": the file has nothing of it")
	}
	wrong, unexplained := false, false
	for _, j := range x.sides {
		if j.s.Codes == nil {
			v.NotJudged = append(v.NotJudged, fmt.Sprintf("%s: it was read, and there are no codes of it", j.name))
			continue
		}
		v.Sides = append(v.Sides, j.counted())
		v.NotJudged = append(v.NotJudged, j.notJudged()...)
		if j.unclaimed != "" {
			v.Unclaimed = append(v.Unclaimed, fmt.Sprintf("the rule of %s: scales and codes are nearest to those of %s", j.name, j.unclaimed))
		}
		found, all, err := x.findings(ctx, j)
		if err != nil {
			return nil, err
		}
		v.Findings = append(v.Findings, found...)
		unexplained = unexplained || !all
	}
	for _, s := range v.Sides {
		wrong = wrong || slices.ContainsFunc(s.Stages, func(t Stage) bool { return t.Wrong > 0 })
	}
	closed := slices.ContainsFunc(v.Findings, func(f Finding) bool { return !f.opens }) || x.claim.Rule != "" || x.claim.Multiply
	switch {
	case !wrong && len(v.Findings) == 0:
		v.Pass, v.Outcome = true, verdict.Pass
	case unexplained || closed || len(v.Findings) == 0 || !wrong:
		v.Outcome = verdict.Fail
	default:
		v.Outcome = verdict.Undecided
		for _, f := range v.Findings {
			v.Unclaimed = append(v.Unclaimed, f.Text)
		}
	}
	v.Findings = merged(v.Findings)
	return v, nil
}

// merged says of scales that were exchanged that they were.
func merged(all []Finding) []Finding {
	for i := range all {
		for k := i + 1; k < len(all); k++ {
			a, b := &all[i], &all[k]
			if a.Kind == b.Kind && a.Stage == b.Stage && (a.Kind == "scale-of-other" || a.Kind == "outer-of-other" || a.Kind == "other-bytes") {
				a.Text += ", and " + b.Text + ": K and V are exchanged"
				a.Side, a.Same = "K and V", append(a.Same, b.Same...)
				return merged(slices.Delete(all, k, k+1))
			}
		}
	}
	return all
}

// counted is what is wrong with a side.
func (j *judged) counted() Judged {
	s := j.s
	r := Judged{Side: j.name, Tokens: s.Tokens, Heads: s.Heads, Dim: s.Dim, Format: s.Format.String(),
		ScaleFormat: s.ScaleFormat.String(), Granularity: s.granularity(), Rule: j.rule}
	add := func(name string, all []bool, open int, first func(i int) string) {
		t := Stage{Name: name, Judged: len(all) - open, Wrong: count(all)}
		if t.Wrong > 0 {
			t.First = first(slices.Index(all, true))
		}
		r.Stages = append(r.Stages, t)
	}
	place := func(i, cols, from int) string {
		return fmt.Sprintf("token %d, head %d, column %d", i/cols/s.Heads, i/cols%s.Heads, i%cols+from)
	}
	if s.Outer != nil && !j.given {
		add("outer", []bool{j.outer}, 0, func(int) string { return fmt.Sprintf("got %v, want %v", *s.Outer, j.p.Outer) })
	}
	if j.rule != Static {
		add("scales", j.scales, count(j.p.Open[:len(j.scales)]), func(g int) string {
			u := s.coordOf(g)
			return fmt.Sprintf("scale [%d, %d, %d]: got %v, want %v", u.token, u.head, u.tile, s.Scales[g], j.p.Scales[g])
		})
	}
	add("codes", j.codes, 0, func(i int) string {
		t, h, c := i/s.Cols/s.Heads, i/s.Cols%s.Heads, i%s.Cols
		tile := c / s.Grid.Cols
		lo, hi := s.tile(tile)
		want := make([]byte, hi-lo)
		g := s.group(t, h, tile)
		j.p.Encode(want, s.row(t, h)[lo:hi], g, s.Scales[g], s.outerOf())
		return fmt.Sprintf("%s: got %#02x (%v), want %#02x (%v)", place(i, s.Cols, 0), s.Codes[i], s.Format.Float32(s.Codes[i]), want[c-lo], s.Format.Float32(want[c-lo]))
	})
	if j.wide != nil {
		n := s.Dim - s.Cols
		add("wide", j.wide, 0, func(i int) string {
			return fmt.Sprintf("%s: got %v, want %v", place(i, n, s.Cols), s.Wide[i], bfloat16(s.Input[i/n*s.Dim+s.Cols+i%n]))
		})
	}
	if j.reads != nil {
		add("read", j.reads, 0, func(i int) string { return fmt.Sprintf("%s: got %v", place(i, s.Dim, 0), s.Read[i]) })
	}
	r.rows = make([]float64, s.Tokens*s.Heads)
	share := func(all []bool, cols int) {
		for row := range len(all) / cols {
			r.rows[row] = max(r.rows[row], float64(count(all[row*cols:][:cols]))/float64(cols))
		}
	}
	share(j.codes, s.Cols)
	share(j.reads, s.Dim)
	return r
}

// notJudged names what is absent.
func (j *judged) notJudged() (all []string) {
	s := j.s
	add := func(format string, args ...any) {
		all = append(all, fmt.Sprintf("%s: ", j.name)+fmt.Sprintf(format, args...))
	}
	if j.rule == Static {
		add("scales, which are given (%s)", Static)
	} else if n := count(j.p.Open[:len(j.scales)]); n > 0 {
		add("%s of values that are all zero, or not finite", textout.Count(n, "scale"))
	}
	if j.given && s.Outer != nil && j.rule != Static {
		add("the outer scale, which is given")
	}
	if n := len(s.Codes) / (s.Heads * s.Cols); n > s.Tokens {
		add("tokens %d to %d, which the input does not have", s.Tokens, n-1)
	}
	if s.Cols < s.Dim && s.Wide == nil {
		add("columns %d to %d as written: the file has no codes of them", s.Cols, s.Dim-1)
	}
	switch {
	case s.Read == nil:
		add("what was read: the file has none of it")
	case s.read() < s.written():
		add("tokens %d to %d as read: the file has none of them", s.read(), s.written()-1)
	}
	return all
}

// findings are what explains a side; all is false where something is not explained.
func (x *job) findings(ctx context.Context, j *judged) (found []Finding, all bool, err error) {
	s := j.s
	if n := s.written(); n < s.Tokens {
		found = append(found, Finding{Side: j.name, Stage: "places", Kind: "tokens-missing", Sure: true,
			Text: fmt.Sprintf("%s has %d tokens and the input %d: tokens %d to %d are not written", j.name, n, s.Tokens, n, s.Tokens-1)})
	}
	found = append(found, j.findMoved()...)
	stages := func(which ...stage) (some []Finding, explained bool) {
		explained = true
		for _, at := range which {
			f, ok, failed := x.explain(ctx, j, at)
			if err = cmp.Or(err, failed); f != nil {
				some = append(some, *f)
			}
			explained = explained && ok
		}
		return some, explained
	}
	some, all := stages(outers, scales, codes)
	if stale := j.findStale(!all); len(stale) > 0 {
		found = append(found, stale...)
		some, all = stages(outers, scales, codes)
	}
	found = append(found, some...)
	if rows := j.wideRows(); len(rows) > 0 {
		found = append(found, Finding{Side: j.name, Stage: "wide", Kind: "wide-other", Sure: true,
			Text: fmt.Sprintf("columns %d to %d of %s, which are kept in bfloat16, are not those of the input in %s", s.Cols, s.Dim-1, j.name, rowsOf(s, rows))})
	}
	some, ok := stages(reads)
	return append(found, some...), all && ok, err
}

// wideRows are rows whose columns without codes are wrong, but those that are known to be of
// other places.
func (j *judged) wideRows() (all []coord) {
	n := j.s.Dim - j.s.Cols
	for row := range len(j.wide) / max(n, 1) {
		u := coord{row / j.s.Heads, row % j.s.Heads, 0, 0}
		if count(j.wide[row*n:(row+1)*n]) > 0 && !j.isMoved(u.token, u.head) {
			all = append(all, u)
		}
	}
	return all
}

// explain says what explains a stage; ok is false where something is wrong and nothing does.
func (x *job) explain(ctx context.Context, j *judged, at stage) (f *Finding, ok bool, err error) {
	e := newExplainer(j, at, &x.claim)
	if e == nil {
		return nil, true, nil
	}
	fits, sure, err := e.compete(ctx, x.workers)
	if err != nil {
		return nil, false, err
	}
	if len(fits) > 0 {
		best := fits[0]
		f = &Finding{Side: j.name, Stage: at.String(), Kind: best.fault.Kind, Text: e.phrase(best), Sure: sure}
		if of := best.fault.of; of != nil {
			f.Seen, f.opens = of.Reports, of.Opens && best.Contradicted == 0
		} else {
			f.Seen = best.row.seen
		}
		for _, c := range fits[1:] {
			if text := e.phrase(c); len(f.Same) < 4 && text != f.Text && !slices.Contains(f.Same, text) {
				f.Same = append(f.Same, text)
			}
		}
		if !sure && (at == scales || at == outers) {
			f.Same = append(f.Same, Kind("scale-stale").Text())
		}
		if best.Contradicted > 0 {
			f.Text += " in " + e.where()
		}
		if len(fits) > 1 && best.fault.Kind == "amax-part" && strings.Contains(f.Text, " in 1 of them") {
			f.Sure = false
		}
		return f, true, nil
	}
	if f = j.readFrom(at); f == nil {
		f = e.elsewhere()
	}
	if f == nil {
		f = e.fallback()
	}
	return f, f != nil, nil
}

// where names the places of what is wrong.
func (x *explainer) where() string {
	if x.at == scales {
		var t, h []int
		for _, u := range x.wrong {
			t, h = append(t, u.token), append(h, u.head)
		}
		return fmt.Sprintf("places %s of tokens, %s of heads", rangesOf(t), rangesOf(h))
	}
	return rowsOf(x.j.s, x.wrong)
}

// beside reports whether every code is the one below or above what is rounded, and not always
// below or always above.
func (x *explainer) beside() bool {
	near, far := 0, 0 // of those that are wrong, by size
	for _, u := range x.wrong {
		input, got, _ := x.values(u)
		down, up, ok := x.j.p.Beside(input, got, x.number(u))
		if near, far = near+down, far+up; !ok {
			return false
		}
	}
	return near > 0 && far > 0
}

// fallback says what can be said where no fault of the table fits, nil where nothing can.
func (x *explainer) fallback() *Finding {
	s, name := x.j.s, x.j.name
	say := func(kind Kind, format string, args ...any) *Finding {
		return &Finding{Side: name, Stage: x.at.String(), Kind: kind, Text: fmt.Sprintf(format, args...), opens: x.at == outers}
	}
	switch {
	case x.at == outers:
		return say("scale-stale", "the outer scale of %s is one that the input does not give: that of an earlier amax (stale), or given (static), which nobody claimed", name)
	case x.at == scales && s.ScaleFormat != tensor.Float32Scales:
		return nil
	case x.at == scales:
		below := 0
		for _, u := range x.wrong {
			if g := x.number(u); s.Scales[g] < x.j.p.Scales[g] {
				below++
			}
		}
		f := say("scale-stale", "scales of %s in %s are of an amax that the input does not have there: of an earlier one (stale), or static scales, which nobody claimed", name, x.where())
		if below > 0 {
			f.Text += fmt.Sprintf("; %d of %d that were looked at are too small, so that values saturate", below, len(x.wrong))
		}
		return f
	case x.at == codes && x.beside():
		return say("rounded-otherwise", "%s: %s", name, Kind("rounded-otherwise").Text())
	}
	low, high := 0.0, math.Inf(1) // of the ratio of scales
	for _, u := range x.wrong {
		lo, hi := x.interval(u)
		if lo > hi {
			return nil
		}
		stored := float64(s.Scales[x.number(u)])
		if x.at == codes && !s.Divides {
			stored *= float64(s.outerOf())
		}
		low, high = max(low, lo/stored), min(high, hi/stored)
	}
	f := say("scale-other", map[stage]string{codes: "codes of %s are made with", reads: "%s is read with"}[x.at]+" scales that are not those stored", name)
	if low <= high && high < 2*low {
		f.Text += fmt.Sprintf(", but %.4g times these: of an earlier amax (stale), or of another side or layer", (low+high)/2)
	}
	return f
}
