package evaluate

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/nn"
)

// found is what has been found of a model of which some layers are quantized.
type found struct {
	loss, difference, kl    sums
	same, nonFinite         int
	largestKL, largestLogit Largest
}

// add adds a window, whose losses in FP32 are ref.
func (f *found) add(w window, divergences []divergence, ref []float64, prefix int) {
	var loss, difference, kl float64
	for row, target := range w.targets {
		if target == nn.IgnoreIndex {
			continue
		}
		d := divergences[row]
		loss += d.loss
		difference += d.loss - ref[row]
		kl += d.kl
		if math.IsNaN(d.loss) {
			f.nonFinite++
			continue
		}
		if d.same {
			f.same++
		}
		place := w.place(row, prefix)
		if d.kl > float64(f.largestKL.Value) {
			f.largestKL = Largest{Value: jsonfloat.Number(d.kl), Place: place}
		}
		if d.logit > float64(f.largestLogit.Value) {
			f.largestLogit = Largest{Value: jsonfloat.Number(d.logit), Place: place, Token: int32(d.where)}
		}
	}
	f.loss.add(loss, w.count)
	f.difference.add(difference, w.count)
	f.kl.add(kl, w.count)
}

func (f *found) cost() Cost {
	return Cost{KL: f.kl.mean(), Difference: f.difference.mean(), NonFinite: f.nonFinite}
}

// windows returns the sums of each window.
func (f *found) windows() (all []WindowSums) {
	for i, n := range f.loss.counts {
		all = append(all, WindowSums{n, jsonfloat.Number(f.loss.values[i]), jsonfloat.Number(f.kl.values[i])})
	}
	return all
}
