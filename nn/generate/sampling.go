package generate

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Sampling is how the next token is chosen from its logits. The zero value is greedy.
type Sampling struct {
	// Temperature divides logits before the softmax: 0 takes the largest one, and of equal
	// ones the token with the smallest ID. The fields below count only if it is positive.
	Temperature float64

	TopK int     // only the so many most likely tokens; 0: all
	TopP float64 // of those only the fewest that have this much of the probability; 0: all

	// Seed and a token's position alone decide how far into the kept tokens' weights a choice
	// is: the hash of both as a share of all hashes.
	Seed uint64
}

// Check returns an error, [ErrOptions], that names the first field that cannot be.
func (s Sampling) Check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return optionError("Sampling.Temperature is %v: it must be 0 or positive", s.Temperature)
	case s.TopK < 0:
		return optionError("Sampling.TopK is %d: it must not be negative", s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return optionError("Sampling.TopP is %v: it must be from 0 to 1", s.TopP)
	}
	return nil
}

// Choose returns the token at a position of its sequence, from 0 on, given its logits. The
// same arguments give the same token on every machine. Logits that are NaN or +Inf, or all
// -Inf, are an error, [ErrNotFinite].
func (s Sampling) Choose(logits []float32, position int) (int32, error) {
	if err := s.Check(); err != nil {
		return 0, err
	}
	best, err := largest(logits, position)
	if err != nil || s.Temperature == 0 {
		return int32(best), err
	}
	list := candidates.Get().(*[]candidate)
	defer candidates.Put(list)
	c := s.candidates(list, logits, logits[best])
	total := 0.0
	for _, t := range c {
		total += float64(t.weight)
	}
	const bits = 53
	uniform := float64(random.Hash(s.Seed, chooseStream, uint64(position))>>(64-bits)) / (1 << bits)
	at, sum := uniform*total, 0.0
	for _, t := range c {
		if sum += float64(t.weight); sum > at {
			return t.id, nil
		}
	}
	return c[len(c)-1].id, nil
}

// chooseStream, "generate" in ASCII, keeps numbers apart from others that are drawn with the
// same seed.
const chooseStream = 0x67656e6572617465

// largest returns the first of the largest logits.
func largest(logits []float32, position int) (best int, err error) {
	if len(logits) == 0 {
		return 0, inputError("there are no logits to choose a token from")
	}
	for i, x := range logits {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 1) {
			return 0, notFinite("token %d at position %d has a logit of %v", i, position, x)
		}
		if x > logits[best] {
			best = i
		}
	}
	if math.IsInf(float64(logits[best]), -1) {
		return 0, notFinite("all logits at position %d are -Inf", position)
	}
	return best, nil
}

func notFinite(format string, args ...any) error {
	return sentinel.Errorf(ErrNotFinite, "generate: "+format, args...)
}

// candidate is a token that may be chosen, with the weight that it is chosen by.
type candidate struct {
	id     int32
	weight float32
}

// candidates are lists that calls of Choose work with, reused.
var candidates = sync.Pool{New: func() any { return new([]candidate) }}

// candidates returns what may be chosen, the most likely first where that matters. It is in the
// memory of a list.
func (s Sampling) candidates(memory *[]candidate, logits []float32, most float32) []candidate {
	list := grow(memory, len(logits))[:0]
	for i, x := range logits {
		z := (float64(x) - float64(most)) / s.Temperature
		if w := elementary.Exp(float32(z)); w > 0 {
			list = append(list, candidate{int32(i), w})
		}
	}
	cut := s.TopK > 0 && s.TopK < len(list)
	if !cut && (s.TopP == 0 || s.TopP == 1) {
		return list
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.weight, a.weight) })
	if cut {
		list = list[:s.TopK]
	}
	if s.TopP > 0 && s.TopP < 1 {
		list = nucleus(list, s.TopP)
	}
	return list
}

// nucleus returns the first candidates that have the share p of the weight (Holtzman et al.,
// arXiv 1904.09751), at least one.
func nucleus(list []candidate, p float64) []candidate {
	total := 0.0
	for _, t := range list {
		total += float64(t.weight)
	}
	sum := 0.0
	for i, t := range list {
		if sum += float64(t.weight); sum >= p*total {
			return list[:i+1]
		}
	}
	return list
}

// logProb returns the logarithm of a token's probability under the softmax of logits.
func logProb(logits []float32, token int32) float32 {
	most := slices.Max(logits)
	sum := 0.0
	for _, x := range logits {
		sum += float64(elementary.Exp(x - most))
	}
	return logits[token] - most - elementary.Log(float32(sum))
}
