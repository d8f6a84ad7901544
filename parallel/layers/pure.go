package layers

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// AllReduce returns the sum of operands, one of each rank, as every rank has it in the
// end, and what they have sent. It computes it by itself, without ranks; [Rank.AllReduce]
// gives the same bits. The error is [ErrInput], or that of ctx.
func (x Exchange) AllReduce(ctx context.Context, operands [][]float32) ([]float32, Traffic, error) {
	return x.reduce(ctx, operands, false)
}

// ReduceScatter is AllReduce up to where rank r has part r; it returns all parts, one
// after the other. OrderRank and OrderTree sum at rank 0, which sends part r to rank r
// in the form of Result. [Rank.ReduceScatter] gives the same bits.
func (x Exchange) ReduceScatter(ctx context.Context, operands [][]float32) ([]float32, Traffic, error) {
	return x.reduce(ctx, operands, true)
}

func (x Exchange) reduce(ctx context.Context, operands [][]float32, scatter bool) ([]float32, Traffic, error) {
	n, err := equalLengths(operands)
	if err != nil {
		return nil, nil, err
	}
	ranks := len(operands)
	if err := x.check(ranks, n); err != nil {
		return nil, nil, err
	}
	s, traffic := newSchedule(x.Order, ranks, scatter), newTraffic(ranks)
	sum := make([]float32, n)
	amaxes := x.sharedAmaxes(s.parts, n, traffic, func(r, lo, hi int) []float32 { return operands[r][lo:hi] })
	sent := make([]*parcel, s.parts)
	for part := range s.parts {
		lo, hi := x.cut(n, part, s.parts)
		if lo == hi {
			continue
		}
		e := evaluation{
			partReduction: partReduction{ctx: ctx, x: &x, part: part, n: hi - lo, amax: amaxes[part]},
			leaf:          func(dst []float32, r int) { copy(dst, operands[r][lo:hi]) },
			traffic:       traffic,
		}
		p, err := e.run(s, ranks)
		if err != nil {
			return nil, nil, err
		}
		p.decode(sum[lo:hi])
		sent[part] = p
	}
	deliver(traffic, s.after, sent)
	return sum, traffic, nil
}

// deliver counts deliveries.
func deliver(t Traffic, list []delivery, sent []*parcel) {
	for _, d := range list {
		if p := sent[d.part]; p != nil {
			t.count(d.from, p.wire.String(), p.bytes())
		}
	}
}

// sharedAmaxes returns those of all parts, nil where scales are each message's own.
func (x *Exchange) sharedAmaxes(parts, n int, traffic Traffic, operand func(r, lo, hi int) []float32) [][]float32 {
	amaxes := make([][]float32, parts)
	if x.Amax == AmaxOwn {
		return amaxes
	}
	total := 0
	for part := range amaxes {
		lo, hi := x.cut(n, part, parts)
		amaxes[part] = x.newAmaxes(hi - lo)
		total += len(amaxes[part])
		for r := range traffic {
			x.raise(amaxes[part], operand(r, lo, hi))
		}
	}
	traffic.countAmaxes(total)
	return x.remember(amaxes)
}

func equalLengths(operands [][]float32) (int, error) {
	if len(operands) == 0 {
		return 0, inputError("no operands: there must be one of each rank")
	}
	for r, o := range operands {
		if len(o) != len(operands[0]) {
			return 0, inputError("the operand of rank %d has %d elements and that of rank 0 has %d", r, len(o), len(operands[0]))
		}
	}
	return len(operands[0]), nil
}

// evaluation computes the sum of one part as the tree that its additions are, depth
// first: of R operands it holds two where they are added in turn, and log2 R in a tree.
type evaluation struct {
	partReduction
	leaf    func(dst []float32, rank int)
	traffic Traffic // nil: not counted
	free    [][]float32
}

// node is an operand, or the addition of two nodes.
type node struct {
	at   int // rank
	step int // which addition; -1: an operand
	a, b *node
}

// tree returns the tree of additions.
func tree(list []addition, ranks, root int) *node {
	slots := make([]*node, ranks)
	for r := range slots {
		slots[r] = &node{at: r, step: -1}
	}
	for i, s := range list {
		slots[s.a] = &node{s.at, i, slots[s.a], slots[s.b]}
	}
	return slots[root]
}

// run returns the result as it is sent.
func (e *evaluation) run(s *schedule, ranks int) (*parcel, error) {
	part := e.part % s.parts
	sum, err := e.eval(tree(s.sums[part], ranks, s.slot[part]))
	if err != nil {
		return nil, err
	}
	return e.result(sum)
}

func (e *evaluation) eval(n *node) (slot, error) {
	if n.step < 0 {
		if err := meter.Err(e.ctx); err != nil {
			return slot{}, err
		}
		values := e.buffer()
		e.leaf(values, n.at)
		return e.operand(values, n.at)
	}
	a, err := e.fetch(n, n.a, saltA)
	if err != nil {
		return slot{}, err
	}
	b, err := e.fetch(n, n.b, saltB)
	if err != nil {
		return slot{}, err
	}
	err = e.add(&a, b, n.step)
	e.free = append(e.free, b.values)
	return a, err
}

