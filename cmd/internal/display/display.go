// Package display shows people how far a command is: a bar on a terminal, a line every
// ten seconds elsewhere, both with how fast it goes and how long it will yet take.
package display

import (
	"io"
	"sync"
	"time"
)

// Display shows how far an operation is. It is a progress.Reporter; any goroutine may
// call it. Whoever makes one calls [Display.Finish].
type Display struct {
	mu     sync.Mutex
	w      io.Writer
	view   view              // nil where nothing is shown
	units  map[string]string // what operations count; "": all others
	note   string
	op     string
	done   int64
	total  int64
	begun  time.Time // when there was nothing to report as yet
	pace   *pace     // nil before the first report
	ended  chan struct{}
	finish sync.Once
	drawer sync.WaitGroup
}

// view is a way of showing.
type view interface {
	interval() time.Duration // from one show to the next
	show(s status)
	clear() // removes what is on the screen now
}

// status is what there is to show.
type status struct {
	op, note    string
	unit        string
	done, total int64         // a total of at most 0 is not known
	rate        float64       // units a second, 0 while it is not known, and when all are done
	waited      time.Duration // for the first report; 0 once there is one
}

// New returns a display that writes to w, which is standard error as a rule. Until the
// first report it shows that what is named as the operation is at work.
func New(w io.Writer, mode Mode, op string) *Display {
	d := &Display{w: w, op: op, units: map[string]string{}, begun: time.Now(), ended: make(chan struct{})}
	switch {
	case mode == Bar || mode == Auto && IsTerminal(w):
		d.view = newBar(w)
	case mode == Auto || mode == Plain:
		d.view = plain{w}
	}
	if d.view != nil {
		d.drawer.Go(d.draw)
	}
	return d
}

// draw shows what there is, at intervals.
func (d *Display) draw() {
	ticker := time.NewTicker(d.view.interval())
	defer ticker.Stop()
	for {
		select {
		case <-d.ended:
			return
		case now := <-ticker.C:
			d.refresh(now)
		}
	}
}

// refresh shows what there is.
func (d *Display) refresh(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := status{op: d.op, note: d.note, unit: d.unit(d.op), done: d.done, total: d.total}
	if d.pace != nil {
		if d.total <= 0 || d.done < d.total {
			s.rate = d.pace.rate(now, d.done)
		}
	} else if s.waited = now.Sub(d.begun); s.waited < patience {
		return
	}
	d.view.show(s)
}

// patience is how long nothing need be said before the first report.
const patience = time.Second

// Unit says what the named operations count, or all others where none is named: [Bytes], or a
// name in the plural such as "steps". Of others only shares of the total are shown.
func (d *Display) Unit(unit string, ops ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(ops) == 0 {
		ops = []string{""}
	}
	for _, op := range ops {
		d.units[op] = unit
	}
}

func (d *Display) unit(op string) string {
	if unit, ok := d.units[op]; ok {
		return unit
	}
	return d.units[""]
}

// Progress implements progress.Reporter. A total of at most 0 is one that is not known.
// An operation with a new name that goes on from where another was, to the same total,
// is the next part of one piece of work, unless it counts something else.
func (d *Display) Progress(op string, done, total int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.pace == nil || done < d.done || total != d.total || d.unit(op) != d.unit(d.op) {
		d.pace = &pace{}
	}
	d.op, d.done, d.total = op, done, total
	d.pace.add(now, done)
}

// Note adds a text, such as the losses of a step, to what is shown from now on. An empty
// one removes it.
func (d *Display) Note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note = text
}

// Write writes something else to where the display is, above it.
func (d *Display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.view != nil {
		d.view.clear()
	}
	return d.w.Write(p)
}

// Finish removes what is on the screen. Nothing is shown after it. It may be called more
// than once.
func (d *Display) Finish() {
	d.finish.Do(func() {
		close(d.ended)
		d.drawer.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.view != nil {
			d.view.clear()
		}
	})
}
