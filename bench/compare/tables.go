package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// benchstatVersion is the newest that needs no newer Go than octavo.
const benchstatVersion = "golang.org/x/perf/cmd/benchstat@v0.0.0-20250813145418-2f7363a06fe1"

// installBenchstat returns the path of benchstat, in the temporary folder, or the one that
// is installed already where there is no network.
func installBenchstat(ctx context.Context, temporary string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "install", benchstatVersion)
	cmd.Env = append(os.Environ(), "GOBIN="+temporary)
	text, err := cmd.CombinedOutput()
	if err == nil {
		return filepath.Join(temporary, "benchstat"), nil
	}
	if path, missing := exec.LookPath("benchstat"); missing == nil {
		return path, nil
	}
	return "", fmt.Errorf("go install %s: %w\n%s", benchstatVersion, err, text)
}

// keepOutputs writes the outputs for benchstat, and to a folder of the user's if it is
// not empty.
func keepOutputs(folder, temporary string, sides ...*side) error {
	folders := []string{temporary}
	if folder != "" {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		folders = append(folders, folder)
	}
	for _, f := range folders {
		for _, s := range sides {
			if err := os.WriteFile(filepath.Join(f, s.name+".txt"), s.output, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func printBenchstat(ctx context.Context, benchstat, folder string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, benchstat, "old=old.txt", "new=new.txt")
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, out, &stderr
	fmt.Fprintln(out)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("benchstat: %w\n%s", err, &stderr)
	}
	return nil
}

// times are the seconds of the runs of benchmarks, in order, by name.
type times struct {
	names   []string // in the order of the output
	seconds map[string][]float64
}

var resultLine = regexp.MustCompile(`(?m)^Benchmark(\S+)\s+\d+\s+([0-9.]+) ns/op`)

func (s *side) times() times { return timesOf(s.output) }

func timesOf(output []byte) times {
	t := times{seconds: map[string][]float64{}}
	for _, m := range resultLine.FindAllSubmatch(output, -1) {
		ns, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			continue // more than one point: not a result
		}
		name := string(m[1])
		if t.seconds[name] == nil {
			t.names = append(t.names, name)
		}
		t.seconds[name] = append(t.seconds[name], ns/1e9)
	}
	return t
}

func names(output []byte) []string { return timesOf(output).names }

// printPairs prints the best times of both sides and the ratios of pairs of runs: how many
// times as fast as old new is.
func printPairs(out io.Writer, old, recent times) error {
	fmt.Fprintln(out, "\nold / new of times, so that more than 1 is a gain; of the pairs the median and all but a quarter at each end")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "best old\tbest new\told / new\tof pairs\tfrom\tto\tnew faster\t  benchmark")
	for _, name := range recent.names {
		a, b := old.seconds[name], recent.seconds[name]
		if n := min(len(a), len(b)); n > 0 {
			r := newRatios(a[:n], b[:n])
			fmt.Fprintf(w, "%v\t%v\t%.3f\t%.3f\t%.3f\t%.3f\t%d of %d\t  %s\n",
				duration(r.old), duration(r.new), r.old/r.new, r.median, r.low, r.high, r.wins, n, name)
		}
	}
	return w.Flush()
}

// ratios compare runs that were made in pairs.
type ratios struct {
	old, new          float64 // the best times
	median, low, high float64 // of old / new of the pairs; the outer ones are quartiles
	wins              int     // pairs in which new took less
}

func newRatios(old, recent []float64) ratios {
	r := ratios{old: slices.Min(old), new: slices.Min(recent)}
	var of []float64
	for i := range old {
		of = append(of, old[i]/recent[i])
		if recent[i] < old[i] {
			r.wins++
		}
	}
	slices.Sort(of)
	n := len(of)
	r.median, r.low, r.high = (of[(n-1)/2]+of[n/2])/2, of[n/4], of[n-1-n/4]
	return r
}

// duration has three digits or four, as those of a time.Duration are written.
func duration(seconds float64) time.Duration {
	d := time.Duration(seconds * 1e9)
	unit := time.Duration(1)
	for d/unit >= 10000 {
		unit *= 10
	}
	return d.Round(unit)
}
