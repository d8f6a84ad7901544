package inspect

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// attempt encodes values into t.
type attempt func(ctx context.Context, values tensorfile.Array, t *tensor.Tensor, o tensor.Options) error

// tryRecipe quantizes, under an outer scale of the given amax unless that is nil.
func tryRecipe(r scaling.Recipe, outer []float32) attempt {
	return func(ctx context.Context, values tensorfile.Array, t *tensor.Tensor, o tensor.Options) error {
		return values.Quantize(ctx, t, scaling.Quantizer{Recipe: r, OuterAmax: outer, Options: o})
	}
}

// tryScale is tryRecipe under a scale that is known.
func tryScale(r scaling.Recipe, s fp8.Scale) attempt {
	return func(ctx context.Context, values tensorfile.Array, t *tensor.Tensor, o tensor.Options) error {
		t.Format, t.Block = r.Format, tensor.Block{}
		return values.Encode(ctx, t, tensor.Quantizer{
			Scale:       func(int, float32, bool) fp8.Scale { return s },
			ScaleFormat: r.Profile.ScaleFormat(),
			Policy:      r.EncodePolicy(),
			Options:     o,
		})
	}
}

// encode says what becomes of a strip by each of some attempts.
func (in *inspector) encode(w *worker, m *measurement, s span, values, wide tensorfile.Array, tries []attempt) (all []encoded, err error) {
	t := &w.tensor
	for _, try := range tries {
		var st fp8.Stats
		t.Name, t.Shape = m.info.Name, append(t.Shape[:0], s.hi-s.lo, m.plan.cols)
		if err := try(in.ctx, values, t, tensor.Options{Stats: &st, Workers: 1}); err != nil {
			return nil, err
		}
		e := encoded{
			saturated: st.Saturated(), flushed: st.Flushed, becameNonFinite: st.BecameNonFinite, subnormal: st.Subnormal,
			scaleMin: slices.Min(t.Scales), scaleMax: slices.Max(t.Scales),
		}
		w.noise = in.decoder.BlockNoise(w.noise[:0], wide, st.NonFinite() == 0, t)
		e.compare(w.noise, w.energy, (m.plan.cols-1)/loss.BlockCols+1)
		all = append(all, e)
	}
	return all, nil
}
