package optim

import (
	"sync/atomic"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
)

// update does one step's arithmetic on all parameters. It is kept for its memory.
type update struct {
	queue parallel.Queue
	jobs  []updateJob

	optimizer *AdamW
	params    []*nn.Param
	rule      updateRule

	workspaces []workspace
	taken      atomic.Int64 // workspaces in use
	stats      [2]fp8.Stats // of encoding the first and the second moments
}

// updateJob is elements [lo, hi) of a parameter: whole blocks.
type updateJob struct{ param, lo, hi int }

// elementGrain is the least number of elements worth a goroutine.
const elementGrain = 4096

// workspace is what one worker needs.
type workspace struct {
	buf   [2][]float32
	stats [2]fp8.Stats
}

// run updates params and moments. Which worker does what changes nothing.
func (u *update) run(o *AdamW, params []*nn.Param, rule updateRule) {
	workers := parallel.Workers(o.Workers)
	u.prepare(params, o.Moments.block(), workers)
	u.optimizer, u.params, u.rule = o, params, rule
	u.queue.Run(len(u.jobs), workers, u)
	u.optimizer, u.params = nil, nil

	u.stats = [2]fp8.Stats{}
	for i := range u.workspaces {
		for w := range u.stats {
			u.stats[w].Merge(&u.workspaces[i].stats[w])
		}
	}
}

// prepare cuts the parameters into jobs the first time, and clears the workspaces.
func (u *update) prepare(params []*nn.Param, block, workers int) {
	size := max(2*elementGrain/block, 1) * block
	if u.jobs == nil {
		for i, p := range params {
			for lo := 0; lo < len(p.Value); lo += size {
				u.jobs = append(u.jobs, updateJob{i, lo, min(lo+size, len(p.Value))})
			}
		}
	}
	u.taken.Store(0)
	for i := range u.workspaces {
		u.workspaces[i].stats = [2]fp8.Stats{}
	}
	for len(u.workspaces) < min(workers, len(u.jobs)) {
		u.workspaces = append(u.workspaces, workspace{buf: [2][]float32{make([]float32, size), make([]float32, size)}})
	}
}

// Work does jobs as long as there are any.
func (u *update) Work(q *parallel.Queue) {
	d := &u.workspaces[u.taken.Add(1)-1]
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		u.do(u.jobs[i], d)
	}
}

func (u *update) do(job updateJob, d *workspace) {
	p, moments := u.params[job.param], u.optimizer.moments[job.param]
	var values [2][]float32
	for w, m := range moments {
		values[w] = m.load(d.buf[w][:job.hi-job.lo], job.lo, job.hi)
	}
	rule := u.rule
	if !p.Decay {
		rule.keep = 1
	}
	rule.apply(p.Value[job.lo:job.hi], p.Grad[job.lo:job.hi], values[firstMoment], values[secondMoment])
	for w, m := range moments {
		policy := u.optimizer.Moments.policy(u.optimizer.steps, job.param, which(w))
		m.store(values[w], job.lo, policy, &d.stats[w])
	}
}
