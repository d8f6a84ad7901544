package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/demo"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/textout"
)

func newDemoCommand() *cobra.Command {
	var out string
	var overwrite bool
	seed := uint64(1)
	cmd := &cobra.Command{
		Use:     "demo DIR",
		Short:   "Write small files to try the other commands on",
		Long:    helpOf("demo"),
		Example: "  octavo demo demo",
		Args:    oneOr(&out, "directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			directory := append(args, out)[0]
			return madeFiles{
				dir: directory, kind: "demo", with: fmt.Sprintf(" %s --seed %d", shellQuote(directory), seed),
				Options: outdir.Options{Overwrite: overwrite, Files: demo.Names()},
				make:    func(ctx context.Context, d *display.Display) ([]outdir.File, error) { return demo.Make(ctx, seed, d) },
				list:    func(w io.Writer, files []outdir.File) error { return writeDemo(w, directory, files) },
			}.write(cmd)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "the same as `DIR`")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace the files of an earlier demo")
	seedFlag(cmd, &seed, "of the text and of the model")
	return cmd
}

// writeDemo lists the files and what to do with them.
func writeDemo(w io.Writer, directory string, files []outdir.File) error {
	text := textout.Name(directory) + "\n"
	for _, f := range files {
		text += fmt.Sprintf("  %-28s %8d  %s\n", f.Name, len(f.Data), f.What)
	}
	_, err := io.WriteString(w, text+"\nTry\n"+demoLines(directory))
	return err
}

// demoLines are command lines to try in the directory that a demo is in.
func demoLines(directory string) string {
	return fmt.Sprintf(`  octavo inspect %[1]s/model.safetensors
  octavo lint %[1]s
  octavo evaluate %[1]s --text %[1]s/text.txt --recipe fp8,nvfp4-te --max-tokens 1024
  octavo generate %[1]s --prompt 'The careful engineer ' --tokens 60
  octavo convert %[1]s -o model-fp8 --to deepseek-v3
  octavo quantize %[1]s/model.safetensors -o w.safetensors --recipe deepseek --keep
  octavo gemm %[1]s/layer.safetensors --a x --b w -o c.safetensors
  octavo verify %[1]s/layer.safetensors --a x --b w --got %[1]s/wrong.safetensors \
      --bound hopper-wgmma --promote 128
  octavo train --text %[1]s/text.txt --steps 20 --layers 1 --batch 2
`, shellQuote(directory))
}
