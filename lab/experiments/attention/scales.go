package attention

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/lab"
)

// Kinds of operands for which scales are compared.
const (
	plainKind   = "normal"
	outlierKind = "outliers of one value in 1000"
	tokenKind   = "one token in 100 ten times larger"
	keyKind     = "a key 2^16 times larger, out of the window"
	valueKind   = "a value 2^16 times larger, out of the window"
)

func kinds() []string { return []string{plainKind, outlierKind, tokenKind, keyKind, valueKind} }

// granularities are how many tokens share a scale.
func granularities() []recipe {
	return []recipe{
		{name: "tensor", offset: 8},
		{"128 tokens", blocks(), 8},
		{"token", tokens(), 8},
	}
}

// scaled is what scales of a granularity lose.
type scaled struct {
	kind, of string
	relative float64
}

func (s *study) scaleJobs() []job {
	rows, keys := lab.Pick(s.o, 64, 64, 8), lab.Pick(s.o, 2048, 2048, 256)
	const dim = 128
	scale := 1 / math.Sqrt(dim)
	var jobs []job
	for _, kind := range kinds() {
		jobs = append(jobs, job{"scales, " + kind, 4 * rows * keys * 2 * dim, func(ctx context.Context) error {
			next := generator(s.o.Seed, forScales)
			draw := next.NormFloat64
			if kind == outlierKind {
				draw = outliers(next)
			}
			a := random(rows, keys, dim, dim, draw)
			mask := enlarge(a, kind)
			exact := a.exact(scale, mask, s.o.Workers)
			for _, r := range granularities() {
				d, err := s.loss(ctx, r, a, scale, mask, exact, s.o.Seed)
				if err != nil {
					return err
				}
				s.scales = append(s.scales, scaled{kind, r.name, d.relative})
			}
			return nil
		}})
	}
	return jobs
}

// enlarge makes tokens larger, as the kind has it, and returns what is masked.
func enlarge(a *operands, kind string) (mask attention.Mask) {
	switch kind {
	case tokenKind:
		for t := 0; t < a.keys; t += 100 {
			multiply(a.k[t*a.dim:][:a.dim], 10)
			multiply(a.v[t*a.valueDim:][:a.valueDim], 10)
		}
		return mask
	case keyKind:
		multiply(a.k[:a.dim], 1<<16)
	case valueKind:
		multiply(a.v[:a.valueDim], 1<<16)
	default:
		return mask
	}
	// The first query sees what is before it but for the first key.
	mask.Window = &attention.Window{Left: a.keys - a.queries - 1, Right: -1}
	return mask
}

func multiply(x []float32, factor float32) {
	for i := range x {
		x[i] *= factor
	}
}

// scaledBy returns the error of a kind under scales of a granularity.
func (s *study) scaledBy(kind, of string) float64 {
	for _, x := range s.scales {
		if x.kind == kind && x.of == of {
			return x.relative
		}
	}
	return math.NaN()
}
