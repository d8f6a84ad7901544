// Octavo-beam converts a model in another layout, as octavo convert does, by a pipeline of
// Apache Beam over its shards.
//
//	octavo-beam DIR -o DIR --to LAYOUT [flags]
//
// Without --runner workers are goroutines of this process. With one, such as flink, spark,
// dataflow or universal, and --endpoint, they are that runner's; Beam's flags say where they
// are and how they start. All must have the directories under the same paths. See package
// github.com/octavo-fp8/octavo/beam.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/octavo-fp8/octavo/beam"
	"github.com/octavo-fp8/octavo/checkpoint"
)

const usage = `Usage: octavo-beam DIR -o DIR --to LAYOUT [flags]

Converts a model as octavo convert does, to the same bytes, by a pipeline of
Apache Beam over its shards: in this process, or by the workers of a --runner,
which must have both directories under the same paths. Started again after it
was stopped it goes on where it was.

`

// ownFlags are the flags that are not Beam's.
var ownFlags = []string{"o", "to", "profile", "only", "except", "lossless", "amax", "jobs", "statistics", "log"}

func main() {
	job, amax, level := new(beam.Job), "", ""
	flag.StringVar(&job.Out, "o", "", "`DIR` to write (required)")
	flag.StringVar(&job.Layout, "to", "", "`LAYOUT` to convert to, one that octavo convert lists (required)")
	flag.Func("profile", "arithmetic of the scales in place of the layout's, a `NAME` that octavo convert knows",
		func(name string) error { job.Arithmetic = checkpoint.Arithmetic(name); return nil })
	flag.StringVar(&job.Only, "only", "", "quantize only the weights whose name matches a `REGEXP`")
	flag.StringVar(&job.Except, "except", "", "quantize no weight whose name matches a `REGEXP`")
	flag.BoolVar(&job.Lossless, "lossless", false, "write no model if any weight would lose anything")
	flag.StringVar(&amax, "amax", "", "`FILE` with the largest magnitudes of layers' inputs, in JSON")
	flag.IntVar(&job.Workers, "jobs", 0, "`N` goroutines for each shard; 0 is one for each processor")
	flag.StringVar(&job.Statistics, "statistics", "", "`FILE` for what was quantized of each layer, in JSON lines")
	flag.StringVar(&level, "log", "error", "what Beam tells: debug, info, warn or error")
	flag.Usage = printUsage
	arguments := parse(flag.CommandLine, os.Args[1:])
	log.SetupLogging(level, "text")
	sdk.Init() // does not return in a worker

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, job, amax, arguments)
	if err != nil {
		fmt.Fprintf(os.Stderr, "octavo-beam: %v\n", err)
		os.Exit(1)
	}
}

// parse parses flags, also those behind arguments, and returns the arguments.
func parse(flags *flag.FlagSet, rest []string) (arguments []string) {
	for {
		_ = flags.Parse(rest) // which exits
		rest = flags.Args()
		if len(rest) == 0 {
			return arguments
		}
		arguments, rest = append(arguments, rest[0]), rest[1:]
	}
}

// printUsage prints our flags before Beam's.
func printUsage() {
	out := flag.CommandLine.Output()
	fmt.Fprint(out, usage)
	own, others := flag.NewFlagSet("", flag.ContinueOnError), flag.NewFlagSet("", flag.ContinueOnError)
	flag.VisitAll(func(f *flag.Flag) {
		to := others
		for _, name := range ownFlags {
			if f.Name == name {
				to = own
			}
		}
		to.Var(f.Value, f.Name, f.Usage)
	})
	own.SetOutput(out)
	own.PrintDefaults()
	fmt.Fprint(out, "\nBeam's flags:\n\n")
	others.SetOutput(out)
	others.PrintDefaults()
}

// cause returns the last line of an error of Beam, which is what a DoFn returned; lines before
// it are the plan of the bundle.
func cause(err error) string {
	text := strings.TrimSpace(err.Error())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// run converts a model and says what became of it.
func run(ctx context.Context, job *beam.Job, amax string, arguments []string) error {
	switch {
	case len(arguments) != 1:
		return fmt.Errorf("want one model, there are %d arguments: see --help", len(arguments))
	case job.Out == "" || job.Layout == "":
		return errors.New("want -o DIR and --to LAYOUT: see --help")
	}
	job.Source = arguments[0]
	if amax != "" {
		data, err := os.ReadFile(amax)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &job.Amax); err != nil {
			return fmt.Errorf("%s: want a JSON object of numbers by the names of modules: %w", amax, err)
		}
	}
	p, s := sdk.NewPipelineWithRoot()
	shards, err := beam.Convert(s, *job)
	if err != nil {
		return err
	}
	if shards > 0 {
		if err := beamx.Run(ctx, p); err != nil {
			return fmt.Errorf("%s: what is complete is kept: start it again", cause(err))
		}
	}
	cert, err := checkpoint.ReadCertificate(job.Out)
	if err != nil {
		return err // such as with --async
	}
	var lossless string
	if cert.Lossless {
		lossless = ", nothing was lost"
	}
	_, err = fmt.Printf("%s: %s, %d weights in %d files%s\n",
		job.Out, cert.Layout, len(cert.Tensors), len(cert.Files), lossless)
	return err
}
