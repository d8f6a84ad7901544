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
multiplies, encodes, decodes, quantizes and makes operands for tests. A thousand
small checks thus cost one start of the command. The Python package octavo, in
the folder python of the repository, uses it: octavo.check in a pytest test does
what octavo verify does on the command line.

Serve opens no file and no socket. It answers one request at a time and ends
after its input does, with the request in progress. go doc
octavo/cmd/internal/serve describes the protocol: frames of a length-prefixed
JSON header and a safetensors file; the first is a greeting with the version. A
wrong request is answered with the error. If the input is not a frame, serve
says so in a frame and on standard error, and the exit status is 1.`

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
