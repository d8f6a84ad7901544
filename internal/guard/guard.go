// Package guard says at once when what is for one goroutine at a time is used by two.
package guard

import (
	"errors"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// ErrConcurrent is a call while another one of the same value has not returned.
var ErrConcurrent = errors.New("concurrent use")

// Guard is whether a call is going on. The zero value is ready to use.
type Guard struct{ busy uint32 }

// Enter begins a call of what is named, such as "generate: a Generator". The error is
// [ErrConcurrent] if another one has not left.
func (g *Guard) Enter(what string) error {
	if !atomic.CompareAndSwapUint32(&g.busy, 0, 1) {
		return sentinel.Errorf(ErrConcurrent,
			"%s is in use: concurrent use: call it from one goroutine at a time", what)
	}
	return nil
}

// Leave ends a call that [Guard.Enter] has begun.
func (g *Guard) Leave() { atomic.StoreUint32(&g.busy, 0) }
