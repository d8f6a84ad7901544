package plan

import (
	"cmp"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Layout is how a model is divided among ranks, as Megatron-LM does it. In every field 0 is
// 1, unless said otherwise.
type Layout struct {
	// Ranks is how many there are altogether. What is left of them after tensor, context and
	// pipeline parallelism is data parallel. 0: the fewest that the rest needs.
	Ranks int `json:"ranks"`

	Tensor   int `json:"tensor"`   // heads, widths of MLPs and the vocabulary
	Context  int `json:"context"`  // tokens of a sequence; heads are exchanged in attention
	Pipeline int `json:"pipeline"` // stages, each of some layers
	Virtual  int `json:"virtual"`  // chunks of layers on each stage (interleaved 1F1B)
	Group    int `json:"group"`    // micro-batches that a chunk does in turn; 0: Pipeline

	// First and Last are the layers of the first and the last stage; 0: as many as others.
	First int `json:"first,omitempty"`
	Last  int `json:"last,omitempty"`

	Expert       int `json:"expert"`       // ranks that share out the experts
	ExpertTensor int `json:"expertTensor"` // ranks that share an expert; 0: Tensor

	// Zero is the stage of ZeRO (Rajbhandari et al., arXiv 1910.02054), among data-parallel
	// and context-parallel ranks: 0 divides nothing, 1 the optimizer's states, 2 gradients
	// too, 3 weights too.
	Zero int `json:"zero"`

	// WholeSequence keeps norms and the residual stream whole on every tensor-parallel rank
	// (no sequence parallelism).
	WholeSequence bool `json:"wholeSequence,omitempty"`
}

const mostRanks = 1 << 30

// complete fills in what is left out, and checks the layout of a model of so many layers.
func (l Layout) complete(m Model) (Layout, error) {
	if err := l.checkRanges(); err != nil {
		return l, err
	}
	for _, n := range []*int{&l.Tensor, &l.Context, &l.Pipeline, &l.Virtual, &l.Expert} {
		*n = max(*n, 1)
	}
	if l.Group == 0 {
		l.Group = l.Pipeline
	}
	if m.MoE.Experts == 0 && (l.Expert > 1 || l.ExpertTensor > 1) {
		return l, jobf("layout.expert is %d and layout.expertTensor %d: the model has no experts", l.Expert, max(l.ExpertTensor, 1))
	}
	if l.ExpertTensor == 0 {
		l.ExpertTensor = l.Tensor
		if m.MoE.Experts == 0 {
			l.ExpertTensor = 1
		}
	}
	if l.Ranks == 0 {
		dense, sparse := l.groups()
		least := leastCommon(dense, sparse)
		if least > mostRanks {
			return l, jobf("layout.ranks is 0: the layout needs %d, want at most %d", least, mostRanks)
		}
		l.Ranks = int(least)
	}
	return l, cmp.Or(l.checkRanks(), l.checkModel(m), l.checkStages(m.Layers))
}

func (l Layout) checkRanges() error {
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"ranks", l.Ranks, mostRanks}, {"tensor", l.Tensor, 1 << 12}, {"context", l.Context, 1 << 14},
		{"pipeline", l.Pipeline, mostLayers}, {"virtual", l.Virtual, mostLayers}, {"group", l.Group, 1 << 20},
		{"first", l.First, mostLayers}, {"last", l.Last, mostLayers}, {"expert", l.Expert, 1 << 16},
		{"expertTensor", l.ExpertTensor, 1 << 12}, {"zero", l.Zero, 3},
	} {
		if f.value < 0 || f.value > f.most {
			return jobf("layout.%s is %d: want 0 to %d", f.name, f.value, f.most)
		}
	}
	return nil
}

// groups are how many ranks have all of the model, with and without what is of experts alone.
func (l Layout) groups() (dense, sparse int64) {
	stages := int64(l.Pipeline)
	return int64(l.Tensor) * int64(l.Context) * stages, int64(l.Expert) * int64(l.ExpertTensor) * stages
}

func (l Layout) checkRanks() error {
	dense, sparse := l.groups()
	switch ranks := int64(l.Ranks); {
	case ranks%dense != 0:
		return jobf("layout.ranks is %d: want a multiple of tensor·context·pipeline = %d", l.Ranks, dense)
	case ranks%sparse != 0:
		return jobf("layout.ranks is %d: want a multiple of expert·expertTensor·pipeline = %d", l.Ranks, sparse)
	case l.Group < l.Pipeline:
		return jobf("layout.group is %d: want at least the %d stages", l.Group, l.Pipeline)
	case l.Virtual > 1 && l.Pipeline == 1:
		return jobf("layout.virtual is %d: chunks need a pipeline of 2 stages or more", l.Virtual)
	}
	return nil
}

