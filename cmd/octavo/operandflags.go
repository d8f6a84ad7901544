package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// operandFlags say which tensors make up an operand.
type operandFlags struct{ operand.Operand }

func (o *operandFlags) add(cmd *cobra.Command, name, shape string) {
	cmd.Flags().StringVar(&o.Codes, name, "", fmt.Sprintf("`NAME` of the tensor of codes %s (required)", shape))
	cmd.Flags().StringVar(&o.Scales, name+"-scales", "", "`NAME` of the tensor of its scales (required)")
	blockFlag(cmd, &o.Block, name+"-block", "rows and columns that share a scale (required)")
	markRequired(cmd, name, name+"-scales", name+"-block")
}

// addFormat adds a flag for codes that are but bytes.
func (o *operandFlags) addFormat(cmd *cobra.Command, name string) {
	parse := func(text string) (safetensors.DType, error) {
		f, err := fp8.ParseFormat(text)
		return tensorfile.DTypeOf(f), err
	}
	cmd.Flags().Var(&parsed[safetensors.DType]{&o.Bytes, "", formatNames, parse}, name+"-format", "format of codes that are bytes (U8)")
}
