package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/octavo-fp8/octavo/plan"
)

// Way is a change of flags with which a card holds what it does not hold without.
type Way struct {
	Flags    string `json:"flags"`
	Ranks    int    `json:"ranks"`
	Reserved int64  `json:"reserved"` // bytes on a rank of the stage that needs most
}

func (w Way) String() string {
	return fmt.Sprintf("%s (%s, %.2f GiB)", w.Flags, count(w.Ranks, "rank"), gibUp(w.Reserved))
}

// turn is another value of an option. Far is how many times as large or as small, in doublings.
type turn struct {
	flags string
	far   float64
	set   func(*Ask)
}

// option is a flag that a search changes, with the values that it tries, the nearest first.
type option struct {
	flag  string
	turns []turn
}

// Nearest returns what the card holds. First are changes that keep the number of ranks: for each option
// that suffices alone the value that is nearest to the one that was asked for; where none does, the nearest
// change of two. Then come layouts on the fewest ranks above that. The error is that of ctx.
func (a Ask) Nearest(ctx context.Context) (ways []Way, err error) {
	a.Tokens, a.MFU, a.Days = 0, 0, 0
	options := a.options()
	var pairs [][]turn
	for i, o := range options {
		var alone [][]turn
		for _, t := range o.turns {
			alone = append(alone, []turn{t})
			for _, other := range options[i+1:] {
				for _, u := range other.turns {
					pairs = append(pairs, []turn{t, u})
				}
			}
		}
		way, err := a.first(ctx, alone)
		if err != nil {
			return nil, err
		}
		ways = append(ways, way...)
	}
	if len(ways) == 0 {
		slices.SortStableFunc(pairs, func(x, y []turn) int { return cmp.Compare(x[0].far+x[1].far, y[0].far+y[1].far) })
		if ways, err = a.first(ctx, pairs); err != nil {
			return nil, err
		}
	}
	more, err := a.fewest(ctx, max(mostWays-max(len(ways)-1, 0), 1))
	return append(ways, more...), err
}

// options are those of which there are other values.
func (a Ask) options() []option {
	all := []option{
		{"policies", a.policyTurns()}, {recomputeFlag, a.recomputeTurns()}, {recipeFlag, a.recipeTurns()},
		{"batch", a.batchTurns()}, {"tp", a.tensorTurns()}, {"pp", a.stageTurns()},
	}
	return slices.DeleteFunc(all, func(o option) bool { return len(o.turns) == 0 })
}

const recomputeFlag = "recompute"

// policyTurns search for policies, where the library is not one that has none.
func (a Ask) policyTurns() []turn {
	library := a.Train.Library
	if a.Serve != nil || a.Policies == Searched || a.Train.Recompute != (plan.Recompute{}) || a.OtherLibrary && !library.Octavo {
		return nil
	}
	return []turn{{"--policies " + Searched, 1, func(b *Ask) {
		b.Policies, b.Train.Policies, b.Train.Library = Searched, nil, plan.Library{Octavo: true}
	}}}
}

// recomputeTurns compute all layers again.
func (a Ask) recomputeTurns() []turn {
	if a.Serve != nil || a.Policies != "" || a.Train.Library.Octavo || a.Train.Recompute != (plan.Recompute{}) {
		return nil
	}
	return []turn{{"--" + recomputeFlag + " all", 1, func(b *Ask) { b.Train.Recompute.Layers = -1 }}}
}

// recipeTurns are recipes that serve in fewer bytes: the one that the model is published in, and then those
// that take most, of which the first in the table counts.
func (a Ask) recipeTurns() (all []turn) {
	if a.Serve == nil {
		return nil
	}
	total := func(p plan.Precision) int64 {
		j := *a.Serve
		j.Precision = p
		m, err := j.Memory()
		if err != nil {
			return math.MaxInt64
		}
		return m.Peak().Total()
	}
	published, asked := a.Serve.Model.Published, total(a.Serve.Precision)
	sizes := map[string]int64{}
	recipes := slices.DeleteFunc(plan.Precisions(), func(p plan.Precision) bool {
		sizes[p.Name] = total(p)
		return sizes[p.Name] >= asked
	})
	slices.SortStableFunc(recipes, func(p, q plan.Precision) int {
		if (p.Name == published) != (q.Name == published) {
			return map[bool]int{true: -1, false: 1}[p.Name == published]
		}
		return cmp.Compare(sizes[q.Name], sizes[p.Name])
	})
	for _, p := range recipes {
		all = append(all, turn{"--" + recipeFlag + " " + p.Name, math.Log2(float64(asked) / float64(sizes[p.Name])), func(b *Ask) { *b.precision() = p }})
	}
	return all
}

