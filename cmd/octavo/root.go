package main

import (
	"io"
	"slices"

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

// run executes a command line and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	if err := cpu.Check(); err != nil {
		return report(stderr, root, usageError{err})
	}
	outlivePipes()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &output{Writer: stdout, raw: len(args) > 0 && slices.Contains(streams, args[0])}
	defer out.flush()
	root.SetOut(out)
	root.SetErr(stderr)
	addCompletion(root)
	cmd, err := root.ExecuteC()
	return report(stderr, cmd, err)
}

// streams are commands whose output is no report: text of a model, or for programs.
var streams = []string{"generate", "completion", "serve", "encode", "decode", cobra.ShellCompRequestCmd}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "octavo COMMAND",
		Short:         "8-bit floating point: convert, judge, train, measure",
		Long:          helpOf("root"),
		Example:       examplesOf("root"),
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
			newAgreeCommand(), newConvertCommand(), newDiffCommand(), newEvaluateCommand(), newGenerateCommand(),
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
			newDecodeCommand(), newEncodeCommand(), newExploreCommand(), newGemmCommand(), newServeCommand(), newVectorsCommand(),
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
	root.SetGlobalNormalizationFunc(oldNames)
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
		return missingFlags(cmd)
	}
	for _, child := range c.Commands() {
		markUsageErrors(child)
	}
}
