package plan

import (
	"math"

	"github.com/octavo-fp8/octavo/nn"
)

// TrainJob is a training of which [TrainJob.Memory] is asked.
type TrainJob struct {
	Model     Model     `json:"model"`
	Layout    Layout    `json:"layout"`
	Precision Precision `json:"precision"`
	Recompute Recompute `json:"recompute"`
	Library   Library   `json:"library"`

	// Policies are those of the layers with library octavo, in place of Recompute; nil: as
	// package nn keeps the activations of the precision.
	Policies []nn.Policy `json:"policies,omitempty"`

	Sequence int `json:"sequence"` // tokens of a sequence
	Batch    int `json:"batch"`    // sequences of a micro-batch; 0: 1
	Batches  int `json:"batches"`  // micro-batches of a step on each data-parallel rank; 0: as many as the pipeline fills with
}

// Memory is what ranks need, in bytes.
type Memory struct {
	// Stages are those of the pipeline: all ranks of a stage need the same, experts' load
	// being balanced.
	Stages []Stage `json:"stages"`
}

// memoryOf counts the stages of a pipeline.
func memoryOf(l Layout, stage func(s int) Stage) (m Memory) {
	for s := range l.Pipeline {
		m.Stages = append(m.Stages, stage(s))
	}
	return m
}

// Peak returns the stage whose ranks need most, the first of several.
func (m Memory) Peak() Stage {
	var most Stage
	for _, s := range m.Stages {
		if s.Total() > most.Total() {
			most = s
		}
	}
	return most
}

// Stage is the memory of one rank of a pipeline stage, in bytes, by kind, when it needs most.
// What an allocator loses by fragments is in [Stage.Reserved] alone; contexts of devices and
// buffers of communication are not counted.
type Stage struct {
	Stage int `json:"stage"`
	First int `json:"first"` // rank of the stage; it has Ranks of them
	Ranks int `json:"ranks"`

	Layers     int   `json:"layers"`
	Parameters int64 `json:"parameters"` // on a rank

	Weights   int64 `json:"weights"`
	Gradients int64 `json:"gradients"`
	Optimizer int64 `json:"optimizer"` // master weights and moments

	Activations int64 `json:"activations"` // kept for the backward pass
	Workspace   int64 `json:"workspace"`   // what lives within a step of the computation, and what the library keeps
	Cache       int64 `json:"cache"`       // of keys and values; serving

	Microbatch int64  `json:"microbatch"` // of Activations, those of one micro-batch on all chunks
	InFlight   int    `json:"inFlight"`   // chunks of micro-batches that are kept at most
	At         string `json:"at"`         // where it needs most

	// With library octavo only.
	Classes    []ClassBytes `json:"classes,omitempty"`    // Microbatch by class of an [nn.Policy], and what has none
	Turns      int64        `json:"turns,omitempty"`      // of Workspace, what layers share in turns
	Again      int64        `json:"again,omitempty"`      // operations of a micro-batch that are computed again
	Operations int64        `json:"operations,omitempty"` // those of a micro-batch without recomputation
}

// Total is the sum of all kinds.
func (s Stage) Total() int64 {
	return s.Weights + s.Gradients + s.Optimizer + s.Activations + s.Workspace + s.Cache
}

// Headroom is the share of what is counted that an allocator may reserve beside it: the ten
// trainings of [Measurements] had 3 to 10% reserved.
const Headroom = 0.1

// Reserved returns what is reserved with a headroom: a share of Total for fragments of the
// allocator, and for what the count falls short of the peak.
func (s Stage) Reserved(headroom float64) int64 { return reserved(s.Total(), headroom) }

func reserved(bytes int64, headroom float64) int64 {
	return bytes + int64(math.Ceil(headroom*float64(bytes)))
}

// Memory counts what a training needs at its highest moment, on the ranks of each stage.
//
// Weights, gradients and states of the optimizer are counted exactly. Activations are those of
// Megatron-LM with TransformerEngine: flash attention, SwiGLU and all else that can be fused is
// fused, experts have the same load, and what an operation reads and writes is live while it
// runs. Against 17 peaks measured on 8 B200 (SimuMax 1.2, docs/b200) it is 0.2 to 1.4% low.
//
// With library octavo they are those that package nn would keep, as [nn.Config.PlanActivations]
// counts them, in the numbers of the precision.
//
// The error is [ErrModel] or [ErrJob] and names the field and its value.
func (j TrainJob) Memory() (Memory, error) {
	j, err := j.Complete()
	if err != nil {
		return Memory{}, err
	}
	return memoryOf(j.Layout, j.stage), nil
}

// Complete returns the job with what is left to defaults filled in, or what is wrong with it.
func (j TrainJob) Complete() (TrainJob, error) {
	var err error
	if j.Model, err = j.Model.complete(); err != nil {
		return j, err
	}
	if j.Layout, err = j.Layout.complete(j.Model); err != nil {
		return j, err
	}
	if j.Precision, err = j.Precision.complete(); err != nil {
		return j, err
	}
	if p := j.Precision; p.ServeOnly {
		return j, jobf("precision.name is %s: it is for serving, since training keeps the last layers in BF16 and a precision is that of all", p.Name)
	}
	if j.Batch == 0 {
		j.Batch = 1
	}
	if j.Batches == 0 {
		j.Batches = 4 * j.Layout.Group
	}
	if err := j.checkBatch(); err != nil {
		return j, err
	}
	return j.completePolicies()
}

