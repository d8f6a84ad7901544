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

const serveLong = `Serve answers requests of another program, which writes them to standard input
and reads the answers from standard output: it checks products of kernels,
multiplies, encodes, decodes, quantizes and makes operands of tests. So a
thousand small checks cost one start of the command. The Python package octavo,
in the folder python of the repository, is such a program; octavo.check in a
test of pytest is what octavo verify is on the command line.

Serve opens no file and no socket. It answers one request at a time and ends
when its input does, with what it is at. go doc
octavo/cmd/internal/serve describes the protocol: frames of a length-prefixed
JSON header and a safetensors file, which begin with a greeting that has the
version. What is wrong with a request is its answer. If the input is no frame,
serve says so in a frame and on standard error, and the exit status is 1.`

const serveExample = `  octavo serve < /dev/null > greeting
  python3 -c 'import octavo; print(octavo.encode([1.5]))'`

func newServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "serve < REQUESTS > ANSWERS",
		Short:   "Answer requests of another program, such as pytest",
		Long:    serveLong,
		Example: serveExample,
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
