package plan

// peak is where memory is highest.
type peak struct {
	kept, live int64 // what is kept then, and what the op needs beside it
	at         string
	backward   bool
}

func (p peak) total() int64 { return p.kept + p.live }

// higher returns the higher of two, the first if they are the same.
func higher(a, b peak) peak {
	if b.total() > a.total() {
		return b
	}
	return a
}

// walk goes through the ops of a micro-batch, forward and backward.
func walk(all []op) (c chunkMemory) {
	var now int64
	for _, o := range all {
		c.forward = higher(c.forward, peak{kept: now, live: o.forward, at: o.name})
		now += o.keep
		c.forward = higher(c.forward, peak{kept: now, at: o.name})
	}
	c.kept = now
	replayed := map[int]bool{0: true}
	for i := len(all) - 1; i >= 0; i-- {
		o := all[i]
		if !replayed[o.segment] {
			replayed[o.segment] = true
			now = replay(all[:i+1], o.segment, now, &c.backward)
		}
		c.backward = higher(c.backward, peak{kept: now, live: o.backward, at: o.name, backward: true})
		now -= o.keep + o.drop
	}
	return c
}

// replay computes the ops of a segment again.
func replay(all []op, segment int, now int64, highest *peak) int64 {
	for _, o := range all {
		if o.segment != segment {
			continue
		}
		if !o.reads {
			*highest = higher(*highest, peak{kept: now, live: o.forward, at: o.name, backward: true})
		}
		now += o.drop
	}
	return now
}
