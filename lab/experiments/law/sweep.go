package law

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

// arm is a model of the sweep.
type arm struct {
	name string
	pays int // bits that its width is paid for: parameters times these are the same in all
	training.Arithmetic

	weights, activations int // bits in the forward pass

	half bool // it is trained for half as long
	once bool // on the whole text, of which it sees nothing twice; else on a cut of it, often
}

// Names of arms that goals are about. Those of one cost pay for what they multiply in; full
// is FP32 in the width of so many bits.
const (
	bf16        = "BF16"
	fp8         = "FP8 E4M3"
	fp6         = "FP6 E3M2"
	fp6m        = "FP6 E2M3"
	fp4         = "FP4 E2M1"
	fp4Forward  = "FP4 forward"
	fp4Weights  = "FP4 weights"
	threeBits   = "3 bits E1M1"
	halfTrained = "FP32, width of 8 bits, half the steps"
)

// full names FP32 in the width that so many bits pay for.
var full = map[int]string{
	32: "FP32", 16: "FP32, width of 16 bits", 8: "FP32, width of 8 bits",
	6: "FP32, width of 6 bits", 4: "FP32, width of 4 bits",
}

// arms are all models of a seed: first those on a cut of the text.
func arms() (all []arm) {
	add := func(name string, pays int, a training.Arithmetic, weights, activations int) {
		all = append(all, arm{name: name, pays: pays, Arithmetic: a, weights: weights, activations: activations})
	}
	for _, bits := range paidFor {
		add(full[bits], bits, training.FP32(), 32, 32)
	}
	add(bf16, 16, training.BF16(), 16, 16)
	add(fp8, 8, rounded(nn.NarrowE4M3, all3), 8, 8)
	add(fp6, 6, rounded(nn.NarrowE3M2, all3), 6, 6)
	add(fp6m, 6, rounded(nn.NarrowE2M3, all3), 6, 6)
	add(fp4, 4, rounded(nn.NarrowE2M1, all3), 4, 4)
	add(fp4Forward, 4, rounded(nn.NarrowE2M1, forward), 4, 4)
	add(fp4Weights, 4, rounded(nn.NarrowE2M1, weightsOnly), 4, 32)
	add(threeBits, 4, rounded("E1M1", all3), 3, 3)
	add(halfTrained, 8, training.FP32(), 32, 32)
	all[len(all)-1].half = true
	for _, a := range all {
		if slices.Contains([]string{full[32], bf16, fp8, fp6, fp4}, a.name) {
			a.name, a.once = a.name+", once", true
			all = append(all, a)
		}
	}
	return all
}

// operands are those of an operand's products that are rounded.
type operands uint8

const (
	weightsOnly operands = iota + 1
	forward              // weights and inputs, in both passes: as Kumar et al. do
	all3                 // gradients too: as hardware does
)

// rounded multiplies in FP32 what was rounded to a format, gradients at random.
func rounded(f nn.NarrowFormat, which operands) training.Arithmetic {
	return training.Arithmetic{Name: string(f), Use: func(c *nn.Config) {
		r := nn.DefaultRounding(f)
		r.Stochastic = true
		if which < all3 {
			r.Gradient, r.Stochastic = nn.Narrowing{}, false
		}
		if which < forward {
			r.Input = nn.Narrowing{}
		}
		c.Rounding = &r
	}}
}

// paidFor are the bits that widths are paid for, the widest model last.
var paidFor = []int{32, 16, 8, 6, 4}

// llama is a byte-level model that costs what one of the given width does in 8 bits, paid for
// so many: widths are multiples of 4, and the MLP makes up for what they miss.
func llama(dim, layers, context, bits int) nn.Config {
	of8 := training.Llama(dim, layers, context)
	const heads = 2
	c := nn.Config{Vocab: of8.Vocab, Layers: layers, Heads: heads, Context: context}
	const multiple = 2 * heads // each head has an even width
	c.Dim = int(math.Round(float64(dim)*math.Sqrt(8/float64(bits))/multiple)) * multiple
	layer := float64(linearParams(of8)) / float64(layers) * 8 / float64(bits)
	c.Hidden = int(math.Round((layer/float64(c.Dim) - float64(4*c.Dim)) / 3))
	return c
}

// linearParams returns the number of values in the linear layers, which are those that
// bits are saved on.
func linearParams(c nn.Config) int {
	return c.Layers * c.Dim * (4*c.Dim + 3*c.Hidden)
}

// scope is how much of the sweep is done.
type scope struct {
	seeds  int
	dim    int // of the model in 8 bits
	layers int
	cut    int // bytes of text that most arms see again and again
	training.Setup
}

// sweep is the experiment's own.
type sweep struct {
	scope
	arms   []arm
	jobs   []training.Job   // by seed and arm
	curves []training.Curve // of the jobs
	text   int              // bytes
}

