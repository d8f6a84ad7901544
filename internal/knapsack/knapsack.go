// Package knapsack finds what to keep in memory: for each of many items a choice of what it
// takes and what it costs, so that all together keep to a budget at the least cost, exactly.
// Beside what choices take by themselves there is memory that items share, which is there
// once for each class of which some item uses it.
package knapsack

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Choice is one way to keep an item.
type Choice struct {
	Shared uint16 // the classes whose shared memory it uses, a bit for each
	Bytes  int64  // of its own
	Cost   int64

	index int
}

// Group is items that are alike.
type Group struct {
	Items   int
	Choices []Choice // which of them beats others depends on their order where they are equal
	Shared  []int64  // the memory of each class, as many in all groups, at most 16
}

// Result has, of each group, the index of each item's choice.
type Result [][]int

// Search returns the choices that take at most budget bytes, fixed ones and shared memory
// included, at the least cost; of those that cost as much, ones with the fewest bytes. The
// result depends on nothing else. least is how many bytes there must be; where that is more
// than the budget there is no result. Costs and bytes must not be negative, and all together
// below an int64. The error is that of ctx: many items may take seconds.
func Search(
	ctx context.Context, groups []Group, fixed, budget int64,
) (result Result, least int64, err error) {
	s := newSearch(groups, fixed)
	if s.least > budget {
		return nil, s.least, nil
	}
	err = s.run(ctx, budget)
	return s.result, s.least, err
}

// search is a multiple-choice knapsack for each choice of shared memory: for that each class
// has a limit, one of the sizes that it may have.
type search struct {
	groups []Group
	shared int   // classes
	fixed  int64 // bytes that there are in any case
	limits [][]int64
	least  int64 // bytes that there must be

	ceiling int64    // cost that some choices need no more than
	best    searched // so far
	result  Result
}

// beats reports whether a is at least as good as b in all, whatever others share.
func (a *Choice) beats(b *Choice) bool {
	return a.Shared&^b.Shared == 0 && a.Bytes <= b.Bytes && a.Cost <= b.Cost
}

// searched are the sums of choices, bytes with those that are fixed or shared.
type searched struct {
	bytes, cost int64
	choice      *Choice // the last
	before      *searched
}

func (a searched) compare(b searched) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.bytes, b.bytes))
}

func newSearch(groups []Group, fixed int64) *search {
	s := &search{fixed: fixed, least: math.MaxInt64}
	for _, k := range groups {
		k.Choices = slices.Clone(k.Choices)
		for i := range k.Choices {
			k.Choices[i].index = i
		}
		k.Choices = unbeatenChoices(k.Choices)
		s.groups = append(s.groups, k)
		s.shared = len(k.Shared)
	}
	for class := range s.shared {
		sizes := []int64{0}
		for _, k := range s.groups {
			sizes = append(sizes, k.Shared[class])
		}
		slices.Sort(sizes)
		s.limits = append(s.limits, slices.Compact(sizes))
	}
	s.eachLimits(func(limits []int64, shared int64) {
		least := s.fixed + shared
		for _, k := range s.groups {
			front := k.front(limits)
			if len(front) == 0 {
				return
			}
			least += int64(k.Items) * front[len(front)-1].Bytes
		}
		s.least = min(s.least, least)
	})
	return s
}

// unbeatenChoices returns those that no other beats; of equal ones, the first.
func unbeatenChoices(all []Choice) (some []Choice) {
	for i := range all {
		beaten := func(c Choice) bool { return c.beats(&all[i]) }
		if slices.ContainsFunc(some, beaten) {
			continue
		}
		some = slices.DeleteFunc(some, func(c Choice) bool { return all[i].beats(&c) })
		some = append(some, all[i])
	}
	return some
}

// front returns the choices whose shared memory keeps to the limits and that no other beats
// in both, by falling bytes and rising cost.
func (k *Group) front(limits []int64) (front []Choice) {
	var over uint16 // classes of which there is too much
	for class, bytes := range k.Shared {
		if bytes > limits[class] {
			over |= 1 << class
		}
	}
	var possible []Choice
	for _, c := range k.Choices {
		if c.Shared&over == 0 {
			possible = append(possible, c)
		}
	}
	slices.SortStableFunc(possible, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Bytes, b.Bytes))
	})
	for _, c := range possible {
		if len(front) == 0 || c.Bytes < front[len(front)-1].Bytes {
			front = append(front, c)
		}
	}
	return front
}

// eachLimits calls do for each choice of a limit for each class, and the bytes of all.
func (s *search) eachLimits(do func(limits []int64, shared int64)) {
	limits := make([]int64, s.shared)
	var choose func(class int, shared int64)
	choose = func(class int, shared int64) {
		if class == s.shared {
			do(limits, shared)
			return
		}
		for _, limit := range s.limits[class] {
			limits[class] = limit
			choose(class+1, shared+limit)
		}
	}
	choose(0, 0)
}

// attempt is a choice of shared memory.
type attempt struct {
	bytes int64 // shared and fixed
	steps []step
	least float64 // cost that there must be
}

