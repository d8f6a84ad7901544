package collective

// addition adds the sums of slots a and b at a rank. It becomes slot a. Slot r is the
// operand of rank r at first; aFrom and bFrom are where the slots are before.
type addition struct{ at, a, b, aFrom, bFrom int }

// delivery is a message with the result of a part.
type delivery struct{ part, from, to int }

// schedule is a reduction, whoever does it: the additions of each part, in an order in
// which a rank may do its own, and what is delivered then.
type schedule struct {
	parts int
	sums  [][]addition
	owner []int // by part: where the sum is
	slot  []int // by part: which slot the sum is in
	after []delivery
}

// newSchedule returns that of an all-reduce or, with scatter, of a reduce-scatter, whose
// part r ends at rank r.
func newSchedule(o Order, ranks int, scatter bool) *schedule {
	s := &schedule{parts: ranks}
	if !scatter && (o == OrderRank || o == OrderTree) {
		s.parts = 1
	}
	for part := range s.parts {
		b := sumBuilder{where: identity(ranks)}
		slot := b.sum(o, ranks, part)
		s.sums = append(s.sums, b.list)
		s.slot, s.owner = append(s.slot, slot), append(s.owner, b.where[slot])
	}
	switch {
	case scatter:
		for part, at := range s.owner {
			if at != part {
				s.after = append(s.after, delivery{part, at, part})
			}
		}
	default:
		s.after = spread(o, s.owner, ranks)
	}
	return s
}

// largestPower returns the largest power of two up to n.
func largestPower(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// sumBuilder lists additions, and knows where each slot is.
type sumBuilder struct {
	list  []addition
	where []int
}

func (s *sumBuilder) add(at, a, b int) {
	s.list = append(s.list, addition{at, a, b, s.where[a], s.where[b]})
	s.where[a] = at
}

// sum adds all slots, and returns the one that the sum is in.
func (s *sumBuilder) sum(o Order, ranks, part int) int {
	switch o {
	case OrderScatter:
		for r := 1; r < ranks; r++ {
			s.add(part, 0, r)
		}
		if ranks == 1 {
			return 0
		}
	case OrderRing:
		first := (part + 1) % ranks
		for k := 1; k < ranks; k++ {
			r := (first + k) % ranks
			s.add(r, first, r)
		}
		return first
	case OrderTree:
		for d := 1; d < ranks; d *= 2 {
			for r := 0; r+d < ranks; r += 2 * d {
				s.add(r, r, r+d)
			}
		}
	case OrderHalving:
		return s.halve(ranks, part)
	default:
		for r := 1; r < ranks; r++ {
			s.add(0, 0, r)
		}
	}
	return 0
}

// halve adds by recursive halving, to the rank that has the part.
func (s *sumBuilder) halve(ranks, part int) int {
	p := largestPower(ranks)
	for r := p; r < ranks; r++ {
		s.add(r-p, r-p, r)
	}
	holder := part % p
	for d := p / 2; d > 0; d /= 2 {
		// Those that have the part agree with its holder in all distances before.
		for r := range p {
			if (r^holder)&(p-1)&^(2*d-1) == 0 && (r^holder)&d == 0 {
				s.add(r, r, r^d)
			}
		}
	}
	return holder
}

// spread gives every rank the parts, each of which its owner has.
func spread(o Order, owner []int, ranks int) (list []delivery) {
	switch o {
	case OrderRing:
		for step := range ranks - 1 {
			for part, at := range owner {
				from := (at + step) % ranks
				list = append(list, delivery{part, from, (from + 1) % ranks})
			}
		}
	case OrderTree:
		for part, at := range owner {
			if at != 0 {
				list = append(list, delivery{part, at, 0})
			}
			for d := largestPower(ranks); d > 0; d /= 2 {
				for r := 0; r+d < ranks; r += 2 * d {
					if r+d != at {
						list = append(list, delivery{part, r, r + d})
					}
				}
			}
		}
	case OrderHalving:
		return double(owner, ranks)
	default:
		for part, at := range owner {
			for r := range ranks {
				if r != at {
					list = append(list, delivery{part, at, r})
				}
			}
		}
	}
	return list
}

// double spreads parts by recursive doubling among the first p ranks, a power of two,
// and gives the others what they lack after that.
func double(owner []int, ranks int) (list []delivery) {
	p := largestPower(ranks)
	has := make([]map[int]bool, ranks)
	for r := range has {
		has[r] = map[int]bool{}
	}
	send := func(part, from, to int) {
		if has[from][part] && !has[to][part] {
			list = append(list, delivery{part, from, to})
		}
	}
	for part, at := range owner {
		has[at][part] = true
	}
	exchange := func(pairs [][2]int) {
		first := len(list)
		for _, pair := range pairs {
			for part := range owner {
				send(part, pair[0], pair[1])
			}
		}
		for _, d := range list[first:] {
			has[d.to][d.part] = true
		}
	}
	var up, down [][2]int
	for r := p; r < ranks; r++ {
		up, down = append(up, [2]int{r, r - p}), append(down, [2]int{r - p, r})
	}
	exchange(up)
	for d := 1; d < p; d *= 2 {
		var pairs [][2]int
		for r := range p {
			pairs = append(pairs, [2]int{r, r ^ d})
		}
		exchange(pairs)
	}
	exchange(down)
	return list
}
