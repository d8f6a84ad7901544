package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	show "github.com/octavo-fp8/octavo/cmd/internal/evaluate"
	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
)

const evaluateLong = `Evaluate says what recipes cost a model on a text, before a GPU is rented: the
perplexity, and the divergence of the distribution of each next token from that
of FP32, with weights, activations or both quantized. The model is a Hugging
Face Llama or a DeepSeek-V3, in any layout that convert reads. It runs in memory
with 4 bytes for each weight. Without --recipe there is only the perplexity, for
example of a model that was converted.

The tokenizer.json beside the model makes tokens of --text. It must be BPE over
bytes, as in Llama 3, or with byte fallback, as in Llama 2. --tokens takes IDs
instead: whole numbers in a text, or a tensor of I32 or I64 in a safetensors
file. The text is cut into windows of --context tokens; each begins with what
the tokenizer puts at the beginning of a text.

A recipe is one of train's --recipe, or bf16, or a profile as in inspect, with
its format if that is not the profile's own, such as mx-floor:e3m2. It applies
to the linear layers of each block: q, k, v, o, gate, up and down, or those of
latent attention and of every expert. Embedding, norms, attention scores,
routers and head stay FP32. If only weights or only activations are quantized,
their dequantized values are multiplied in FP32; if both are, codes are
multiplied as by octavo gemm. A scale for a whole activation is for one window.

  change    of the perplexity from that in FP32
  KL        divergence from FP32, in nats a token
  same top  tokens for which the most likely one is that of FP32

± is a standard error. For a change it is that of the differences from window to
window: it says how well the text determines the change, not how much a token
varies.

Then come the sources of the loss, for both, on the first --layer-tokens tokens:
the KL if one layer alone, or one kind of linear layer, is quantized, and the
signal-to-quantization-noise ratio (SQNR) of the output of each linear layer
with the input of FP32. The worst come first. With L layers each of these tokens
costs as much as L/2+8 others.

--json prints one object, of all modes and layers. --html writes a page with
charts. Results do not depend on --workers.`

const evaluateExample = `  octavo evaluate Llama-3.2-1B --text book.txt --recipe fp8,mxfp4,nvfp4
  octavo evaluate model --text book.txt --recipe te-current --mode weights \
    --max-tokens 0 --context 1024 --stride 512
  octavo evaluate model --tokens ids.txt --recipe mx-floor:e2m3 --html cost.html
  octavo evaluate converted --text book.txt`

// evaluateFlags are the flags of evaluate.
type evaluateFlags struct {
	text, tokens      string
	html, command     string
	maxTokens, layers int
	context, stride   int
	workers, top      int
	recipes           []evaluate.Recipe
	modes             []evaluate.Mode
	asJSON            bool
}

func newEvaluateCommand() *cobra.Command {
	f := evaluateFlags{maxTokens: 8192, layers: 2048, top: 5}
	cmd := &cobra.Command{
		Use:     "evaluate DIR|FILE.safetensors",
		Short:   "Say what recipes cost a model on a text",
		Long:    evaluateLong,
		Example: evaluateExample,
		Args:    one("model"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (f.text == "") == (f.tokens == "") {
				return usagef("want a text to evaluate the model on: give --text or --tokens, one of them")
			}
			if err := sameFiles(append(show.Files(args[0]), f.text, f.tokens), f.html); err != nil {
				return err
			}
			f.command = commandLine(cmd, args)
			return runEvaluate(cmd, args[0], &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.text, "text", "", "`FILE` with the text")
	flags.StringVar(&f.tokens, "tokens", "", "`FILE` with IDs of tokens instead")
	nameOf := func(r evaluate.Recipe) string { return r.Name }
	recipes := listOf[evaluate.Recipe]{&f.recipes, "NAME", evaluate.ParseRecipe, nameOf}
	flags.Var(oneOf{recipes, evaluate.Names()}, "recipe",
		"recipe to try; may be repeated, or list several with commas")
	modes := listOf[evaluate.Mode]{
		&f.modes, "weights|activations|both", evaluate.ParseMode, evaluate.Mode.String,
	}
	flags.Var(oneOf{modes, namesOf(evaluate.Modes())}, "mode",
		"what is quantized; may be repeated, or list several with commas (default all)")
	wholeFlag(cmd, &f.context, 0, 1<<20, "context",
		"tokens in a window; 0 is the model's, at most 512 (default 0)")
	wholeFlag(cmd, &f.stride, 0, 1<<20, "stride",
		"tokens from one window to the next; 0 is a window (default 0)")
	wholeFlag(cmd, &f.maxTokens, 0, 1<<30, "max-tokens", "tokens of the text, the first ones; 0 is all")
	wholeFlag(cmd, &f.layers, 0, 1<<30, "layer-tokens", "tokens for the runs layer by layer; 0 is none")
	workersFlag(cmd, &f.workers)
	wholeFlag(cmd, &f.top, 0, 1<<30, "top", "show the `N` worst layers; 0 is all")
	jsonFlag(cmd, &f.asJSON)
	htmlFlag(cmd, &f.html, "charts")
	return cmd
}

func runEvaluate(cmd *cobra.Command, path string, f *evaluateFlags) error {
	report, err := work(cmd, "nothing was printed", func(ctx context.Context, d *display.Display) (*show.Report, error) {
		return evaluated(ctx, path, f, d)
	})
	if err != nil {
		return err
	}
	if err := writePage(f.html, "--html", func(w io.Writer, machine string) error {
		return report.WritePage(w, f.command, machine)
	}); err != nil {
		return err
	}
	return printResult(cmd, f.asJSON, report, func(w io.Writer) error { return report.WriteText(w, f.top) })
}

// evaluated reads the model and the text and evaluates.
func evaluated(ctx context.Context, path string, f *evaluateFlags, bar *display.Display) (*show.Report, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, mendSource(err)
	}
	defer c.Close()
	read, err := f.read(path)
	if err != nil {
		return nil, err
	}
	available := read.Cut(f.maxTokens)
	o := evaluate.Options{
		Recipes: f.recipes, Modes: f.modes, Prefix: read.Prefix,
		Context: f.context, Stride: f.stride, LayerTokens: f.layers,
	}
	if f.layers == 0 {
		o.LayerTokens = -1
	}
	model, err := hf.Load(ctx, c, hf.Options{Context: f.context, Workers: f.workers, Progress: bar})
	if err != nil {
		return nil, err
	}
	bar.Unit("layers", "evaluate")
	o.Progress = bar
	report, err := evaluate.Run(ctx, model, read.IDs, o)
	if err != nil {
		if errors.Is(err, evaluate.ErrTokens) {
			return nil, fmt.Errorf("%s: %w", read.From, err)
		}
		return nil, err
	}
	return &show.Report{
		Model: textout.Name(path), Text: read.From, Available: available, Report: report,
	}, nil
}

// read returns the tokens.
func (f *evaluateFlags) read(path string) (tokens.Tokens, error) {
	if f.tokens != "" {
		return tokens.FromIDs(f.tokens)
	}
	return tokens.FromText(show.Dir(path), f.text)
}
