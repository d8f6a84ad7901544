package layers

import (
	"maps"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// Layout says how a [Llama] is cut. The zero Layout is one rank.
//
// Numbers of ranks say where things are computed, and Shards, Micro, Slices and Sequence
// what: layouts that agree in these have the same bits on any number of ranks, unless
// SumAtSource adds in the order of ranks, moments are rounded at random or have blocks that
// ZeRO's parts cut, or an exchange depends on the ranks: in any format but FP32 those between
// stages, and those with experts whose scale is a whole message's or which round at random.
// Rank (p·Data + d)·Tensor + t is the p-th of a pipeline and has the d-th shards and the t-th
// slices.
//
// Where the head is tied to the embedding, the first stage has the table. The last has a copy:
// it gets the table, or what ZeRO leaves its ranks of it, in FP32 before passes that follow a
// move, and sends back the head's gradient of each micro-batch, which the first adds before
// that of the embedding, as one rank does.
type Layout struct {
	Data     int // ranks that share shards of a batch out; 0: 1
	Tensor   int // ranks that share slices of layers out; 0: 1
	Pipeline int // ranks that share layers out; 0: 1
	Chunks   int // stages of each of these, interleaved as Megatron-LM does (arXiv 2104.04473); 0: 1
	Expert   int // consecutive ranks of Data that share experts out; 0: 1

	Shards   int  // of a batch, whose gradients are summed as [collective.Slices] are; 0: Data
	Micro    int  // micro-batches of a shard; 0: 1
	Slices   int  // of heads, channels and the vocabulary; 0: Tensor
	Align    int  // what slices of the channels of MLPs and experts begin at multiples of; 0: 1
	Sequence bool // norms are sequence parallel: each rank normalizes rows of its own

	// AllForward has stages run all micro-batches forward and then all backward (GPipe, arXiv
	// 1811.06965). Otherwise a stage runs one more forward than there are stages from here on,
	// and then one backward for each forward (PipeDream-Flush, arXiv 2006.09503). Where ranks
	// have several stages each then runs as many micro-batches as there are ranks, which must
	// divide their number, and then the next stage does.
	AllForward bool

	SumAtSource bool // of experts' results: see [Experts]

	// Zero is the stage of ZeRO, over shards: see [ZeroOptions]. In stage 3 a rank has the
	// weights of one layer at a time, be it the embedding, a block or the last norm with the
	// head: they are gathered for each pass of a micro-batch through it, also for one that is
	// computed again, and released after it.
	Zero     int
	Division collective.Division // of the gradients' sum; not [collective.DivideAuto]

	// Exchanges are how values are exchanged, by the names of [ExchangeNames]; Name and Cols
	// are those of the tensor. What is absent is sent in FP32 and summed in the order of
	// slices or shards.
	Exchanges map[string]collective.Exchange
}

// Names of exchanges of a [Layout]: see [ExchangeNames].
const (
	forwardSums        = "forward"
	backwardSums       = "backward"
	gatheredRows       = "rows"
	commonGradients    = "common gradient"
	lossSums           = "loss"
	stageActivations   = "activation"
	stageGradients     = "activation gradient"
	tiedGradients      = "tied gradient"
	expertTokens       = "dispatch"
	expertResults      = "combine"
	expertResultsGrads = "combine gradient"
	expertTokensGrads  = "dispatch gradient"
	shardGradients     = "gradient"
	gatheredWeights    = "weight"
)

// ExchangeNames returns the names that Layout.Exchanges may have:
//
//   - "forward" and "backward", sums over slices of results and of gradients of inputs;
//   - "rows", which are gathered, with Sequence;
//   - "common gradient", the sums over slices of gradients of what they share;
//   - "loss", the sums over slices of the loss's exponentials;
//   - "activation", from stage to stage, and "activation gradient", back;
//   - "tied gradient", of a table that two stages have, to the first;
//   - "dispatch", tokens to experts, and "combine", their results;
//   - "combine gradient" and "dispatch gradient", the gradients of these;
//   - "gradient", the sums over shards, and "weight", with ZeRO.
func ExchangeNames() []string {
	return []string{
		forwardSums, backwardSums, gatheredRows, commonGradients, lossSums,
		stageActivations, stageGradients, tiedGradients,
		expertTokens, expertResults, expertResultsGrads, expertTokensGrads,
		shardGradients, gatheredWeights,
	}
}

func (l Layout) withDefaults() Layout {
	for _, n := range []*int{&l.Data, &l.Tensor, &l.Pipeline, &l.Chunks, &l.Expert, &l.Micro, &l.Align} {
		if *n == 0 {
			*n = 1
		}
	}
	if l.Shards == 0 {
		l.Shards = l.Data
	}
	if l.Slices == 0 {
		l.Slices = l.Tensor
	}
	return l
}

// Ranks returns how many ranks there are.
func (l Layout) Ranks() int {
	l = l.withDefaults()
	return l.Data * l.Tensor * l.Pipeline
}

// Twin returns the layout of one rank that computes the same.
func (l Layout) Twin() Layout {
	l = l.withDefaults()
	l.Data, l.Tensor, l.Pipeline, l.Chunks, l.Expert = 1, 1, 1, 1, 1
	return l
}

// Check returns an error, [collective.ErrInput], that names the first number that is out of range or does
// not divide another.
func (l Layout) Check() error {
	l = l.withDefaults()
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Data", l.Data}, {"Tensor", l.Tensor}, {"Pipeline", l.Pipeline}, {"Chunks", l.Chunks},
		{"Expert", l.Expert},
		{"Shards", l.Shards}, {"Micro", l.Micro}, {"Slices", l.Slices}, {"Align", l.Align},
	} {
		if f.value < 1 || f.value > 1<<16 {
			return inputError("Layout.%s is %d: it must be from 1 to %d", f.name, f.value, 1<<16)
		}
	}
	switch {
	case l.Data%l.Expert != 0:
		return inputError("Layout.Expert is %d: it must divide Data = %d", l.Expert, l.Data)
	case l.Shards%l.Data != 0:
		return inputError("Layout.Data is %d: it must divide Shards = %d", l.Data, l.Shards)
	case l.Slices%l.Tensor != 0:
		return inputError("Layout.Tensor is %d: it must divide Slices = %d", l.Tensor, l.Slices)
	case !(&pipeline{Micro: l.Micro, AllForward: l.AllForward}).interleaves(l.Pipeline, l.Chunks):
		return inputError("Layout.Micro is %d: with Chunks = %d it must be a multiple of Pipeline = %d",
			l.Micro, l.Chunks, l.Pipeline)
	case l.Zero < 0 || l.Zero > 3:
		return inputError("Layout.Zero is %d: want 0 to 3", l.Zero)
	case l.Zero == 0 && l.Exchanges[gatheredWeights].Wire != collective.Wire{}:
		return inputError("Layout.Exchanges[%q] is %v: stage 0 of ZeRO sends no weights",
			gatheredWeights, l.Exchanges[gatheredWeights].Wire)
	case l.Division > collective.DivideRoot:
		return inputError("Layout.Division is %v: want post, pre or root", l.Division)
	}
	return l.checkExchanges()
}

