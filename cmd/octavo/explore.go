package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/explore"
	"github.com/octavo-fp8/octavo/internal/textout"
)

func newExploreCommand() *cobra.Command {
	out := "explore.html"
	cmd := &cobra.Command{
		Use:     "explore",
		Short:   "Write a page to try formats, scales and smoothing on",
		Long:    helpOf("explore"),
		Example: examplesOf("explore"),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := writePage(out, "-o", func(w io.Writer, machine string) error {
				return explore.WritePage(w, "octavo explore -o "+shellQuote(out), machine)
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: open it in a browser\n", textout.Name(out))
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", out, "`FILE` to write the page to, replaced if it exists")
	return cmd
}