// fetch returns what an addition has of one of its two.
func (e *evaluation) fetch(to, n *node, kind int) (slot, error) {
	s, err := e.eval(n)
	if err != nil || n.at == to.at {
		return s, err
	}
	m, err := e.message(s, e.salt(kind, to.step))
	if err != nil {
		return s, err
	}
	if e.traffic != nil {
		e.traffic.count(n.at, m.wire.String(), m.bytes())
	}
	m.decode(s.values)
	return slot{values: s.values, partial: s.partial}, nil
}

func (e *evaluation) buffer() []float32 {
	if k := len(e.free) - 1; k >= 0 {
		b := e.free[k]
		e.free = e.free[:k]
		return b
	}
	return make([]float32, e.n)
}

// AllGather returns the operands of all ranks, one after the other, as each rank has
// them in the end. What a rank sends itself is rounded too. OrderRing passes them
// around, OrderTree sends all to rank 0 and from there down, OrderHalving doubles, and
// the others send directly. [Rank.AllGather] gives the same bits.
func (x Exchange) AllGather(ctx context.Context, operands [][]float32) ([]float32, Traffic, error) {
	ranks := len(operands)
	traffic, sent := newTraffic(ranks), make([]*parcel, ranks)
	var all []float32
	for r, o := range operands {
		if err := x.checkMessage(ranks, len(o)); err != nil {
			return nil, nil, err
		}
		if len(o) == 0 {
			continue
		}
		p, err := x.gathered(ctx, o, r)
		if err != nil {
			return nil, nil, err
		}
		values := make([]float32, len(o))
		p.decode(values)
		all, sent[r] = append(all, values...), p
	}
	if ranks == 0 {
		return nil, nil, inputError("no operands: there must be one of each rank")
	}
	deliver(traffic, spread(x.Order, identity(ranks), ranks), sent)
	return all, traffic, nil
}

// checkMessage is check of an operand that is one message.
func (x *Exchange) checkMessage(ranks, n int) error {
	whole := *x
	whole.cuts = nil
	return whole.check(ranks, n)
}

// gathered returns the message of a rank's operand in an all-gather.
func (x *Exchange) gathered(ctx context.Context, operand []float32, rank int) (*parcel, error) {
	rows, cols := x.shape(len(operand))
	return x.packer(ctx, opGather).pack(x.Wire, operand, rows, cols, nil, uint64(rank))
}

func identity(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Broadcast returns what every rank has of an operand of rank root, root included.
// OrderTree sends it down a binary tree from rank 0, OrderRing around, and the others
// directly. [Rank.Broadcast] gives the same bits.
func (x Exchange) Broadcast(ctx context.Context, ranks, root int, operand []float32) ([]float32, Traffic, error) {
	if err := x.checkRoot(ranks, root, len(operand)); err != nil {
		return nil, nil, err
	}
	values, traffic := make([]float32, len(operand)), newTraffic(ranks)
	if len(operand) == 0 {
		return values, traffic, nil
	}
	p, err := x.gathered(ctx, operand, root)
	if err != nil {
		return nil, nil, err
	}
	p.decode(values)
	deliver(traffic, spread(x.Order, []int{root}, ranks), []*parcel{p})
	return values, traffic, nil
}

func (x *Exchange) checkRoot(ranks, root, n int) error {
	if err := x.checkMessage(ranks, n); err != nil {
		return err
	}
	if root < 0 || root >= ranks {
		return inputError("%q: rank %d is the root: there are %d ranks", x.Name, root, ranks)
	}
	return nil
}

// AllToAll returns what each rank receives where rank i sends operands[i][j] to rank j:
// results[j][i]. What a rank sends itself is rounded too, and is no traffic.
// [Rank.AllToAll] gives the same bits.
func (x Exchange) AllToAll(ctx context.Context, operands [][][]float32) ([][][]float32, Traffic, error) {
	ranks := len(operands)
	if ranks == 0 {
		return nil, nil, inputError("no operands: there must be one of each rank")
	}
	results, traffic := make([][][]float32, ranks), newTraffic(ranks)
	for j := range results {
		results[j] = make([][]float32, ranks)
	}
	for i, row := range operands {
		if len(row) != ranks {
			return nil, nil, inputError("%q: rank %d has operands for %d ranks: there are %d",
				x.Name, i, len(row), ranks)
		}
		for j, o := range row {
			if err := x.checkMessage(ranks, len(o)); err != nil {
				return nil, nil, err
			}
			results[j][i] = make([]float32, len(o))
			if len(o) == 0 {
				continue
			}
			p, err := x.addressed(ctx, o, i, j, ranks)
			if err != nil {
				return nil, nil, err
			}
			p.decode(results[j][i])
			if i != j {
				traffic.count(i, p.wire.String(), p.bytes())
			}
		}
	}
	return results, traffic, nil
}

// addressed returns the message of rank i to rank j in an all-to-all.
func (x *Exchange) addressed(ctx context.Context, operand []float32, i, j, ranks int) (*parcel, error) {
	rows, cols := x.shape(len(operand))
	return x.packer(ctx, opSend).pack(x.Wire, operand, rows, cols, nil, uint64(i*ranks+j))
}
