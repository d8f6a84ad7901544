package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const quantizeLong = `Quantize replaces the float matrices of a safetensors file by FP8 codes and
scales. A matrix is a tensor of two or more dimensions, F64, F32, F16 or BF16;
its columns are the last dimension and its rows all others together. For NAME
the output has

  NAME            codes, of the same shape: F8_E4M3, F8_E5M2, F8_E4M3FNUZ or
                  F8_E5M2FNUZ
  NAME_scale_inv  the grid of scales, [rows, columns] of blocks: F32, or F8_E8M0
                  for the mx profiles

and value = decode(code) * scale. All other tensors are copied byte for byte,
as is the metadata, to which octavo.profile, octavo.format and octavo.block are
added. Large tensors are read in strips of whole rows of blocks, and twice if they
have but one scale.

A profile is the arithmetic of a library's scales, and brings the block that the
library gives to weights. Profiles:

`

const quantizeNotes = `

te-delayed is not among them: it needs the amax of earlier steps.

A NaN or infinity is quantized as the profile does it, and named in a warning on
standard error. The summary counts bytes of tensor data, finite values too large
for their scale (saturated), values that were not zero and became zero (flushed),
and, if there are any, finite values that became NaN or infinite since their
scale is. Its last line gives the bytes read, each counted once, the time from
opening the input to having the output on disk, and the rate in 10^9 bytes a second.`

const quantizeExample = `  octavo quantize model.safetensors -o model-fp8.safetensors --profile deepseek
  octavo quantize model.safetensors -o out.safetensors --profile te-block --block 1x128 --format e5m2
  octavo quantize model.safetensors -o out.safetensors --profile mx-rceil --only 'mlp\..*_proj'`

func newQuantizeCommand() *cobra.Command {
	job := quantizing{strip: stripBytes}
	var block tensor.Block
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "quantize IN.safetensors -o OUT.safetensors --profile NAME",
		Short:   "Quantize the matrices of a checkpoint to FP8",
		Long:    quantizeLong + wrap(profileNames(), "  ", 78) + quantizeNotes,
		Example: quantizeExample,
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			job.in = args[0]
			job.recipe.Block = job.recipe.Profile.Block(scaling.Weight)
			if cmd.Flags().Changed("block") {
				job.recipe.Block = block
			}
			ctx, stop := untilInterrupt(cmd)
			defer stop()
			summary, err := job.run(ctx, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, n := range summary.NonFinite {
				warn(cmd.ErrOrStderr(), "%v", n)
			}
			if asJSON {
				return jsonout.Print(cmd.OutOrStdout(), summary)
			}
			return summary.print(cmd.OutOrStdout())
		},
	}
	outFlag(cmd, &job.out)
	profileFlag(cmd, &job.recipe.Profile, "arithmetic of the scales, one of the above (required)")
	markRequired(cmd, "profile")
	formatFlag(cmd, &job.recipe.Format, "e4m3", "format of the codes")
	blockFlag(cmd, &block, "block", "rows and columns that share a scale (default the profile's for weights)")
	onlyFlag(cmd, &job.only, "quantize only the matrices whose name matches, copy the others")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// wrap breaks text between words, into lines that begin with indent.
func wrap(text, indent string, width int) string {
	var lines []string
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = indent
		}
		line += word + " "
	}
	return strings.Join(append(lines, strings.TrimRight(line, " ")), "\n")
}

// quantizeSummary says what became of a file.
type quantizeSummary struct {
	Input           string             `json:"input"`
	Output          string             `json:"output"`
	Profile         scaling.Profile    `json:"profile"`
	Format          string             `json:"format"`
	Block           string             `json:"block"`
	Quantized       tensorCount        `json:"quantized"`
	Copied          tensorCount        `json:"copied"`
	Elements        int64              `json:"elements"`  // quantized
	Saturated       int64              `json:"saturated"` // of Elements, as the two below
	Flushed         int64              `json:"flushed"`
	BecameNonFinite int64              `json:"becameNonFinite"` // though finite
	NonFinite       []nonFiniteWarning `json:"nonFinite"`
	BytesRead       int64              `json:"bytesRead"` // tensor data, each byte counted once
	Seconds         jsonout.Number     `json:"seconds"`
	Rate            jsonout.Number     `json:"gigabytesPerSecond"` // BytesRead / Seconds / 1e9
}

// tensorCount counts tensors and the bytes of their data.
type tensorCount struct {
	Tensors     int   `json:"tensors"`
	BytesBefore int64 `json:"bytesBefore"`
	BytesAfter  int64 `json:"bytesAfter"`
}

// nonFiniteWarning names the first value of a tensor that is NaN or infinite.
type nonFiniteWarning struct {
	Tensor string         `json:"tensor"`
	Shape  []int          `json:"shape"`
	Index  int            `json:"index"` // row-major
	Value  jsonout.Number `json:"value"`
	Count  int64          `json:"count"` // of values that are not finite
}

func (n nonFiniteWarning) String() string {
	return fmt.Sprintf("tensor %q: element %d of shape %v is %v; %d of its values are not finite",
		n.Tensor, n.Index, n.Shape, float64(n.Value), n.Count)
}

func (s *quantizeSummary) add(st *fp8.Stats) {
	s.Elements += st.Elements
	s.Saturated += st.Saturated()
	s.Flushed += st.Flushed
	s.BecameNonFinite += st.BecameNonFinite
}

func (s *quantizeSummary) took(d time.Duration) {
	s.Seconds = jsonout.Number(d.Seconds())
	s.Rate = jsonout.Number(float64(s.BytesRead) / d.Seconds() / 1e9)
}

func (s *quantizeSummary) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s %s, block %s\n\n", s.Output, s.Profile, s.Format, s.Block)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ttensors\tbytes before\tbytes after\t")
	all := tensorCount{}
	for _, row := range []struct {
		name  string
		count tensorCount
	}{{"quantized", s.Quantized}, {"copied", s.Copied}} {
		row.count.print(table, row.name)
		all.Tensors += row.count.Tensors
		all.BytesBefore += row.count.BytesBefore
		all.BytesAfter += row.count.BytesAfter
	}
	all.print(table, "all")
	if err := table.Flush(); err != nil {
		return err
	}
	became := ""
	if s.BecameNonFinite > 0 {
		became = fmt.Sprintf(", %s became NaN or infinite", share(s.BecameNonFinite, s.Elements))
	}
	_, err := fmt.Fprintf(w, "\nof %d values quantized: %s saturated, %s flushed to zero%s\n%d bytes read in %.3g s: %.3g GB/s\n",
		s.Elements, share(s.Saturated, s.Elements), share(s.Flushed, s.Elements), became, s.BytesRead, s.Seconds, s.Rate)
	return err
}

func (c tensorCount) print(w io.Writer, name string) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", name, c.Tensors, c.BytesBefore, c.BytesAfter)
}

// share formats a count and, unless it is 0, how much that is of a whole.
func share(n, whole int64) string {
	text := strconv.FormatInt(n, 10)
	if n > 0 {
		text += fmt.Sprintf(" (%.3g%%)", 100*float64(n)/float64(whole))
	}
	return text
}