func (a Ask) batchTurns() (all []turn) {
	asked := max(*a.batch(), 1)
	for n := asked / 2; n > 0; n /= 2 {
		all = append(all, turn{fmt.Sprintf("--batch %d", n), doublings(n, asked), func(b *Ask) { *b.batch() = n }})
	}
	return all
}

// mostParts is how many tensor-parallel ranks, and how many stages, a search tries at most.
const mostParts = 128

func (a Ask) tensorTurns() (all []turn) {
	asked := max(a.layout().Tensor, 1)
	for n := 1; n <= mostParts; n++ {
		all = append(all, turn{fmt.Sprintf("--tp %d", n), doublings(n, asked), func(b *Ask) { b.layout().Tensor = n }})
	}
	return a.possible(all)
}

// stageTurns are numbers of stages that divide the layers, and powers of two: there the last stage has
// fewer, where nothing was said of the first and the last.
func (a Ask) stageTurns() (all []turn) {
	l, layers := *a.layout(), a.model().Layers
	asked := max(l.Pipeline, 1)
	for n := 1; n <= min(mostParts, layers); n++ {
		flags, last := fmt.Sprintf("--pp %d", n), l.Last
		if layers%n != 0 && l.First == 0 && l.Last == 0 {
			each := (layers + n - 1) / n
			if last = layers - each*(n-1); last < 1 || n&(n-1) != 0 {
				continue
			}
			flags += fmt.Sprintf(" --last %d", last)
		}
		all = append(all, turn{flags, doublings(n, asked), func(b *Ask) { b.layout().Pipeline, b.layout().Last = n, last }})
	}
	return a.possible(all)
}

// possible leaves out what was asked for and what the model cannot be divided by, and sorts.
func (a Ask) possible(all []turn) []turn {
	all = slices.DeleteFunc(all, func(t turn) bool {
		b := a.with(t)
		b.layout().Ranks = 0
		return t.far == 0 || b.ranks() == 0
	})
	slices.SortStableFunc(all, func(x, y turn) int { return cmp.Compare(x.far, y.far) })
	return all
}

func doublings(n, asked int) float64 { return math.Abs(math.Log2(float64(n) / float64(asked))) }

// with returns a with other values of options.
func (a Ask) with(turns ...turn) Ask {
	if a.Serve != nil {
		serve := *a.Serve
		a.Serve = &serve
	}
	for _, t := range turns {
		if t.set != nil {
			t.set(&a)
		}
	}
	return a
}

// ranks are those of the layout, 0 if there is none such.
func (a Ask) ranks() int {
	if a.Serve != nil {
		j, err := a.Serve.Complete()
		if err != nil {
			return 0
		}
		return j.Layout.Ranks
	}
	j, err := a.Train.Complete()
	if err != nil {
		return 0
	}
	return j.Layout.Ranks
}

// first returns the first of some changes with which the card holds all stages on as many ranks.
func (a Ask) first(ctx context.Context, changes [][]turn) ([]Way, error) {
	ranks := a.ranks()
	for _, turns := range changes {
		b := a.with(turns...)
		if b.ranks() != ranks {
			continue
		}
		way, err := b.fits(ctx)
		if way != nil && b.Policies == Searched {
			way, err = b.exactly(ctx)
		}
		if err != nil {
			return nil, err
		}
		if way != nil {
			way.Flags = flags(turns)
			return []Way{*way}, nil
		}
	}
	return nil, nil
}

func flags(turns []turn) string {
	var all []string
	for _, t := range turns {
		if t.flags != "" {
			all = append(all, t.flags)
		}
	}
	return strings.Join(all, " ")
}

// fits returns a way without flags if the card holds all stages, nil if not; what it takes with policies that
// are searched is left to exactly. The error is that of ctx, or none of a job.
func (a Ask) fits(ctx context.Context) (*Way, error) {
	if a.Policies != Searched {
		return a.exactly(ctx)
	}
	if !a.holdsStates() {
		return nil, ctx.Err()
	}
	all := a // a search takes seconds, and finds some where these suffice
	all.Policies, all.Train.Library = "recompute all", plan.Library{Octavo: true}
	if r, err := answer(ctx, all); err == nil && len(r.TooLarge) > 0 {
		return nil, nil
	} else if err == nil {
		return &Way{}, nil
	}
	return a.exactly(ctx) // the recipe has some kept
}

