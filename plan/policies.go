package plan

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/knapsack"
	"github.com/octavo-fp8/octavo/internal/recompute"
	"github.com/octavo-fp8/octavo/nn"
)

// BudgetError is the error of a card that no policies keep to. It is [ErrJob].
type BudgetError struct {
	Stage       int
	Card, Least int64 // bytes of a card, and those that are reserved on a rank at least
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("plan: the card has %d bytes: on a rank of stage %d at least %d are reserved",
		e.Card, e.Stage, e.Least)
}

// Is makes a BudgetError an [ErrJob].
func (e *BudgetError) Is(target error) bool { return target == ErrJob }

// keptBy is what library octavo keeps of a micro-batch, by class, and what it computes again.
type keptBy struct {
	classes             [recompute.Classes]int64
	stream, router, end int64
	turns               [recompute.Classes]int64 // of all layers
	again, step         int64                    // operations
}

func (k *keptBy) total() int64 {
	n := k.stream + k.router + k.end
	for _, bytes := range k.classes {
		n += bytes
	}
	return n
}

// Classes returns the names of what [Stage].Classes tells apart, in the order of the forward
// pass: the residual stream with a number a row of each norm, the classes of [nn.Policy], what
// routers keep, and the last norm, logits and loss.
func Classes() []string {
	names := []string{"stream"}
	for _, class := range new(nn.Policy).Classes() {
		names = append(names, class.Name)
	}
	return append(names, "router", "head")
}

// list returns the classes of which something is kept.
func (k *keptBy) list() (all []ClassBytes) {
	bytes := append([]int64{k.stream}, k.classes[:]...)
	bytes = append(bytes, k.router, k.end)
	for i, class := range Classes() {
		if bytes[i] > 0 {
			all = append(all, ClassBytes{class, bytes[i]})
		}
	}
	return all
}

// add counts a layer.
func (k *keptBy) add(l layerPlan, p nn.Policy) {
	k.stream += l.stream
	k.router += l.router
	for class, bytes := range l.kept(p) {
		k.classes[class] += bytes
	}
	for class, of := range p.Classes() {
		if *of.Kept != nn.Keep {
			k.turns[class] = max(k.turns[class], l.classes[class].turns)
		}
	}
	k.again += l.again(p)
	k.step += 3 * l.work.Forward()
}

// addEnd counts the last norm, the head and the loss, which are computed and kept as they are.
func (k *keptBy) addEnd(o *ops) {
	own, h, vocab := o.own(), int64(o.m.Hidden), ceil(int64(o.m.Vocab), o.tensor())
	k.end = 2*o.p.Stream.Bytes(own, h) + o.p.Stream.Bytes(o.tokens, vocab) + single*(own+o.tokens)
	k.step += 3 * (2*o.tokens*h*vocab + recompute.NormOps*own*h + recompute.ExpOps*o.tokens*vocab)
}

// addKept counts the activations of a stage as library octavo keeps them. Memory that is
// shared, and that of what lives within an op, is never given back between ops: the most of
// each is added up.
func (j TrainJob) addKept(st *Stage, chunks [][]int) {
	o := j.ops()
	var all keptBy
	var memories []chunkMemory
	for c, layers := range chunks {
		before := all.total()
		for _, layer := range layers {
			all.add(o.plan(layer, int64(j.Sequence)), j.Policies[layer])
		}
		if st.Stage == j.Layout.Pipeline-1 && c == len(chunks)-1 {
			all.addEnd(&o)
		}
		kept := peak{kept: all.total() - before}
		memories = append(memories, chunkMemory{kept: kept.kept, forward: kept, backward: kept})
	}
	highest, flying := inFlight(j.Layout, st.Stage, j.Batches, memories)
	st.Activations, st.InFlight, st.Microbatch = highest.kept, flying, all.total()
	st.Classes, st.Again, st.Operations = all.list(), all.again, all.step
	for _, bytes := range all.turns {
		st.Turns += bytes
	}
	live := j.largest(&o, st.Stage, chunks)
	st.Workspace += st.Turns + live.live
	st.At = live.at
}

// largest returns the op of a stage that has most live.
func (j TrainJob) largest(o *ops, stage int, chunks [][]int) (most peak) {
	for c := range chunks {
		for _, op := range j.chunkOps(o, stage, chunks, c) {
			most = higher(most, peak{live: op.forward, at: op.name + ", forward"})
			most = higher(most, peak{live: op.backward, at: op.name + ", backward"})
		}
	}
	return most
}

