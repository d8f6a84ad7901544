package train

import (
	"context"
	"errors"
	"reflect"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
)

// Model is what this package needs to know of a model: [nn.Llama] is one, and any
// other that is made of the layers of package nn can be.
type Model interface {
	// Params returns all parameters, always the same ones in the same order. Their
	// names differ.
	Params() []*nn.Param

	// Shared returns what the layers of the model share, the state of their scales
	// above all: never nil, and always the same.
	Shared() *nn.Shared

	// Describe says what the model is. A checkpoint of a model is restored to one with
	// the same description only.
	Describe() nn.Description
}

// Evaluate returns the mean of n losses, such as those of batches of a held-out text.
// Loss computes number i of them; it runs in inference, so that m's scaling state stays
// what it is to the bit, also where a loss fails, and nobody hears of it. No loss at
// all is an error, [ErrInput]. The model's [nn.Shared] hears of its progress.
func Evaluate(ctx context.Context, m Model, n int, loss func(ctx context.Context, i int) (float32, error)) (mean float64, err error) {
	if n <= 0 || loss == nil {
		return 0, inputError("train: Evaluate of %d losses: there must be at least 1, and a function that computes them", n)
	}
	if isNil(m) {
		return 0, inputError("train: Evaluate: %w", errNoModel)
	}
	err = m.Shared().Scaling().Inference(func() error {
		if err := meter.Err(ctx); err != nil {
			return err
		}
		var done meter.Meter
		done.Start(ctx, m.Shared().Progress, "evaluate", int64(n))
		for i := range n {
			l, err := loss(ctx, i)
			if err != nil {
				return err
			}
			mean += float64(l) / float64(n)
			if err := done.Add(1); err != nil {
				return err
			}
		}
		return nil
	})
	return mean, err
}

var errNoModel = errors.New("there is no model: it is nil")

// isNil reports whether there is no model, or a pointer to none.
func isNil(m Model) bool {
	v := reflect.ValueOf(m)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// checkModel returns an error if there is no model, or if its parameters cannot be told
// apart or have no values.
func checkModel(m Model) error {
	if isNil(m) {
		return inputError("%w", errNoModel)
	}
	params := m.Params()
	seen := make(map[string]bool, len(params))
	for i, p := range params {
		switch {
		case p == nil:
			return inputError("parameter %d of the model is nil", i)
		case p.Rows < 0 || p.Cols < 0 || len(p.Value) != p.Rows*p.Cols || len(p.Grad) != len(p.Value):
			return inputError("parameter %q, [%d, %d], has %d values and %d gradients", p.Name, p.Rows, p.Cols, len(p.Value), len(p.Grad))
		case seen[p.Name]:
			return inputError("the model has two parameters named %q", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}
