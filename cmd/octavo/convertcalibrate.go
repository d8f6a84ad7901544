package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// window is how many tokens of a text are a sequence, if the model is made for so many.
const window = 512

// calibrate runs a text through the model and returns the largest magnitudes of layers' inputs.
func (c *conversion) calibrate(
	ctx context.Context, cmd *cobra.Command, f *convertFlags,
) (map[string]float32, error) {
	switch {
	case f.amax != "":
		return nil, usagef("--amax has what calibration would find: give one of them")
	case f.calibrate != "" && f.tokens != "":
		return nil, usagef("--calibrate and --tokens are both to calibrate with: give one of them")
	case f.layout.Calibrated == checkpoint.Dynamic:
		return nil, usagef("layout %s has no scales of layers' inputs: leave out --calibrate and --tokens", f.layout)
	}
	config, err := hf.Config(c.source)
	if err != nil {
		return nil, fmt.Errorf("%w: record the largest inputs elsewhere and give them with --amax", err)
	}
	read, err := c.readTokens(f)
	if err != nil {
		return nil, err
	}
	sequences := read.Windows(min(window, config.Context))
	longest := 1
	for _, s := range sequences {
		longest = max(longest, len(s))
	}
	bar := newDisplay(cmd)
	defer bar.Finish()
	model, err := hf.Load(ctx, c.source, hf.Options{Context: longest, Workers: f.jobs, Progress: bar})
	if err != nil {
		return nil, stoppedCalibration(ctx, err)
	}
	bar.Unit("tokens", "calibrate")
	amax, err := hf.Calibrate(ctx, model, sequences, hf.CalibrationOptions{Like: c.source, Progress: bar})
	if err != nil {
		return nil, stoppedCalibration(ctx, fmt.Errorf("%s: %w", textout.Name(cmp.Or(f.tokens, f.calibrate)), err))
	}
	return amax, nil
}

func stoppedCalibration(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) {
		return stopped(ctx, "it was being calibrated, nothing was written")
	}
	return err
}

// readTokens returns the first tokens of a text, or of token IDs.
func (c *conversion) readTokens(f *convertFlags) (read tokens.Tokens, err error) {
	if f.tokens != "" {
		read, err = tokens.FromIDs(f.tokens)
	} else {
		read, err = tokens.FromText(c.source.Dir(), f.calibrate)
	}
	if err == nil {
		read.Cut(f.calibrateTokens)
	}
	return read, err
}
