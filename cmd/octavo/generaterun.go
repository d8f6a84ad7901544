package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	show "github.com/octavo-fp8/octavo/cmd/internal/generate"
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/nn/hf"
)

func runGenerate(cmd *cobra.Command, f *generateFlags) error {
	ctx, stop := untilSignal(cmd)
	defer stop()
	c, err := checkpoint.Open(f.model)
	if err != nil {
		return mendSource(err)
	}
	defer c.Close()
	t := &continuation{cmd: cmd, flags: f, source: c}
	if err := t.generate(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			return stopped(ctx, fmt.Sprintf("%d tokens were generated", len(t.result.Tokens)))
		}
		return err
	}
	return t.report()
}

// continuation is a prompt and what follows it.
type continuation struct {
	cmd    *cobra.Command
	flags  *generateFlags
	source *checkpoint.Checkpoint

	generator *generate.Generator
	text      *tokens.Text // nil: tokens are printed as IDs
	prompt    []int32
	ends      []int32
	printed   strings.Builder // as text, where it is printed at the end
	open      bool            // a line that was begun
	result    generate.Result
}

func (t *continuation) generate(ctx context.Context) error {
	var err error
	if t.ends, err = hf.Ends(t.source); err != nil {
		return err
	}
	if err := t.checkRecipe(); err != nil {
		return err
	}
	if err := t.readPrompt(ctx); err != nil {
		return err
	}
	bar := newDisplay(t.cmd)
	defer bar.Finish()
	if err := t.load(ctx, bar); err != nil {
		return err
	}
	bar.Unit("tokens")
	request := generate.Request{
		Prompt: t.prompt, Tokens: t.flags.tokens, Ends: t.ends, Sampling: t.flags.sampling,
		Progress: bar, Emit: t.emit(bar),
	}
	t.result, err = t.generator.Generate(ctx, request)
	bar.Finish()
	if flushed := t.flush(); err == nil {
		err = flushed
	}
	return err
}

// operands returns the recipes of inputs and weights; nil is none.
func (f *generateFlags) operands() *nn.Operands {
	if f.recipe == nil {
		return nil
	}
	return &nn.Operands{A: *f.recipe.Input.Recipe, B: *f.recipe.Weight.Recipe}
}

// checkRecipe refuses a recipe before anything is read.
func (t *continuation) checkRecipe() error {
	if r := t.flags.operands(); r != nil && t.flags.invariant {
		if err := generate.CheckBatchInvariant(r.A); err != nil {
			return usageError{fmt.Errorf("--recipe %s --batch-invariant: %w", t.flags.recipe.Name, err)}
		}
	}
	return nil
}

// load reads the model and packs its weights.
func (t *continuation) load(ctx context.Context, bar *display.Display) error {
	f := t.flags
	model, err := hf.Load(ctx, t.source, hf.Options{Context: f.context, Workers: f.workers, Progress: bar})
	if err != nil {
		return err
	}
	o := generate.Options{FP8: f.operands(), Cache: f.cache, Workers: f.workers, Progress: bar}
	if f.cache == generate.CacheE4M3 {
		o.KeyScales, o.ValueScales, err = hf.CacheScales(t.source, model.Config().Layers)
		if err != nil {
			return err
		}
	}
	t.generator, err = generate.New(ctx, model, o)
	return err
}

