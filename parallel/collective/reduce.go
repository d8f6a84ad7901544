package collective

import (
	"cmp"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/scaling"
)

// Reducer takes the mean of the gradients of data-parallel workers: in FP32, or as it
// would be if E4M3 went over the wire (FP8-LM, Peng et al., arXiv 2310.18313). Sums
// are taken in the order of the workers, so that the result depends on
// what they had and on nothing else. The zero value adds in FP32 and divides at the
// end. It is plain data: kept as JSON it goes on where it was. Not safe for
// concurrent use.
type Reducer struct {
	FP8      bool     `json:"fp8"`
	Division Division `json:"division"`

	// Threshold is the share of values that may saturate before [DivideAuto] halves
	// its factor. 0: 1e-5, which secondary sources give for FP8-LM.
	Threshold float64 `json:"threshold"`

	Workers int `json:"-"` // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	// Mu are the factors of DivideAuto by tensor, from 1 at first.
	Mu []float64 `json:"mu,omitempty"`
}

// Check returns an error that names the first option that is out of range. It is
// [ErrInput].
func (r *Reducer) Check() error {
	if err := divisions.Check(r.Division); err != nil {
		return err
	}
	switch {
	case !(r.Threshold >= 0):
		return inputError("Reducer.Threshold is %v: it must not be negative", r.Threshold)
	case r.Workers < 0:
		return inputError("Reducer.Workers is %d: it must not be negative", r.Workers)
	}
	for i, mu := range r.Mu {
		if !(mu > 0 && mu <= 1) {
			return inputError("Reducer.Mu[%d] is %v: it must be above 0 and at most 1", i, mu)
		}
	}
	return nil
}

// Division is how a sum over n workers becomes a mean: values are multiplied by a
// factor f before, and their sum by 1/(n·f) after.
type Division uint8

const (
	DividePost Division = iota // f = 1: no value gets smaller, but a sum may overflow
	DividePre                  // f = 1/n: a sum overflows by rounding at most, but a value may underflow
	DivideRoot                 // f = 1/√n: half of each, as MS-AMP's released code does

	// DivideAuto is FP8-LM's: f is halved for the next time if more than a share of
	// Reducer.Threshold of the values saturated, and otherwise grows by a factor of
	// 2^(1/1000), to 1 at most.
	DivideAuto
)

var divisions = enum.Enum[Division]{Type: "Division", What: "division", Names: []string{"post", "pre", "root", "auto"}, Err: ErrInput}

// String returns the name of d, such as "post".
func (d Division) String() string                   { return divisions.String(d) }
func (d Division) MarshalText() ([]byte, error)     { return divisions.MarshalText(d) }
func (d *Division) UnmarshalText(text []byte) error { return divisions.UnmarshalText(d, text) }

// Factors returns what values of n workers are multiplied by, and their sum after. Of
// [DivideAuto], which has a [Reducer], they are those of [DividePost].
func (d Division) Factors(n int) (before, after float32) { return factors(1, d.factor(n), n) }

func factors(scale, f float64, n int) (before, after float32) {
	return float32(scale * f), float32(1 / (scale * (f * float64(n))))
}

func (d Division) factor(n int) float64 {
	switch d {
	case DividePre:
		return 1 / float64(n)
	case DivideRoot:
		return 1 / math.Sqrt(float64(n))
	}
	return 1
}

// Reduction is what happened to one tensor.
type Reduction struct {
	Scale  float32 // by which values were multiplied for FP8, before the factor; 1 in FP32
	Factor float64 // f of [Division]

	// Encode is what happened to the values of all workers when they were multiplied,
	// and encoded; Sum, to partial sums. Flushed is underflow and Saturated overflow,
	// which in FP32 is to an infinity. Magnitudes in Sum are those of what is summed.
	Encode, Sum fp8.Stats
}

