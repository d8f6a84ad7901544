package layers

// AllReduce writes the sum of the ranks' src to dst, both of one length everywhere; they
// may be the same. [Exchange.AllReduce] says what it is.
func (r *Rank) AllReduce(x Exchange, dst, src []float32) error {
	if len(dst) != len(src) {
		return inputError("%q: an all-reduce of %d elements to %d", x.Name, len(src), len(dst))
	}
	return r.reduce(&x, r.alone(src), false, func(part, lo, hi int, p *parcel) { p.decode(dst[lo:hi]) })
}

// hosted is the operands of a reduction that a rank has. In a reduction of slices they
// are those of several of its places; otherwise each rank is a place.
type hosted struct {
	n        int // elements of each
	operands map[int][]float32
	host     []int // by place: the rank that it is on
}

func (r *Rank) alone(src []float32) hosted {
	return hosted{len(src), map[int][]float32{r.id: src}, identity(r.Ranks())}
}

// ReduceScatter returns part r of the sum of the ranks' src on rank r.
// [Exchange.ReduceScatter] says what it is.
func (r *Rank) ReduceScatter(x Exchange, src []float32) (sum []float32, err error) {
	err = r.reduce(&x, r.alone(src), true, func(part, lo, hi int, p *parcel) {
		if part == r.id {
			sum = make([]float32, hi-lo)
			p.decode(sum)
		}
	})
	return sum, err
}

// reduce calls use for each part of the result that the rank has in the end.
func (r *Rank) reduce(x *Exchange, src hosted, scatter bool, use func(part, lo, hi int, p *parcel)) error {
	places := len(src.host)
	if err := x.check(places, src.n); err != nil {
		return err
	}
	s := newSchedule(x.Order, places, scatter)
	amaxes, err := r.sharedAmaxes(x, s.parts, src)
	if err != nil {
		return err
	}
	has := make([]*parcel, s.parts)
	size := func(part int) int { lo, hi := x.cut(src.n, part, s.parts); return hi - lo }
	for part := range s.parts {
		if size(part) == 0 {
			continue
		}
		p := partReduction{ctx: r.ctx, x: x, part: part, n: size(part), amax: amaxes[part]}
		if has[part], err = r.sum(&p, s, src); err != nil {
			return err
		}
	}
	if err := r.deliver(opResult, x.Name, onRanks(s, src.host), size, has); err != nil {
		return err
	}
	for part, p := range has {
		if p != nil {
			lo, hi := x.cut(src.n, part, s.parts)
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
	about := subject{opSum, p.x.Name, p.part, p.n}
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
func (r *Rank) fetch(p *partReduction, about subject, host []int, step addition, i, kind int, slots map[int]slot) (slot, error) {
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

// deliver takes part in deliveries of parts, of which the rank has some, all in the end
// that it is sent. Parts of size 0 are not sent.
func (r *Rank) deliver(what, name string, list []delivery, size func(part int) int, has []*parcel) error {
	for _, d := range list {
		n := size(d.part)
		if n == 0 {
			continue
		}
		about := subject{what, name, d.part, n}
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
	all, err := r.maxima(subject{amaxFormat, x.Name, 0, len(all)}, all)
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

// maxima returns the largest of the ranks' numbers, a NaN where any has one. They are
// counted as four bytes each.
func (r *Rank) maxima(about subject, mine []float64) ([]float64, error) {
	send := func(to int, numbers []float64) error {
		r.world.traffic.count(r.members[r.id], amaxFormat, 4*int64(len(numbers)))
		return r.send(to, letter{subject: about, numbers: numbers})
	}
	if r.id != 0 {
		if err := send(0, mine); err != nil {
			return nil, err
		}
		l, err := r.receive(0, about)
		return l.numbers, err
	}
	for from := 1; from < r.Ranks(); from++ {
		l, err := r.receive(from, about)
		if err != nil {
			return nil, err
		}
		for i, v := range l.numbers {
			mine[i] = max(mine[i], v)
		}
	}
	for to := 1; to < r.Ranks(); to++ {
		if err := send(to, mine); err != nil {
			return nil, err
		}
	}
	return mine, nil
}

// AllGather writes the ranks' src, one after the other, to dst; sizes are the lengths of
// all of them. [Exchange.AllGather] says what it is.
func (r *Rank) AllGather(x Exchange, dst []float32, sizes []int, src []float32) error {
	total := 0
	for _, n := range sizes {
		total += n
	}
	if err := x.checkMessage(r.Ranks(), len(src)); err != nil {
		return err
	}
	if len(sizes) != r.Ranks() || sizes[r.id] != len(src) || total != len(dst) {
		return inputError("%q: an all-gather of %d elements of rank %d to %d: sizes %v are not those",
			x.Name, len(src), r.id, len(dst), sizes)
	}
	has := make([]*parcel, len(sizes))
	if len(src) > 0 {
		var err error
		if has[r.id], err = x.gathered(r.ctx, src, r.id); err != nil {
			return err
		}
	}
	size := func(part int) int { return sizes[part] }
	if err := r.deliver(opGather, x.Name, spread(x.Order, identity(r.Ranks()), r.Ranks()), size, has); err != nil {
		return err
	}
	for part, p := range has {
		if p != nil {
			p.decode(dst[:sizes[part]])
		}
		dst = dst[sizes[part]:]
	}
	return nil
}

// Broadcast replaces values, of one length everywhere, by those of rank root, which are
// rounded there too. [Exchange.Broadcast] says what it is.
func (r *Rank) Broadcast(x Exchange, root int, values []float32) error {
	if err := x.checkRoot(r.Ranks(), root, len(values)); err != nil || len(values) == 0 {
		return err
	}
	has := make([]*parcel, 1)
	if r.id == root {
		var err error
		if has[0], err = x.gathered(r.ctx, values, root); err != nil {
			return err
		}
	}
	size := func(int) int { return len(values) }
	if err := r.deliver(opGather, x.Name, spread(x.Order, []int{root}, r.Ranks()), size, has); err != nil {
		return err
	}
	has[0].decode(values)
	return nil
}

// AllToAll sends src[j] to rank j and writes what rank i sends to dst[i], which must be
// as long. [Exchange.AllToAll] says what it is.
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
		p, err := x.addressed(r.ctx, o, r.id, j, ranks)
		if err != nil {
			return err
		}
		if j == r.id {
			own = p
		} else if err := r.sendParcel(j, subject{opSend, x.Name, r.id, len(o)}, p); err != nil {
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
			p, err := r.receiveParcel(i, subject{opSend, x.Name, i, len(to)})
			if err != nil {
				return err
			}
			p.decode(to)
		}
	}
	return nil
}

// Send sends values to another rank, which receives them.
func (r *Rank) Send(x Exchange, to int, values []float32) error {
	if err := x.checkRoot(r.Ranks(), to, len(values)); err != nil {
		return err
	}
	rows, cols := x.shape(len(values))
	p, err := x.packer(r.ctx, opSend).pack(x.Wire, values, rows, cols, nil, 0)
	if err != nil {
		return err
	}
	return r.sendParcel(to, subject{opSend, x.Name, r.id, len(values)}, p)
}

// Receive writes what another rank sends to values, which must be as long.
func (r *Rank) Receive(x Exchange, from int, values []float32) error {
	if err := x.checkRoot(r.Ranks(), from, len(values)); err != nil {
		return err
	}
	p, err := r.receiveParcel(from, subject{opSend, x.Name, from, len(values)})
	if err == nil {
		p.decode(values)
	}
	return err
}
