// Package pack stresses a machine with the operators of a training run and knows the right
// answers beforehand: products of block-scaled matrices, grouped ones, attention, casts,
// quantization, SwiGLU and norms.
//
// Operands are small integers times powers of two, chosen so that each number on the way to
// the result, whatever the order of additions, is a multiple of one unit and at most 2^24
// units, which float32 holds exactly. The right result then follows from integer arithmetic
// on these integers alone, in 64 bits, and is the same for every correct device. Rows are
// compared by Σ w·x mod 2^64 with random odd w for each column (Freivalds 1977): for a product
// that takes far fewer operations than the product. A single wrong element is always seen, and
// several in a row that are wrong by d, of which 2^v is the largest power of two that divides
// all, with a probability of at least 1 - 2^(v-63).
//
// Beside that there are operators on ordinary random numbers, whose results are rounded.
// Octavo defines their bits, which are compared at all levels of kernels by CRC-32C, and with
// those that were recorded for seed 1.
package pack

import (
	"context"
	"fmt"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Options say how to stress a machine.
type Options struct {
	Seed uint64
	// For, where positive, repeats the operators with new operands until the time is over;
	// otherwise a burst of a few repetitions of larger operands is run.
	For time.Duration
	// Progress, unless nil, hears how many milliseconds of For, or how many operators of a
	// burst, are done.
	Progress progress.Reporter
}

// burst is how often the operators of a burst are run.
const burst = 3

// operator is one operator of the pack.
type operator struct {
	name string
	// prepare makes operands, which depend on the key alone.
	prepare func(key uint64, s size) *job
}

// job is an operator with operands.
type job struct {
	run     func(ctx context.Context) error // writes to results
	results []*result
	bytes   func() []byte // of a rounded result, in place of results

	// What files have of it, of the size for GPUs: see forTorch.
	kind  string
	with  map[string]any
	files []safetensors.Tensor
}

// size is how large operands are.
type size struct {
	Name string
	M, N int // of products and elementwise operators
	K    int
	Keys int // of attention
	GPU  bool
}

var (
	burstSize     = size{Name: "burst", M: 512, N: 512, K: 2048, Keys: 1024}
	enduranceSize = size{Name: "endurance", M: 128, N: 512, K: 1024, Keys: 512}
	fileSize      = size{Name: "files", M: 256, N: 1024, K: 1024, Keys: 1024, GPU: true}
)

func sizeOf(name string) (size, bool) {
	for _, s := range []size{burstSize, enduranceSize, fileSize} {
		if s.Name == name {
			return s, true
		}
	}
	return size{}, false
}

// runner runs the pack.
type runner struct {
	Options
	size      size
	levels    []cpu.Level
	operators []operator
	rounds    int // of a burst

	// fault, unless nil, changes results at a level, in tests.
	fault func(l cpu.Level, repetition int, name string, j *job)
}

// Run runs the pack at all levels of kernels that the processor has, until there is a wrong
// result or all is done. If ctx ends first the verdict is [Incomplete]. The level in use must
// not be changed meanwhile.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := runner{Options: o, size: burstSize, levels: cpu.Levels(), rounds: burst}
	if o.For > 0 {
		r.size = enduranceSize
	}
	r.operators = operatorsOf(r.size)
	return r.run(ctx)
}

func (r *runner) run(ctx context.Context) (*Result, error) {
	v := r.newResult()
	start := time.Now()
	defer func() { v.Seconds = time.Since(start).Seconds() }()
	for repetition := 0; ; repetition++ {
		for i, o := range r.operators {
			f, err := r.one(ctx, o, repetition, &v.Operators[i])
			switch {
			case ctx.Err() != nil:
				return v, nil // as it was: incomplete
			case err != nil:
				return nil, err
			case f != nil:
				v.Outcome, v.Failure = Fail, f
				return v, nil
			}
			r.report(time.Since(start), repetition*len(r.operators)+i+1)
		}
		v.Repetitions++
		if r.For > 0 && time.Since(start) >= r.For || r.For <= 0 && v.Repetitions == r.rounds {
			v.Outcome = Pass
			return v, nil
		}
	}
}

func (r *runner) report(elapsed time.Duration, done int) {
	if r.Progress == nil {
		return
	}
	at, total := int64(done), int64(r.rounds*len(r.operators))
	if r.For > 0 {
		at, total = min(elapsed.Milliseconds(), r.For.Milliseconds()), r.For.Milliseconds()
	}
	r.Progress.Progress("selftest", at, total)
}

// one runs an operator at all levels with the operands of a repetition.
func (r *runner) one(
	ctx context.Context, o operator, repetition int, count *Operator,
) (*Failure, error) {
	j := o.prepare(keyOf(r.Seed, o.name, repetition), r.size)
	var first []byte
	for _, l := range r.levels {
		if err := r.at(ctx, l, j); err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, err)
		}
		if r.fault != nil {
			r.fault(l, repetition, o.name, j)
		}
		f, sum := j.check()
		if f == nil && j.bytes != nil {
			f = compareBits(&first, j.bytes())
			if want, ok := recorded(r.Seed, repetition, r.size, o.name); ok && f == nil && sum != want {
				f = &Failure{Place: "all of the result", Expected: want, Got: sum}
			}
		}
		if f != nil {
			f.Operator, f.Level, f.Seed, f.Repetition = o.name, l.String(), r.Seed, repetition
			return f, nil
		}
		if repetition == 0 {
			count.Checksum = sum
		}
		count.Elements += j.elements()
	}
	count.Repetitions++
	return nil, nil
}

// at runs a job at a level.
func (r *runner) at(ctx context.Context, l cpu.Level, j *job) (err error) {
	restore, err := cpu.Force(l)
	if err != nil {
		return err
	}
	defer restore()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic at level %v: %v", l, p)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	return j.run(ctx)
}

// keyOf mixes what operands depend on.
func keyOf(seed uint64, name string, repetition int) uint64 {
	var h uint64
	for _, c := range []byte(name) {
		h = random.Mix(h ^ uint64(c))
	}
	return random.Hash(seed, h, uint64(repetition))
}

// below returns number (a, b) of those of a key that are drawn from 0 to n-1.
func below(key, a, b uint64, n int) int {
	return int(random.Hash(key, a, b) >> 33 % uint64(n))
}
