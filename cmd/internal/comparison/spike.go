package comparison

import "github.com/octavo-fp8/octavo/train"

// Spike is a loss or a gradient norm far above those before it. Steps that were
// skipped have none.
type Spike struct {
	Model, Series string
	Shared        bool `json:"-"` // both models have it in the same step; it has no suspect then
	train.Spike
}

// markShared marks the spikes that both models have in the same step and series. Both
// saw the same batch: it, or what both models have learned, explains what happened to
// both, and nothing that FP8 lost has to.
func markShared(spikes []Spike) {
	type place struct {
		series string
		step   int64
	}
	models := map[place]string{}
	shared := map[place]bool{}
	for _, s := range spikes {
		at := place{s.Series, s.Step}
		if other, ok := models[at]; ok && other != s.Model {
			shared[at] = true
		}
		models[at] = s.Model
	}
	for i := range spikes {
		if s := &spikes[i]; shared[place{s.Series, s.Step}] {
			s.Shared, s.Suspect = true, nil
		}
	}
}
