package collective

import "slices"

// AllReduce writes the sum of the ranks' src to dst, both of one length everywhere; they
// may be the same.
func (r *Rank) AllReduce(x Exchange, dst, src []float32) error {
	return r.AllReduceSlices(r.each(x), dst, [][]float32{src})
}

// each returns slices of which each rank has one.
func (r *Rank) each(x Exchange) Slices { return Slices{Exchange: x, Count: r.Ranks()} }

// ReduceScatter is AllReduce up to where rank r has part r, which it returns. OrderRank and
// OrderTree sum at rank 0, which sends part r to rank r in the form of Result.
func (r *Rank) ReduceScatter(x Exchange, src []float32) (sum []float32, err error) {
	if err := x.check(r.Ranks(), len(src)); err != nil {
		return nil, err
	}
	lo, hi := x.cut(len(src), r.id, r.Ranks())
	sum = make([]float32, hi-lo)
	s := r.each(x)
	err = r.reduce(&s, len(src), [][]float32{src}, true, func(part, _, _ int, p *parcel) {
		if part == r.id {
			p.decode(sum)
		}
	})
	return sum, err
}

// AllGather writes the ranks' src, one after the other, to dst; sizes are the lengths of
// all of them. What a rank sends itself is rounded too. OrderRing passes them around,
// OrderTree sends all to rank 0 and from there down, OrderHalving doubles, and the others
// send directly. With one src that is not empty it is a broadcast.
func (r *Rank) AllGather(x Exchange, dst []float32, sizes []int, src []float32) error {
	s := r.each(x)
	s.Cuts = make([]int, 1, len(sizes)+1)
	for i, n := range sizes {
		s.Cuts = append(s.Cuts, s.Cuts[i]+n)
	}
	return r.AllGatherSlices(s, dst, src)
}

// AllReduceSlices writes the sum of the terms of all slices to dst. Terms are those of
// the rank's own slices, as [Slices.Of] says.
func (r *Rank) AllReduceSlices(s Slices, dst []float32, terms [][]float32) error {
	return r.reduce(&s, len(dst), terms, false, func(_, lo, hi int, p *parcel) { p.decode(dst[lo:hi]) })
}

// ReduceScatterSlices writes this rank's share of what [Rank.AllReduceSlices] would write to
// dst: the parts of its slices, as Cuts or [Slices.Tokens] says. Each slice's part is a
// message of its own.
func (r *Rank) ReduceScatterSlices(s Slices, dst []float32, terms [][]float32) error {
	if len(terms) == 0 {
		return inputError("%q: rank %d has none of %d slices", s.Name, r.id, s.Count)
	}
	lo, err := r.share(&s, len(terms[0]), len(dst))
	if err != nil {
		return err
	}
	host := s.hosts(r.Ranks())
	return r.reduce(&s, len(terms[0]), terms, true, func(part, from, to int, p *parcel) {
		if host[part] == r.id {
			p.decode(dst[from-lo : to-lo])
		}
	})
}

// AllGatherSlices writes what all slices have to dst, given the rank's own, src, which Cuts
// or [Slices.Tokens] says. What each slice has is a message of its own, which is rounded
// even where it stays.
func (r *Rank) AllGatherSlices(s Slices, dst, src []float32) error {
	if _, err := r.share(&s, len(dst), len(src)); err != nil {
		return err
	}
	host, has := s.hosts(r.Ranks()), make([]*parcel, s.Count)
	size := func(slice int) int { return s.Cuts[slice+1] - s.Cuts[slice] }
	for slice := range has {
		n := size(slice)
		if host[slice] != r.id || n == 0 {
			continue
		}
		if err := s.checkMessage(s.Count, n); err != nil {
			return err
		}
		var err error
		if has[slice], err = s.pack(r.ctx, opGather, s.Wire, src[:n], nil, uint64(slice)); err != nil {
			return err
		}
		src = src[n:]
	}
	if err := r.deliver(opGather, s.Name, spread(s.Order, host, r.Ranks()), size, has); err != nil {
		return err
	}
	for slice, p := range has {
		if p != nil {
			p.decode(dst[s.Cuts[slice]:s.Cuts[slice+1]])
		}
	}
	return nil
}