// mostActivations keeps sums of activations below an int64.
const mostActivations = 1e15

func (j TrainJob) checkBatch() error {
	m, l := j.Model, j.Layout
	for _, f := range []struct {
		name  string
		value int
	}{{"sequence", j.Sequence}, {"batch", j.Batch}, {"batches", j.Batches}} {
		if f.value < 1 || f.value > math.MaxInt32 {
			return jobf("%s is %d: want 1 to %d", f.name, f.value, math.MaxInt32)
		}
	}
	if j.Sequence%l.Context != 0 {
		return jobf("layout.context is %d: it does not divide the sequence of %d", l.Context, j.Sequence)
	}
	if each := j.Sequence / l.Context; int64(each)%l.sequence() != 0 {
		return jobf("layout.tensor is %d: it does not divide the %d tokens of a sequence on a rank", l.Tensor, each)
	}
	if l.Virtual > 1 && j.Batches%l.Pipeline != 0 {
		return jobf("batches is %d: chunks need a multiple of the %d stages", j.Batches, l.Pipeline)
	}
	if step := float64(j.Sequence) * float64(j.Batch) * float64(j.Batches) * float64(max(l.Ranks, 1)); !(step < 1e18) {
		return jobf("batches is %d: a step would have %.3g tokens: want fewer than 1e18", j.Batches, step)
	}
	return m.checkTokens(float64(j.Sequence) * float64(j.Batch) / float64(l.Context))
}

// checkTokens refuses more tokens at once than can be counted.
func (m Model) checkTokens(tokens float64) error {
	width := float64(m.Vocab) + float64(m.Layers)*(m.layerEstimate()/float64(m.Hidden)+float64(m.Hidden))
	if most := mostActivations / width; !(tokens < most) {
		return jobf("a rank would compute %.3g tokens at once: want fewer than %.3g", tokens, most)
	}
	return nil
}

// stage counts what a rank of a stage needs.
func (j TrainJob) stage(s int) Stage {
	l := j.Layout
	st := l.describe(s)
	chunks := l.chunks(s, j.Model.Layers)
	all := j.Model.stageWeights(l, s, chunks)
	for _, layers := range chunks {
		st.Layers += len(layers)
	}
	j.addStates(&st, all)
	if j.Library.Octavo {
		j.addKept(&st, chunks)
		return st
	}
	memories := j.chunkMemories(s, chunks)
	highest, flying := inFlight(l, s, j.Batches, memories)
	st.Activations = highest.kept
	st.Workspace += highest.live
	st.InFlight = flying
	for _, c := range memories {
		st.Microbatch += c.kept
	}
	st.At = highest.at + ", forward"
	if highest.backward {
		st.At = highest.at + ", backward"
	}
	return st
}

func (l Layout) describe(stage int) Stage {
	each := l.Ranks / l.Pipeline
	return Stage{Stage: stage, First: stage * each, Ranks: each}
}

// stageWeights returns the weights of a stage, one list for each layer, the embedding and the
// head.
func (m Model) stageWeights(l Layout, stage int, chunks [][]int) [][]weight {
	var all [][]weight
	last := stage == l.Pipeline-1
	if stage == 0 || last && m.TiedHead {
		all = append(all, m.embedding())
	}
	for _, layers := range chunks {
		for _, i := range layers {
			all = append(all, m.layer(i))
		}
	}
	if last {
		all = append(all, m.end())
	}
	return all
}

// chunkMemories walks a micro-batch through each chunk.
func (j TrainJob) chunkMemories(stage int, chunks [][]int) []chunkMemory {
	o := j.ops()
	var memories []chunkMemory
	for c := range chunks {
		memories = append(memories, walk(j.chunkOps(&o, stage, chunks, c)))
	}
	return memories
}

// ops returns what makes the ops of a rank.
func (j TrainJob) ops() ops {
	o := ops{m: j.Model, l: j.Layout, p: j.Precision, r: j.Recompute, x: j.Library}
	o.tokens = int64(j.Sequence) * int64(j.Batch) / int64(j.Layout.Context)
	if j.Library.SimuMax && j.Precision.Experts.Bits < 16 {
		o.grouped = 4
	}
	return o
}

// chunkOps returns the ops of a chunk of a stage.
func (j TrainJob) chunkOps(o *ops, stage int, chunks [][]int, c int) (all []op) {
	if stage == 0 && c == 0 {
		all = append(all, o.begin()...)
	}
	for i, layer := range chunks[c] {
		all = append(all, o.layer(layer, i)...)
	}
	if stage == j.Layout.Pipeline-1 && c == len(chunks)-1 {
		all = append(all, o.end()...)
	}
	return all
}
