package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// smooth puts a model into the place of the source that computes the same and whose outliers are
// folded into weights. It returns what removes that model's files.
func (c *conversion) smooth(ctx context.Context, cmd *cobra.Command, f *convertFlags) (remove func(), err error) {
	if f.calibrate == "" && f.tokens == "" {
		return nil, usagef("--smooth wants a text that says how large channels are: give --calibrate or --tokens")
	}
	for _, w := range c.source.Weights() {
		if w.Scheme != nil {
			return nil, usagef("--smooth: %s is quantized: convert the model to bf16 first", textout.Name(w.Name))
		}
	}
	read, err := c.readTokens(f)
	if err != nil {
		return nil, err
	}
	sequences := read.Windows(window)
	if len(sequences) < 2 {
		return nil, usagef("--smooth wants a text of %d tokens or more: what it gains is said by those that it was not fitted to", window+1)
	}
	fitted, rest := held(sequences)
	gain := gainOf(f.layout)
	before, err := c.costOf(ctx, cmd, f, gain, rest, nil)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(filepath.Clean(c.out)), ".octavo-smooth-")
	if err != nil {
		return nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	after, err := c.costOf(ctx, cmd, f, gain, rest, &smoothing{c, fitted, dir, f.smooth})
	if err != nil {
		remove()
		return nil, stoppedCalibration(ctx, err)
	}
	c.smoothed += fmt.Sprintf("; with operands of %s, %d tokens of the text that it was not fitted to diverge by %s nats "+
		"from FP32 each, and by %s without", gain.Name, before.Targets, meanText(after), meanText(before))
	smoothed, err := checkpoint.Open(dir)
	if err != nil {
		remove()
		return nil, err
	}
	c.source.Close()
	c.source = smoothed
	return remove, nil
}

// smoothing is a model being smoothed.
type smoothing struct {
	*conversion
	sequences [][]int32
	dir       string
	strength  float64
}

// costOf returns what a recipe costs the source on tokens, after it was smoothed if it is to be.
func (c *conversion) costOf(
	ctx context.Context, cmd *cobra.Command, f *convertFlags, by evaluate.Recipe, ids []int32, s *smoothing,
) (*evaluate.Evaluation, error) {
	bar := newDisplay(cmd)
	defer bar.Finish()
	model, err := hf.Load(ctx, c.source, hf.Options{Context: window, Workers: f.jobs, Progress: bar})
	if err != nil {
		return nil, err
	}
	if s != nil {
		bar.Unit("tokens", "smooth")
		done, err := hf.Smooth(ctx, model, s.sequences, hf.SmoothOptions{
			Strength: s.strength, BF16: s.hasBF16(), Progress: bar,
		})
		if err != nil {
			return nil, err
		}
		c.smoothed = done.String()
		if err := s.save(ctx, model, bar); err != nil {
			return nil, err
		}
	}
	bar.Unit("layers", "evaluate")
	return evaluate.Run(ctx, model, ids, evaluate.Options{
		Recipes: []evaluate.Recipe{by}, Modes: []evaluate.Mode{evaluate.Both}, LayerTokens: -1,
		Context: min(window/4, model.Config().Context), Progress: bar, // many windows, for a standard error
	})
}

// meanText returns a divergence, with its standard error where there are windows enough for one.
func meanText(e *evaluate.Evaluation) string {
	kl := e.Results[0].Cost.KL
	if math.IsNaN(float64(kl.Error)) {
		return fmt.Sprintf("%.4g", kl.Mean)
	}
	return fmt.Sprintf("%.4g ± %.1g", kl.Mean, kl.Error)
}

// hasBF16 reports whether values are stored in BF16, in which they must stay exact.
func (c *conversion) hasBF16() bool {
	return slices.ContainsFunc(c.source.Weights(), func(w *checkpoint.Weight) bool {
		return w.Parts[checkpoint.Codes].DType == safetensors.BF16
	})
}

// save writes the model with the files beside it that a conversion copies.
func (s *smoothing) save(ctx context.Context, model *nn.Llama, bar *display.Display) error {
	bar.Unit("values", "save")
	err := hf.Save(ctx, model, s.dir, hf.SaveOptions{Like: s.source, Progress: bar})
	if err != nil {
		return err
	}
	from, err := filepath.Abs(s.source.Dir())
	if err != nil {
		return err
	}
	for _, name := range s.source.Others() {
		if _, err := os.Lstat(filepath.Join(s.dir, name)); err == nil || strings.HasSuffix(name, ".safetensors") {
			continue
		}
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// gainOf returns the recipe whose weights are most like those of a layout, with inputs that are
// quantized too: what smoothing gains is said by it.
func gainOf(l *checkpoint.Layout) evaluate.Recipe {
	name := "fp8"
	for _, r := range l.Rules {
		switch s := r.Scheme; {
		case s == nil:
		case s.Format == fp8.E2M1 && s.Block.Cols == 16:
			name = "nvfp4"
		case s.Format == fp8.E2M1:
			name = "mxfp4"
		case s.Block.Cols == 32:
			name = "mxfp8"
		}
	}
	recipe, _ := evaluate.ParseRecipe(name)
	return recipe
}

// held returns the larger part of sequences, to be fitted to, and the tokens of the last quarter.
func held(sequences [][]int32) (fitted [][]int32, rest []int32) {
	n := len(sequences) - max(len(sequences)/4, 1)
	return sequences[:n], slices.Concat(sequences[n:]...)
}