// share gives s its Cuts of so many elements, and returns where those of the rank begin. It
// is an error unless there are as many of these as own.
func (r *Rank) share(s *Slices, whole, own int) (lo int, err error) {
	if err := s.Check(); err != nil {
		return 0, err
	}
	if s.Cuts == nil {
		if s.Cols < 1 || whole%s.Cols != 0 {
			return 0, inputError("%q: %d elements are not rows of Cols = %d", s.Name, whole, s.Cols)
		}
		for i := range s.Count + 1 {
			s.Cuts = append(s.Cuts, i*(whole/s.Cols)/s.Count*s.Cols)
		}
	}
	if len(s.Cuts) != s.Count+1 || s.Cuts[s.Count] != whole || !slices.IsSorted(s.Cuts) {
		return 0, inputError("%q: cuts %v are not those of %d elements over %d ranks", s.Name, s.Cuts, whole, s.Count)
	}
	first, end := s.Of(r.id, r.Ranks())
	if lo = s.Cuts[first]; own != s.Cuts[end]-lo {
		return 0, inputError("%q: rank %d has %d elements: want %d to %d of %d", s.Name, r.id, own, lo, s.Cuts[end], whole)
	}
	return lo, nil
}

// hosted is the operands of a reduction that a rank has: the terms of its slices.
type hosted struct {
	n        int // elements of each
	operands map[int][]float32
	host     []int // by slice: the rank that it is on
}

// reduce calls use for each part of the sum of n elements that the rank has in the end.
func (r *Rank) reduce(
	s *Slices, n int, terms [][]float32, scatter bool, use func(part, lo, hi int, p *parcel),
) error {
	src := hosted{n: n, operands: map[int][]float32{}}
	if err := s.Check(); err != nil {
		return err
	}
	first, end := s.Of(r.id, r.Ranks())
	if len(terms) != end-first {
		return inputError("%q: rank %d has %d terms of slices: want %d", s.Name, r.id, len(terms), end-first)
	}
	for i, term := range terms {
		if len(term) != n {
			return inputError("%q: a term of %d elements of a sum of %d", s.Name, len(term), n)
		}
		src.operands[first+i] = term
	}
	src.host = s.hosts(r.Ranks())
	x := &s.Exchange
	if err := x.check(s.Count, n); err != nil {
		return err
	}
	plan := newSchedule(x.Order, s.Count, scatter)
	amaxes, err := r.sharedAmaxes(x, plan.parts, src)
	if err != nil {
		return err
	}
	has := make([]*parcel, plan.parts)
	size := func(part int) int { lo, hi := x.cut(n, part, plan.parts); return hi - lo }
	for part := range has {
		if size(part) == 0 {
			continue
		}
		p := partReduction{ctx: r.ctx, x: x, part: part, n: size(part), amax: amaxes[part]}
		if has[part], err = r.sum(&p, plan, src); err != nil {
			return err
		}
	}
	if err := r.deliver(opResult, x.Name, onRanks(plan, src.host), size, has); err != nil {
		return err
	}
	for part, p := range has {
		if p != nil {
			lo, hi := x.cut(n, part, plan.parts)
			use(part, lo, hi, p)
		}
	}
	return nil
}

// onRanks returns the deliveries among ranks that those among places are: none of what a
// rank has already.
func onRanks(s *schedule, host []int) (list []delivery) {
	type held struct{ part, rank int }
	has := map[held]bool{}
	for part, at := range s.owner {
		has[held{part, host[at]}] = true
	}
	for _, d := range s.after {
		to := held{d.part, host[d.to]}
		if !has[to] {
			has[to] = true
			list = append(list, delivery{d.part, host[d.from], to.rank})
		}
	}
	return list
}

// sum takes part in the sum of a part, and returns its result where it ends.
func (r *Rank) sum(p *partReduction, s *schedule, src hosted) (_ *parcel, err error) {
	slots := map[int]slot{}
	lo, hi := p.x.cut(src.n, p.part, s.parts)
	for place := range src.host {
		if operand, ok := src.operands[place]; ok {
			if slots[place], err = p.operand(append([]float32(nil), operand[lo:hi]...), place); err != nil {
				return nil, err
			}
		}
	}
	about := Subject{opSum, p.x.Name, p.part, p.n}
	for i, step := range s.sums[p.part] {
		a, err := r.fetch(p, about, src.host, step, i, saltA, slots)
		if err != nil {
			return nil, err
		}
		b, err := r.fetch(p, about, src.host, step, i, saltB, slots)
		if err != nil {
			return nil, err
		}
		if src.host[step.at] == r.id {
			if err := p.add(&a, b, i); err != nil {
				return nil, err
			}
			slots[step.a] = a
		}
	}
	if src.host[s.owner[p.part]] != r.id {
		return nil, nil
	}
	return p.result(slots[s.slot[p.part]])
}