// run finds the best choices of at most budget bytes, which must be enough.
func (s *search) run(ctx context.Context, budget int64) error {
	s.best = searched{bytes: math.MaxInt64, cost: math.MaxInt64}
	s.ceiling = math.MaxInt64
	var attempts []attempt
	s.eachLimits(func(limits []int64, shared int64) {
		a := attempt{bytes: s.fixed + shared}
		for i := range s.groups {
			front := s.groups[i].front(limits)
			if len(front) == 0 {
				return
			}
			for range s.groups[i].Items {
				a.steps = append(a.steps, step{front: front})
			}
		}
		all := boundOf(a.steps)
		if a.bytes+all.least > budget {
			return
		}
		var whole int64
		a.least, whole = all.costOf(budget - a.bytes)
		s.ceiling = min(s.ceiling, whole)
		attempts = append(attempts, a)
	})
	slices.SortStableFunc(attempts, func(a, b attempt) int { return cmp.Compare(a.least, b.least) })
	for _, a := range attempts {
		if err := s.try(ctx, a, budget); err != nil {
			return err
		}
	}
	return nil
}

// try looks for better choices with shared memory.
func (s *search) try(ctx context.Context, a attempt, budget int64) error {
	if a.least*(1-slack) > float64(min(s.best.cost, s.ceiling)) {
		return nil
	}
	for i := range a.steps {
		a.steps[i].rest = boundOf(a.steps[i+1:])
	}
	states := []*searched{{bytes: a.bytes}}
	for _, step := range a.steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		var next []*searched
		for _, state := range states {
			for j := range step.front {
				c := &step.front[j]
				n := searched{state.bytes + c.Bytes, state.cost + c.Cost, c, state}
				if s.promising(n, &step.rest, budget) {
					next = append(next, &n)
				}
			}
		}
		states = unbeaten(next)
	}
	for _, state := range states {
		if state.compare(s.best) < 0 {
			s.take(*state)
		}
	}
	return nil
}

// step is the choice for an item.
type step struct {
	front []Choice
	rest  bound // of the items after it
}

// bound is what items take at least: of bytes, and of cost for so many bytes, were
// choices divisible.
type bound struct {
	least    int64 // bytes
	most     int64 // bytes at no cost that need not be
	cost     int64 // with most
	segments []segment
}

// segment is what saves bytes at a cost.
type segment struct{ bytes, cost int64 }

func (a segment) compare(b segment) int { // by cost for a byte
	return cmp.Compare(float64(a.cost)*float64(b.bytes), float64(b.cost)*float64(a.bytes))
}

func boundOf(steps []step) (b bound) {
	for _, step := range steps {
		front := step.front
		b.least += front[len(front)-1].Bytes
		b.most += front[0].Bytes
		b.cost += front[0].Cost
		b.segments = append(b.segments, hull(front)...)
	}
	slices.SortStableFunc(b.segments, segment.compare)
	return b
}

// hull returns the steps of the lower convex hull of a front.
func hull(front []Choice) (steps []segment) {
	for i := range front[1:] {
		next := segment{front[i].Bytes - front[i+1].Bytes, front[i+1].Cost - front[i].Cost}
		for len(steps) > 0 && next.compare(steps[len(steps)-1]) <= 0 {
			last := steps[len(steps)-1]
			steps = steps[:len(steps)-1]
			next = segment{next.bytes + last.bytes, next.cost + last.cost}
		}
		steps = append(steps, next)
	}
	return steps
}

// costOf returns a bound of the cost of items that have so many bytes, and how many do where
// choices are whole.
func (b *bound) costOf(bytes int64) (least float64, whole int64) {
	least, whole = float64(b.cost), b.cost
	over := b.most - bytes
	for _, s := range b.segments {
		if over <= 0 {
			break
		}
		least += min(1, float64(over)/float64(s.bytes)) * float64(s.cost)
		whole += s.cost
		over -= s.bytes
	}
	return least, whole
}

// slack is for what bounds themselves round.
const slack = 1e-9

// promising reports whether a state may lead to something better than the best.
func (s *search) promising(state searched, rest *bound, budget int64) bool {
	if state.bytes+rest.least > budget {
		return false
	}
	least, _ := rest.costOf(budget - state.bytes)
	return (float64(state.cost)+least)*(1-slack) <= float64(min(s.best.cost, s.ceiling))
}

// unbeaten returns the states that no other beats in both, least cost first.
func unbeaten(states []*searched) (front []*searched) {
	slices.SortStableFunc(states, func(a, b *searched) int { return a.compare(*b) })
	for _, s := range states {
		if len(front) == 0 || s.bytes < front[len(front)-1].bytes {
			front = append(front, s)
		}
	}
	return front
}

// take makes a state the best.
func (s *search) take(state searched) {
	s.best = state
	s.result = make(Result, len(s.groups))
	chosen := &state
	for i := len(s.groups) - 1; i >= 0; i-- {
		s.result[i] = make([]int, s.groups[i].Items)
		for item := len(s.result[i]) - 1; item >= 0; item-- {
			s.result[i][item] = chosen.choice.index
			chosen = chosen.before
		}
	}
}
