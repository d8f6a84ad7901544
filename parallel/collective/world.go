package collective

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// Run calls f for each of a number of ranks, all at once, each in a goroutine of its
// own, and returns when all have returned, with what they have sent.
//
// The first error of a rank ends the others, whose calls then fail, and so does the end
// of ctx. The error names the rank; of several that fail by themselves it is the lowest.
// What ranks compute depends on what they do and not on scheduling, as long as each rank
// takes part in the same collectives in the same order, and they share no memory.
func Run(ctx context.Context, ranks int, f func(r *Rank) error) (Traffic, error) {
	if ranks < 1 || f == nil {
		return nil, inputError("%d ranks: there must be at least 1, and a function that they call", ranks)
	}
	if err := meter.Err(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &world{traffic: newTraffic(ranks), errs: make([]error, ranks)}
	for range ranks {
		w.boxes = append(w.boxes, &mailbox{
			in: make(chan letter, 2*ranks), gone: make(chan struct{}), kept: make([][]letter, ranks),
		})
	}
	var wait sync.WaitGroup
	for id := range ranks {
		wait.Go(func() {
			defer close(w.boxes[id].gone)
			r := &Rank{ctx: ctx, world: w, members: identity(ranks), id: id}
			if err := f(r); err != nil {
				w.errs[id] = err
				cancel()
			}
		})
	}
	wait.Wait()
	return w.traffic, w.err(ctx)
}

// world is what ranks have in common.
type world struct {
	boxes   []*mailbox
	traffic Traffic // each rank counts its own
	errs    []error
}

// err returns the error of the lowest rank that failed by itself or, if all have
// failed because the context ended, of the lowest.
func (w *world) err(ctx context.Context) error {
	var ended error
	for id, err := range w.errs {
		if err == nil {
			continue
		}
		err = fmt.Errorf("rank %d: %w", id, err)
		if !isEnd(err) {
			return err
		}
		if ended == nil {
			ended = err
		}
	}
	return ended
}

// letter is a message from a rank.
type letter struct {
	from    int
	subject Subject
	content any // a *parcel, values for the rank itself, or what [Pass] and others send
}

// Subject is what a message belongs to: ranks that do the same agree in it.
type Subject struct {
	What, Name string
	Part, Size int
}

// String returns the text of s in errors.
func (s Subject) String() string {
	return fmt.Sprintf("%s of %q, part %d, %d elements", s.What, s.Name, s.Part, s.Size)
}

// mailbox is where a rank hears from the others.
type mailbox struct {
	in   chan letter
	gone chan struct{} // closed when the rank has returned
	kept [][]letter    // by sender: what came while another was waited for
}

func (m *mailbox) keep(l letter) { m.kept[l.from] = append(m.kept[l.from], l) }

// takeAll keeps all that has come in.
func (m *mailbox) takeAll() {
	for {
		select {
		case l := <-m.in:
			m.keep(l)
		default:
			return
		}
	}
}

// Rank is one rank of a [Run]: what its function uses, in its own goroutine only. All
// ranks of a group must take part in its collectives, in the same order.
type Rank struct {
	ctx     context.Context
	world   *world
	members []int // of the group, by their numbers in the world
	id      int   // in the group
}

// ID returns the number of r, from 0 to Ranks-1.
func (r *Rank) ID() int { return r.id }

// Ranks returns how many ranks there are.
func (r *Rank) Ranks() int { return len(r.members) }

// Context returns the context that ends when a rank fails.
func (r *Rank) Context() context.Context { return r.ctx }

// Group returns r as a rank of a group of some, in the order given: a rank's number in
// it is its place. It is an error, [ErrInput], if r is not in it, or a member is twice
// or does not exist. Groups are for layouts such as tensor times data parallel.
func (r *Rank) Group(members ...int) (*Rank, error) {
	g := &Rank{ctx: r.ctx, world: r.world, id: -1}
	seen := map[int]bool{}
	for i, m := range members {
		if m < 0 || m >= len(r.members) || seen[m] {
			return nil, inputError("a group of the ranks %v: %d is no rank of %d, or is there twice",
				members, m, len(r.members))
		}
		seen[m] = true
		g.members = append(g.members, r.members[m])
		if m == r.id {
			g.id = i
		}
	}
	if g.id < 0 {
		return nil, inputError("a group of the ranks %v: rank %d is not in it", members, r.id)
	}
	return g, nil
}

// send sends a letter to a rank of the group. While it waits it takes what comes in, so
// that ranks that send to each other do not wait forever.
func (r *Rank) send(to int, l letter) error {
	from := r.members[r.id]
	own, other := r.world.boxes[from], r.world.boxes[r.members[to]]
	l.from = from
	for {
		if err := meter.Err(r.ctx); err != nil {
			return err
		}
		select {
		case other.in <- l:
			return nil
		case in := <-own.in:
			own.keep(in)
		case <-other.gone:
			if err := meter.Err(r.ctx); err != nil { // it has failed, or another
				return err
			}
			return mismatch("%v is sent to rank %d, which has returned", l.subject, r.members[to])
		case <-r.ctx.Done():
			return meter.Err(r.ctx)
		}
	}
}

// receive returns the next letter from a rank of the group, which must be of the subject.
func (r *Rank) receive(from int, s Subject) (letter, error) {
	sender := r.members[from]
	l, err := r.take(sender, s, func(kept []letter) int { return min(len(kept), 1) - 1 })
	if err == nil && l.subject != s {
		err = mismatch("%v is expected of rank %d, which is in %v", s, sender, l.subject)
	}
	return l, err
}

// take returns the letter of a sender that choose gives the index of, once it has come.
func (r *Rank) take(sender int, s Subject, choose func(kept []letter) int) (letter, error) {
	own := r.world.boxes[r.members[r.id]]
	gone := r.world.boxes[sender].gone
	for left := false; ; {
		if i := choose(own.kept[sender]); i >= 0 {
			l := own.kept[sender][i]
			own.kept[sender] = slices.Delete(own.kept[sender], i, i+1)
			return l, nil
		}
		if err := meter.Err(r.ctx); err != nil { // it has failed, or another
			return letter{}, err
		}
		if left {
			return letter{}, mismatch("%v is expected of rank %d, which has returned", s, sender)
		}
		select {
		case in := <-own.in:
			own.keep(in)
		case <-gone:
			own.takeAll() // sent before
			left = true
		case <-r.ctx.Done():
		}
	}
}

// post sends what counts as so many bytes in a format.
func (r *Rank) post(to int, s Subject, format string, bytes int64, content any) error {
	if bytes > 0 {
		r.world.traffic.count(r.members[r.id], format, bytes)
	}
	return r.send(to, letter{subject: s, content: content})
}

func (r *Rank) sendParcel(to int, s Subject, p *parcel) error {
	return r.post(to, s, p.wire.String(), p.bytes(), p)
}

func (r *Rank) receiveParcel(from int, s Subject) (*parcel, error) {
	return contentOf[*parcel](r.receive(from, s))
}

// Send sends values to a rank of the group, which gets them by [Rank.Take], with the Wire,
// Cols, Name and Reporter of x, which hears of the operation op. Rounding at random depends
// on about.Part. The rank itself gets values as they are.
func (r *Rank) Send(x Exchange, to int, about Subject, op string, values []float32) error {
	if to < 0 || to >= r.Ranks() {
		return inputError("%q: there is no rank %d of %d to send to", x.Name, to, r.Ranks())
	}
	if err := x.checkMessage(r.Ranks(), len(values)); err != nil {
		return err
	}
	if to == r.id {
		own := r.members[to]
		r.world.boxes[own].keep(letter{from: own, subject: about, content: values})
		return nil
	}
	p, err := x.pack(r.ctx, op, x.Wire, values, nil, uint64(about.Part))
	if err != nil {
		return err
	}
	return r.sendParcel(to, about, p)
}

// Take returns the values that a rank of the group has sent about a subject, whatever else it
// has sent before.
func (r *Rank) Take(from int, about Subject) ([]float32, error) {
	l, err := r.take(r.members[from], about, func(kept []letter) int {
		return slices.IndexFunc(kept, func(l letter) bool { return l.subject == about })
	})
	if own, ok := l.content.([]float32); ok || err != nil {
		return own, err
	}
	p, err := contentOf[*parcel](l, err)
	if err != nil {
		return nil, err
	}
	values := make([]float32, p.len())
	p.decode(values)
	return values, nil
}

// contentOf returns what a letter has, or the error.
func contentOf[T any](l letter, err error) (content T, _ error) {
	if err != nil {
		return content, err
	}
	content, ok := l.content.(T)
	if !ok {
		return content, mismatch("%v has a %T", l.subject, l.content)
	}
	return content, nil
}

// Pass gives a rank of the group what another has, which counts as so many bytes in a format
// and which nobody may change after. Others return at once.
func Pass[T any](r *Rank, from, to int, about Subject, format string, bytes int64, what *T) (err error) {
	switch {
	case from == to:
	case r.id == from:
		return r.post(to, about, format, bytes, *what)
	case r.id == to:
		*what, err = contentOf[T](r.receive(from, about))
	}
	return err
}

// Merge returns on all ranks of the group what rank 0 makes of what they have, in their
// order. size returns the bytes that something counts as.
func Merge[T any](
	r *Rank, about Subject, format string, size func(T) int64, own T, merge func(all []T) (T, error),
) (merged T, err error) {
	all := make([]T, r.Ranks())
	all[r.id] = own
	for from := range all {
		if err := Pass(r, from, 0, about, format, size(own), &all[from]); err != nil {
			return merged, err
		}
	}
	if r.id == 0 {
		if merged, err = merge(all); err != nil {
			return merged, err
		}
	}
	for to := range all {
		if err := Pass(r, 0, to, about, format, size(merged), &merged); err != nil {
			return merged, err
		}
	}
	return merged, nil
}

// Swap gives each rank j of the group mine[j], and returns what each has for r.
func Swap[T any](r *Rank, about Subject, format string, size func(T) int64, mine []T) ([]T, error) {
	all := make([]T, r.Ranks())
	all[r.id] = mine[r.id]
	for to := range mine {
		if err := Pass(r, r.id, to, about, format, size(mine[to]), &mine[to]); err != nil {
			return nil, err
		}
	}
	for from := range all {
		if err := Pass(r, from, r.id, about, format, 0, &all[from]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