func (l Layout) checkExchanges() error {
	for _, name := range slices.Sorted(maps.Keys(l.Exchanges)) {
		x := l.Exchanges[name]
		switch {
		case !slices.Contains(ExchangeNames(), name):
			return inputError("Layout.Exchanges has %q: want some of %s",
				name, strings.Join(ExchangeNames(), ", "))
		case x.Amax == collective.AmaxLate && name != shardGradients:
			return inputError("Layout.Exchanges[%q].Amax is late: only that of %q may be",
				name, shardGradients)
		case x.Amax == collective.AmaxLate:
			x.Memory = new(collective.AmaxMemory) // each rank and parameter gets its own
		}
		if x.Name = name; x.Check() != nil {
			return x.Check()
		}
	}
	return nil
}

// checkModel returns an error unless a model can be cut so.
func (l Layout) checkModel(c nn.Config) error {
	kv := c.KVHeads
	switch {
	case c.MLA != nil && c.Heads%l.Slices != 0:
		return inputError("Layout.Slices is %d: it must divide Config.Heads = %d", l.Slices, c.Heads)
	case c.MLA == nil && kv%l.Slices != 0:
		return inputError("Layout.Slices is %d: it must divide Config.KVHeads = %d", l.Slices, kv)
	case c.Layers%l.Pipeline != 0 || c.Layers/l.Pipeline%l.Chunks != 0:
		return inputError("Layout.Pipeline·Chunks is %d·%d: it must divide Config.Layers = %d",
			l.Pipeline, l.Chunks, c.Layers)
	case l.Expert > 1 && c.Experts == nil:
		return inputError("Layout.Expert is %d: the model has no experts", l.Expert)
	case c.Experts != nil && c.Experts.Router.Experts%l.Expert != 0:
		return inputError("Layout.Expert is %d: it must divide the number of experts, %d",
			l.Expert, c.Experts.Router.Experts)
	case c.Features() != nil:
		return inputError("Config.%s: a model with that is not cut", strings.Join(c.Features(), ", "))
	case c.Operators.Reductions != "":
		return inputError("Config.Operators.Reductions is %v: leave it FP32: "+
			"where the sums of the loss over slices would be rounded is not settled", c.Operators.Reductions)
	}
	return nil
}