// readPrompt reads the prompt and makes tokens of it.
func (t *continuation) readPrompt(ctx context.Context) error {
	f := t.flags
	if !f.ids {
		var err error
		if t.text, err = tokens.NewText(t.source.Dir()); err != nil {
			return fmt.Errorf("%w: without text give and print IDs of tokens with --ids", err)
		}
	}
	text, from := f.prompt, "--prompt"
	switch {
	case t.cmd.Flags().Changed("prompt"):
	case f.promptFile != "":
		data, err := tokens.ReadFile(f.promptFile, "a prompt")
		if err != nil {
			return err
		}
		text, from = string(data), textout.Name(f.promptFile)
	default:
		data, err := t.readInput(ctx)
		if err != nil {
			return err
		}
		text, from = string(data), "standard input"
	}
	var err error
	if f.ids {
		t.prompt, err = tokens.Numbers(text)
	} else {
		t.prompt, err = t.text.Begin(text)
	}
	if err == nil && len(t.prompt) == 0 {
		err = errors.New("the prompt is empty, and the model has no token that begins texts: " +
			"give it something to continue")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// mostPrompt is more bytes than the longest prompt has.
const mostPrompt = 1 << 26

// readInput reads standard input until its end or that of the context.
func (t *continuation) readInput(ctx context.Context) ([]byte, error) {
	in := t.cmd.InOrStdin()
	if display.IsTerminal(in) {
		note(t.cmd, "reading the prompt from the terminal until Ctrl-D: "+
			"--prompt and --prompt-file give it otherwise")
	}
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, mostPrompt+1))
		done <- read{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-done:
		if r.err == nil && len(r.data) > mostPrompt {
			r.err = fmt.Errorf("standard input: the prompt has more than %d MiB", mostPrompt>>20)
		}
		return r.data, r.err
	}
}

// emit returns what prints tokens. A bar is shown unless text on a terminal shows how far it
// is.
func (t *continuation) emit(bar *display.Display) func(int32) error {
	done, total := 0, t.flags.tokens
	onTerminal := display.IsTerminal(t.cmd.OutOrStdout()) && !t.flags.asJSON
	return func(token int32) error {
		if done++; onTerminal && done == 1 {
			bar.Finish()
		} else if !onTerminal {
			bar.Progress("generate", int64(done), int64(total))
		}
		if t.text == nil {
			return t.print(strconv.Itoa(int(token)) + "\n")
		}
		return t.print(t.text.Add(token))
	}
}

// print writes text, or keeps it for the report.
func (t *continuation) print(text string) error {
	if text == "" {
		return nil
	}
	t.open = !strings.HasSuffix(text, "\n")
	if t.flags.asJSON {
		t.printed.WriteString(text)
		return nil
	}
	_, err := io.WriteString(soleOutputOf(t.cmd), text)
	return err
}

// flush prints what was held back, and ends the line on a terminal.
func (t *continuation) flush() error {
	if t.text != nil {
		if err := t.print(t.text.End()); err != nil {
			return err
		}
	}
	if t.open && !t.flags.asJSON && display.IsTerminal(t.cmd.OutOrStdout()) {
		return t.print("\n")
	}
	return nil
}

// report says why it ended and how fast it went.
func (t *continuation) report() error {
	f, r := t.flags, &t.result
	workers := f.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	report := show.Report{
		Model: textout.Name(f.model), Recipe: noRecipe, Cache: f.cache.String(),
		Temperature: f.sampling.Temperature, TopK: f.sampling.TopK, TopP: f.sampling.TopP,
		Seed: f.sampling.Seed, Prompt: t.prompt, Tokens: r.Tokens, Stop: r.Stop, Why: t.why(),
		Prefill: show.Took(len(t.prompt), r.Prefill), Decode: show.Took(r.Steps, r.Decode),
		WeightBytes: t.generator.WeightBytes(), Workers: workers,
	}
	if f.recipe != nil {
		report.Recipe = f.recipe.Name
	}
	if r.Steps > 0 {
		report.CacheBytes = r.CacheBytes / int64(r.Steps)
		if f.asJSON || !quiet(t.cmd) {
			report.ReadRate = show.Read(workers)
		}
	}
	if !f.asJSON {
		note(t.cmd, "%s; %s", report.Why, report.Summary())
		return nil
	}
	if t.text != nil {
		text := t.printed.String()
		report.Text = &text
	}
	return jsonout.Print(t.cmd.OutOrStdout(), report)
}

// why says why no more tokens came.
func (t *continuation) why() string {
	n := len(t.result.Tokens)
	switch t.result.Stop {
	case generate.StopEnd:
		return fmt.Sprintf("the text ended with token %d", t.result.Tokens[n-1])
	case generate.StopContext:
		return fmt.Sprintf("the context of %d tokens is full", t.generator.Config().Context)
	}
	return fmt.Sprintf("%d tokens, as --tokens says", n)
}