// fetch returns what an addition has of one of its two where r adds, and sends it where
// r has it.
func (r *Rank) fetch(p *partReduction, about Subject, host []int, step addition, i, kind int, slots map[int]slot) (slot, error) {
	from, which := step.aFrom, step.a
	if kind == saltB {
		from, which = step.bFrom, step.b
	}
	mine, adds := host[from] == r.id, host[step.at] == r.id
	switch {
	case mine && adds && from == step.at:
		return slots[which], nil
	case mine:
		m, err := p.message(slots[which], p.salt(kind, i))
		if err != nil || adds { // from a place of r to another
			return p.received(m, err)
		}
		return slot{}, r.sendParcel(host[step.at], about, m)
	case adds:
		return p.received(r.receiveParcel(host[from], about))
	}
	return slot{}, nil
}

// deliver sends the parts in has that other ranks need, and receives into has those that
// are sent to this one. Parts of size 0 are not sent.
func (r *Rank) deliver(what, name string, list []delivery, size func(part int) int, has []*parcel) error {
	for _, d := range list {
		n := size(d.part)
		if n == 0 {
			continue
		}
		about := Subject{what, name, d.part, n}
		switch r.id {
		case d.from:
			if err := r.sendParcel(d.to, about, has[d.part]); err != nil {
				return err
			}
		case d.to:
			p, err := r.receiveParcel(d.from, about)
			if err != nil {
				return err
			}
			has[d.part] = p
		}
	}
	return nil
}

// sharedAmaxes returns those of all parts, nil where scales are each message's own.
func (r *Rank) sharedAmaxes(x *Exchange, parts int, src hosted) ([][]float32, error) {
	amaxes := make([][]float32, parts)
	if x.Amax == AmaxOwn {
		return amaxes, nil
	}
	var all []float64
	for part := range amaxes {
		lo, hi := x.cut(src.n, part, parts)
		amaxes[part] = x.newAmaxes(hi - lo)
		for _, operand := range src.operands {
			x.raise(amaxes[part], operand[lo:hi])
		}
		for _, a := range amaxes[part] {
			all = append(all, float64(a))
		}
	}
	all, err := r.Maxima(Subject{amaxFormat, x.Name, 0, len(all)}, all)
	if err != nil {
		return nil, err
	}
	for _, amax := range amaxes {
		for i := range amax {
			if amax[i] = float32(all[i]); amax[i] != amax[i] {
				amax[i] = canonicalNaN
			}
		}
		all = all[len(amax):]
	}
	return x.remember(amaxes), nil
}

// Maxima returns the largest of the ranks' numbers, of which there are as many everywhere, a
// NaN where any has one. They are counted as four bytes each, as amaxes.
func (r *Rank) Maxima(about Subject, mine []float64) ([]float64, error) {
	size := func(numbers []float64) int64 { return 4 * int64(len(numbers)) }
	return Merge(r, about, amaxFormat, size, mine, func(all [][]float64) ([]float64, error) {
		for _, numbers := range all[1:] {
			for i, v := range numbers {
				all[0][i] = max(all[0][i], v)
			}
		}
		return all[0], nil
	})
}

// AllToAll sends src[j] to rank j and writes what rank i sends to dst[i], which must be
// as long. What a rank sends itself is rounded too, and is no traffic.
func (r *Rank) AllToAll(x Exchange, dst, src [][]float32) error {
	ranks := r.Ranks()
	if len(dst) != ranks || len(src) != ranks {
		return inputError("%q: an all-to-all of operands for %d ranks to %d: there are %d",
			x.Name, len(src), len(dst), ranks)
	}
	var own *parcel
	for j, o := range src {
		if err := x.checkMessage(ranks, len(o)); err != nil {
			return err
		}
		if len(o) == 0 {
			continue
		}
		p, err := x.pack(r.ctx, opSend, x.Wire, o, nil, uint64(r.id*ranks+j))
		if err != nil {
			return err
		}
		if j == r.id {
			own = p
		} else if err := r.sendParcel(j, Subject{opSend, x.Name, r.id, len(o)}, p); err != nil {
			return err
		}
	}
	for i, to := range dst {
		switch {
		case i == r.id && len(to) != len(src[i]):
			return inputError("%q: rank %d sends itself %d elements and receives %d",
				x.Name, i, len(src[i]), len(to))
		case len(to) == 0:
		case i == r.id:
			own.decode(to)
		default:
			p, err := r.receiveParcel(i, Subject{opSend, x.Name, i, len(to)})
			if err != nil {
				return err
			}
			p.decode(to)
		}
	}
	return nil
}
