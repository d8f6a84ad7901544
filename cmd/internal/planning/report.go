// Package planning is the work of octavo plan: what a model under a layout takes, as text, JSON
// and a page. The counting is done by package plan.
package planning

import (
	"context"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/plan"
)

// Ask is what is asked for. It is JSON, in which a page keeps it.
type Ask struct {
	Train plan.TrainJob
	Serve *plan.ServeJob // in place of Train

	// Policies are those of all layers of Train in words, or [Searched]: those with which the
	// card holds all stages. "": as the precision has them.
	Policies string

	// OtherLibrary says that the library was chosen, so that a search keeps it.
	OtherLibrary bool

	Card     float64 // memory of a card in GiB; 0: not said
	Headroom float64 // of it for fragments, as [plan.Stage.Reserved] has it

	Tokens float64 // of the whole training; 0: not said
	MFU    float64 // that is stated; 0: none
	Days   float64 // that are stated; 0: none
	Peak   float64 // of a card, in FLOP/s; 0: that of an H100

	Command string // without the flags that a page offers to change
}

// Searched asks for policies to be found.
const Searched = "search"

// card is Card in bytes.
func (a Ask) card() int64 { return int64(min(a.Card*(1<<30), 1<<62)) }

// Report is the answer.
type Report struct {
	Model      plan.Model      `json:"model"`
	Parameters plan.Parameters `json:"parameters"`
	Layout     plan.Layout     `json:"layout"`
	Data       int             `json:"data"` // data-parallel ranks
	Precision  plan.Precision  `json:"precision"`

	Training *Training `json:"training,omitempty"` // one of these two
	Serving  *Serving  `json:"serving,omitempty"`

	Stages   []plan.Stage `json:"stages"`
	Highest  int          `json:"highest"` // the stage whose ranks need most
	Card     float64      `json:"card,omitempty"`
	Headroom *float64     `json:"headroom,omitempty"` // assumed, with Card
	TooLarge []int        `json:"tooLarge,omitempty"` // stages of which a card cannot hold what is reserved
	Nearest  []Way        `json:"nearest,omitempty"`  // with which it can

	// FLOPs are those of a token: of training, or of the next one when serving.
	FLOPs plan.Compute `json:"flops"`
	Step  *plan.Step   `json:"step,omitempty"`
	Run   *Run         `json:"run,omitempty"`

	ask      Ask
	searched bool // for Nearest
}

// Training is what a training was asked about.
type Training struct {
	Sequence  int            `json:"sequence"`
	Batch     int            `json:"batch"`
	Batches   int            `json:"batches"`
	Recompute plan.Recompute `json:"recompute"`
	Library   plan.Library   `json:"library"`
	Policies  []nn.Policy    `json:"policies,omitempty"` // of each layer, with library octavo
}

// Serving is what serving was asked about.
type Serving struct {
	Sequences int   `json:"sequences"`
	Tokens    int   `json:"tokens"`
	Chunk     int   `json:"chunk"`
	KVBytes   int64 `json:"kvBytes"` // of a token in all layers
}

// Run is a whole training at a stated efficiency, or in stated days.
type Run struct {
	Tokens float64 `json:"tokens"`
	FLOPs  float64 `json:"flops"`
	Cards  int     `json:"cards"`
	Peak   float64 `json:"peak"`
	MFU    float64 `json:"mfu"`
	Days   float64 `json:"days"`
	Stated string  `json:"stated"` // "mfu" or "days"; the other follows
}

// New answers, and searches for what a card holds that does not hold this. Its error is one of package plan,
// or that of ctx.
func New(ctx context.Context, a Ask) (*Report, error) {
	r, err := answer(ctx, a)
	if err == nil && len(r.TooLarge) > 0 {
		r.Nearest, err = a.Nearest(ctx)
		r.searched = true
	}
	return r, err
}

