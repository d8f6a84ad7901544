// Command compare measures what a change gains: it builds the benchmarks of two
// revisions, runs them by turns on the same processors, and says how they compare. Run
// it anywhere in the clone:
//
//	go run ./bench/compare [-bench REGEXP] [-count N] [-benchtime T] OLD [NEW]
//
// OLD and NEW are revisions of git; NEW is by default the working tree, with changes that
// are not committed and files that are not added. Sources of revisions are unpacked into a
// temporary folder, and the clone stays as it is.
//
// First the bits are compared: TestChecksums of package bench computes the same
// conversions, functions and products in both. A difference is an error that names the
// operation and the level, and nothing is measured. Where OLD is from before that test, it
// gets the test of the working tree.
//
// Then each pair of runs is old, new or new, old by turns, in processes of their own.
// Printed are benchstat's tables, with a table for each metric of the benchmarks, %roof
// being one, and what benchstat does not say: the best of each side, and the ratios of the
// pairs, whose two runs had about the same neighbours.
//
// bench/README.md leads from an idea to such evidence.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	bench, benchtime string
	count            int
	packages         []string // folders, relative to the clone's
	processors       string
	keep             string // a folder for the outputs of the benchmarks; none if empty
	old, new         string // revisions; an empty new is the working tree
}

const usage = `usage: go run ./bench/compare [flags] OLD [NEW]

OLD and NEW are revisions of git; NEW is by default the working tree.

`

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.bench, "bench", ".", "which benchmarks to run: a `regexp` for each part of a name between slashes")
	flags.IntVar(&o.count, "count", 10, "how many pairs of runs to make")
	flags.StringVar(&o.benchtime, "benchtime", "20ms", "how long a benchmark runs each time, such as 1s or 20x")
	flags.StringVar(&o.processors, "cpus", "", "which processors to pin to, a `list` such as 2,3, or all (default two of different cores)")
	flags.StringVar(&o.keep, "o", "", "a `folder` to leave the outputs of the benchmarks in, old.txt and new.txt")
	flags.Func("pkg", "a `folder` with benchmarks; may be given several times (default ./bench)", func(s string) error {
		o.packages = append(o.packages, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if len(o.packages) == 0 {
		o.packages = []string{benchPackage}
	}
	if flags.NArg() < 1 || flags.NArg() > 2 || o.count < 1 || slices.Contains(flags.Args(), "") {
		flags.Usage()
		return o, errors.New("want one revision or two, and a count of at least 1")
	}
	o.old, o.new = flags.Arg(0), flags.Arg(1)
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err == nil:
		err = compare(ctx, o, os.Stdout, os.Stderr)
	}
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "compare: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// compare does all that the command does. It tells log how far it is.
func compare(ctx context.Context, o options, out, log io.Writer) error {
	temporary, err := os.MkdirTemp("", "octavo-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)

	fmt.Fprintln(log, "building")
	benchstat, err := installBenchstat(ctx, temporary)
	if err != nil {
		return err
	}
	old, recent, err := prepare(ctx, o, temporary)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "old: %s\nnew: %s\n", old.title, recent.title)
	if same, err := sameBinaries(old, recent); err != nil {
		return err
	} else if same {
		fmt.Fprintln(out, "both are the same program: what differs is noise")
	}
	if err := compareBits(ctx, old, recent, out); err != nil {
		return err
	}

	pin, where := pinning(o.processors)
	fmt.Fprintln(out, where)
	start := time.Now()
	if err := rehearse(ctx, o, old, recent, pin, out); err != nil {
		return err
	}
	fmt.Fprintf(log, "%d pairs, %s\n", o.count, estimate(o, len(recent.rehearsed), time.Since(start)))
	for i := range o.count {
		order := []*side{old, recent}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			if err := s.measure(ctx, o.bench, o.benchtime, pin); err != nil {
				return err
			}
		}
		fmt.Fprintf(log, "pair %d of %d after %.0f s\n", i+1, o.count, time.Since(start).Seconds())
	}
	if err := keepOutputs(o.keep, temporary, old, recent); err != nil {
		return err
	}
	if err := printBenchstat(ctx, benchstat, temporary, out); err != nil {
		return err
	}
	return printPairs(out, parseResults(old.output), parseResults(recent.output))
}

// estimate says how long n benchmarks will take, from how long one round of a single
// iteration of each did.
func estimate(o options, n int, round time.Duration) string {
	each, err := time.ParseDuration(o.benchtime)
	if err != nil {
		return "of " + o.benchtime
	}
	all := time.Duration(o.count) * (round + 2*time.Duration(n)*each*5/4)
	return fmt.Sprintf("about %.0f s", all.Seconds())
}

// rehearse runs every benchmark of both sides once, to know their names.
func rehearse(ctx context.Context, o options, old, recent *side, pin []string, out io.Writer) error {
	for _, s := range []*side{old, recent} {
		if err := s.measure(ctx, o.bench, "1x", pin); err != nil {
			return err
		}
		s.rehearsed = parseResults(s.output).names
		s.output = nil
	}
	return inBoth(o, old.rehearsed, recent.rehearsed, out)
}

// inBoth says which names of benchmarks only one side has, and demands some that both have.
func inBoth(o options, old, recent []string, out io.Writer) error {
	if len(old)+len(recent) == 0 {
		return fmt.Errorf("no benchmark of %s matches %q", strings.Join(o.packages, " "), o.bench)
	}
	onlyOld, onlyNew := without(old, recent), without(recent, old)
	for _, only := range []struct {
		name string
		list []string
	}{{"old", onlyOld}, {"new", onlyNew}} {
		if len(only.list) > 0 {
			fmt.Fprintf(out, "only in %s: %s\n", only.name, strings.Join(only.list, ", "))
		}
	}
	if len(onlyNew) == len(recent) {
		return errors.New("no benchmark is in both: commit a new benchmark before what it shall measure, and compare with that commit")
	}
	return nil
}

// without returns what of a is not in b.
func without(a, b []string) (list []string) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			list = append(list, x)
		}
	}
	return list
}
