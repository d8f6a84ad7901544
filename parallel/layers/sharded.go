package layers

import (
	"math"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// sharded is what a rank has of a parameter of which ZeRO leaves it a part.
type sharded struct {
	moved *nn.Param // what the optimizer moves: that part of the FP32 weights, and its gradient
	first int       // of moved, in elements
	cuts  []int     // of all parts, one for each shard of a batch

	grads  [][]float32 // of each of the rank's shards of a batch
	memory collective.AmaxMemory
}

// newSharded returns what the rank has of a parameter that does shards [lo, hi) of a batch,
// of so many. In stage 0 it moves the parameter itself. Parts of a matrix begin at multiples
// of so many rows.
func newSharded(p *nn.Param, stage, shards, lo, hi, rows int) (s sharded) {
	units, unit, align := p.Rows, p.Cols, max(rows, 1)
	if p.Rows == 1 {
		units, unit, align = p.Cols, 1, 1
	}
	per := (units + shards - 1) / shards
	per = (per + align - 1) / align * align
	for i := range shards + 1 {
		s.cuts = append(s.cuts, min(i*per, units)*unit)
	}
	if s.moved = p; stage == 0 {
		return s
	}
	s.first = s.cuts[lo]
	n := s.cuts[hi] - s.first
	s.moved = &nn.Param{Name: p.Name, Rows: n / p.Cols, Cols: p.Cols, Decay: p.Decay}
	if p.Rows == 1 {
		s.moved.Rows, s.moved.Cols = 1, n
	}
	s.moved.Value = append([]float32{}, p.Value[s.first:s.cuts[hi]]...)
	s.moved.Grad = make([]float32, n)
	return s
}

// exchange returns x for the parameter.
func (s *sharded) exchange(x collective.Exchange, p *nn.Param) collective.Exchange {
	if x.Name, x.Cols = p.Name, 0; p.Rows > 1 {
		x.Cols = p.Cols
	}
	if x.Amax == collective.AmaxLate {
		x.Memory = &s.memory
	}
	return x
}

// reduce gives what the optimizer moves the mean gradient of all shards, of which so many
// count. r is the rank of those that share shards out.
func (s *sharded) reduce(
	r *collective.Rank, x collective.Exchange, stage int, d collective.Division, counted int,
) (err error) {
	shards := collective.Slices{Exchange: x, Count: len(s.cuts) - 1}
	shards.Cuts = s.cuts
	before, after := d.Factors(counted)
	for _, g := range s.grads {
		multiply(g, before)
	}
	if stage >= 2 {
		err = r.ReduceScatterSlices(shards, s.moved.Grad, s.grads)
	} else {
		sum := make([]float32, s.cuts[shards.Count])
		err = r.AllReduceSlices(shards, sum, s.grads)
		copy(s.moved.Grad, sum[s.first:])
	}
	multiply(s.moved.Grad, after)
	return err
}

// gather writes the weights that ranks have moved to whole.
func (s *sharded) gather(r *collective.Rank, x collective.Exchange, whole []float32) error {
	shards := collective.Slices{Exchange: x, Count: len(s.cuts) - 1}
	shards.Cuts = s.cuts
	return r.AllGatherSlices(shards, whole, s.moved.Value)
}

func multiply(values []float32, by float32) {
	for i, v := range values {
		values[i] = v * by
	}
}

// normTerm is gradients whose squares a rank adds up.
type normTerm struct {
	rank int
	name string
	grad func() []float32
}

// addNorm returns the norm of all gradients: the running sum goes from rank to rank, in the
// order in which one rank adds.
func addNorm(r *collective.Rank, terms []normTerm) (float64, error) {
	const bytes = 8
	var sum float64
	last := terms[0].rank // who has the sum
	for i, t := range terms {
		about := collective.Subject{What: "norm", Name: t.name, Part: i, Size: 1}
		if err := collective.Pass(r, last, t.rank, about, about.What, bytes, &sum); err != nil {
			return 0, err
		}
		if last = t.rank; last == r.ID() {
			for _, g := range t.grad() {
				sum += float64(float64(g) * float64(g))
			}
		}
	}
	for to := range r.Ranks() {
		about := collective.Subject{What: "norm", Part: to, Size: 1}
		if err := collective.Pass(r, last, to, about, about.What, bytes, &sum); err != nil {
			return 0, err
		}
	}
	return math.Sqrt(sum), nil
}

// isSkip reports whether a step by gradients of a norm is not taken.
func isSkip(norm float64) bool { return math.IsNaN(norm) || math.IsInf(norm, 0) }

// mergeAmaxes returns the largest of what all ranks have recorded, by way of rank 0.
func mergeAmaxes(r *collective.Rank, own nn.StepAmax) (merged nn.StepAmax, err error) {
	data, err := own.MarshalBinary()
	if err != nil {
		return own, err
	}
	about := collective.Subject{What: "amax", Name: "scales"}
	size := func(data []byte) int64 { return int64(len(data)) }
	data, err = collective.Merge(r, about, about.What, size, data, func(all [][]byte) ([]byte, error) {
		recorded := make([]nn.StepAmax, len(all))
		for i, data := range all {
			if err := recorded[i].UnmarshalBinary(data); err != nil {
				return nil, err
			}
		}
		merged, err := nn.MergeStepAmax(recorded...)
		if err != nil {
			return nil, err
		}
		return merged.MarshalBinary()
	})
	if err != nil {
		return own, err
	}
	return merged, merged.UnmarshalBinary(data)
}

var canonicalNaN = math.Float32frombits(0x7FC00000)
