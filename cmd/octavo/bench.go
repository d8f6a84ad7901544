package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/benchreport"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/jsonout"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	levels []cpu.Level
	time   time.Duration
	all    bool
	asJSON bool
	out    string

	overwrite bool

	shapes  []bench.Shape // nil: those of the suite
	peers   string        // the program; "" without it
	llama   string        // llama.cpp's
	spread  float64
	limit   time.Duration
	against string // a file
}

// benchSuites return the suites for levels.
type benchSuites struct {
	own   func(levels []cpu.Level, perCase time.Duration) bench.Suite
	peers func(program string, levels []cpu.Level) bench.PeerSuite
}

// newBenchCommand returns the command for suites.
func newBenchCommand(suites benchSuites) *cobra.Command {
	usual := suites.peers("", nil)
	flags := benchFlags{levels: bench.Levels(), time: 300 * time.Millisecond, spread: usual.Spread, limit: usual.Limit}
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure products and conversions beside peers and the machine",
		Long:    helpOf("bench"),
		Example: examplesOf("bench"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && flags.peers == builtPeers && cmd.Flags().Changed("peers") {
				return usagef("there is %q: a program of the peers is named with --peers=FILE", args[0])
			}
			return noArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPeerFlags(cmd, flags); err != nil {
				return err
			}
			if flags.peers != "" {
				levels := flags.levels
				if !cmd.Flags().Changed("level") {
					levels = vectorLevels(levels)
				}
				suite := suites.peers(flags.peers, levels)
				suite.Spread, suite.Limit = flags.spread, flags.limit
				flags.choose(&suite.Shapes, &suite.Elements)
				suite.Llama = flags.findLlama()
				return runBenchPeers(cmd, flags, suite)
			}
			suite := suites.own(flags.levels, flags.time)
			flags.choose(&suite.Shapes, &suite.Elements)
			return runBench(cmd, flags, suite)
		},
	}
	f := cmd.Flags()
	f.Var(oneOf{&parsed[[]cpu.Level]{&flags.levels, "all of this machine", "NAME,...", parseLevels}, namesOf(bench.Levels())}, "level", "levels to measure: generic, neon, avx2, avx512, avx512bf16, amx")
	f.Var(&parsed[time.Duration]{&flags.time, "0.3s", "DURATION", parseCaseTime}, "time", "time for each case, which runs at least once")
	f.BoolVar(&flags.all, "all", false, "products of 2048x7168x2048 and 4096x4096x4096 too, which take minutes")
	f.Var(&parsed[[]bench.Shape]{&flags.shapes, "", "MxNxK,...", parseShapes}, "shapes", "only these products, and no conversions; 64 of 32x2048x1024 is grouped, mxfp4 1024x1024x1024 in MXFP4; none: conversions alone")
	f.StringVar(&flags.peers, "peers", "", "compare with OpenBLAS and oneDNN, in the program `FILE` (of --peers alone: "+builtPeers+")")
	f.Lookup("peers").NoOptDefVal = builtPeers
	f.StringVar(&flags.llama, "llama", "", "with --peers: compare tokens a second with llama.cpp, whose llama-batched-bench is `FILE` (default: the one beside the program, if there is one)")
	numberFlag(cmd, &flags.spread, rates, "spread", "with --peers: what every ratio is to be known to")
	f.Var(&parsed[time.Duration]{&flags.limit, flags.limit.String(), "DURATION", parseCaseTime}, "limit", "with --peers: time for each comparison at most")
	f.StringVar(&flags.against, "against", "", "with --peers: `FILE` with the ratios of an earlier run, to say what became worse")
	outDirFlag(cmd, &flags.out, "page, plots and JSON", "default: none")
	overwriteFlag(cmd, &flags.overwrite)
	jsonFlag(cmd, &flags.asJSON)
	return cmd
}