// checkBatch returns an error unless a batch can be cut so.
func (l Layout) checkBatch(tokens, targets []int32, batch, seq int) error {
	switch {
	case batch < 1 || batch%(l.Shards*l.Micro) != 0:
		return inputError("a batch of %d sequences: it must be a multiple of Shards·Micro = %d·%d",
			batch, l.Shards, l.Micro)
	case seq < 1 || len(tokens) != batch*seq || len(targets) != len(tokens):
		return inputError("%d tokens and %d targets: there must be batch·seq = %d·%d of each",
			len(tokens), len(targets), batch, seq)
	}
	return nil
}

// exchange returns the one of a name.
func (l *Layout) exchange(name string) collective.Exchange {
	x := l.Exchanges[name]
	x.Name, x.Cols = name, 0
	return x
}

// sums returns slices that are summed by the exchange of a name.
func (l *Layout) sums(name string) collective.Slices {
	return collective.Slices{Exchange: l.exchange(name), Count: l.Slices}
}

// seat is where a rank is.
type seat struct{ stage, data, tensor int }

func (l *Layout) seat(rank int) seat {
	return seat{rank / (l.Data * l.Tensor), rank / l.Tensor % l.Data, rank % l.Tensor}
}

func (l *Layout) rank(s seat) int { return (s.stage*l.Data+s.data)*l.Tensor + s.tensor }

// along returns the ranks of a group of which a rank is: those at n seats, by their places.
func (l *Layout) along(n int, at func(i int) seat) (members []int) {
	for i := range n {
		members = append(members, l.rank(at(i)))
	}
	return members
}

// The groups that a rank is in: those that share slices, stages, experts and shards out,
// and those that have the same experts.
func (l *Layout) tensorGroup(s seat) []int {
	return l.along(l.Tensor, func(i int) seat { return seat{s.stage, s.data, i} })
}

func (l *Layout) pipelineGroup(s seat) []int {
	return l.along(l.Pipeline, func(i int) seat { return seat{i, s.data, s.tensor} })
}

func (l *Layout) dataGroup(s seat) []int {
	return l.along(l.Data, func(i int) seat { return seat{s.stage, i, s.tensor} })
}

func (l *Layout) expertGroup(s seat) []int {
	first := s.data / l.Expert * l.Expert
	return l.along(l.Expert, func(i int) seat { return seat{s.stage, first + i, s.tensor} })
}

func (l *Layout) sameExpertsGroup(s seat) []int {
	return l.along(l.Data/l.Expert, func(i int) seat {
		return seat{s.stage, i*l.Expert + s.data%l.Expert, s.tensor}
	})
}
