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
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

const benchLong = `Bench measures products of block-scaled matrices and conversions at each level
of this machine, beside its peers and beside what the machine can do. It takes
one to two minutes; let nothing else run meanwhile, and compare figures of one
run.

Products are E4M3 with scales for blocks of 1x128 by 128x128 and C in float32:
squares, thin ones as in decoding one or a few tokens, and 64 experts beside one
product of the same work; with weights as a tensor and packed; on one processor
and on all. A square and one token are in mxfp8, mxfp6, mxfp4 and nvfp4 too:
E4M3, E2M3 and E2M1 in blocks of 32 under scales of a byte, and E2M1 in blocks
of 16, of weights too, under scales of a byte and one for the tensor.
Peers multiply matrices of float32 of the same shape: gonum's blas32.Gemm, and
vek32.MatMul_Into of viterin/vek, which has kernels for AVX2.

A rate is the best of a case's runs; the median is beside it. The roof of a
product is the rate of its level's fused multiply-adds in registers, or what
reading allows at its arithmetic intensity (FLOP per byte of codes, scales and
C, each moved once) if that is less. Both are measured in the same run, the best
of several times; there is no roof without a kernel that measures it. Rates of
conversions count the bytes of the float32 side.

--peers compares octavo with OpenBLAS and oneDNN instead, on Linux, in a program
that bench/peers/build makes in a clone of octavo from packages of Debian. They
take turns at the same products and conversions, forwards and backwards, until
each ratio of octavo's rate to a peer's is known: until half of the 95% interval
of its median is within --spread of it, or --limit is over. There are at least
six rounds, which take minutes for the largest products, and a round is always
finished. The whole suite takes some minutes. Levels are all but generic unless
--level says otherwise. In each round the roof is the best of three short spins,
and a rate the mean of a turn of 10 ms or one product. If the printed ratios of
medians and of best rates differ much, other programs disturbed the run.
Intervals hold for one run and assume independent rounds.

OpenBLAS may mistake a processor for an older one, so it runs once for each
OPENBLAS_CORETYPE that the processor can run, and the fastest counts. OpenBLAS
runs sgemm, sgemv for one row, and sbgemm if it has it. oneDNN runs products in
float32, bfloat16 and, from version 3.4 on, E4M3 (not tested with older ones),
each with plain weights and in the format that it picks, and conversions. The
program does not get variables that begin with OPENBLAS_, GOTO_, OMP_, GOMP_,
DNNL_ or ONEDNN_; it gets OPENBLAS_THREAD_TIMEOUT=20 and GOMP_SPINCOUNT=20000,
so that its threads spin for at most a millisecond into octavo's turn. Each peer
must first compute some elements right. A peer that fails is left out, and the
exit status is 1. Grouped products are compared with one product of the same
work, conversions also with memcpy. The roof is that of reading the bytes that
the product moves, in the same round; products with AMX are also compared with
the rate of its tiles in registers.

--against compares the ratios with the ratios.json of an earlier run of --peers;
bench/regression in a clone has some. A ratio is worse, or better, if the two
intervals are further apart than --spread and the ratio of the best rates
agrees. Of hundreds some are by chance: measure those again. The exit status is
1 if any ratio is worse. Ratios to other kernels of OpenBLAS, to weights in
another format, and of fewer than six rounds are not compared.

The directory given by --out receives

  index.html       one page with interactive rooflines and all tables
  roofline.svg     products over their arithmetic intensity, under the roofs
                   (not with --peers)
  roofline.png     the same
  bench.json       what --json prints
  ratios.json      with --peers: what --against takes
  octavo-run.json  which of the files are the run's, and what repeats it

They appear together when all are complete. A directory that holds a run is
refused unless --overwrite is given.

The JSON is an object:

  machine      what octavo version --json prints
  cases, done  their number, and how many were measured
  secondsPerCase
  limits       fma: [{level, workers, gflops}]
               read: [{bytes, workers, gigabytesPerSecond}]
  products     [{shape: {m, n, k, experts, recipe}, by, level, packed, workers,
               runs, best, median, intensity, roof}]; rates in GFLOP/s; m counts
               the rows of all experts; recipe is mxfp8, mxfp6, mxfp4 or nvfp4,
               and absent for FP8; by is octavo, gonum or vek; level is "" for
               peers; roof is 0 where there is none
  conversions  [{name, level, elements, runs, best, median}]; rates in GB/s;
               level is "" for what octavo is compared with
  command      what repeats the run

With --peers it is

  machine      as above
  date         of the run
  cases        the number of comparisons
  program      what the program of the peers says: {protocol, blas, core,
               parallel, oneDNN, instructions, routines}
  cores        [{asked, got}]: OPENBLAS_CORETYPE and what OpenBLAS then named
  notes        what could not be had, and why
  failures     what could be had and then failed
  spread, limitSeconds
  done         [{what, unit, workers, rounds, seconds, settled, rates, ratios}];
               rates: [{by, level, packed, core, format, best, median}]
               ratios: [{level, packed, to, core, format, median, low, high,
               pairs, best}]; low and high are the ends of the 95% interval of
               the median, best is the ratio of the best rates; level, packed,
               core and format are absent where they are empty or false
  against      with --against: {file, model, blas, oneDNN, both, worse, better};
               worse and better: ratios with what, workers and before: {median,
               low, high, pairs}
  command      what repeats the run

Ctrl-C, SIGTERM or SIGHUP ends the run after the current case. What was measured
is written and printed; the exit status is 130, 143 or 129.

The file ratios.json is {version, note, date, command, machine, blas, core,
oneDNN, spread, limitSeconds, ratios}; ratios are those of done, with what and
workers; note is for whoever keeps the file.`