// holdsStates reports whether the card holds what no policy changes.
func (a Ask) holdsStates() bool {
	m, err := a.Train.Memory()
	return err == nil && !slices.ContainsFunc(m.Stages, func(s plan.Stage) bool {
		return plan.Stage{Weights: s.Weights, Gradients: s.Gradients, Optimizer: s.Optimizer}.Reserved(a.Headroom) > a.card()
	})
}

// exactly is fits with the policies that are searched.
func (a Ask) exactly(ctx context.Context) (*Way, error) {
	r, err := answer(ctx, a)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, plan.ErrJob) || err == nil && len(r.TooLarge) > 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &Way{Ranks: r.Layout.Ranks, Reserved: r.Stages[r.Highest].Reserved(a.Headroom)}, nil
}

// mostWays is how many layouts on more ranks are listed, and fewer beside what keeps their number.
const mostWays = 3

// fewest returns layouts of other --tp, --pp and --ranks, so many at most, that fit on the fewest ranks that
// are more than those that were asked for.
func (a Ask) fewest(ctx context.Context, most int) (ways []Way, err error) {
	type layout struct {
		turns []turn
		least int // ranks
		far   float64
	}
	var layouts []layout
	for _, t := range append([]turn{{}}, a.tensorTurns()...) {
		for _, p := range append([]turn{{}}, a.stageTurns()...) {
			b := a.with(t, p)
			b.layout().Ranks = 0
			if n := b.ranks(); n > 0 {
				layouts = append(layouts, layout{[]turn{t, p}, n, t.far + p.far})
			}
		}
	}
	slices.SortStableFunc(layouts, func(x, y layout) int { return cmp.Or(cmp.Compare(x.least, y.least), cmp.Compare(x.far, y.far)) })
	best := math.MaxInt
	for _, l := range layouts {
		counts := a.rankCounts(l.least, best)
		var found *Way
		i := sort.Search(len(counts), func(i int) bool { // more ranks need no more memory each
			b := a.with(l.turns...)
			b.layout().Ranks = counts[i]
			way, failed := b.fits(ctx)
			if err = cmp.Or(err, failed); way != nil {
				found = way
			}
			return way != nil || err != nil
		})
		if err != nil {
			return nil, err
		}
		if i == len(counts) {
			continue
		}
		if counts[i] < best {
			best, ways = counts[i], nil
		}
		if a.layout().Ranks > 0 || best != l.least {
			l.turns = append([]turn{{flags: fmt.Sprintf("--ranks %d", best)}}, l.turns...)
		}
		if len(ways) == most {
			continue
		}
		if a.Policies == Searched {
			b := a.with(l.turns...)
			b.layout().Ranks = best
			if found, err = b.exactly(ctx); err != nil {
				return nil, err
			}
		}
		if found != nil {
			found.Flags = flags(l.turns)
			ways = append(ways, *found)
		}
	}
	return ways, nil
}

// rankCounts are numbers of ranks that a layout is tried on: as few as hold it once, and of more those that
// clusters have, powers of two and multiples of eight. Ranks beside those of a layout share out nothing that
// is served, or without ZeRO.
func (a Ask) rankCounts(least, best int) (all []int) {
	asked := a.ranks()
	add := func(n int) {
		usual := n < 8 && n&(n-1) == 0 || n%8 == 0 || asked > 1 && n%asked == 0
		if usual && n > asked && n <= best && n%least == 0 && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	add(least)
	if a.Serve != nil || a.Train.Layout.Zero == 0 {
		return all
	}
	for n := 1; n < 8; n *= 2 {
		add(n)
	}
	for n := 8; n < 128; n += 8 {
		add(n)
	}
	for n := 128; n <= 1<<16; n *= 2 {
		add(n)
		add(n / 2 * 3)
	}
	slices.Sort(all)
	return all
}

// NearestText says what [Ask.Nearest] found, in a part of a sentence.
func (a Ask) NearestText(ways []Way) string {
	ranks := a.ranks()
	nothing := "nothing that fits was found on " + count(ranks, "rank")
	var tried, list []string
	for _, o := range a.options() {
		tried = append(tried, "--"+o.flag)
	}
	if n := len(tried); n > 1 {
		nothing += fmt.Sprintf(" with other values of one or two of %s and %s", strings.Join(tried[:n-1], ", "), tried[n-1])
	}
	for _, w := range ways {
		list = append(list, w.String())
	}
	switch text := strings.Join(list, ", "); {
	case len(ways) == 0:
		return nothing + ", nor on more ranks with those of --tp and --pp"
	case ways[0].Ranks != ranks:
		return nothing + "; on the fewest that were found to fit: " + text
	default:
		return "nearest that fits: " + text
	}
}
