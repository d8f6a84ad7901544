package evaluate

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
)

// local measures what linear layers lose of their output, each with the inputs that the model
// has in FP32.
type local struct {
	slots   []slot
	names   map[string]int // of the slots
	runs    []func(slot) nn.Options
	ratios  [][]ratio // of each run and slot
	workers int

	measured []bool // whether a slot has had an input

	// What its layers share, and nothing with those of the model, which is in the middle of
	// its work when they are called.
	shared nn.Shared

	want, got []float32
}

// ratio is the energy of a signal and of the noise in it.
type ratio struct{ signal, noise float64 }

// decibels returns the ratio of both.
func (r ratio) decibels() jsonfloat.Number {
	if r.signal == 0 {
		return jsonfloat.Number(math.NaN())
	}
	return jsonfloat.Number(10 * math.Log10(r.signal/r.noise))
}

// newLocal returns what measures runs.
func newLocal(r *runner, runs []func(slot) nn.Options) *local {
	l := &local{slots: r.slots, names: map[string]int{}, runs: runs, workers: r.config.Workers}
	l.measured = make([]bool, len(r.slots))
	for i, s := range r.slots {
		l.names[s.name] = i
	}
	for range runs {
		l.ratios = append(l.ratios, make([]ratio, len(r.slots)))
	}
	return l
}

// measure adds what all runs make of the input of the layer in a slot.
func (l *local) measure(ctx context.Context, i int, x []float32, rows int) error {
	l.measured[i] = true
	n := rows * l.slots[i].plain.Weight.Rows
	want, got := sized(&l.want, n), sized(&l.got, n)
	if err := l.product(ctx, want, x, rows, i, nn.Options{}); err != nil {
		return err
	}
	for run, options := range l.runs {
		if err := l.product(ctx, got, x, rows, i, options(l.slots[i])); err != nil {
			return err
		}
		l.ratios[run][i].add(want, got, rows, l.workers)
	}
	return nil
}

// product writes what the layer in a slot makes of x with other options.
func (l *local) product(ctx context.Context, y, x []float32, rows, i int, o nn.Options) error {
	o.Shared, o.Workers = &l.shared, l.workers
	plain := l.slots[i].plain
	layer, err := nn.NewLinearOf(plain.Weight.Name, plain.Weight, o)
	if err != nil {
		return err
	}
	layer.Bias = plain.Bias
	return layer.Forward(ctx, y, x, rows)
}

// add adds the energies of rows, each of which one goroutine sums, in order.
func (r *ratio) add(want, got []float32, rows, workers int) {
	cols := len(want) / rows
	of := make([]ratio, rows)
	parallel.For(rows, rowGrain, workers, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			for i := row * cols; i < (row+1)*cols; i++ {
				x := float64(want[i])
				d := float64(got[i]) - x
				of[row].signal += float64(x * x)
				of[row].noise += float64(d * d)
			}
		}
	})
	for _, row := range of {
		r.signal += row.signal
		r.noise += row.noise
	}
}
