package collective

import (
	"context"
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
		p, err := e.run(s.slot[part], s.sums[part], ranks)
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
			p, err := x.pack(ctx, opSend, x.Wire, o, nil, uint64(i*ranks+j))
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

// countAmaxes counts the exchange of n amaxes through rank 0.
func (t Traffic) countAmaxes(n int) {
	for r := 1; r < len(t); r++ {
		t.count(r, amaxFormat, 4*int64(n))
		t.count(0, amaxFormat, 4*int64(n))
	}
}

// gathered returns the message of a rank's operand in an all-gather.
func (x *Exchange) gathered(ctx context.Context, operand []float32, rank int) (*parcel, error) {
	return x.pack(ctx, opGather, x.Wire, operand, nil, uint64(rank))
}
