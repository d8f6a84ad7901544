package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	show "github.com/octavo-fp8/octavo/cmd/internal/evaluate"
	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
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
	if err := c.checkSmooth(f); err != nil {
		return nil, err
	}
	config, err := hf.Config(c.source)
	if err != nil {
		return nil, err
	}
	read, err := c.readTokens(f)
	if err != nil {
		return nil, err
	}
	s := &smoothing{conversion: c, by: gainOf(f.layout), context: min(window, config.Context), strength: f.smooth, workers: f.jobs}
	if err := s.split(read); err != nil {
		return nil, err
	}
	before, err := s.cost(ctx, cmd, false)
	if err != nil {
		return nil, stoppedCalibration(ctx, err)
	}
	beside := filepath.Dir(filepath.Clean(c.out))
	if err := os.MkdirAll(beside, 0o777); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(beside, ".octavo-smooth-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(s.dir)
		}
	}()
	after, err := s.cost(ctx, cmd, true)
	if err != nil {
		return nil, stoppedCalibration(ctx, err)
	}
	smoothed, err := checkpoint.Open(s.dir)
	if err != nil {
		return nil, err
	}
	c.smoothed += fmt.Sprintf("; with operands of %s, %d tokens of the text that it was not fitted to diverge by %s nats "+
		"from FP32 each, and by %s without: %s", s.by.Name, before.Targets, meanText(after), meanText(before), gain(before, after)) + s.leftOut(smoothed)
	c.source.Close()
	c.source = smoothed
	return func() { os.RemoveAll(s.dir) }, nil
}

// checkSmooth refuses what cannot be smoothed, before anything is read.
func (c *conversion) checkSmooth(f *convertFlags) error {
	switch {
	case !(f.smooth > 0 && f.smooth <= 1):
		return usagef("--smooth is %v: it must be above 0 and at most 1", f.smooth)
	case (f.calibrate == "") == (f.tokens == ""):
		return usagef("--smooth wants a text that says how large channels are: give --calibrate or --tokens, one of them")
	}
	for _, w := range c.source.Weights() {
		if d := w.Parts[checkpoint.Codes].DType; w.Scheme != nil || d != safetensors.BF16 && d != safetensors.F32 {
			return usagef("--smooth: %s is neither BF16 nor F32: convert the model to bf16 first", textout.Name(w.Name))
		}
	}
	return nil
}

// split takes the first three quarters of tokens to fit to.
func (s *smoothing) split(read tokens.Tokens) error {
	s.prefix = read.Prefix
	n := len(read.IDs) * 3 / 4
	if n == 0 || len(read.IDs)-n < 2 || s.context/4 <= len(read.Prefix) {
		return usagef("--smooth wants more tokens: there are %d in windows of %d, and what it gains is said by the last quarter of them",
			len(read.IDs), s.context)
	}
	s.rest = read.IDs[n:]
	read.IDs = read.IDs[:n]
	s.fitted = read.Windows(s.context)
	return nil
}

// leftOut names tensors of the source that the model has no part for.
func (s *smoothing) leftOut(smoothed *checkpoint.Checkpoint) string {
	first, n := "", 0
	for _, w := range s.source.Weights() {
		if smoothed.Weight(w.Name) == nil {
			if n++; n == 1 {
				first = w.Name
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d tensors that take no part in the model's logits were left out, such as %s", n, textout.Name(first))
}

// smoothing is a model being smoothed.
type smoothing struct {
	*conversion
	dir      string // of the smoothed model
	by       evaluate.Recipe
	context  int
	prefix   []int32
	fitted   [][]int32
	rest     []int32 // of the text, to say what was gained
	strength float64
	workers  int
}

// cost returns what a recipe like the layout costs the model on the rest of the text, after it was
// smoothed and written if it is to be.
func (s *smoothing) cost(ctx context.Context, cmd *cobra.Command, smooth bool) (*evaluate.Evaluation, error) {
	bar := newDisplay(cmd)
	defer bar.Finish()
	model, err := hf.Load(ctx, s.source, hf.Options{Context: s.context, Workers: s.workers, Progress: bar})
	if err != nil {
		return nil, err
	}
	if smooth {
		bar.Unit("tokens", "smooth")
		done, err := hf.Smooth(ctx, model, s.fitted, hf.SmoothOptions{Strength: s.strength, BF16: s.hasBF16(), Progress: bar})
		if err != nil {
			return nil, err
		}
		s.smoothed = fmt.Sprintf("%v; the strength was %v", done, s.strength)
		if err := s.save(ctx, model, bar); err != nil {
			return nil, err
		}
	}
	bar.Unit("layers", "evaluate")
	return evaluate.Run(ctx, model, s.rest, evaluate.Options{
		Recipes: []evaluate.Recipe{s.by}, Modes: []evaluate.Mode{evaluate.Both}, LayerTokens: -1,
		Together: checkpoint.FusedName,
		Context:  s.context / 4, Prefix: s.prefix, Progress: bar, // many windows, for a standard error
	})
}

// gain says whether smoothing has made a model diverge less, as far as standard errors show it.
func gain(before, after *evaluate.Evaluation) string {
	_, kl := after.Results[0].Against(&before.Results[0])
	told := show.Told(kl, before.Windows, "it gains %s", "it loses %s")
	return cmp.Or(told, "what it gains or loses is not told apart from nothing")
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
	last, err := s.modified() // so that --resume finds the same model
	if err != nil {
		return err
	}
	for _, name := range []string{"model.safetensors", checkpoint.ConfigName} {
		if err := os.Chtimes(filepath.Join(s.dir, name), last, last); err != nil {
			return err
		}
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

// modified returns when the source was last written to.
func (s *smoothing) modified() (last time.Time, err error) {
	for _, name := range s.source.Files() {
		stat, err := os.Stat(filepath.Join(s.source.Dir(), name))
		if err != nil {
			return last, err
		}
		if t := stat.ModTime(); t.After(last) {
			last = t
		}
	}
	return last, nil
}

// gainOf returns the recipe whose weights are most like those of a layout, with inputs that are
// quantized too: what smoothing gains is said by it.
func gainOf(l *checkpoint.Layout) evaluate.Recipe {
	name := "fp8"
	for _, r := range l.Rules {
		switch s := r.Scheme; {
		case s == nil || name != "fp8": // the first counts
		case s.Format == fp8.E2M1 && s.Block.Cols == 16:
			name = "nvfp4-te"
		case s.Format == fp8.E2M1:
			name = "mxfp4"
		case s.Block.Cols == 32:
			name = "mxfp8"
		}
	}
	recipe, _ := evaluate.ParseRecipe(name)
	return recipe
}
