package attention

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
)

// madeUp is a study in which everything is as claimed, or the opposite.
func madeUp(claimed bool) *study {
	pick := func(as, not float64) float64 {
		if claimed {
			return as
		}
		return not
	}
	s := &study{o: lab.Options{}, caching: madeUpCaching(claimed)}
	for i, of := range deviations {
		s.spreads = append(s.spreads,
			spread{of: of, lift: highLazy, relative: pick(published2694[highLazy][i], 0.01)},
			spread{of: of, lift: lowLazy, relative: pick(published2694[lowLazy][i], 0.9)},
			spread{of: of, lift: highStrict, relative: pick(0.01, 1)},
			spread{of: of, lift: highBarely, relative: pick(0.011, 2)})
	}
	for _, factor := range []float64{1, 256} {
		for _, delta := range flushDeltas {
			f := flush{factor: factor, delta: delta, ratio: pick(4, 1)}
			f.expected = f.formula()
			f.forward, f.reverse = pick(f.formula(), 0.3), pick(0, 0.3)
			if !claimed && delta == flushDeltas[len(flushDeltas)-1] {
				f.forward = 0.6
			}
			s.flushes = append(s.flushes, f)
		}
	}
	for _, values := range []string{centred, oneSign} {
		for i, keys := range s.lengths() {
			for adder := range adders() {
				d := deviation{relative: 0.01}
				if adder == carried {
					d.relative, d.bias = pick(0.01*float64(1+10*i), 0.01), pick(-0.1, 0.1)
				} else if adder == promoted {
					d.relative = pick(0.01, 0.1)
				}
				s.growths = append(s.growths, growth{values, keys, adder, d})
			}
		}
	}
	for recipe := range fa3Recipes() {
		s.rotations = append(s.rotations, rotation{128, 8192, recipe, []float64{[]float64{
			pick(publishedTensor, 1), pick(0.02, 0.2), pick(publishedFA3, 1), pick(publishedFA3, 2)}[recipe]}})
	}
	for _, bias := range biases {
		s.smoothing = append(s.smoothing, smoothed{bias, pick(0.02*(1+bias), 0.02), pick(0.02, 0.5), pick(0.1, 0.02)})
	}
	for _, kind := range kinds() {
		for _, r := range granularities() {
			x := scaled{kind, r.name, pick(0.03, 0.1)}
			if r.name == "token" {
				x.relative = pick(0.03, 0.01)
			}
			switch {
			case kind == valueKind:
				x.relative = pick(1, 0.1)
			case kind == keyKind && r.name == "token":
				x.relative = pick(0.003, 1)
			}
			s.scales = append(s.scales, x)
		}
	}
	for seed := range declared().Hypotheses[0].Sample {
		s.draws = append(s.draws, shaken(s, seed))
	}
	return s
}

// shaken is a draw of which each figure is a little off, since values that are all equal
// decide nothing.
func shaken(s *study, seed int) *study {
	d, n := *s, 0
	shake := func(figures ...*float64) {
		for _, x := range figures {
			n++
			*x += 1e-6 * *x * math.Sin(float64(7*seed+n))
			*x += 1e-9 * math.Sin(float64(5*seed+n))
		}
	}
	d.spreads, d.flushes, d.growths = slices.Clone(s.spreads), slices.Clone(s.flushes), slices.Clone(s.growths)
	d.rotations, d.smoothing, d.scales = slices.Clone(s.rotations), slices.Clone(s.smoothing), slices.Clone(s.scales)
	for i := range d.spreads {
		shake(&d.spreads[i].relative)
	}
	for i := range d.flushes {
		shake(&d.flushes[i].forward, &d.flushes[i].reverse, &d.flushes[i].ratio)
	}
	for i := range d.growths {
		shake(&d.growths[i].relative, &d.growths[i].bias)
	}
	for i := range d.rotations {
		d.rotations[i].roots = slices.Clone(d.rotations[i].roots)
		shake(&d.rotations[i].roots[0])
	}
	for i := range d.smoothing {
		shake(&d.smoothing[i].plain, &d.smoothing[i].smooth, &d.smoothing[i].rotated)
	}
	for i := range d.scales {
		shake(&d.scales[i].relative)
	}
	return &d
}

// madeUpCaching has as many windows as were declared, of two models, whose costs differ by 1e-5.
func madeUpCaching(claimed bool) *caching {
	c := &caching{config: training.Llama(32, 2, 512)}
	for model := range 2 {
		m := &cachedModel{seed: uint64(model + 1)}
		for way := range keepings() {
			var windows [][]float64
			for w := range 256 {
				losses := []float64{2, 1.9, 1.8, 1.7, 1.75}
				for part := range losses {
					cost := 1e-5*float64(w%2*2-1) - 1e-6*float64(part)
					switch {
					case way == inBF16 && claimed:
						cost = 0
					case way == inBF16:
						cost = 0.5 * float64(part) // no easier
					case way >= tooLarge && claimed:
						cost = 0.1
					case way >= tooLarge:
						cost = 0.5 * float64(part)
					case !claimed:
						cost = 0.003 + 0.5*float64(part) + 0.01*float64(part*way)
					}
					losses[part] += cost + 1e-7*math.Sin(float64(7*w+5*way+part))
				}
				windows = append(windows, losses)
			}
			m.losses = append(m.losses, windows)
		}
		c.models = append(c.models, m)
	}
	return c
}

func TestGoals(t *testing.T) {
	labtest.Declared(t, Experiment, madeUp(true).report())
	for _, g := range madeUp(true).report().Goals {
		require.Contains(t, []report.Outcome{report.Met, report.Caught}, g.Outcome, "%s: %s (wanted: %s)", g.Name, g.Got, g.Want)
	}
	for _, g := range madeUp(false).report().Goals {
		require.Contains(t, []report.Outcome{report.Missed, report.NotCaught}, g.Outcome, "%s: %s (wanted: %s)", g.Name, g.Got, g.Want)
	}
}

func TestSentencesFollow(t *testing.T) {
	labtest.Outcomes(t, madeUp(true).report(), madeUp(false).report())
}
