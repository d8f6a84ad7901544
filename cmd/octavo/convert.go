package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/textout"
)

const convertLong = `Convert writes a model in another layout: one in which DeepSeek, vLLM,
transformers, compressed-tensors, ModelOpt or OpenAI keep quantized weights, or
plain values, to which codes are dequantized. It recognizes the model's layout
by config.json and the names, types and shapes of tensors. The argument is a
directory with an index or with safetensors files, an index, or one file.
Layouts:

`

const convertNotes = `
A layout does not quantize what loaders expect in full precision: embeddings,
the head, norms, routers, and tensors that are not matrices. --only quantizes
the weights whose names match instead, and --except leaves some out. config.json
and the index are rewritten; the tokenizer and other files are copied, except
hidden files and weights in other forms.

Layouts with scales of activations need the largest magnitudes of layers'
inputs. --calibrate runs a text through the model, a Hugging Face Llama or
DeepSeek-V3 that fits in memory as FP32, in windows of 512 tokens of the
tokenizer.json beside it. --tokens takes IDs instead, as evaluate does. --amax
reads magnitudes recorded elsewhere: a JSON object of numbers by module names.
--resume calibrates again, with the same result.

Shards are converted one after another, in strips of rows, in less than 1 GiB of
memory whatever their size. They lie in a hidden directory in --out until all
are complete; octavo-run.json, with the CRC-32C of every shard, comes last, so
that a directory with it has a whole model. After a stop, a kill or a full disk
--resume checks the complete shards and goes on from there; the bytes are the
same. While a conversion runs, no other can write into --out.

certificate.json, and certificate.html with charts, say of every weight what it
was, what it became and what it lost: the signal-to-quantization-noise ratio
(SQNR), the largest error and its place, finite values too large for their scale
(saturated) and nonzero values that became zero (flushed). The summary shows the
weights that lost most. The rate is in 10^9 bytes of the source a second.

Codes under power-of-two scales, such as MXFP4's, become FP8 in larger blocks
without loss if the scales in a block are close enough: the certificate has the
proof for each weight, or the first block that breaks it. If no value changed,
every weight is read back from the files and compared with the source, and the
certificate says so. With --lossless nothing is written otherwise.

Quantization methods that octavo does not read, such as GPTQ, AWQ and
bitsandbytes, are refused by name, and nothing is written. Matrices of integers
that may be codes of an unknown method are copied and listed; then there is no
certificate, and the exit status is 1.`

const convertExample = `  octavo convert Qwen3-8B -o Qwen3-8B-FP8 --to deepseek-v3
  octavo convert Qwen3-8B -o Qwen3-8B-FP4 --to ct-nvfp4a16 --except 'down_proj'
  octavo convert Qwen3-8B -o Qwen3-8B-FP4 --to ct-nvfp4a16 --resume
  octavo convert DeepSeek-V3 -o DeepSeek-V3-bf16 --to bf16
  octavo convert DeepSeek-V4 -o V4-FP8 --to deepseek-v3-ue8m0 --lossless`

// convertFlags are the flags of convert.
type convertFlags struct {
	out, amax         string
	calibrate, tokens string
	calibrateTokens   int
	layout            *checkpoint.Layout
	arithmetic        checkpoint.Arithmetic
	only, except      *regexp.Regexp
	jobs, top         int
	resume, overwrite bool
	lossless          bool
	json, detail      bool
}

func newConvertCommand() *cobra.Command {
	f := convertFlags{top: 10, calibrateTokens: 16384}
	cmd := &cobra.Command{
		Use:     "convert DIR -o DIR --to LAYOUT",
		Short:   "Convert a model to the layout that a loader wants, or back",
		Long:    convertLong + layoutList() + convertNotes,
		Example: convertExample,
		Args:    one("model"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runConvert(cmd, args, &f) },
	}
	outDirFlag(cmd, &f.out, "the model", "required")
	to := &parsed[*checkpoint.Layout]{&f.layout, "", "LAYOUT", parseWritable}
	cmd.Flags().Var(oneOf{to, writableLayouts()}, "to", "layout to convert to, one of the above (required)")
	markRequired(cmd, "out", "to")
	profile := &parsed[checkpoint.Arithmetic]{&f.arithmetic, "", "NAME", parseArithmetic}
	cmd.Flags().Var(oneOf{profile, arithmetics()}, "profile", "arithmetic of the scales in place of the layout's")
	onlyFlag(cmd, &f.only, "quantize only the weights whose name matches")
	cmd.Flags().Var(&parsed[*regexp.Regexp]{&f.except, "", "REGEXP", regexp.Compile}, "except", "quantize no weight whose name matches")
	cmd.Flags().StringVar(&f.amax, "amax", "", "`FILE` with the largest magnitudes of layers' inputs, in JSON")
	cmd.Flags().StringVar(&f.calibrate, "calibrate", "", "`FILE` with a text whose largest inputs of layers are looked for")
	cmd.Flags().StringVar(&f.tokens, "tokens", "", "`FILE` with IDs of tokens to calibrate with instead")
	wholeFlag(cmd, &f.calibrateTokens, 0, 1<<30, "calibrate-tokens", "calibrate with the first `N` tokens; 0 is all")
	wholeFlag(cmd, &f.jobs, 0, mostWorkers, "jobs", "strips converted at once; 0 is one for each processor (default 0)")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on with a conversion that was cut off")
	overwriteFlag(cmd, &f.overwrite)
	cmd.Flags().BoolVar(&f.lossless, "lossless", false, "write nothing if any weight would lose anything")
	wholeFlag(cmd, &f.top, 0, 1<<30, "top", "show the `N` weights that lost most; 0 is all")
	cmd.Flags().BoolVar(&f.detail, "detail", false, "show all weights that lost anything")
	jsonFlag(cmd, &f.json)
	return cmd
}

// layoutList lists the layouts that can be written, a line for each.
func layoutList() string {
	var text strings.Builder
	for _, l := range checkpoint.Layouts() {
		if l.Writable() {
			about := textout.Wrap(l.About, 78-20, "")
			fmt.Fprintf(&text, "  %-18s%s\n", l.Name, strings.ReplaceAll(about, "\n", "\n"+strings.Repeat(" ", 20)))
		}
	}
	return text.String()
}

func writableLayouts() (names []string) {
	for _, l := range checkpoint.Layouts() {
		if l.Writable() {
			names = append(names, l.Name)
		}
	}
	return names
}

func parseWritable(name string) (*checkpoint.Layout, error) {
	l, err := checkpoint.ParseLayout(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("want one of %s", strings.Join(writableLayouts(), ", "))
	case !l.Writable():
		return nil, errors.New("it can be read, not written")
	}
	return l, nil
}

// arithmetics lists the profiles of package scaling and the arithmetic of libraries.
func arithmetics() []string {
	libraries := []checkpoint.Arithmetic{checkpoint.CompressedTensors, checkpoint.AutoFP8, checkpoint.ModelOpt}
	return append(namesOf(libraries), namesOf(tensorfile.Profiles())...)
}

func parseArithmetic(name string) (checkpoint.Arithmetic, error) {
	if !slices.Contains(arithmetics(), name) {
		return "", fmt.Errorf("want one of %s", strings.Join(arithmetics(), ", "))
	}
	return checkpoint.Arithmetic(name), nil
}