// answer is New without the search.
func answer(ctx context.Context, a Ask) (*Report, error) {
	r := &Report{Card: a.Card, ask: a}
	var err error
	if a.Serve != nil {
		err = r.serve(*a.Serve)
	} else {
		err = r.train(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	if r.Parameters, err = r.Model.Parameters(); err != nil {
		return nil, err
	}
	m := plan.Memory{Stages: r.Stages}
	r.Highest = m.Peak().Stage
	if a.Card > 0 {
		r.Headroom = &a.Headroom
	}
	for _, s := range r.Stages {
		if a.Card > 0 && s.Reserved(a.Headroom) > a.card() {
			r.TooLarge = append(r.TooLarge, s.Stage)
		}
	}
	return r, nil
}

func (r *Report) train(ctx context.Context, a Ask) error {
	job := a.Train
	var err error
	if a.Policies != "" {
		if job.Policies, err = a.policies(ctx); err != nil {
			return err
		}
	}
	if job, err = job.Complete(); err != nil {
		return err
	}
	r.Model, r.Layout, r.Precision, r.Data = job.Model, job.Layout, job.Precision, job.Layout.DataParallel()
	r.Training = &Training{job.Sequence, job.Batch, job.Batches, job.Recompute, job.Library, job.Policies}
	mem, err := job.Memory()
	if err != nil {
		return err
	}
	r.Stages = mem.Stages
	if r.FLOPs, err = job.Model.TrainingFLOPs(job.Sequence); err != nil {
		return err
	}
	return r.time(a, job)
}

// policies are those of all layers that Policies says.
func (a Ask) policies(ctx context.Context) ([]nn.Policy, error) {
	own, err := a.Train.Precision.Policy()
	if err != nil {
		return nil, err
	}
	if a.Policies == Searched {
		return a.Train.SearchPolicies(ctx, a.card(), a.Headroom)
	}
	policy, err := nn.ParsePolicy(a.Policies, own)
	return slices.Repeat([]nn.Policy{policy}, a.Train.Model.Layers), err
}

// time is of what is stated.
func (r *Report) time(a Ask, job plan.TrainJob) (err error) {
	if a.Peak == 0 {
		a.Peak = plan.H100
	}
	if a.Tokens > 0 && (a.MFU > 0 || a.Days > 0) {
		run := &Run{Tokens: a.Tokens, FLOPs: a.Tokens * r.FLOPs.Masked(), Cards: r.Layout.Ranks, Peak: a.Peak, MFU: a.MFU, Days: a.Days, Stated: "mfu"}
		if a.Days > 0 {
			run.Stated = "days"
			run.MFU, err = plan.ImpliedMFU(run.FLOPs, run.Cards, run.Peak, run.Days*24*3600)
		} else {
			run.Days, err = plan.Pace{Cards: run.Cards, Peak: run.Peak, MFU: run.MFU}.Days(run.FLOPs)
		}
		if err != nil {
			return err
		}
		r.Run, a.MFU = run, run.MFU
	}
	if a.MFU > 0 && a.MFU <= 1 {
		step, err := job.Step(a.Peak, a.MFU, false)
		if err != nil {
			return err
		}
		r.Step = &step
	}
	return nil
}

func (r *Report) serve(job plan.ServeJob) error {
	job, err := job.Complete()
	if err != nil {
		return err
	}
	r.Model, r.Layout, r.Precision, r.Data = job.Model, job.Layout, job.Precision, job.Layout.DataParallel()
	r.Serving = &Serving{Sequences: job.Sequences, Tokens: job.Tokens, Chunk: job.Chunk}
	if r.Serving.KVBytes, err = job.Model.KVBytes(job.Precision, 1, 1); err != nil {
		return err
	}
	mem, err := job.Memory()
	if err != nil {
		return err
	}
	r.Stages = mem.Stages
	r.FLOPs, err = job.Model.DecodeFLOPs(job.Tokens)
	return err
}

// WriteJSON prints the report for programs.
func (r *Report) WriteJSON(w io.Writer) error { return jsonout.Print(w, r) }

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }
