package flash

import (
	"context"
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// ErrNotHere is of a [Fault] that a problem and a kernel cannot have.
var ErrNotHere = errors.New("flash: the kernel cannot have this fault")

// Fault is one thing that a flash kernel gets wrong. Which fields count depends on Kind;
// the others are 0. The zero Fault is none. Faults are comparable.
type Fault struct {
	Kind Kind `json:"kind"`
	// Of says whose scales or codes are misread.
	Of Side `json:"of,omitzero"`
	// By is a distance or a size: keys, heads, columns, or the number of a split.
	By int `json:"by,omitempty"`
	// Factor is the value of what should be -Inf.
	Factor float64 `json:"factor,omitempty"`
}

// Side is an operand.
type Side uint8

// Operands that faults are of.
const (
	noSide Side = iota
	ofQ
	OfK
	OfV
	OfKV // both K and V
)

// Kind is a kind of fault: a row of the table. [Kinds] has all, and [Kind.UnmarshalText]
// takes their names; only some have an exported constant.
type Kind uint8

const (
	// None is an honest kernel.
	None Kind = iota

	// RescaleDropped does not rescale O when the maximum grows.
	RescaleDropped
	// sumRescaleDropped does not rescale l when the maximum grows.
	sumRescaleDropped
	// StaleMax takes p against the maximum before the tile, in O and in l.
	StaleMax
	// tileMax takes p against its tile's own maximum, whatever that of O and l is.
	tileMax
	// MaskedMax leaves the maximum at 0 where the first tiles have no kept keys.
	MaskedMax
	// finiteMax begins with a maximum of Factor in place of -Inf, in base 2.
	finiteMax

	// TailUnmasked fills the last tile with keys whose scores and values are 0.
	TailUnmasked
	// lastKeysLost leaves the last By keys out.
	lastKeysLost
	// RightOff lets a query see By keys more to its right: 1 or -1.
	RightOff
	// leftOff moves the left end of the window By keys to the right: 1 or -1.
	leftOff
	// TopLeft aligns the mask to the first query and key.
	TopLeft
	// causalIgnored does not hide later keys.
	causalIgnored
	// windowIgnored has no window.
	windowIgnored

	// ScaleDropped takes the scales of Of for 1.
	ScaleDropped
	// scaleTwice applies the scales of Of twice.
	scaleTwice
	// ScaleOfHead0 reads the scales of head 0 for all heads of Of.
	ScaleOfHead0
	// scaleOfNext reads the scales of the next head of Of, and of the first for the last.
	scaleOfNext
	// softmaxScaleDropped takes the softmax's scale for 1.
	softmaxScaleDropped
	// softmaxScaleOfValues takes 1/sqrt(DV) for 1/sqrt(D).
	softmaxScaleOfValues

	// SplitMean takes the mean of the splits for their weighted sum.
	SplitMean
	// splitLost leaves out split By.
	splitLost
	// emptySplit takes a split without keys for one whose log-sum-exp is 0.
	emptySplit
	// LSEBase2 takes log-sum-exps in base 2 for natural ones, in the merge of splits and in
	// what is returned, or the other way round where natural ones are not wanted.
	LSEBase2
	// lseReported returns log-sum-exps in base 2 of splits that were merged well, or natural
	// ones where base 2 is wanted.
	lseReported
	// offsetKept leaves what P is lifted by in log-sum-exps.
	offsetKept

	// PScaleKept does not divide by PScale in the end.
	PScaleKept
	// PSaturated lets the maximum lag so far that P exceeds its format.
	PSaturated
	// pNotLifted does not lift P, so that more of it underflows.
	pNotLifted
	// unnormalized does not divide by l.
	unnormalized

	// HeadModulo uses head h mod KVHeads of K and V for query head h.
	HeadModulo
	// SinkOmitted leaves sinks out.
	SinkOmitted
	// sinkPerSplit counts the sink once for every split.
	sinkPerSplit
	// sinkInLSE counts the sink in log-sum-exps.
	sinkInLSE
	// sinkScaled multiplies sinks by the softmax's scale.
	sinkScaled
	// sinkBase2 takes sinks for scores in base 2.
	sinkBase2

	// keysSwapped multiplies P by the codes of V with groups of By keys in reverse.
	keysSwapped
	// keysInterleaved multiplies P by the codes of V with groups of By keys read as two halves
	// by turns, as registers of an accumulator lie that are not permuted.
	keysInterleaved
	// columnsSwapped writes groups of By columns of the output in reverse.
	columnsSwapped
)

// kinds is the table: names, what the kernel does, and where it was seen in public.
var kinds = [...]struct {
	name, text string
	seen       []string
}{
	None: {name: "none", text: "nothing is wrong"},
	RescaleDropped: {"rescale-dropped", "O is not rescaled when the maximum grows",
		[]string{"ROCm/rocm-libraries#7194"}},
	sumRescaleDropped: {"sum-rescale-dropped",
		"the row sum is not rescaled when the maximum grows", nil},
	StaleMax: {"stale-max", "P is taken against the maximum before its tile",
		[]string{"Dao-AILab/flash-attention#2082"}},
	tileMax: {"tile-max",
		"P is taken against the maximum of its own tile, not the running " +
			"one", []string{"ROCm/rocm-libraries#7194"}},
	MaskedMax: {"masked-max", "the maximum is left at 0 by a first tile without keys",
		[]string{"Dao-AILab/flash-attention#2082", "Dao-AILab/flash-attention#2174"}},
	finiteMax: {"finite-max", "the maximum begins at a number in place of -Inf",
		[]string{"flashinfer-ai/flashinfer#4267"}},
	TailUnmasked: {"tail-unmasked", "the keys that fill the last tile are not masked",
		[]string{"flashinfer-ai/flashinfer#5090", "Dao-AILab/flash-attention#1745",
			"Dao-AILab/flash-attention#2374", "vllm-project/vllm#47305"}},
	lastKeysLost: {"last-keys-lost", "the last keys are left out", nil},
	RightOff: {"right-off", "the mask ends at another key",
		[]string{"NVIDIA/cutlass#2336"}},
	leftOff: {"left-off", "the window begins at another key", nil},
	TopLeft: {"top-left", "the mask is aligned to the first query and key, not the last",
		[]string{"Dao-AILab/flash-attention#1778"}},
	causalIgnored: {"causal-ignored", "later keys are not masked", nil},
	windowIgnored: {"window-ignored", "the window is not applied", nil},
	ScaleDropped: {"scale-dropped", "scales are not applied",
		[]string{"vllm-project/vllm#51363", "vllm-project/vllm#42580", "flashinfer-ai/flashinfer#1023"}},
	scaleTwice: {"scale-twice", "scales are applied twice",
		[]string{"vllm-project/vllm#48016"}},
	ScaleOfHead0: {"scale-of-head-0", "scales of head 0 are read for all heads",
		[]string{"vllm-project/vllm#53754", "flashinfer-ai/flashinfer#4979"}},
	scaleOfNext:         {"scale-of-next", "scales of the next head are read", nil},
	softmaxScaleDropped: {"softmax-scale-dropped", "scores are not scaled", nil},
	softmaxScaleOfValues: {"softmax-scale-of-values",
		"scores are scaled by 1/sqrt of V's dimension, not of K's", nil},
	SplitMean: {"split-mean", "splits are averaged, without their weights",
		[]string{"flashinfer-ai/flashinfer#50"}},
	splitLost: {"split-lost", "a split is left out of the merge", nil},
	emptySplit: {"empty-split", "a split without keys counts in the merge",
		[]string{"Dao-AILab/flash-attention#2842", "FlagOpen/FlagGems#5235"}},
	LSEBase2: {"lse-base-2", "log-sum-exps in base 2 are taken for natural ones",
		[]string{"vllm-project/vllm#47079", "vllm-project/vllm#52796", "sgl-project/sglang#35045",
			"sgl-project/sglang#40903"}},
	lseReported: {"lse-reported", "log-sum-exps are returned in the other base", nil},
	offsetKept:  {"offset-kept", "the lift of P is left in log-sum-exps", nil},
	PScaleKept: {"p-scale-kept", "the scale of P is not divided out",
		[]string{"Dao-AILab/flash-attention#2577"}},
	PSaturated: {"p-saturated",
		"P exceeds its format and is cut, as rescaling is put off too " +
			"long", []string{"Dao-AILab/flash-attention#2577", "Dao-AILab/flash-attention#2694",
			"Dao-AILab/flash-attention#2716"}},
	pNotLifted: {"p-not-lifted", "P is not lifted before its cast and underflows",
		[]string{"ROCm/FlyDSL#1020"}},
	unnormalized: {"unnormalized", "the output is not divided by the row sum", nil},
	HeadModulo: {"head-modulo", "query heads use head h mod KVHeads of K and V",
		[]string{"PSAL-POSTECH/ONNXim#34", "ekzhang/jax-js#180"}},
	SinkOmitted: {"sink-omitted", "the sink is left out", []string{"modular/modular#6198"}},
	sinkPerSplit: {"sink-per-split", "the sink is counted once for every split",
		[]string{"ROCm/rocm-libraries#12227"}},
	sinkInLSE:       {"sink-in-lse", "log-sum-exps count the sink", nil},
	sinkScaled:      {"sink-scaled", "the sink is scaled as a score", nil},
	sinkBase2:       {"sink-base-2", "the sink is taken for a score in base 2", nil},
	keysSwapped:     {"keys-swapped", "V's keys are read in reverse in groups", nil},
	keysInterleaved: {"keys-interleaved", "V's keys are read as two halves by turns", nil},
	columnsSwapped:  {"columns-swapped", "columns of the output are in reverse in groups", nil},
}

var kindNames = enum.Enum[Kind]{Type: "Kind", What: "kind of fault", Err: ErrNotHere,
	Prefix: "flash", Names: namesOf()}

var sides = enum.Enum[Side]{Type: "Side", What: "operand", Err: ErrNotHere, Prefix: "flash",
	Names: []string{"", "Q", "K", "V", "K and V"}}

func namesOf() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Kinds returns all kinds but None.
func Kinds() (all []Kind) {
	for k := range kinds[1:] {
		all = append(all, Kind(k+1))
	}
	return all
}

// String returns a name such as "rescale-dropped".
func (k Kind) String() string { return kindNames.String(k) }

// MarshalText returns the name, and an [ErrNotHere] for an unknown kind.
func (k Kind) MarshalText() ([]byte, error) { return kindNames.MarshalText(k) }

// UnmarshalText takes a name in any case. Another is an [ErrNotHere].
func (k *Kind) UnmarshalText(text []byte) error { return kindNames.UnmarshalText(k, text) }

// Seen returns the public issues in which the fault was seen, as owner/name#number.
func (k Kind) Seen() []string {
	if !kindNames.Valid(k) {
		return nil
	}
	return kinds[k].seen
}

// String returns a name such as "K and V".
func (s Side) String() string { return sides.String(s) }

// MarshalText returns the name, and an [ErrNotHere] for an unknown side.
func (s Side) MarshalText() ([]byte, error) { return sides.MarshalText(s) }

// UnmarshalText takes a name in any case. Another is an [ErrNotHere].
func (s *Side) UnmarshalText(text []byte) error { return sides.UnmarshalText(s, text) }

// String returns what the kernel does, as a clause: "scales are not applied (of K)".
func (f Fault) String() string {
	if !kindNames.Valid(f.Kind) {
		return f.Kind.String()
	}
	text := kinds[f.Kind].text
	switch {
	case f.Of != noSide:
		text += fmt.Sprintf(" (of %s)", f.Of)
	case f.Kind == finiteMax:
		text += fmt.Sprintf(" (%v)", f.Factor)
	case f.Kind == splitLost:
		text += fmt.Sprintf(" (split %d)", f.By)
	case f.By != 0:
		text += fmt.Sprintf(" (by %d)", f.By)
	}
	return text
}

// Faults lists the faults that a kernel could have of the problem, each sort of parameters
// once: what is worth injecting. It returns nil for a problem that is none.
func Faults(p *attention.Problem, k Kernel) (all []Fault) {
	if p.Check() != nil {
		return nil
	}
	for _, f := range candidates(p, k) {
		if _, err := f.change(p, k); err == nil {
			all = append(all, f)
		}
	}
	return all
}

// candidates lists faults that there may be.
func candidates(p *attention.Problem, k Kernel) (all []Fault) {
	for _, kind := range Kinds() {
		switch kind {
		case finiteMax:
			all = append(all, Fault{Kind: kind, Factor: -5e4}, Fault{Kind: kind})
		case lastKeysLost:
			all = append(all, Fault{Kind: kind, By: 1})
			if n := p.Sizes().Keys % k.tile(p.Sizes().Keys); n > 1 {
				all = append(all, Fault{Kind: kind, By: n})
			}
		case RightOff, leftOff:
			all = append(all, Fault{Kind: kind, By: 1}, Fault{Kind: kind, By: -1})
		case ScaleDropped, scaleTwice:
			all = append(all, Fault{Kind: kind, Of: ofQ}, Fault{Kind: kind, Of: OfK},
				Fault{Kind: kind, Of: OfV})
		case ScaleOfHead0, scaleOfNext:
			for _, of := range []Side{ofQ, OfK, OfV, OfKV} {
				all = append(all, Fault{Kind: kind, Of: of})
			}
		case splitLost:
			for n := range k.filledSplits(p.Sizes().Keys) {
				all = append(all, Fault{Kind: kind, By: n})
			}
		case keysSwapped, columnsSwapped:
			all = append(all, Fault{Kind: kind, By: 2}, Fault{Kind: kind, By: 4}, Fault{Kind: kind, By: 8},
				Fault{Kind: kind, By: 16})
		case keysInterleaved:
			all = append(all, Fault{Kind: kind, By: 4}, Fault{Kind: kind, By: 8}, Fault{Kind: kind, By: 16},
				Fault{Kind: kind, By: 32})
		default:
			all = append(all, Fault{Kind: kind})
		}
	}
	return all
}

// Inject returns what a kernel that has fault f and is k otherwise returns for p, bit for
// bit, as [Predict] does for an honest one. Errors are those of Predict, and [ErrNotHere]
// where such a problem or kernel cannot have the fault.
func Inject(ctx context.Context, p *attention.Problem, k Kernel, f Fault, o Options) (*Prediction,
	error) {
	m, err := newFaulty(p, k, f)
	if err != nil {
		return nil, err
	}
	return m.predict(ctx, o)
}

// newFaulty is the model of a kernel with a fault.
func newFaulty(p *attention.Problem, k Kernel, f Fault) (*model, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	c, err := f.change(p, k)
	if err != nil {
		return nil, err
	}
	m, err := newModel(c.p, c.k)
	if err != nil {
		return nil, err
	}
	m.fault, m.tail = f, c.tail
	return m, nil
}

func notHere(f Fault, why string) error {
	return sentinel.Errorf(ErrNotHere, "flash: fault %q: %s", f.Kind, why)
}
