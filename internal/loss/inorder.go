package loss

import "sync"

// InOrder merges parts of something in their order, in whatever order they come, so
// that sums of float64 have the same bits for any number of workers. Parts that come
// early wait: about as many as there are workers. Its zero value is ready for use.
type InOrder[T any] struct {
	mu    sync.Mutex
	next  int
	early map[int]T
}

// Add calls merge with part i and those that waited for it, if all before it are there.
func (o *InOrder[T]) Add(i int, part T, merge func(T)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i != o.next {
		if o.early == nil {
			o.early = map[int]T{}
		}
		o.early[i] = part
		return
	}
	for ok := true; ok; part, ok = o.early[o.next] {
		merge(part)
		delete(o.early, o.next)
		o.next++
	}
}
