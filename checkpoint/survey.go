package checkpoint

import (
	"context"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
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
	type part struct {
		span
		w     *Weight
		group int
	}
	var parts []part
	total := int64(0)
	for i, g := range groups {
		for _, w := range g.weights {
			matrices, rows, cols := w.Dims()
			for _, s := range spansOf(w, matrices, rows, cols, tensor.Block{Rows: 1}, o.strip()) {
				parts = append(parts, part{s, w, i})
				total += s.size
			}
		}
	}
	amaxes := make([]float32, len(groups))
	var mu sync.Mutex
	var m meter.Meter
	m.Start(ctx, o.Progress, "survey", total)
	err := new(pool).run(o.Workers, len(parts), func(s *scratch, i int) error {
		p := parts[i]
		a, err := s.amax(p.w, p.matrix, p.lo, p.hi)
		if err != nil {
			return err
		}
		mu.Lock()
		amaxes[p.group] = larger(amaxes[p.group], a)
		mu.Unlock()
		return m.Add(p.size)
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
	for _, w := range g.weights {
		matrices, rows, cols := w.Dims()
		for _, s := range spansOf(w, matrices, rows, cols, tensor.Block{Rows: 1}, strip) {
			n += s.size
		}
	}
	return n
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
