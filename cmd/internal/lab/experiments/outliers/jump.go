package outliers

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

// jumpCase is a way to quantize that an outlier takes by surprise.
type jumpCase struct {
	name      string
	fp8       *nn.FP8
	smoothing *swiglu.Smoothing
}

func jumpCases() []jumpCase {
	cases := []jumpCase{{name: "FP32"}}
	for _, margin := range []int{0, lateMargin} {
		for i, how := range smoothings {
			cases = append(cases, jumpCase{name: jumpName(i, margin), fp8: lateRecipes(margin), smoothing: how.way})
		}
	}
	return append(cases,
		jumpCase{name: "just in time", fp8: currentRecipes()},
		jumpCase{name: "blocks", fp8: blockRecipes()})
}

// jumpName is that of a delayed case: of a way in smoothings, under a margin.
func jumpName(smoothing, margin int) string {
	return fmt.Sprintf("%s, margin %d", smoothings[smoothing].name, margin)
}

// jumpFigures are what a case does when gains have grown since the last refresh.
type jumpFigures struct {
	name string
	at   []jumpPoint
}

type jumpPoint struct {
	gain      float64
	loss      float64 // held-out
	reach     float64 // how far the largest input of a down projection is beyond what its scale holds
	saturated float64 // share of it
}

// jumpGains are those that outliers reach between two refreshes.
var jumpGains = []float64{1, 2, 4, 8, 12, 16, 32}

// jump lets gains grow at once, with the scales of the weights before: no step ends.
func (s *study) jump(ctx context.Context) error {
	cases := jumpCases()
	s.jumps = make([]jumpFigures, len(cases))
	return training.SideBySide(ctx, s.options, len(cases), func(ctx context.Context, index, workers int) error {
		var err error
		if s.jumps[index], err = s.jumpOf(ctx, cases[index], workers); err != nil {
			return err
		}
		return s.progress.Done(ctx, "jumps, "+cases[index].name, int64(s.jumpWork()))
	})
}

// settling is how many batches show delayed scales the weights before.
const settling = 4

// jumpWork is that of a case in training steps, each of which takes as long as three
// forward passes.
func (s *study) jumpWork() int { return (settling + len(jumpGains)*s.setup.Judged) / 3 }

func (s *study) jumpOf(ctx context.Context, c jumpCase, workers int) (jumpFigures, error) {
	figures := jumpFigures{name: c.name}
	cfg := s.base.Model.Config()
	cfg.FP8, cfg.Smoothing, cfg.Workers = c.fp8, c.smoothing, workers
	m, err := nn.NewLlama(cfg, 0)
	if err != nil {
		return figures, err
	}
	if err := s.settle(ctx, m); err != nil {
		return figures, err
	}
	seen := make([]stepFigures, len(jumpGains))
	recorder := telemetry.New(downInputs{seen})
	m.Listen(recorder)
	for i, gain := range jumpGains {
		s.grown(m, gain)
		loss, err := s.lossOf(ctx, m)
		if err != nil {
			return figures, err
		}
		if err := recorder.Step(int64(i) + 1); err != nil {
			return figures, err
		}
		figures.at = append(figures.at, jumpPoint{gain, loss, seen[i].reach(), seen[i].saturated})
	}
	return figures, nil
}

// settle shows delayed scales the weights before and a few batches. The first one
// they meet with a scale of 1; what they then see downstream may be wrong.
func (s *study) settle(ctx context.Context, m *nn.Llama) error {
	copyParams(m, s.base.Model)
	for i := range settling {
		tokens, targets, err := s.setup.Corpus.Batch(s.plan.base+s.plan.heal+i, s.setup.Batch, s.setup.Seq)
		if err != nil {
			return err
		}
		if _, err := m.Loss(ctx, tokens, targets, s.setup.Batch, s.setup.Seq); err != nil {
			return err
		}
		if i == 0 {
			m.EndStep()
		}
	}
	m.EndStep()
	return nil
}

// lossOf returns the held-out loss, of which the model's listener hears.
func (s *study) lossOf(ctx context.Context, m *nn.Llama) (mean float64, err error) {
	for i := range s.setup.Judged {
		tokens, targets, err := s.setup.Corpus.HeldOut(i, s.setup.Batch, s.setup.Seq)
		if err != nil {
			return 0, err
		}
		loss, err := m.Loss(ctx, tokens, targets, s.setup.Batch, s.setup.Seq)
		if err != nil {
			return 0, err
		}
		mean += float64(loss) / float64(s.setup.Judged)
	}
	return mean, nil
}
