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
		Args: func(_ *cobra.Command, args []string) error {
			if out != "" {
				args = append(args, out)
			}
			if len(args) != 1 {
				return fmt.Errorf("want one directory, there are %d", len(args))
			}
			return nil
		},
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
	name := textout.Name(directory)
	text := fmt.Sprintf("%s\n", name)
	for _, f := range files {
		text += fmt.Sprintf("  %-23s %9d  %s\n", f.Name, len(f.Data), f.What)
	}
	text += fmt.Sprintf(`
Try
  octavo inspect %[1]s/model.safetensors
  octavo quantize %[1]s/model.safetensors -o fp8.safetensors --recipe deepseek
  octavo gemm %[1]s/layer.safetensors --a x --b w -o c.safetensors
  octavo verify %[1]s/layer.safetensors --a x --b w --got %[1]s/wrong.safetensors \
      --bound hopper-wgmma --promote 128
  octavo train --text %[1]s/text.txt --steps 20
`, name)
	_, err := io.WriteString(w, text)
	return err
}
