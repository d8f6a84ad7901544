package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/benchreport"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

// builtPeers is where bench/peers/build leaves the program, in a clone.
const builtPeers = "bench/peers/built/peers"

// findPeers refuses a program that is not there.
func findPeers(path string) error {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == builtPeers:
		return fmt.Errorf("%s: the peers are not built: run bench/peers/build in a clone of octavo, on Linux, and octavo there, or name the program with --peers=FILE", path)
	case err != nil:
		return err
	}
	return nil
}

// findLlama returns the file of llama.cpp's program: the one that is named or, unless only some
// products are asked for, the one that bench/peers/build has left beside the other program.
func (f benchFlags) findLlama() string {
	if f.llama != "" || f.shapes != nil {
		return f.llama
	}
	beside := filepath.Join(filepath.Dir(f.peers), "llama-batched-bench")
	if _, err := os.Stat(beside); err != nil {
		return ""
	}
	return beside
}

// runBenchPeers compares octavo with its peers, writes the files and prints what was
// found.
func runBenchPeers(cmd *cobra.Command, flags benchFlags, suite bench.PeerSuite) error {
	if err := findPeers(suite.Program); err != nil {
		return err
	}
	if suite.Llama != "" {
		path, err := exec.LookPath(suite.Llama)
		if err != nil {
			return err
		}
		suite.Llama = path
	}
	var earlier benchreport.RatioTable
	if flags.against != "" {
		text, err := os.ReadFile(flags.against)
		if err != nil {
			return err
		}
		if earlier, err = benchreport.ReadRatios(text); err != nil {
			return fmt.Errorf("%s: %w", flags.against, err)
		}
	}
	run, err := benchDirectory(flags)
	if err != nil {
		return err
	}
	if run != nil {
		defer run.Abort()
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	bar := newDisplay(cmd)
	report, failed := suite.Run(ctx, counting(bar, "comparisons", suite.Cases()))
	bar.Finish()
	if len(report.Done) == 0 && failed != nil {
		return failed
	}
	if len(report.Done) == 0 {
		return stopped(ctx, "nothing was compared, there is nothing to report")
	}
	result := benchreport.PeerResult{
		Machine: machine.Current(), Date: time.Now().UTC().Format(time.DateOnly),
		PeerReport: report, Command: benchPeersLine(flags, suite),
	}
	if flags.against != "" {
		result.Compare(flags.against, earlier)
	}
	if err := writeBench(cmd.OutOrStdout(), run, result, flags.asJSON); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%d of %d comparisons were made: %w", len(report.Done), report.Cases, failed)
	}
	if len(report.Done) < report.Cases {
		return stopped(ctx, fmt.Sprintf("%d of %d comparisons were made", len(report.Done), report.Cases))
	}
	if len(report.Failures) > 0 {
		return fmt.Errorf("of the peers some failed: %s", strings.Join(report.Failures, "; "))
	}
	if a := result.Against; a != nil && a.Both == 0 {
		return fmt.Errorf("%s has no ratio that this run has", flags.against)
	} else if a != nil && len(a.Worse) > 0 {
		return fmt.Errorf("%d of %d ratios became worse than in %s: measure them once more", len(a.Worse), a.Both, flags.against)
	}
	return nil
}

// benchPeersLine returns the command that repeats a run.
func benchPeersLine(flags benchFlags, suite bench.PeerSuite) string {
	line := "octavo bench --peers"
	if suite.Program != builtPeers {
		line += "=" + shellQuote(filepath.ToSlash(suite.Program))
	}
	line += fmt.Sprintf(" --level %s --spread %v --limit %v", strings.Join(namesOf(suite.Levels), ","), suite.Spread, suite.Limit)
	if flags.llama != "" {
		line += " --llama " + shellQuote(filepath.ToSlash(flags.llama))
	}
	if flags.all {
		line += " --all"
	}
	return line + shapesLine(flags.shapes)
}

// shapesLine returns the flag for shapes, if there are any.
func shapesLine(shapes []bench.Shape) string {
	if shapes == nil {
		return ""
	}
	if len(shapes) == 0 {
		return " --shapes " + noShapes
	}
	return fmt.Sprintf(" --shapes %q", strings.Join(namesOf(shapes), ","))
}

// vectorLevels leaves generic out, whose products of the larger shapes take minutes, if
// there are others.
func vectorLevels(levels []cpu.Level) []cpu.Level {
	if len(levels) > 1 && levels[0] == cpu.Generic {
		return levels[1:]
	}
	return levels
}

// noShapes is the text of no products at all.
const noShapes = "none"

func parseShapes(text string) (shapes []bench.Shape, err error) {
	if text == noShapes {
		return []bench.Shape{}, nil
	}
	for _, one := range strings.Split(text, ",") {
		s, err := bench.ParseShape(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		if slices.Contains(shapes, s) {
			return nil, fmt.Errorf("%v is there twice: name each once", s)
		}
		shapes = append(shapes, s)
	}
	return shapes, nil
}
