package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/machine"
)

// addVersionFlag adds --version. Cobra's would need a template, which makes a program larger; see package page.
func addVersionFlag(root *cobra.Command) {
	version := root.Flags().BoolP("version", "v", false, "print the version and the commit that it was built from")
	run := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if !*version {
			return run(cmd, args)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "octavo %s\n", machine.Current().Build)
		return err
	}
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, platform and processor features",
		Long:    helpOf("version"),
		Example: "  octavo version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m := machine.Current()
			return printResult(cmd, asJSON, m, m.WriteText)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
