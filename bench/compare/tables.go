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

// result is what one run of a benchmark printed.
type result struct {
	seconds float64
	roof    float64 // the part of the roof in percent, by the metric %roof, or 0
}

// results are those of benchmarks by name, in the order in which they were run.
type results struct {
	names  []string // in the order of the output
	byName map[string][]result
}

var (
	resultLine = regexp.MustCompile(`(?m)^pkg: (\S+)$|^Benchmark(\S+)\s+\d+\s+([0-9.]+) ns/op(.*)$`)
	roofMetric = regexp.MustCompile(`\s([0-9.]+) %roof`)
)

// parseResults reads what benchmarks printed. Where they are of several packages, names
// begin with the package's.
func parseResults(output []byte) results {
	all := results{byName: map[string][]result{}}
	several, where := len(packagesOf(output)) > 1, ""
	for _, m := range resultLine.FindAllSubmatch(output, -1) {
		if len(m[1]) > 0 {
			if several {
				where = string(m[1]) + ": "
			}
			continue
		}
		name, r := where+string(m[2]), result{seconds: number(m[3]) / 1e9}
		if metric := roofMetric.FindSubmatch(m[4]); metric != nil {
			r.roof = number(metric[1])
		}
		if r.seconds == 0 {
			continue
		}
		if all.byName[name] == nil {
			all.names = append(all.names, name)
		}
		all.byName[name] = append(all.byName[name], r)
	}
	return all
}

// packagesOf returns the packages that an output speaks of.
func packagesOf(output []byte) map[string]bool {
	all := map[string]bool{}
	for _, m := range resultLine.FindAllSubmatch(output, -1) {
		if len(m[1]) > 0 {
			all[string(m[1])] = true
		}
	}
	return all
}

// number returns 0 for what is none.
func number(text []byte) float64 {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0
	}
	return x
}

// printPairs prints the best times of both sides and the ratios of pairs of runs: how many
// times as fast as old new is.
func printPairs(out io.Writer, old, recent results) error {
	fmt.Fprint(out, `
Times of old / new, so that more than 1 is a gain. Of the pairs: the median, and between
what all but a quarter at each end lie. Roof: what part of the best one measured the best
run reaches.
`)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "best old\tbest new\told / new\tof pairs\tfrom\tto\tnew faster\troof old\troof new\t  benchmark")
	for _, name := range recent.names {
		a, b := old.byName[name], recent.byName[name]
		if n := min(len(a), len(b)); n > 0 {
			c := newComparison(a[:n], b[:n])
			fmt.Fprintf(w, "%v\t%v\t%.3f\t%.3f\t%.3f\t%.3f\t%d of %d\t%s\t%s\t  %s\n",
				duration(c.old), duration(c.new), c.old/c.new, c.median, c.low, c.high, c.wins, n, percent(c.roofOld), percent(c.roofNew), name)
		}
	}
	return w.Flush()
}

// comparison compares runs that were made in pairs.
type comparison struct {
	old, new          float64 // the best times
	median, low, high float64 // of old / new of the pairs; the outer ones are quartiles
	wins              int     // pairs in which new took less
	roofOld, roofNew  float64 // what part of the best roof the best times are, in percent
}

func newComparison(old, recent []result) comparison {
	c := comparison{old: old[0].seconds, new: recent[0].seconds}
	var ratios []float64
	fastest := 0.0 // runs in a second if the best roof were reached
	for i := range old {
		a, b := old[i], recent[i]
		c.old, c.new = min(c.old, a.seconds), min(c.new, b.seconds)
		ratios = append(ratios, a.seconds/b.seconds)
		if b.seconds < a.seconds {
			c.wins++
		}
		for _, r := range []result{a, b} {
			if r.roof > 0 {
				fastest = max(fastest, 100/(r.seconds*r.roof))
			}
		}
	}
	slices.Sort(ratios)
	n := len(ratios)
	c.median, c.low, c.high = (ratios[(n-1)/2]+ratios[n/2])/2, ratios[n/4], ratios[n-1-n/4]
	if fastest > 0 {
		c.roofOld, c.roofNew = 100/(c.old*fastest), 100/(c.new*fastest)
	}
	return c
}

func percent(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", x)
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
