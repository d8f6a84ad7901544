package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/cmd/internal/vectors"
)

const vectorsLong = `Vectors writes conformance vectors for tests of other implementations to a
directory, as safetensors files of inputs and results with a JSON file beside
each that says what belongs together, and a README.md that explains every file
and key:

  encode   values at ties and edges, encoded to every format of octavo encode
           but those of P3109, under every policy, and by random bits that are
           given; the values of all codes; the scale formats E8M0 and UE4M3
  scaling  the scale of amax at edges, by the profiles for FP8, MX formats and
           NVFP4, on two levels too; delayed scaling; Hadamard transforms; and
           matrices quantized in blocks
  stats    what was counted while values were encoded, and how counts merge
  gemm     products in pairs of formats and blocks, FP8, MXFP8, MXFP6, MXFP4,
           MXINT8 and NVFP4 among them: exact, canonical, how far apart they may
           be, and what each GPU model predicts

SHA256SUMS is for sha256sum -c. The bytes depend on --seed and on nothing else:
neither on the machine nor on the day. A set has about 9 MB. Its files appear
together; those of another set in DIR are replaced with --overwrite only.`

func newVectorsCommand() *cobra.Command {
	var directory string
	var overwrite bool
	seed := uint64(1)
	cmd := &cobra.Command{
		Use:     "vectors -o DIR",
		Short:   "Write conformance vectors for other implementations",
		Long:    vectorsLong,
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
