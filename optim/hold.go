package optim

import "sync"

// Hold keeps o from moving: its next step, or Restore, waits before it changes values or
// moments until release has been called, of each hold if there are several. So a
// goroutine may copy them while the run computes its next gradients.
//
// Hold must not be called while o steps. release must be called once, by any goroutine.
func (o *AdamW) Hold() (release func()) {
	if o.holds == nil {
		o.holds = new(sync.WaitGroup)
	}
	o.holds.Add(1)
	return o.holds.Done
}

// waitForHolds returns when nobody holds o.
func (o *AdamW) waitForHolds() {
	if o.holds != nil {
		o.holds.Wait()
	}
}