func newSweep(o lab.Options) (*sweep, error) {
	s := &sweep{arms: arms(), text: len(o.Text.Data), scope: lab.Pick(o,
		scope{seeds: 6, dim: 24, layers: 2, cut: 64 << 10, Setup: training.Setup{Steps: 3000, Batch: 8, Seq: 64, Rate: 6e-3, Judged: 64}},
		scope{seeds: 2, dim: 24, layers: 2, cut: 16 << 10, Setup: training.Setup{Steps: 500, Batch: 8, Seq: 64, Rate: 6e-3, Judged: 32}},
		scope{seeds: 1, dim: 16, layers: 1, cut: 4 << 10, Setup: training.Setup{Steps: 16, Batch: 2, Seq: 32, Rate: 6e-3, Judged: 2}})}
	for i := range s.seeds {
		for _, a := range s.arms {
			if err := s.add(o, i, a); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// add adds the job of an arm and a seed, which decides on the first weights, the batches,
// the cut of the text and how gradients are rounded.
func (s *sweep) add(o lab.Options, i int, a arm) (err error) {
	seed := o.Seed + uint64(i) // after the largest comes 0
	setup := s.Setup
	if a.half {
		setup.Steps /= 2
	}
	if !a.once {
		o.Text = text.New(o.Text.Source, s.part(o.Text.Data, i))
	}
	if setup, err = training.NewSetup(o, seed, setup); err != nil {
		return err
	}
	config := llama(s.dim, s.layers, s.Seq, a.pays)
	a.Use(&config)
	if config.Rounding != nil {
		config.Rounding.Seed = seed
	}
	s.jobs = append(s.jobs, training.Job{Name: fmt.Sprintf("%s, seed %d", a.name, seed), Config: config, Seed: seed, Setup: setup})
	return nil
}

// part returns the text of a seed with what is held out of it: another for each, as long as
// there is enough.
func (s *sweep) part(data []byte, i int) []byte {
	size := s.cut + s.Judged*s.Batch*s.Seq + 1
	if len(data) <= size {
		return data
	}
	at := i * size % (len(data) - size + 1)
	return data[at : at+size]
}

// index returns the number of an arm.
func (s *sweep) index(name string) int {
	return slices.IndexFunc(s.arms, func(a arm) bool { return a.name == name })
}

// job returns the number of the job of a seed and an arm.
func (s *sweep) job(seed int, name string) int { return seed*len(s.arms) + s.index(name) }

// Losses of a run.
func trained(c training.Curve) float64 { return c.Last() } // on the text that it is trained on
func heldOut(c training.Curve) float64 { return c.HeldOut }

// bySeed returns a figure of each seed.
func (s *sweep) bySeed(figure func(seed int) float64) (values []float64) {
	for seed := range s.seeds {
		values = append(values, figure(seed))
	}
	return values
}

// losses returns those of an arm.
func (s *sweep) losses(name string, loss func(training.Curve) float64) []float64 {
	return s.bySeed(func(seed int) float64 { return loss(s.curves[s.job(seed, name)]) })
}

// over returns by how many percent the loss of an arm is above that of another, by seed.
func (s *sweep) over(a, b string, loss func(training.Curve) float64) []float64 {
	return statistics.PercentAbove(s.losses(a, loss), s.losses(b, loss))
}

// params returns N of an arm: those in its linear layers.
func (s *sweep) params(name string) float64 {
	return float64(linearParams(s.jobs[s.index(name)].Config))
}

// tokens returns D of an arm: bytes that it sees, each as often as it sees it.
func (s *sweep) tokens(name string) float64 {
	return float64(s.jobs[s.index(name)].Setup.Steps * s.Batch * s.Seq)
}

// cost returns N·P·D of an arm in terabit-bytes.
func (s *sweep) cost(name string) float64 {
	return s.params(name) * float64(s.arms[s.index(name)].pays) * s.tokens(name) / 1e12
}

// effective returns by seed which share of an arm's parameters counts: those that a model in
// FP32 needs for its loss on the text it is trained on, over those that it has.
func (s *sweep) effective(name string) []float64 {
	return s.bySeed(func(seed int) float64 {
		var sizes, losses []float64
		for _, bits := range paidFor {
			sizes = append(sizes, math.Log(s.params(full[bits])))
			losses = append(losses, trained(s.curves[s.job(seed, full[bits])]))
		}
		return math.Exp(sizeAt(sizes, losses, trained(s.curves[s.job(seed, name)]))) / s.params(name)
	})
}

// sizeAt returns the size at which a loss is reached: on lines between the two neighbours, of
// sizes that grow and losses that fall, and on the first or last line beyond.
func sizeAt(sizes, losses []float64, loss float64) float64 {
	i := 1
	for i < len(losses)-1 && loss < losses[i] {
		i++
	}
	return sizes[i-1] + (sizes[i]-sizes[i-1])*(loss-losses[i-1])/(losses[i]-losses[i-1])
}

// gain returns by seed what twice the training gains over what twice the parameters do, for
// FP32 in the width of 8 bits, which has twice the parameters of that of 16.
func (s *sweep) gain() []float64 {
	at := func(seed int, name string) float64 { return trained(s.curves[s.job(seed, name)]) }
	return s.bySeed(func(seed int) float64 {
		best := at(seed, full[8])
		return (at(seed, halfTrained) - best) / (at(seed, full[16]) - best)
	})
}
