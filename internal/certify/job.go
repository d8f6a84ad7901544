package certify

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/train"
)

// Recipe is what linear layers multiply.
type Recipe uint8

const (
	Blocks  Recipe = iota // octavo's own: 1x128 and 128x128, just in time
	Delayed               // a delayed scale for each tensor, gradients in E5M2
	Tensor                // a scale for each tensor, just in time, gradients in E5M2
	MXFP8                 // blocks of 32 under powers of two
	FP32                  // no FP8
)

var recipes = enum.Enum[Recipe]{
	Type: "Recipe", What: "recipe", Names: []string{"fp8", "te-delayed", "te-current", "mxfp8", "none"},
	Err: train.ErrInput, Prefix: "certify",
}

// Recipes returns all.
func Recipes() []Recipe { return []Recipe{Blocks, Delayed, Tensor, MXFP8, FP32} }

// String returns the name of r, such as "te-delayed".
func (r Recipe) String() string                   { return recipes.String(r) }
func (r Recipe) MarshalText() ([]byte, error)     { return recipes.MarshalText(r) }
func (r *Recipe) UnmarshalText(text []byte) error { return recipes.UnmarshalText(r, text) }

// apply sets the recipes of a configuration.
func (r Recipe) apply(c *nn.Config, seed uint64) error {
	var f nn.FP8
	switch r {
	case Blocks:
		f = nn.DefaultFP8()
	case Delayed:
		f = nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
		for _, o := range []*nn.Operands{&f.Forward, &f.InputGradient, &f.WeightGradient} {
			o.A.Delayed.Length, o.B.Delayed.Length = historyLength, historyLength
		}
	case Tensor:
		f = nn.ProfileFP8(scaling.TECurrent, fp8.E5M2)
	case MXFP8:
		named, err := nn.ParseRecipe("mxfp8")
		if err == nil {
			named.Apply(c, seed)
		}
		return err
	default:
		return nil
	}
	c.FP8 = &f
	return nil
}

// alone reports whether the forward pass of a sequence does not depend on those beside it:
// the scales of each row are its own, or known before.
func alone(f *nn.FP8) bool {
	return f == nil || f.Forward.A.PerRow() || f.Forward.A.Profile == scaling.TEDelayed
}

// The sizes of the model and of a step.
const (
	dim, depth, heads, hidden = 64, 2, 4, 160

	vocabulary = 64
	sequences  = 8  // of a batch; each is a shard in the reference
	tokens     = 16 // of a sequence

	historyLength = 4 // steps
)

// job is what is trained.
type job struct {
	cfg   nn.Config
	steps int
	seed  uint64
}

func newJob(r Recipe, steps int, seed uint64) (*job, error) {
	if steps < 1 {
		return nil, fmt.Errorf("%d steps: want at least 1", steps)
	}
	j := &job{steps: steps, seed: seed}
	j.cfg = nn.Config{
		Vocab: vocabulary, Dim: dim, Layers: depth, Heads: heads, Hidden: hidden, Context: tokens,
		Workers: 1,
	}
	return j, r.apply(&j.cfg, seed)
}

// rate is the learning rate of all steps.
const rate = 3e-3

func (j *job) optimizer() *optim.AdamW {
	return &optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: 1}
}

// shards are those of a step, of so many sequences each. Sequences repeat words, so that
// there is something to learn, and the sixth part of tokens is random.
func (j *job) shards(step, size int) (all []train.Shard) {
	for i := range sequences {
		if i%size == 0 {
			all = append(all, train.Shard{})
		}
		s := &all[len(all)-1]
		word := random.Hash(j.seed, uint64(step), uint64(i)) % 7
		token := func(k int) int32 {
			h := random.Hash(j.seed+1, uint64(step*sequences+i), uint64(k))
			if h%6 == 0 {
				return int32(h >> 32 % vocabulary)
			}
			return int32((word*9 + uint64(k)%(word+2)) % vocabulary)
		}
		for k := range tokens {
			s.Tokens, s.Targets = append(s.Tokens, token(k)), append(s.Targets, token(k+1))
		}
	}
	return all
}