const (
	noShards      = "collective: Reducer.Mean of no gradients"
	unequalShards = "collective: Reducer.Mean of slices that are not equally long"
	badReducer    = "collective: Reducer.Mean with an option out of range, as Check says"
	badTensor     = "collective: Reducer.Mean of a tensor with a negative number"
)

// Mean writes the mean of shards, one for each worker, to dst, which may be one of
// them. The number of the tensor tells the factors of [DivideAuto] apart. It panics
// if there are no shards, if they and dst are not equally long, if the number is
// negative, or if an option does not pass [Reducer.Check].
//
// In FP8 all workers share a scale, the smallest of theirs, which are 448 over the
// largest magnitude (those that have zeros only do not count). Each value is encoded
// once, and so is each partial sum, which is exact before. What is NaN or infinite
// becomes NaN, so that nothing hides it from an optimizer.
//
// In the paper values have been in FP8 once before, under a scale of each worker's
// own.
func (r *Reducer) Mean(tensor int, dst []float32, shards [][]float32) Reduction {
	r.check(tensor, dst, shards)
	s := sharing{dst: dst, shards: shards, fp8: r.FP8, scale: 1}
	if r.FP8 {
		s.scale = sharedScale(shards)
	}
	factor := r.factor(tensor, len(shards))
	s.before, s.after = factors(float64(s.scale), factor, len(shards))
	encode, sum := s.run(r.Workers)
	if r.Division == DivideAuto {
		r.adapt(tensor, encode.Saturated()+sum.Saturated(), len(dst))
	}
	return Reduction{s.scale, factor, encode, sum}
}

func (r *Reducer) check(tensor int, dst []float32, shards [][]float32) {
	if len(shards) == 0 {
		panic(noShards)
	}
	for _, s := range shards {
		if len(s) != len(dst) {
			panic(unequalShards)
		}
	}
	switch {
	case tensor < 0:
		panic(badTensor)
	case r.Check() != nil:
		panic(badReducer)
	}
}

// factor returns the f of [Division].
func (r *Reducer) factor(tensor, n int) float64 {
	if r.Division != DivideAuto {
		return r.Division.factor(n)
	}
	for len(r.Mu) <= tensor {
		r.Mu = append(r.Mu, 1)
	}
	return r.Mu[tensor]
}

// adapt changes the factor of a tensor of n values.
func (r *Reducer) adapt(tensor int, saturated int64, n int) {
	const growth = 1.0006933874625807 // 2^(1/1000)
	if float64(saturated) > float64(cmp.Or(r.Threshold, 1e-5)*float64(n)) {
		r.Mu[tensor] /= 2
	} else {
		r.Mu[tensor] = min(float64(r.Mu[tensor]*growth), 1)
	}
}

// sharedScale returns the scale that saturates no worker, 1 if there is nothing but
// zeros or something is not finite.
func sharedScale(shards [][]float32) float32 {
	var amax float32
	for _, s := range shards {
		a, _ := fp8.Amax(s)
		amax = max(amax, a)
	}
	return (scaling.Recipe{Profile: scaling.TEBlock, Format: fp8.E4M3}).Scale(amax).Multiplier
}

// elementGrain is the least number of elements worth a goroutine.
const elementGrain = 4096

// sharing is one mean.
type sharing struct {
	dst           []float32
	shards        [][]float32
	fp8           bool
	scale         float32
	before, after float32 // factors
}

// run computes the mean, and returns what happened on the way.
func (s *sharing) run(workers int) (encode, sum fp8.Stats) {
	var merging sync.Mutex
	parallel.For(len(s.dst), elementGrain, workers, func(lo, hi int) {
		var e, a fp8.Stats
		buf := newSummands()
		for ; lo < hi; lo += summands {
			end := min(lo+summands, hi)
			if s.fp8 {
				s.part8(buf, lo, end, &e, &a)
			} else {
				s.part32(buf, lo, end, &e, &a)
			}
		}
		merging.Lock()
		defer merging.Unlock()
		encode.Merge(&e)
		sum.Merge(&a)
	})
	return encode, sum
}
