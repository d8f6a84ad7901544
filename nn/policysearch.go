package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// BudgetError is the error of a budget that no policies keep to.
type BudgetError struct {
	Batch, Seq    int
	Budget, Least int64 // bytes that were to do, and that must be
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("nn: activations of a batch of %d x %d do not fit in %d bytes: they take at least %d",
		e.Batch, e.Seq, e.Budget, e.Least)
}

// SearchPolicies returns the policies that take at most budget bytes for the activations of
// batches of batch sequences of seq tokens, the memory that blocks take turns in included,
// with the fewest operations done again. Of those with as few it takes the ones with the
// fewest bytes. The search is exact and its result depends on nothing else. Policies of c do
// not count; formats do: it takes nothing that would change a bit of what
// Config.Activations gives. The error is a *[BudgetError], which says the least there can be,
// or that of [Config.PlanActivations].
func (c Config) SearchPolicies(batch, seq int, budget int64) (ActivationPlan, error) {
	c.Policies = nil
	p, err := newPlanner(c, batch, seq)
	if err != nil {
		return ActivationPlan{}, err
	}
	s := newPolicySearch(p)
	if s.least > budget {
		return ActivationPlan{}, &BudgetError{batch, seq, budget, s.least}
	}
	return p.plan(s.run(budget)), nil
}

// policySearch is a multiple-choice knapsack for each choice of shared memory: a policy for
// each layer, whose bytes add up, beside what blocks take turns in, which is there once. For
// that each class has a limit, one of the sizes that it may have.
type policySearch struct {
	p      *planner
	kinds  []policyKind
	fixed  int64 // bytes that are kept in any case
	limits [classCount][]int64
	least  int64 // bytes that there must be

	ceiling  int64    // operations that some policies need no more than
	best     searched // so far
	policies []Policy
}

// policyKind are layers with the same sizes and what they may choose from.
type policyKind struct {
	turns   [classCount]int64 // memory shared of each class
	layers  []int
	choices []policyChoice
}

type policyChoice struct {
	policy Policy
	shared uint16 // the classes that are not kept in FP32, a bit for each
	bytes  int64  // kept
	again  int64  // operations
}

// beats reports whether a is at least as good as b in all, whatever others share.
func (a *policyChoice) beats(b *policyChoice) bool {
	return a.shared&^b.shared == 0 && a.bytes <= b.bytes && a.again <= b.again
}

// searched are the sums of choices, bytes with those that are fixed or shared.
type searched struct {
	bytes, again int64
	choice       *policyChoice // the last
	before       *searched
}

func (a searched) compare(b searched) int {
	return cmp.Or(cmp.Compare(a.again, b.again), cmp.Compare(a.bytes, b.bytes))
}

func newPolicySearch(p *planner) *policySearch {
	s := &policySearch{p: p}
	for _, plan := range p.kinds {
		k := policyKind{choices: unbeatenChoices(plan.choices())}
		for class := range classCount {
			k.turns[class] = plan.classes[class].turnBytes()
		}
		for layer, of := range p.kindOf {
			if of == plan {
				k.layers = append(k.layers, layer)
			}
		}
		s.kinds = append(s.kinds, k)
	}
	first := make([]Policy, p.c.Layers)
	for layer, plan := range p.kindOf {
		first[layer] = plan.choices()[0].policy
	}
	all := p.plan(first)
	s.fixed = all.Float32 + all.Codes + all.Scales
	for layer, plan := range p.kindOf {
		s.fixed -= plan.kept(first[layer]).total()
	}
	for class := range classCount {
		sizes := []int64{0}
		for _, k := range s.kinds {
			sizes = append(sizes, k.turns[class])
		}
		slices.Sort(sizes)
		s.limits[class] = slices.Compact(sizes)
	}
	s.least = math.MaxInt64
	s.eachLimits(func(limits [classCount]int64, turns int64) {
		least := s.fixed + turns
		for _, k := range s.kinds {
			front := k.front(limits)
			if len(front) == 0 {
				return
			}
			least += int64(len(k.layers)) * front[len(front)-1].bytes
		}
		s.least = min(s.least, least)
	})
	return s
}

func (k keptBytes) total() int64 { return k.float32 + k.codes + k.scales }

func (c classBytes) turnBytes() (n int64) {
	for _, t := range c.turns {
		n += t.bytes
	}
	return n
}

// choices returns all policies of a layer that can differ in what they take or cost.
func (b *blockPlan) choices() (all []policyChoice) {
	allowed := b.activations.allowed(b.inFP8)
	for class := range allowed {
		if b.classes[class].float32 == 0 { // there is none of it
			allowed[class] = allowed[class][:1]
		}
	}
	var p Policy
	fields := p.fields()
	var choose func(class int)
	choose = func(class int) {
		if class == classCount {
			c := policyChoice{policy: p, bytes: b.kept(p).total(), again: b.again(p)}
			for i, field := range fields {
				if *field.kept != Keep {
					c.shared |= 1 << i
				}
			}
			all = append(all, c)
			return
		}
		for _, k := range allowed[class] {
			*fields[class].kept = k
			choose(class + 1)
		}
	}
	choose(0)
	return all
}

// unbeatenChoices returns those that no other beats; of equal ones, the first.
func unbeatenChoices(all []policyChoice) (some []policyChoice) {
	for i := range all {
		beaten := func(c policyChoice) bool { return c.beats(&all[i]) }
		if slices.ContainsFunc(some, beaten) {
			continue
		}
		some = slices.DeleteFunc(some, func(c policyChoice) bool { return all[i].beats(&c) })
		some = append(some, all[i])
	}
	return some
}