// checkPeerFlags refuses flags that say nothing about what is asked for.
func checkPeerFlags(cmd *cobra.Command, flags benchFlags) error {
	if flags.peers == "" {
		if err := refuse(cmd, " is for --peers", "llama", "spread", "limit", "against"); err != nil {
			return err
		}
	}
	if flags.peers != "" && cmd.Flags().Changed("time") {
		return usagef("--time is not for --peers: it has --spread and --limit")
	}
	if flags.peers == "" && cmd.Flags().Changed("peers") {
		return usagef("--peers= names no program: want --peers=FILE, or --peers alone for %s", builtPeers)
	}
	if flags.all && flags.shapes != nil {
		return usagef("--all and --shapes both say which products to measure: give one")
	}
	return nil
}

// choose sets the shapes of a suite.
func (f benchFlags) choose(shapes *[]bench.Shape, elements *int) {
	if f.all {
		*shapes = append(*shapes, bench.LargeShapes()...)
	}
	if f.shapes != nil {
		*shapes = f.shapes
	}
	if len(f.shapes) > 0 {
		*elements = 0
	}
}

// parseLevels reads names of levels that this machine has.
func parseLevels(text string) (levels []cpu.Level, err error) {
	have := bench.Levels()
	for _, name := range strings.Split(text, ",") {
		l, err := cpu.ParseLevel(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(have, l) {
			return nil, fmt.Errorf("this machine has no level %v: want some of %v", l, have)
		}
		if slices.Contains(levels, l) {
			return nil, fmt.Errorf("level %v is there twice: name each once", l)
		}
		levels = append(levels, l)
	}
	return levels, nil
}

func parseCaseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > time.Hour {
		return 0, errors.New("want a duration of at most 1h such as 0.3s")
	}
	return d, nil
}

// runBench measures, writes the files and prints what was found.
func runBench(cmd *cobra.Command, flags benchFlags, suite bench.Suite) error {
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
	begin := counting(bar, "cases", suite.Cases())
	report, err := suite.Run(ctx, func(c bench.Case) { begin(c.String()) })
	bar.Finish()
	if err != nil {
		return err
	}
	if report.Done == 0 {
		return stopped(ctx, "no case was measured, there is nothing to report")
	}
	result := benchreport.Result{Machine: machine.Current(), Report: report, Command: benchCommandLine(flags)}
	if err := writeBench(cmd.OutOrStdout(), run, result, flags.asJSON); err != nil {
		return err
	}
	if report.Done < report.Cases {
		return stopped(ctx, fmt.Sprintf("%d of %d cases were measured", report.Done, report.Cases))
	}
	return nil
}

// benchCommandLine returns the command that repeats a run.
func benchCommandLine(flags benchFlags) string {
	line := fmt.Sprintf("octavo bench --level %s --time %v", strings.Join(namesOf(flags.levels), ","), flags.time)
	if flags.all {
		line += " --all"
	}
	return line + shapesLine(flags.shapes)
}

// counting returns what is called as each of some cases begins and shows how far it is.
func counting(bar *display.Display, unit string, cases int) func(what string) {
	bar.Unit(unit)
	begun := 0
	return func(what string) {
		bar.Progress(what, int64(begun), int64(cases))
		begun++
	}
}

// benchDirectory returns the run for the files, or nil if none are wanted.
func benchDirectory(flags benchFlags) (*outdir.Run, error) {
	if flags.out == "" {
		return nil, nil
	}
	return givenDirectory(flags.out, outdir.Options{Overwrite: flags.overwrite, Files: benchreport.Files()})
}

// benchResult is what either kind of run found.
type benchResult interface {
	AddFiles(run *outdir.Run) error
	Manifest() outdir.Manifest
	WriteText(w io.Writer, directory string) error
}

// writeBench writes the files, if there is a run for them, and then the tables or the
// JSON.
func writeBench(stdout io.Writer, run *outdir.Run, r benchResult, asJSON bool) error {
	directory := ""
	if run != nil {
		directory = run.Dir()
		if err := r.AddFiles(run); err != nil {
			return err
		}
		if err := run.Commit(r.Manifest()); err != nil {
			return err
		}
	}
	if asJSON {
		return jsonout.Print(stdout, r)
	}
	return r.WriteText(stdout, directory)
}
