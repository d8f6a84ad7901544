package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/serve"
)

func newServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "serve < REQUESTS > ANSWERS",
		Short:   "Answer requests of another program, such as pytest",
		Long:    helpOf("serve"),
		Example: examplesOf("serve"),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if display.IsTerminal(cmd.OutOrStdout()) || display.IsTerminal(cmd.InOrStdin()) {
				return usagef("serve talks to a program and not to a terminal: the Python package octavo starts it")
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			s := serve.Server{
				In: cmd.InOrStdin(), Out: soleOutputOf(cmd), Version: machine.Current().Build.Version,
				Message: func(err error) string { return message(nil, err) },
			}
			n, err := s.Run(ctx)
			if errors.Is(err, context.Canceled) {
				return stopped(ctx, fmt.Sprintf("%d requests were answered", n))
			}
			return err
		},
	}
}
