package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/tokenizer"
	"github.com/octavo-fp8/octavo/internal/inputfile"
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
		return nil, usagef("--amax has what --calibrate would find: give one of them")
	case f.layout.Calibrated == checkpoint.Dynamic:
		return nil, usagef("layout %s has no scales of layers' inputs: leave out --calibrate", f.layout)
	}
	config, err := hf.Config(c.source)
	if err != nil {
		return nil, fmt.Errorf("%w: record the largest inputs elsewhere and give them with --amax", err)
	}
	sequences, err := calibrationTokens(c.source.Dir(), f.calibrate, min(window, config.Context))
	if err != nil {
		return nil, err
	}
	sequences = firstTokens(sequences, f.calibrateTokens)
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
	bar.Unit("tokens")
	amax, err := hf.Calibrate(ctx, model, sequences, hf.CalibrationOptions{Progress: bar})
	if err != nil {
		return nil, stoppedCalibration(ctx, fmt.Errorf("%s: %w", textout.Name(f.calibrate), err))
	}
	return amax, nil
}

func stoppedCalibration(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) {
		return stopped(ctx, "it was being calibrated, nothing was written")
	}
	return err
}

// calibrationTokens reads sequences of tokens: those of a text, by the tokenizer.json of the
// model in dir, cut into windows, or IDs in JSON.
func calibrationTokens(dir, path string, window int) ([][]int32, error) {
	data, err := inputfile.ReadAll(path, 1<<30)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".json") {
		return tokenIDs(path, data)
	}
	file := filepath.Join(dir, "tokenizer.json")
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("%w: without a tokenizer give lists of token IDs, "+
			"in a file that ends in .json", err)
	}
	by, err := tokenizer.Read(file)
	if err != nil {
		return nil, err
	}
	ids, err := by.Encode(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	step := max(window-len(by.Prefix()), 1)
	var sequences [][]int32
	for lo := 0; lo < len(ids); lo += step {
		s := append([]int32(nil), by.Prefix()...)
		sequences = append(sequences, append(s, ids[lo:min(lo+step, len(ids))]...))
	}
	return sequences, nil
}

// tokenIDs returns the lists of IDs in a file, or the one that it is.
func tokenIDs(path string, data []byte) (sequences [][]int32, err error) {
	var one []int32
	if json.Unmarshal(data, &one) == nil {
		return [][]int32{one}, nil
	}
	if err := json.Unmarshal(data, &sequences); err != nil {
		return nil, fmt.Errorf("%s: want a JSON array of token IDs, or of such arrays: %w",
			textout.Name(path), err)
	}
	return sequences, nil
}

// firstTokens returns the first so many tokens; 0 is all.
func firstTokens(sequences [][]int32, most int) (first [][]int32) {
	if most == 0 {
		return sequences
	}
	for _, s := range sequences {
		s = s[:min(len(s), most)]
		if most -= len(s); len(s) > 0 {
			first = append(first, s)
		}
	}
	return first
}
