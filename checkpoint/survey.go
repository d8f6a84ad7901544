package checkpoint

import (
	"context"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// surveyAll finds the amax of every group of targets that needs one.
func surveyAll(ctx context.Context, targets []*Target, o Options) error {
	var groups []*group
	seen := map[*group]bool{}
	for _, t := range targets {
		if g := t.group; g != nil && !seen[g] && t.Scheme != nil {
			seen[g] = true
			g.mu.Lock()
			if !g.known {
				groups = append(groups, g)
			}
			g.mu.Unlock()
		}
	}
	return survey(ctx, groups, o)
}

// survey finds the amax of groups.
func survey(ctx context.Context, groups []*group, o Options) error {
	var strips []span
	for i, g := range groups {
		for _, s := range g.spans(o.strip()) {
			s.target = i
			strips = append(strips, s)
		}
	}
	amaxes := make([]float32, len(groups))
	var mu sync.Mutex
	err := eachStrip(ctx, o, "survey", strips, func(s *scratch, i int) error {
		p := strips[i]
		a, err := s.amax(groups[p.target].weights[p.part], p.matrix, p.lo, p.hi)
		mu.Lock()
		defer mu.Unlock()
		amaxes[p.target] = larger(amaxes[p.target], a)
		return err
	})
	if err != nil {
		return err
	}
	for i, g := range groups {
		g.mu.Lock()
		g.amax, g.known = amaxes[i], true
		g.mu.Unlock()
	}
	return nil
}

// size returns how many bytes it takes to survey a group; 0 if that was done.
func (g *group) size(strip int) (n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known {
		return 0
	}
	for _, s := range g.spans(strip) {
		n += s.size
	}
	return n
}

// spans cuts the weights of a group into strips, of which part is the weight.
func (g *group) spans(strip int) (spans []span) {
	for i, w := range g.weights {
		matrices, rows, cols := w.Dims()
		for _, s := range spansOf(w, matrices, rows, cols, stripRows(w, rows, cols, tensor.Block{Rows: 1}, strip)) {
			s.part = i
			spans = append(spans, s)
		}
	}
	return spans
}

// larger returns the larger of two magnitudes, NaN if one is NaN.
func larger(a, b float32) float32 {
	if a != a || b != b {
		return float32(math.NaN())
	}
	return max(a, b)
}

// amax returns the largest magnitude in rows of a weight, NaN if there is a NaN.
func (s *scratch) amax(w *Weight, matrix, lo, hi int) (float32, error) {
	switch valuesOf(w) {
	case safetensors.BF16:
		return amaxOf(s, w, matrix, lo, hi, &s.halves)
	case safetensors.F16:
		return amaxOf(s, w, matrix, lo, hi, &s.floats16)
	}
	return amaxOf(s, w, matrix, lo, hi, &s.floats)
}

func amaxOf[T fp8.Float](s *scratch, w *Weight, matrix, lo, hi int, buffer *[]T) (float32, error) {
	_, _, cols := w.Dims()
	*buffer = grow(*buffer, (hi-lo)*cols)
	if err := ReadValues(&s.reader, w, matrix, lo, *buffer); err != nil {
		return 0, err
	}
	a, nan := fp8.Amax(*buffer)
	if nan {
		a = float32(math.NaN())
	}
	return a, nil
}
