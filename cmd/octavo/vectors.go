package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/cmd/internal/vectors"
)

func newVectorsCommand() *cobra.Command {
	var directory string
	var overwrite bool
	seed := uint64(1)
	cmd := &cobra.Command{
		Use:     "vectors -o DIR",
		Short:   "Write conformance vectors for other implementations",
		Long:    helpOf("vectors"),
		Example: "  octavo vectors -o vectors && cd vectors && sha256sum -c SHA256SUMS",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return madeFiles{
				dir: directory, kind: "vectors", with: fmt.Sprintf(" -o %s --seed %d", shellQuote(directory), seed),
				Options: outdir.Options{Overwrite: overwrite, Files: vectors.Names()},
				make: func(ctx context.Context, d *display.Display) ([]outdir.File, error) {
					d.Unit("parts")
					return vectors.Make(ctx, seed, d)
				},
			}.write(cmd)
		},
	}
	outDirFlag(cmd, &directory, "the files", "required")
	markRequired(cmd, "out")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace the set that is in --out")
	seedFlag(cmd, &seed, "seed of the random values")
	return cmd
}
