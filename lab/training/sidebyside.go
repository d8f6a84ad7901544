package training

import (
	"context"
	"runtime"
	"sync"

	"github.com/octavo-fp8/octavo/lab"
)

// SideBySide calls do for each index below n, as many at once as there are
// processors, which the calls share: many runs of one goroutine are faster than one
// run of many. The first error, or the end of ctx, ends the context of all others.
func SideBySide(ctx context.Context, o lab.Options, n int, do func(ctx context.Context, index, workers int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	processors := o.Workers
	if processors == 0 {
		processors = runtime.GOMAXPROCS(0)
	}
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var wait sync.WaitGroup
	side := min(processors, n)
	for range side {
		wait.Go(func() {
			for i := range next {
				if err := do(ctx, i, processors/side); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}
