package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

const rootLong = `Octavo converts numbers to and from 8-bit floating point, quantizes the weights
of a checkpoint, multiplies block-scaled matrices, and says what FP8 would do to
a tensor. It checks whether the product that a GPU kernel computed is right, and
where it is not. It trains a small model in FP8 beside the same one in FP32,
tests what has been claimed of FP8 training, compares such runs, measures how
fast this machine is, tests the machine's own kernels, and writes conformance
vectors for other implementations.

Results are the same bits on every machine and for any number of threads.
Checkpoints are safetensors files. A file is written under another name and
renamed when it is complete, so that it is never there in part; one that it
replaces passes on its permissions, and a link to it stays a link.

What takes longer than a second shows how far it is, how fast it goes and how
long it will yet take on standard error: with a bar on a terminal, with a line
every ten seconds elsewhere. --progress chooses; --quiet leaves out that and
notes about what was done.

Ctrl-C (SIGINT), SIGTERM and SIGHUP stop every command in good order: what is
incomplete is removed, what there is is written, and a line says what that is.
The exit status is then 130, 143 or 129. Signals that were ignored from the
start, as nohup has it, stay ignored. A second one, a second or more later, ends
the command at once.

A reader may close standard output early, as head does. That is no error, and
the files that were asked for are still written.

An error is one line on standard error. The exit status is 0; or 1 if a file is
wrong or cannot be read or written, or if what was tested has failed; or 2 if
the command line is wrong; or 3 if a verdict is undecided.`

const rootExample = `  octavo inspect model.safetensors
  octavo quantize model.safetensors -o model-fp8.safetensors --profile deepseek
  octavo encode --format e4m3 < values.f32 > codes.e4m3`

// run executes a command line and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	if err := cpu.Check(); err != nil {
		return report(stderr, root, usageError{err})
	}
	outlivePipes()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(&output{Writer: stdout})
	root.SetErr(stderr)
	addCompletion(root)
	cmd, err := root.ExecuteC()
	return report(stderr, cmd, err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "octavo",
		Short:         "8-bit floating point: convert, quantize, multiply, inspect, train, lab, bench",
		Long:          rootLong,
		Example:       rootExample,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.DisableFlagsInUseLine = true
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(
		newEncodeCommand(),
		newDecodeCommand(),
		newQuantizeCommand(),
		newConvertCommand(),
		newGemmCommand(),
		newVerifyCommand(),
		newIdentifyCommand(),
		newAuditCommand(),
		newInspectCommand(),
		newDiffCommand(),
		newLintCommand(),
		newEvaluateCommand(),
		newGenerateCommand(),
		newTrainCommand(),
		newReplayCommand(),
		newLabCommand(),
		newReportCommand(),
		newBenchCommand(benchSuites{bench.NewSuite, bench.NewPeerSuite}),
		newServeCommand(),
		newPlanCommand(),
		newCertifyCommand(),
		newSelftestCommand(),
		newVectorsCommand(),
		newDemoCommand(),
		newVersionCommand(),
	)
	addProgressFlags(root)
	addVersionFlag(root)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	markUsageErrors(root)
	return root
}

// markUsageErrors makes a usageError of what cobra finds wrong with the flags
// and arguments of c and its commands.
func markUsageErrors(c *cobra.Command) {
	c.SetFlagErrorFunc(unknownFlag)
	validate := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		if validate != nil {
			if err := validate(cmd, args); err != nil {
				return usageError{err}
			}
		}
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return usageError{err}
		}
		return nil
	}
	for _, child := range c.Commands() {
		markUsageErrors(child)
	}
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Say what a command does",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usageError{err}
			}
			if err := noCommand(topic, rest); err != nil {
				return err
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}