func (l Layout) checkModel(m Model) error {
	divides := func(field string, ranks int, what string, size int) error {
		if size%ranks == 0 {
			return nil
		}
		return jobf("layout.%s is %d: it does not divide the %s of %d", field, ranks, what, size)
	}
	t, moe := l.Tensor, m.MoE
	errs := []error{divides("tensor", t, "heads", m.Heads), divides("tensor", t, "hidden size", m.Hidden)}
	if !m.hasMLA() {
		errs = append(errs, divides("tensor", t, "KV heads", m.KVHeads))
		errs = append(errs, divides("context", l.Context, "KV heads on a rank", max(m.KVHeads/t, 1)))
	}
	errs = append(errs, divides("context", l.Context, "heads on a rank", max(m.Heads/t, 1)))
	if !m.isMoE(0) {
		errs = append(errs, divides("tensor", t, "width of the MLP", m.FFN))
	}
	if moe.Experts > 0 {
		if l.Expert > moe.Experts {
			return jobf("layout.expert is %d: the model has only %d experts", l.Expert, moe.Experts)
		}
		errs = append(errs, divides("expert", l.Expert, "experts", moe.Experts),
			divides("expertTensor", l.ExpertTensor, "width of an expert", moe.FFN),
			divides("tensor", t, "width of the shared expert", moe.Shared))
		if t > 1 && l.WholeSequence {
			errs = append(errs, jobf("layout.wholeSequence with tensor %d: experts need sequence parallelism", t))
		}
	}
	return cmp.Or(errs...)
}

// checkStages checks that layers are divided among stages and chunks.
func (l Layout) checkStages(layers int) error {
	stages, rest := l.Pipeline, layers-l.First-l.Last
	if l.First > 0 {
		stages--
	}
	if l.Last > 0 {
		stages--
	}
	switch {
	case stages < 0:
		return jobf("layout.first is %d and layout.last %d: a pipeline of 1 has one stage", l.First, l.Last)
	case rest < 0 || stages == 0 && rest > 0:
		return jobf("layout.first is %d and layout.last %d: with a pipeline of %d that is not the model's %d layers", l.First, l.Last, l.Pipeline, layers)
	case stages > 0 && rest%stages != 0:
		return jobf("layout.pipeline is %d: %d stages do not divide %d layers: say how many the first or the last has", l.Pipeline, stages, rest)
	case stages > 0 && rest < stages:
		return jobf("layout.pipeline is %d: there are %d layers for %d stages", l.Pipeline, rest, stages)
	}
	for s := range l.Pipeline {
		if n := l.stageLayers(s, layers); n%l.Virtual != 0 {
			return jobf("layout.virtual is %d: it does not divide the %d layers of stage %d", l.Virtual, n, s)
		}
	}
	return nil
}

// stageLayers is how many layers a stage has.
func (l Layout) stageLayers(stage, layers int) int {
	stages, rest := l.Pipeline, layers-l.First-l.Last
	if l.First > 0 {
		stages--
	}
	if l.Last > 0 {
		stages--
	}
	switch {
	case stage == 0 && l.First > 0:
		return l.First
	case stage == l.Pipeline-1 && l.Last > 0:
		return l.Last
	}
	return rest / stages
}

// chunks returns the layers of each chunk of a stage. Layers go round the stages once for
// each chunk.
func (l Layout) chunks(stage, layers int) [][]int {
	all := make([][]int, l.Virtual)
	next := 0
	for c := range l.Virtual {
		for s := range l.Pipeline {
			n := l.stageLayers(s, layers) / l.Virtual
			if s == stage {
				for i := range n {
					all[c] = append(all[c], next+i)
				}
			}
			next += n
		}
	}
	return all
}

// DataParallel is how many ranks have the same weights, other than of experts, and compute
// other sequences. The layout must be of a job that is complete ([TrainJob.Complete]).
func (l Layout) DataParallel() int { return l.Ranks / (l.Tensor * l.Context * l.Pipeline) }

// expertData is how many ranks have the same experts.
func (l Layout) expertData() int { return l.Ranks / (l.Expert * l.ExpertTensor * l.Pipeline) }

// sequence is among how many tensor-parallel ranks norms and the stream are divided.
func (l Layout) sequence() int64 {
	if l.WholeSequence {
		return 1
	}
	return int64(l.Tensor)
}

// vocabulary is padded to a multiple of 128 on each tensor-parallel rank, as Megatron-LM does.
func (l Layout) vocabulary(vocab int) int64 {
	each := 128 * int64(l.Tensor)
	return ceil(int64(vocab), each) * each
}

// local is how many rows and columns of a weight, and how many such, a rank has.
func (l Layout) local(w weight) (out, in, count int64) {
	out, in, count = int64(w.out), int64(w.in), int64(w.count)
	t := int64(l.Tensor)
	switch w.split {
	case columns:
		if w.kind == embedding || w.kind == head {
			out = l.vocabulary(w.out)
		}
		return out / t, in, count
	case rows:
		return out, in / t, count
	case experts:
		count /= int64(l.Expert)
		switch {
		case w.kind == expertVector && w.name == "experts down bias":
		case w.byRows:
			in /= int64(l.ExpertTensor)
		default:
			out /= int64(l.ExpertTensor)
		}
	}
	return out, in, count
}

func leastCommon(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

func jobf(format string, args ...any) error {
	return sentinel.Errorf(ErrJob, "plan: "+format, args...)
}
