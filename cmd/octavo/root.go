package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

// rootBrief is what octavo is, in two lines, and rootMore what to type next.
const (
	rootBrief = `Octavo quantizes models to 8-bit floating point and fewer bits, judges kernels,
and trains and measures in FP8. Results are the same bits on every machine.
`
	rootMore = `octavo demo DIR writes small files to try commands on. octavo COMMAND -h prints
one screen about a command, octavo COMMAND --help everything.
`
)

const rootLong = `Octavo works with 8-bit floating point. It quantizes, converts, compares and
checks the weights of models, and says what FP8 costs them. It says whether what
a GPU kernel computed is right, and where it is not. It trains small models in
FP8 beside the same ones in FP32. It measures and tests this machine's kernels,
and writes conformance vectors for other implementations.

Results are the same bits on every machine and for any number of threads.
Checkpoints are safetensors files. A file is written under another name and
renamed when it is complete, so that no file is ever half written. It has the
permissions of the file that it replaces, and a link to that file stays a link.

What takes longer than a second reports progress on standard error: how far it
is, how fast, and how long it will still take. A terminal gets a bar, anything
else a line every ten seconds. --progress chooses; --quiet turns off progress
and notes.

Ctrl-C (SIGINT), SIGTERM and SIGHUP stop every command in good order: it removes
what is incomplete, writes what there is, and says so in a line. The exit status
is then 130, 143 or 129. A second signal, a second or more later, ends the
command at once. Signals that are ignored from the start, as with nohup, stay
ignored.

If the reader of standard output closes it, as head does, that is no error: the
command still writes the files that it was asked for.

An error is one line on standard error. The exit status is 0 on success, 1 if a
file is wrong or cannot be read or written or if a test failed, 2 if the command
line is wrong, and 3 if a verdict is undecided.`

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
		Use:           "octavo COMMAND",
		Short:         "8-bit floating point: convert, judge, train, measure",
		Long:          rootLong,
		Example:       rootExample,
		Args:          noCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		_, err := io.WriteString(cmd.OutOrStdout(), briefHelp(cmd))
		return err
	}
	root.DisableFlagsInUseLine = true
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Checkpoints", []*cobra.Command{
			newConvertCommand(), newDiffCommand(), newEvaluateCommand(), newGenerateCommand(),
			newInspectCommand(), newLintCommand(), newQuantizeCommand(),
		}},
		{"Kernels", []*cobra.Command{newAuditCommand(), newIdentifyCommand(), newVerifyCommand()}},
		{"Training", []*cobra.Command{
			newCertifyCommand(), newLabCommand(), newPlanCommand(), newReportCommand(), newTrainCommand(),
		}},
		{"This machine", []*cobra.Command{
			newBenchCommand(benchSuites{bench.NewSuite, bench.NewPeerSuite}), newSelftestCommand(), newVersionCommand(),
		}},
		{"Low level", []*cobra.Command{
			newDecodeCommand(), newEncodeCommand(), newGemmCommand(), newServeCommand(), newVectorsCommand(),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.title
		}
		root.AddCommand(group.commands...)
	}
	replay := newReplayCommand() // its name before it was a part of train
	replay.Hidden = true
	root.AddCommand(newDemoCommand(), replay)
	addHelp(root)
	addProgressFlags(root)
	addVersionFlag(root)
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