// SearchPolicies returns the policies of library octavo with which a card of so many bytes
// holds what is reserved on a rank of each stage ([Stage.Reserved], with a headroom from 0 to 1
// such as [Headroom]), at the fewest operations computed again; of those with as few, ones with
// the fewest bytes. The search is exact and its result depends on nothing
// else; policies of the job do not count. Precisions do: it takes nothing that would change a
// bit of a gradient. Library is octavo, whatever it was. The error is [ErrModel] or [ErrJob],
// and a *[BudgetError] of the first stage for which the card is too small; or that of ctx:
// a stage of many layers may take seconds.
func (j TrainJob) SearchPolicies(
	ctx context.Context, card int64, headroom float64,
) ([]nn.Policy, error) {
	if !(headroom >= 0 && headroom <= 1) {
		return nil, jobf("headroom is %v: want a share from 0 to 1", headroom)
	}
	j.Library, j.Policies = Library{Octavo: true}, nil
	j, err := j.Complete()
	if err != nil {
		return nil, err
	}
	if j.Layout.Virtual > 1 {
		return nil, jobf("layout.virtual is %d: policies are searched for stages of one chunk",
			j.Layout.Virtual)
	}
	policies := make([]nn.Policy, j.Model.Layers)
	for s := range j.Layout.Pipeline {
		if err := j.searchStage(ctx, s, card, headroom, policies); err != nil {
			return nil, err
		}
	}
	return policies, nil
}

// searchStage sets the policies of a stage.
func (j TrainJob) searchStage(
	ctx context.Context, s int, card int64, headroom float64, policies []nn.Policy,
) error {
	st := j.stage(s)
	layers := j.Layout.chunks(s, j.Model.Layers)[0]
	o, flying := j.ops(), int64(st.InFlight)
	f, inFP8, _, _ := j.Precision.activations()
	var kinds []knapsack.Group
	var choices [][]nn.Policy
	var of [][]int // layers of each kind
	fixed := st.Total() - st.Turns
	seen := map[layerPlan]int{}
	for _, layer := range layers {
		plan := o.plan(layer, int64(j.Sequence))
		for _, bytes := range plan.kept(j.Policies[layer]) {
			fixed -= flying * bytes
		}
		kind, ok := seen[plan]
		if !ok {
			kind = len(kinds)
			seen[plan] = kind
			some, k := plan.choices(f.Ways(inFP8), flying)
			kinds, choices, of = append(kinds, k), append(choices, some), append(of, nil)
		}
		kinds[kind].Items++
		of[kind] = append(of[kind], layer)
	}
	result, least, err := knapsack.Search(ctx, kinds, fixed, allocatable(card, headroom))
	if err != nil {
		return err
	}
	if result == nil {
		return &BudgetError{s, card, reserved(least, headroom)}
	}
	for kind, items := range result {
		for i, choice := range items {
			policies[of[kind][i]] = choices[kind][choice]
		}
	}
	return nil
}

// allocatable returns the most bytes of which a card holds what is reserved.
func allocatable(card int64, headroom float64) int64 {
	card = min(max(card, 0), 1<<60) // which is more than any job takes
	n := int64(float64(card) / (1 + headroom))
	for ; reserved(n, headroom) > card; n-- { // rounding is off by little
	}
	for ; reserved(n+1, headroom) <= card; n++ {
	}
	return n
}

// choices returns all policies of a layer that can differ in what they take or cost, with so
// many micro-batches kept.
func (l *layerPlan) choices(ways [][]nn.Keeping, flying int64) (
	policies []nn.Policy, k knapsack.Group,
) {
	for class, size := range l.classes {
		k.Shared = append(k.Shared, size.turns)
		if size.kept == 0 { // there is none of it
			ways[class] = ways[class][:1]
		}
	}
	nn.EachPolicy(ways, func(p nn.Policy) {
		c := knapsack.Choice{Cost: l.again(p)}
		for _, bytes := range l.kept(p) {
			c.Bytes += flying * bytes
		}
		for class, of := range p.Classes() {
			if *of.Kept != nn.Keep {
				c.Shared |= 1 << class
			}
		}
		policies, k.Choices = append(policies, p), append(k.Choices, c)
	})
	return policies, k
}