// front returns the choices whose shared memory keeps to the limits and that no other beats
// in both, by falling bytes and rising operations.
func (k *policyKind) front(limits [classCount]int64) (front []policyChoice) {
	var over uint16 // classes of which there is too much
	for class, bytes := range k.turns {
		if bytes > limits[class] {
			over |= 1 << class
		}
	}
	var possible []policyChoice
	for _, c := range k.choices {
		if c.shared&over == 0 {
			possible = append(possible, c)
		}
	}
	slices.SortStableFunc(possible, func(a, b policyChoice) int {
		return cmp.Or(cmp.Compare(a.again, b.again), cmp.Compare(a.bytes, b.bytes))
	})
	for _, c := range possible {
		if len(front) == 0 || c.bytes < front[len(front)-1].bytes {
			front = append(front, c)
		}
	}
	return front
}

// eachLimits calls do for each choice of a limit for each class, and the bytes of all.
func (s *policySearch) eachLimits(do func(limits [classCount]int64, turns int64)) {
	var limits [classCount]int64
	var choose func(class int, turns int64)
	choose = func(class int, turns int64) {
		if class == classCount {
			do(limits, turns)
			return
		}
		for _, limit := range s.limits[class] {
			limits[class] = limit
			choose(class+1, turns+limit)
		}
	}
	choose(0, 0)
}

// attempt is a choice of shared memory.
type attempt struct {
	bytes int64 // shared and fixed
	steps []step
	least float64 // operations that there must be
}

// run returns the best policies of at most budget bytes, which must be enough.
func (s *policySearch) run(budget int64) []Policy {
	s.best = searched{bytes: math.MaxInt64, again: math.MaxInt64}
	s.ceiling = math.MaxInt64
	var attempts []attempt
	s.eachLimits(func(limits [classCount]int64, turns int64) {
		a := attempt{bytes: s.fixed + turns}
		for i := range s.kinds {
			front := s.kinds[i].front(limits)
			if len(front) == 0 {
				return
			}
			for range s.kinds[i].layers {
				a.steps = append(a.steps, step{front: front})
			}
		}
		all := boundOf(a.steps)
		if a.bytes+all.least > budget {
			return
		}
		var whole int64
		a.least, whole = all.operations(budget - a.bytes)
		s.ceiling = min(s.ceiling, whole)
		attempts = append(attempts, a)
	})
	slices.SortStableFunc(attempts, func(a, b attempt) int { return cmp.Compare(a.least, b.least) })
	for _, a := range attempts {
		s.try(a, budget)
	}
	return s.policies
}

// try looks for better policies with shared memory.
func (s *policySearch) try(a attempt, budget int64) {
	if a.least*(1-slack) > float64(min(s.best.again, s.ceiling)) {
		return
	}
	for i := range a.steps {
		a.steps[i].rest = boundOf(a.steps[i+1:])
	}
	states := []*searched{{bytes: a.bytes}}
	for _, step := range a.steps {
		var next []*searched
		for _, state := range states {
			for j := range step.front {
				c := &step.front[j]
				n := searched{state.bytes + c.bytes, state.again + c.again, c, state}
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
}

// step is the choice for a layer.
type step struct {
	front []policyChoice
	rest  bound // of the layers after it
}

// bound is what layers take at least: of bytes, and of operations for so many bytes, were
// choices divisible.
type bound struct {
	least    int64 // bytes
	most     int64 // bytes with no operations that need not be
	again    int64 // operations, with most
	segments []segment
}

// segment is what saves bytes for operations.
type segment struct{ bytes, again int64 }

func (a segment) compare(b segment) int { // by operations for a byte
	return cmp.Compare(float64(a.again)*float64(b.bytes), float64(b.again)*float64(a.bytes))
}

func boundOf(steps []step) (b bound) {
	for _, step := range steps {
		front := step.front
		b.least += front[len(front)-1].bytes
		b.most += front[0].bytes
		b.again += front[0].again
		b.segments = append(b.segments, hull(front)...)
	}
	slices.SortStableFunc(b.segments, segment.compare)
	return b
}

// hull returns the steps of the lower convex hull of a front.
func hull(front []policyChoice) (steps []segment) {
	for i := range front[1:] {
		next := segment{front[i].bytes - front[i+1].bytes, front[i+1].again - front[i].again}
		for len(steps) > 0 && next.compare(steps[len(steps)-1]) <= 0 {
			last := steps[len(steps)-1]
			steps = steps[:len(steps)-1]
			next = segment{next.bytes + last.bytes, next.again + last.again}
		}
		steps = append(steps, next)
	}
	return steps
}

// operations returns a bound of those of layers that have so many bytes, and how many do where
// choices are whole.
func (b *bound) operations(bytes int64) (least float64, whole int64) {
	least, whole = float64(b.again), b.again
	over := b.most - bytes
	for _, s := range b.segments {
		if over <= 0 {
			break
		}
		least += min(1, float64(over)/float64(s.bytes)) * float64(s.again)
		whole += s.again
		over -= s.bytes
	}
	return least, whole
}

// slack is for what bounds themselves round.
const slack = 1e-9

// promising reports whether a state may lead to something better than the best.
func (s *policySearch) promising(state searched, rest *bound, budget int64) bool {
	if state.bytes+rest.least > budget {
		return false
	}
	least, _ := rest.operations(budget - state.bytes)
	return (float64(state.again)+least)*(1-slack) <= float64(min(s.best.again, s.ceiling))
}

// unbeaten returns the states that no other beats in both, best operations first.
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
func (s *policySearch) take(state searched) {
	s.best = state
	s.policies = make([]Policy, s.p.c.Layers)
	chosen := &state
	for i := len(s.kinds) - 1; i >= 0; i-- {
		for _, layer := range slices.Backward(s.kinds[i].layers) {
			s.policies[layer] = chosen.choice.policy
			chosen = chosen.before
		}
	}
}