const benchExample = `  octavo bench
  octavo bench --level avx2,avx512 --time 1s -o bench-out
  octavo bench --all --json > bench.json
  octavo bench --peers
  octavo bench --peers --shapes 1024x1024x1024,1x4096x4096 --limit 20s
  octavo bench --peers --against bench/regression/sapphire-rapids.json`

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
		Long:    benchLong,
		Example: benchExample,
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
				return runBenchPeers(cmd, flags, suite)
			}
			suite := suites.own(flags.levels, flags.time)
			flags.choose(&suite.Shapes, &suite.Elements)
			return runBench(cmd, flags, suite)
		},
	}
	f := cmd.Flags()
	f.Var(oneOf{&parsed[[]cpu.Level]{&flags.levels, "all of this machine", "NAME,...", parseLevels}, namesOf(bench.Levels())}, "level", "levels to measure: generic, neon, avx2, avx512, amx")
	f.Var(&parsed[time.Duration]{&flags.time, "0.3s", "DURATION", parseCaseTime}, "time", "time for each case, which runs at least once")
	f.BoolVar(&flags.all, "all", false, "products of 2048x7168x2048 and 4096x4096x4096 too, which take minutes")
	f.Var(&parsed[[]bench.Shape]{&flags.shapes, "", "MxNxK,...", parseShapes}, "shapes", "only these products, and no conversions; 64 of 32x2048x1024 is grouped, mxfp4 1024x1024x1024 in MXFP4")
	f.StringVar(&flags.peers, "peers", "", "compare with OpenBLAS and oneDNN, in the program `FILE` (of --peers alone: "+builtPeers+")")
	f.Lookup("peers").NoOptDefVal = builtPeers
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
		if err := refuse(cmd, " is for --peers", "spread", "limit", "against"); err != nil {
			return err
		}
	}
	if flags.peers != "" && cmd.Flags().Changed("time") {
		return usagef("--time is not for --peers: it has --spread and --limit")
	}
	if flags.peers == "" && cmd.Flags().Changed("peers") {
		return usagef("--peers= names no program: want --peers=FILE, or --peers alone for %s", builtPeers)
	}
	if flags.all && len(flags.shapes) > 0 {
		return usagef("--all and --shapes both say which products to measure: give one")
	}
	return nil
}

// choose sets the shapes of a suite.
func (f benchFlags) choose(shapes *[]bench.Shape, elements *int) {
	if f.all {
		*shapes = append(*shapes, bench.LargeShapes()...)
	}
	if len(f.shapes) > 0 {
		*shapes, *elements = f.shapes, 0
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
