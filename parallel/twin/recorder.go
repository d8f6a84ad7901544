package twin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// Place is where values of a step are.
type Place struct {
	Tensor string

	// Part is the part of the batch or of the model that the tensor belongs to, such as the
	// number of a sequence: whatever the layout, it is the same. What is whole is part 0.
	Part int

	// Rank has the values. It does not tell them apart: ranks with the same Tensor and Part
	// have copies.
	Rank int

	// Phase is when in a step it comes about. Of what differs the lowest Phase is named
	// first; within one, what a rank recorded first of a part.
	Phase int
}

// The phases of a step of training, for [Place].
const (
	PhaseScales    = iota // what a step begins with
	PhaseGradients        // activations and gradients of parts of a batch
	PhaseMeans            // gradients of the whole batch
	PhaseWeights          // what the step has moved
)

// Digest is the SHA-256 of the bits of values, little end first.
type Digest [sha256.Size]byte

// Recorder hears of the values of a run. Make one with [Record]. Safe for concurrent use,
// but for [Recorder.EndStep], which comes when all else has returned.
type Recorder struct {
	mutex   sync.Mutex
	step    int
	entries map[key]*entry
	counts  map[Place]int // how often a place was recorded in the step

	steps []Step
	apart *drift

	against []Step         // what a step must be; nil: anything
	met     map[key]*entry // of the first step that is not
	last    int            // step after which it is enough; -1: none
	watch   func(step int, k key, e *entry, c held, values []float32)
}

// key tells values of a step apart.
type key struct {
	tensor string
	part   int
	time   int // 0 where it is the first of its name in the step
}

// entry is what there is of a key: copies of ranks.
type entry struct {
	phase, sequence int
	elements        int
	copies          []held
}

// held is the copy of a rank.
type held struct {
	rank   int
	digest Digest
}

// Step is what a step had.
type Step struct {
	Digest  Digest
	Tensors int // copies count once
}

func newRecorder() *Recorder {
	return &Recorder{entries: map[key]*entry{}, counts: map[Place]int{}, last: -1}
}

// Step returns the number of steps that have ended.
func (r *Recorder) Step() int { return r.step }

// Record records values, which are not kept. What has the same Tensor, Part and Rank in a
// step as something before is its second, third, ... time.
func (r *Recorder) Record(p Place, values []float32) {
	digest := digestOf(values)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	lane := Place{Part: p.Part, Rank: p.Rank, Phase: p.Phase}
	sequence := r.counts[lane]
	r.counts[lane]++
	named := p
	named.Phase = -1 // of no lane
	k := key{p.Tensor, p.Part, r.counts[named]}
	r.counts[named]++
	e := r.entries[k]
	if e == nil {
		e = &entry{phase: p.Phase, sequence: sequence, elements: len(values)}
		r.entries[k] = e
	}
	e.sequence = min(e.sequence, sequence)
	c := held{p.Rank, digest}
	e.copies = append(e.copies, c)
	if r.watch != nil {
		r.watch(r.step, k, e, c, values)
	}
}

// digestOf hashes values a piece at a time.
func digestOf(values []float32) (d Digest) {
	h := sha256.New()
	var buf [4096]byte
	for len(values) > 0 {
		n := min(len(values), len(buf)/4)
		for i, v := range values[:n] {
			binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(v))
		}
		h.Write(buf[:4*n])
		values = values[n:]
	}
	h.Sum(d[:0])
	return d
}

// EndStep ends a step. It returns an error where the run need not go on, which a [Run] returns
// as any other, or the error of a context that has ended.
func (r *Recorder) EndStep(ctx context.Context) error {
	if err := meter.Err(ctx); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, e := range r.entries {
		slices.SortFunc(e.copies, func(a, b held) int { return cmp.Compare(a.rank, b.rank) })
	}
	done := r.digest()
	r.steps = append(r.steps, done)
	if r.apart == nil {
		r.apart = r.findApart()
	}
	if r.against != nil && (r.step >= len(r.against) || r.against[r.step] != done) {
		r.met = r.entries
		return errEnough
	}
	r.step++
	r.entries, r.counts = map[key]*entry{}, map[Place]int{}
	if r.last >= 0 && r.step > r.last {
		return errEnough
	}
	return nil
}

// digest is that of the step: of each place the copy of most ranks, and all copies where
// they are not one.
func (r *Recorder) digest() Step {
	h := sha256.New()
	for _, k := range r.keys() {
		e := r.entries[k]
		fmt.Fprintf(h, "%q %d %d\n", k.tensor, k.part, k.time)
		most, odd := e.most()
		h.Write(most.digest[:])
		if odd == nil {
			continue
		}
		for _, c := range e.copies {
			h.Write(c.digest[:])
		}
	}
	s := Step{Tensors: len(r.entries)}
	h.Sum(s.Digest[:0])
	return s
}

// keys returns those of the step in an order that depends on nothing but them.
func (r *Recorder) keys() []key {
	keys := make([]key, 0, len(r.entries))
	for k := range r.entries {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b key) int {
	return cmp.Or(
		cmp.Compare(a.tensor, b.tensor), cmp.Compare(a.part, b.part), cmp.Compare(a.time, b.time),
	)
}

// most returns the copy that most ranks have, that of the lowest rank if several are as
// frequent, and the first that is another, if there is one. Copies are in order of ranks.
func (e *entry) most() (most held, odd *held) {
	best := 0
	for _, c := range e.copies {
		n := 0
		for _, other := range e.copies {
			if other.digest == c.digest {
				n++
			}
		}
		if n > best {
			most, best = c, n
		}
	}
	for i, c := range e.copies {
		if c.digest != most.digest {
			return most, &e.copies[i]
		}
	}
	return most, nil
}

// before reports whether e comes before another entry in a step. Ranks do not count.
func (e *entry) before(k key, other *entry, otherKey key) bool {
	return cmp.Or(
		cmp.Compare(e.phase, other.phase), cmp.Compare(e.sequence, other.sequence),
		cmp.Compare(k.part, otherKey.part), compareKeys(k, otherKey),
	) < 0
}

// drift is where copies of ranks first differ.
type drift struct {
	step      int
	key       key
	most, odd held
}

// findApart returns the first place of the step of which copies differ.
func (r *Recorder) findApart() *drift {
	var first *drift
	var of *entry
	for _, k := range r.keys() {
		e := r.entries[k]
		most, odd := e.most()
		if odd == nil || first != nil && !e.before(k, of, first.key) {
			continue
		}
		first, of = &drift{r.step, k, most, *odd}, e
	}
	return first
}
