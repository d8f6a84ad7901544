package attention

import "slices"

// by returns a figure of each draw.
func (s *study) by(figure func(d *study) float64) (values []float64) {
	for _, d := range s.draws {
		values = append(values, figure(d))
	}
	return values
}

// average makes what came of random operands the means over the draws.
func (s *study) average() {
	s.spreads = averages(s.draws, func(d *study) []spread { return d.spreads }, func(x *spread) []*float64 { return []*float64{&x.relative, &x.saturated} })
	s.flushes = averages(s.draws, func(d *study) []flush { return d.flushes }, func(x *flush) []*float64 { return []*float64{&x.forward, &x.reverse, &x.ratio} })
	s.growths = averages(s.draws, func(d *study) []growth { return d.growths }, func(x *growth) []*float64 { return []*float64{&x.relative, &x.bias, &x.root} })
	s.smoothing = averages(s.draws, func(d *study) []smoothed { return d.smoothing }, func(x *smoothed) []*float64 { return []*float64{&x.plain, &x.smooth, &x.rotated} })
	s.scales = averages(s.draws, func(d *study) []scaled { return d.scales }, func(x *scaled) []*float64 { return []*float64{&x.relative} })
	s.rotations = slices.Clone(s.draws[0].rotations)
	for i := range s.rotations {
		s.rotations[i].roots = nil
		for _, d := range s.draws {
			s.rotations[i].roots = append(s.rotations[i].roots, d.rotations[i].roots...)
		}
	}
}

// averages returns a list of which the figures are the means of those in the lists of draws.
func averages[T any](draws []*study, of func(*study) []T, figures func(*T) []*float64) []T {
	all := slices.Clone(of(draws[0]))
	for i := range all {
		for j, to := range figures(&all[i]) {
			*to = 0
			for _, d := range draws {
				x := of(d)[i]
				*to += *figures(&x)[j] / float64(len(draws))
			}
		}
	}
	return all
}
