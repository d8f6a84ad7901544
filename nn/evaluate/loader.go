package evaluate

import (
	"runtime/debug"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
)

// loader gives parameters their values while they are needed, and reads those of the next ones
// meanwhile.
type loader struct {
	read func(*nn.Param, []float32) error // nil: values are there
	next []*nn.Param                      // that with reads while it works

	free [][]float32 // memory of values
	coming
}

// coming is values that are being read.
type coming struct {
	params []*nn.Param
	values [][]float32
	done   chan error // nil: nothing is being read
}

func newLoader(read func(*nn.Param, []float32) error) *loader { return &loader{read: read} }

// with does something while parameters have their values.
func (l *loader) with(params []*nn.Param, do func() error) error {
	if l.read == nil {
		return do()
	}
	if l.done == nil || !slices.Equal(l.params, params) {
		l.begin(params)
	}
	values := l.values
	if err := l.wait(); err != nil {
		return err
	}
	own := make([][]float32, len(params))
	for i, p := range params {
		own[i], p.Value = p.Value, values[i]
	}
	if l.next != nil {
		l.begin(l.next)
		l.next = nil
		l.drop() // what is left fits no layer that is like this one
	}
	err := do()
	for i, p := range params {
		p.Value = own[i]
	}
	l.free = append(l.free, values...)
	return err
}

// begin begins to read values.
func (l *loader) begin(params []*nn.Param) {
	l.close()
	l.coming = coming{params: params, done: make(chan error, 1)}
	for _, p := range params {
		l.values = append(l.values, l.take(p.Rows*p.Cols))
	}
	go func(c coming) {
		for i, p := range c.params {
			if err := l.read(p, c.values[i]); err != nil {
				c.done <- err
				return
			}
		}
		c.done <- nil
	}(l.coming)
}

// drop gives memory back that no parameter has: it may be more than that of two layers.
func (l *loader) drop() {
	if len(l.free) == 0 {
		return
	}
	l.free = nil
	debug.FreeOSMemory()
}

// take returns memory of n values.
func (l *loader) take(n int) []float32 {
	best := -1
	for i, b := range l.free {
		if c := cap(b); c >= n && c <= 2*n && (best < 0 || c < cap(l.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return make([]float32, n)
	}
	b := l.free[best][:n]
	l.free = slices.Delete(l.free, best, best+1)
	return b
}

// wait waits until what is being read is there.
func (l *loader) wait() error {
	err := <-l.done
	l.coming = coming{} // with's values are what keeps them
	return err
}

// close waits until nothing is being read.
func (l *loader) close() {
	if l.done != nil {
		l.wait()
	}
}
