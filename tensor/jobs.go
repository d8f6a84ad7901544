package tensor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// jobSize is the number of elements of a job, and of a part of a job between two
// looks at the context. They stay in cache between amax and encoding.
const jobSize = 1 << 17

// job is a call of Quantize. Workers share its rows of blocks.
type job[T fp8.Float] struct {
	t     *Tensor
	src   []T
	q     Quantizer
	cut   cut
	rows  int // of each part that a worker takes; a multiple of a block's, unless split
	alone bool

	// Amaxes of all blocks are found, into t.Scales, before any is encoded where q has
	// Levels, unless rows have theirs one after the other, and where workers split blocks:
	// these have the scales that are kept then.
	first   bool
	byLevel bool
	split   bool
	scales  []fp8.Scale

	blocks BlocksReporter // hears of strips; or nil

	// With a Fill, rows before from are encoded while it writes others.
	from  atomic.Int64
	ready func(lo, hi int) // encode, made once

	queue parallel.Queue
	meter meter.Meter

	mu  sync.Mutex // guards q.Stats and err
	err error
}

// cut is the matrix that workers see, and its blocks. Where they could share no row of the
// tensor's own, it has shorter rows, the last of which may not be whole.
type cut struct{ rows, cols, blockRows, blockCols int }

// quantize encodes src, which is not empty.
func quantize[T fp8.Float](ctx context.Context, t *Tensor, src []T, q Quantizer) error {
	workers := q.workers(len(src))
	pool := jobPool[T]()
	j, _ := pool.Get().(*job[T])
	if j == nil {
		j = new(job[T])
		j.ready = j.early
	}
	j.t, j.src, j.q, j.err = t, src, q, nil
	j.listen()
	j.cutFor(workers)
	units := int64(2 * len(src))
	if q.Levels != nil && q.Reporter != nil && j.blocks == nil {
		units += int64(len(src)) // blocks that are reported one by one are read once more
	}
	j.meter.Start(ctx, q.Progress, q.Op, units)
	j.fill()
	if j.err == nil && (q.Levels != nil && !j.byLevel || j.split) {
		j.amaxes(workers)
	}
	if j.err == nil {
		j.run(workers)
	}
	err := j.err
	j.meter.Stop()
	j.t, j.src, j.q, j.blocks, j.err = nil, nil, Quantizer{}, nil, nil
	pool.Put(j)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return nil
}

// cutFor decides how workers share the rows.
func (j *job[T]) cutFor(workers int) {
	var c cut
	c.rows, c.cols = j.t.Dims()
	c.blockRows, c.blockCols = j.t.Block.Extents(c.rows, c.cols)
	size, n := jobSize, len(j.src)
	if workers > 1 && j.q.Reporter != nil {
		size = min(size, n/(2*workers)) // so that nobody waits long for another
	}
	oneBlock := len(j.t.Scales) == 1
	if workers > 1 && j.q.Reporter == nil && (oneBlock || c.rows == 1 && j.q.Fill == nil) {
		size = min(size, ceilDiv(n, 2*workers))
		if oneBlock {
			c.blockCols = size
		}
		c.cols = ceilDiv(size, c.blockCols) * c.blockCols
		c.rows = ceilDiv(n, c.cols)
		if oneBlock {
			c.blockRows = c.rows
		}
	}
	j.rows = max(size/c.cols/c.blockRows, 1) * c.blockRows
	j.split = j.q.Reporter == nil && workers > 1 && c.blockRows > 1 && j.rows == c.blockRows && ceilDiv(c.rows, j.rows) < 2*workers
	if j.split {
		j.rows = max(size/c.cols, 1)
	}
	// Rows of one level stay in cache.
	each := j.q.LevelRows
	j.byLevel = j.q.Levels != nil && each > 0 && each%c.blockRows == 0 && each < c.rows && each*c.cols <= jobSize &&
		!j.split && (j.q.Reporter == nil || j.blocks != nil)
	if j.byLevel {
		j.rows = max(j.rows/each, 1) * each
		j.t.Outer = Outer{Scales: resize(j.t.Outer.Scales, ceilDiv(c.rows, each)), Rows: each}
	}
	j.cut = c
}

// fill has src written, and as much as can be encoded meanwhile.
func (j *job[T]) fill() {
	j.from.Store(0)
	q := &j.q
	switch {
	case q.Fill == nil:
		return
	case q.Levels != nil || j.split || q.Progress != nil || q.Stats != nil && q.Stats.Detail != nil:
		j.err = q.Fill(nil)
		return
	}
	j.alone = false
	if err := q.Fill(j.ready); err != nil {
		j.err = err
	}
}

// early encodes rows [lo, hi), while others are written.
func (j *job[T]) early(lo, hi int) {
	j.from.Add(int64(hi - lo))
	j.share(func(s *scratch, total *fp8.Stats) error { return j.part(s, lo, hi, total) })
}

// run has workers do j's parts.
func (j *job[T]) run(workers int) {
	jobs := ceilDiv(j.cut.rows-int(j.from.Load()), j.rows)
	workers = min(workers, jobs)
	j.alone = workers == 1
	j.queue.Run(jobs, workers, j)
}

