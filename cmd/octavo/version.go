package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/machine"
)

const versionLong = `Version prints octavo's version, the commit that it was built from and whether
files were changed since, the Go version, operating system and architecture, how
many threads it uses (GOMAXPROCS), and which of the processor's extensions for
FP8 there are: avx2, fma, avx512f, bw, dq, vl, vbmi, vnni, bf16, avxvnni,
amx-bf16 and amx-int8 on amd64; asimd, asimdhp, asimddp, asimdfhm and sve on
arm64; and the level of the kernels in use: generic, neon, avx2, avx512 or amx.
The environment variable OCTAVO_LEVEL forces one. It also prints the model of
the processor and the sizes of its caches, by which products are cut: from
CPUID, from Linux's sysfs, or assumed. Results depend on none of these.`

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
		Long:    versionLong,
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
