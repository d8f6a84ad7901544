package evaluate

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
)

// logits are those of a window, [rows, vocab], with what is computed of each row once.
type logits struct {
	values  []float32
	vocab   int
	largest []int     // the first of the largest
	logSums []float64 // ln Σ exp; NaN where a logit is not finite
}

// rowGrain is the number of rows that a goroutine takes at a time.
const rowGrain = 4

// measure fills in what is computed of each row.
func (l *logits) measure(rows, workers int) {
	l.largest, l.logSums = make([]int, rows), make([]float64, rows)
	parallel.For(rows, rowGrain, workers, func(lo, hi int) {
		exps := make([]float32, l.vocab)
		for r := lo; r < hi; r++ {
			l.largest[r], l.logSums[r] = logSum(exps, l.row(r))
		}
	})
}

func (l *logits) row(r int) []float32 { return l.values[r*l.vocab : (r+1)*l.vocab] }

// logSum returns the place of the largest value of a row and ln Σ exp.
func logSum(exps, row []float32) (largest int, sum float64) {
	finite := true
	for i, x := range row {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			finite = false
		}
		if x > row[largest] {
			largest = i
		}
	}
	if !finite {
		return largest, math.NaN()
	}
	elementary.ExpTo(exps, row, row[largest], 1, 1)
	for _, e := range exps {
		sum += float64(e)
	}
	return largest, float64(row[largest]) + ln(sum)
}

// ln returns the natural logarithm of x, from 1 to 2^40, to within about 1e-13, the same bits
// everywhere: one step of Newton's method from the one of float32.
func ln(x float64) float64 {
	y := float64(elementary.Log(float32(x)))
	return y + (float64(x*elementary.Pow(math.E, -y)) - 1)
}

// divergence is how far the logits of a row are from those of FP32.
type divergence struct {
	loss, kl float64
	same     bool // the most likely token
	logit    float64
	where    int // the token whose logit is the farthest
}

// compare fills in the divergence of each row with a target.
func compare(d []divergence, ref, got *logits, targets []int32, workers int) {
	parallel.For(len(targets), rowGrain, workers, func(lo, hi int) {
		exps := make([]float32, ref.vocab)
		for r := lo; r < hi; r++ {
			if targets[r] != nn.IgnoreIndex {
				d[r] = compareRow(exps, ref, got, r, targets[r])
			}
		}
	})
}

func compareRow(exps []float32, ref, got *logits, r int, target int32) divergence {
	p, q := ref.row(r), got.row(r)
	d := divergence{
		loss: got.logSums[r] - float64(q[target]),
		same: ref.largest[r] == got.largest[r],
	}
	if math.IsNaN(got.logSums[r]) {
		return divergence{loss: math.NaN(), kl: math.NaN(), logit: math.NaN()}
	}
	elementary.ExpTo(exps, p, p[ref.largest[r]], 1, 1)
	sum, mean := 0.0, 0.0
	for i, e := range exps {
		difference := float64(p[i]) - float64(q[i])
		sum += float64(e)
		mean += float64(float64(e) * difference)
		if difference = math.Abs(difference); difference > d.logit {
			d.logit, d.where = difference, i
		}
	}
	d.kl = mean/sum - (ref.logSums[r] - got.logSums[r])
	return d
}
