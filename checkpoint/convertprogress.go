package checkpoint

import (
	"github.com/octavo-fp8/octavo/progress"
)

// whole makes one operation of those that shards consist of.
type whole struct {
	r             progress.Reporter
	op            string
	before, total int64
}

// Progress implements [progress.Reporter].
func (w *whole) Progress(_ string, done, total int64) {
	w.r.Progress(w.op, w.before+done, w.total)
	if done == total {
		w.before += total
	}
}

// workOf returns how many bytes Write reads, all in all, for shards that it has not seen.
func (c *converting) workOf(shards []int) (n int64) {
	seen := map[*group]bool{}
	strip := c.o.strip()
	for _, i := range shards {
		for _, t := range c.p.Shards[i].Targets {
			for _, s := range t.spans(strip) {
				n += s.size
			}
			if g := t.group; g != nil && t.Scheme != nil && !seen[g] {
				seen[g] = true
				n += g.size(strip)
			}
		}
	}
	return n
}
