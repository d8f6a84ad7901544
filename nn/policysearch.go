package nn

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/knapsack"
	"github.com/octavo-fp8/octavo/internal/recompute"
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
	policies, least := newPolicySearch(p).run(budget)
	if policies == nil {
		return ActivationPlan{}, &BudgetError{batch, seq, budget, least}
	}
	return p.plan(policies), nil
}

// policySearch is the search among the policies of a plan's layers.
type policySearch struct {
	p       *planner
	fixed   int64 // bytes that are kept in any case
	choices [][]Policy
	kinds   []knapsack.Group
}

func newPolicySearch(p *planner) *policySearch {
	s := &policySearch{p: p}
	for _, plan := range p.kinds {
		policies, choices := plan.choices()
		k := knapsack.Group{Choices: choices}
		for class := range recompute.Classes {
			k.Shared = append(k.Shared, plan.classes[class].turnBytes())
		}
		for _, of := range p.kindOf {
			if of == plan {
				k.Items++
			}
		}
		s.kinds, s.choices = append(s.kinds, k), append(s.choices, policies)
	}
	first := make([]Policy, p.c.Layers)
	for layer, plan := range p.kindOf {
		first[layer] = s.choices[slices.Index(p.kinds, plan)][0]
	}
	all := p.plan(first)
	s.fixed = all.Float32 + all.Codes + all.Scales
	for layer, plan := range p.kindOf {
		s.fixed -= plan.kept(first[layer]).total()
	}
	return s
}

// run returns the best policies of at most budget bytes, or none and the least that there
// must be.
func (s *policySearch) run(budget int64) (policies []Policy, least int64) {
	result, least, _ := knapsack.Search(context.Background(), s.kinds, s.fixed, budget)
	if result == nil {
		return nil, least
	}
	next := make([]int, len(s.kinds))
	for _, plan := range s.p.kindOf {
		kind := slices.Index(s.p.kinds, plan)
		policies = append(policies, s.choices[kind][result[kind][next[kind]]])
		next[kind]++
	}
	return policies, least
}

func (k keptBytes) total() int64 { return k.float32 + k.codes + k.scales }

func (c classBytes) turnBytes() (n int64) {
	for _, t := range c.turns {
		n += t.bytes
	}
	return n
}

// choices returns all policies of a layer that can differ in what they take or cost.
func (b *blockPlan) choices() (policies []Policy, choices []knapsack.Choice) {
	ways := b.activations.Ways(b.inFP8)
	for class := range ways {
		if b.classes[class].float32 == 0 { // there is none of it
			ways[class] = ways[class][:1]
		}
	}
	EachPolicy(ways, func(p Policy) {
		c := knapsack.Choice{Bytes: b.kept(p).total(), Cost: b.again(p)}
		for i, class := range p.Classes() {
			if *class.Kept != Keep {
				c.Shared |= 1 << i
			}
		}
		policies, choices = append(policies, p), append(choices, c)
	})
	return policies, choices
}