// amaxes finds those of all blocks, and what has to be known of all before one is encoded.
func (j *job[T]) amaxes(workers int) {
	clear(j.t.Scales)
	j.first = true
	j.run(workers)
	j.first = false
	if j.err == nil {
		j.err = j.t.setOuter(&j.q)
	}
	if j.err != nil || !j.split {
		return
	}
	s := scratchPool.Get().(*scratch)
	defer s.put()
	j.scales = resize(j.scales, len(j.t.Scales))
	j.eachStrip(0, j.cut.rows, func(at strip) error {
		copy(s.amax[:], j.t.Scales[at.index:][:at.blocks()])
		j.scale(s, at)
		for k := range at.blocks() {
			j.scales[at.index+k] = s.row.Scale(k)
		}
		return nil
	})
}

// setLevels asks for the outer scales of rows [lo, hi), of which t.Scales are amaxes.
func (j *job[T]) setLevels(lo, hi int) error {
	_, gridCols := j.t.Grid()
	first := lo / j.cut.blockRows * gridCols
	o, err := j.q.Levels(lo, hi, j.t.Scales[first:][:ceilDiv(hi-lo, j.cut.blockRows)*gridCols])
	if err != nil {
		return err
	}
	if want := ceilDiv(hi-lo, j.q.LevelRows); len(o.Scales) != want {
		return j.t.shapeError("rows %d to %d need %d outer scales, there are %d", lo, hi, want, len(o.Scales))
	}
	copy(j.t.Outer.Scales[lo/j.q.LevelRows:], o.Scales)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.t.Outer.Divide = o.Divide
	return nil
}

// listen finds out whether the Reporter can hear of strips.
func (j *job[T]) listen() {
	r, ok := j.q.Reporter.(BlocksReporter)
	if ok && j.q.Stats.Detail == nil && !j.q.narrow(j.t.Block.Extents(j.t.Dims())) {
		j.blocks = r
	}
}

// workers returns how many goroutines n elements are worth: one where sums of
// float64 have to be in element order.
func (q *Quantizer) workers(n int) int {
	if q.Stats != nil && q.Stats.Detail != nil {
		return 1
	}
	least := worthwhile()
	if q.Reporter != nil {
		least = min(least, 1<<16) // it takes several times as long to count for one
	}
	return min(parallel.Workers(q.Workers), max(n/least, 1))
}

// worthwhile returns the number of values for which a goroutine gains more than
// it costs to wake it.
func worthwhile() int {
	if cpu.Current() == cpu.Generic {
		return 1 << 15
	}
	return 1 << 18
}

// Work does parts of j until none is left.
func (j *job[T]) Work(queue *parallel.Queue) {
	j.share(func(s *scratch, total *fp8.Stats) error {
		from := int(j.from.Load())
		for i, ok := queue.Next(); ok; i, ok = queue.Next() {
			lo := from + i*j.rows
			if err := j.part(s, lo, min(lo+j.rows, j.cut.rows), total); err != nil {
				return err
			}
		}
		return nil
	})
}

// share has work done by one goroutine of several, with its scratch and Stats, which may be
// nil if there is no Reporter.
func (j *job[T]) share(work func(s *scratch, total *fp8.Stats) error) {
	s := scratchPool.Get().(*scratch)
	defer s.put()
	total := j.q.Stats
	if !j.alone && total != nil {
		s.stats = fp8.Stats{}
		total = &s.stats
	}
	s.pace = pace{meter: &j.meter}
	err := work(s, total)
	if err == nil {
		err = s.pace.flush()
	}
	s.pace = pace{}
	if j.alone {
		j.err = err
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if total != nil {
		j.q.Stats.Merge(total)
	}
	if err != nil {
		j.err = err
	}
}

// part does rows [lo, hi), and adds what happened to total.
func (j *job[T]) part(s *scratch, lo, hi int, total *fp8.Stats) error {
	if j.q.Reporter == nil || j.blocks != nil || j.first {
		return j.strips(s, lo, hi, total)
	}
	return j.oneByOne(&s.pace, lo, hi, total)
}

// pace gathers what a goroutine has done until it is worth telling the meter.
type pace struct {
	meter   *meter.Meter
	pending int
}

// done counts n elements as read. It returns an error if the context has ended.
func (p *pace) done(n int) error {
	if p.pending += n; p.pending < jobSize {
		return nil
	}
	return p.flush()
}

func (p *pace) flush() error {
	n := p.pending
	p.pending = 0
	return p.meter.Add(int64(n))
}

// scratch is what a goroutine needs to encode strips.
type scratch struct {
	stripScratch
	stats fp8.Stats
	pace  pace
}

// put returns s to the pool, without what belongs to the caller.
func (s *scratch) put() {
	s.row.Set(s.scales[:0], 1)
	scratchPool.Put(s)
}

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

var jobPools [4]sync.Pool

// jobPool returns the pool of *job[T].
func jobPool[T fp8.Float]() *sync.Pool {
	var zero T
	switch any(zero).(type) {
	case float32:
		return &jobPools[0]
	case float64:
		return &jobPools[1]
	case float16.Float16:
		return &jobPools[2]
	}
	return &jobPools[3]
}
