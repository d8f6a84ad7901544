package world

// AllReduce writes the sum of the ranks' src to dst, both of one length everywhere; they
// may be the same. [Exchange.AllReduce] says what it is.
func (r *Rank) AllReduce(x Exchange, dst, src []float32) error {
	if len(dst) != len(src) {
		return inputError("%q: an all-reduce of %d elements to %d", x.Name, len(src), len(dst))
	}
	return r.reduce(&x, src, false, func(part, lo, hi int, p *parcel) { p.decode(dst[lo:hi]) })
}

// ReduceScatter returns part r of the sum of the ranks' src on rank r.
// [Exchange.ReduceScatter] says what it is.
func (r *Rank) ReduceScatter(x Exchange, src []float32) (sum []float32, err error) {
	err = r.reduce(&x, src, true, func(part, lo, hi int, p *parcel) {
		if part == r.id {
			sum = make([]float32, hi-lo)
			p.decode(sum)
		}
	})
	return sum, err
}

// reduce calls use for each part of the result that the rank has in the end.
func (r *Rank) reduce(x *Exchange, src []float32, scatter bool, use func(part, lo, hi int, p *parcel)) error {
	n, ranks := len(src), r.Ranks()
	if err := x.check(ranks, n); err != nil {
		return err
	}
	s := newSchedule(x.Order, ranks, scatter)
	amaxes, err := r.sharedAmaxes(x, s.parts, src)
	if err != nil {
		return err
	}
	has := make([]*parcel, s.parts)
	for part := range s.parts {
		lo, hi := x.cut(n, part, s.parts)
		if lo == hi {
			continue
		}
		p := partReduction{ctx: r.ctx, x: x, part: part, n: hi - lo, amax: amaxes[part]}
		if has[part], err = r.sum(&p, s, src[lo:hi]); err != nil {
			return err
		}
	}
	size := func(part int) int { lo, hi := x.cut(n, part, s.parts); return hi - lo }
	if err := r.deliver(opResult, x.Name, s.after, size, has); err != nil {
		return err
	}
	for part, p := range has {
		if p != nil {
			lo, hi := x.cut(n, part, s.parts)
			use(part, lo, hi, p)
		}
	}
	return nil
}

// sum takes part in the sum of a part, and returns its result where it ends.
func (r *Rank) sum(p *partReduction, s *schedule, operand []float32) (*parcel, error) {
	own, err := p.operand(append([]float32(nil), operand...), r.id)
	if err != nil {
		return nil, err
	}
	slots := map[int]slot{r.id: own}
	about := subject{opSum, p.x.Name, p.part, p.n}
	for i, step := range s.sums[p.part] {
		var pair [2]slot
		for k, from := range [2]int{step.aFrom, step.bFrom} {
			which := [2]int{step.a, step.b}[k]
			switch {
			case from == step.at:
				pair[k] = slots[which]
			case from == r.id:
				m, err := p.message(slots[which], p.salt(saltA+k, i))
				if err != nil {
					return nil, err
				}
				if err := r.sendParcel(step.at, about, m); err != nil {
					return nil, err
				}
			case step.at == r.id:
				m, err := r.receiveParcel(from, about)
				if err != nil {
					return nil, err
				}
				pair[k] = p.received(m)
			}
		}
		if step.at == r.id {
			if err := p.add(&pair[0], pair[1], i); err != nil {
				return nil, err
			}
			slots[step.a] = pair[0]
		}
	}
	if s.owner[p.part] != r.id {
		return nil, nil
	}
	return p.result(slots[s.slot[p.part]])
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
func (r *Rank) sharedAmaxes(x *Exchange, parts int, src []float32) ([][]float32, error) {
	amaxes := make([][]float32, parts)
	if x.Amax == AmaxOwn {
		return amaxes, nil
	}
	var all []float64
	for part := range amaxes {
		lo, hi := x.cut(len(src), part, parts)
		amaxes[part] = x.newAmaxes(hi - lo)
		x.raise(amaxes[part], src[lo:hi])
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
		return inputError("%q: an all-gather of %d elements of rank %d to %d: sizes %v are not those", x.Name, len(src), r.id, len(dst), sizes)
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
		return inputError("%q: an all-to-all of operands for %d ranks to %d: there are %d", x.Name, len(src), len(dst), ranks)
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
			return inputError("%q: rank %d sends itself %d elements and receives %d", x.Name, i, len(src[i]), len(to))
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
