package main

import (
	"cmp"
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
	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/nn/tokenizer"
)

func runGenerate(cmd *cobra.Command, f *generateFlags) error {
	ctx, stop := untilSignal(cmd)
	defer stop()
	given := 0
	for _, name := range []string{"prompt", "prompt-file", "prompts"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	if given > 1 {
		return usagef("--prompt, --prompt-file and --prompts all say what to continue: give one " +
			"of them")
	}
	c, err := checkpoint.Open(f.model)
	if err != nil {
		return mendSource(err)
	}
	defer c.Close()
	t := &continuation{cmd: cmd, flags: f, source: c}
	if err := t.generate(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			return stopped(ctx, fmt.Sprintf("%d tokens were generated", t.emitted))
		}
		return err
	}
	return t.report()
}

// continuation is prompts and what follows them.
type continuation struct {
	cmd    *cobra.Command
	flags  *generateFlags
	source *checkpoint.Checkpoint

	generator *generate.Generator
	requests  []generate.Request
	streams   []*tokenizer.Stream // of each request; none where tokens are printed as IDs
	texts     []strings.Builder   // likewise, for JSON
	emitted   int
	results   []generate.Result
	timing    generate.Timing
	open      bool // what was printed ends within a line, which standard error goes on with
}

func (t *continuation) generate(ctx context.Context) error {
	if err := t.checkRecipe(); err != nil {
		return err
	}
	prompts, err := t.readPrompts(ctx)
	if err != nil {
		return err
	}
	if err := t.begin(prompts); err != nil {
		return err
	}
	bar := newDisplay(t.cmd)
	defer bar.Finish()
	if err := t.load(ctx, bar); err != nil {
		return err
	}
	bar.Unit("tokens", "prefill", "generate")
	printer := t.print(prompts, bar)
	t.results, t.timing, err = t.generator.GenerateBatch(ctx, generate.Batch{
		Requests: t.requests, Together: t.flags.batch, Progress: bar,
	})
	bar.Finish()
	return cmp.Or(err, t.flush(printer))
}

// operandsOf returns a recipe's for inputs and weights; nil is none.
func operandsOf(r *evaluate.Recipe) *nn.Operands {
	if r == nil || r.Input.Recipe == nil {
		return nil
	}
	return &nn.Operands{A: *r.Input.Recipe, B: *r.Weight.Recipe}
}

// recipeName returns the name of a recipe.
func recipeName(r *evaluate.Recipe) string {
	if r == nil {
		return vocabulary.None
	}
	return r.Name
}

// checkRecipe refuses a recipe before anything is read.
func (t *continuation) checkRecipe() error {
	for _, of := range []struct {
		flag   string
		recipe *evaluate.Recipe
	}{{"recipe", t.flags.recipe}, {"head", t.flags.head}} {
		r := operandsOf(of.recipe)
		if r == nil || !t.flags.invariant {
			continue
		}
		if err := generate.CheckBatchInvariant(r.A); err != nil {
			return usageError{
				fmt.Errorf("--%s %s --batch-invariant: %w", of.flag, of.recipe.Name, err),
			}
		}
	}
	return nil
}

// load packs the weights of the model as it reads them.
func (t *continuation) load(ctx context.Context, bar *display.Display) error {
	f := t.flags
	open := hf.Options{Context: f.context, Workers: f.workers, Progress: bar}
	if of := operandsOf(f.recipe); of != nil {
		open.WeightBits = of.B.Format.Bits()
	}
	unread, err := hf.Open(ctx, t.source, open)
	if err != nil {
		return err
	}
	o := generate.Options{
		FP8: operandsOf(f.recipe), Head: operandsOf(f.head), RoundHead: f.head != nil,
		Cache: f.cache, Workers: f.workers, Read: unread.Read,
	}
	// Scales of models with latent attention are those of latents, which are not what is kept.
	if c := unread.Model.Config(); f.cache == generate.CacheE4M3 && c.MLA == nil {
		o.KeyScales, o.ValueScales, err = hf.CacheScales(t.source, c.Layers)
		if err != nil {
			return err
		}
	}
	t.generator, err = generate.New(ctx, unread.Model, o)
	return err
}

// readPrompts reads what is to be continued.
func (t *continuation) readPrompts(ctx context.Context) ([]show.Prompt, error) {
	f := t.flags
	usual := show.Prompt{Tokens: f.tokens, Sampling: f.sampling}
	switch {
	case f.promptsFile != "":
		return show.ReadPrompts(f.promptsFile, usual)
	case f.promptFile != "":
		data, err := tokens.ReadFile(f.promptFile, "a prompt")
		usual.Text, usual.From = string(data), textout.Name(f.promptFile)
		return []show.Prompt{usual}, err
	case !t.cmd.Flags().Changed("prompt"):
		data, err := t.readInput(ctx)
		usual.Text, usual.From = string(data), "standard input"
		return []show.Prompt{usual}, err
	}
	var prompts []show.Prompt
	for i, text := range f.prompts {
		p := usual
		if p.Text, p.From = text, "--prompt"; len(f.prompts) > 1 {
			p.From = fmt.Sprintf("--prompt %d", i+1)
		}
		prompts = append(prompts, p)
	}
	return prompts, nil
}

// begin makes requests of prompts, before the model is loaded.
func (t *continuation) begin(prompts []show.Prompt) error {
	ends, err := hf.Ends(t.source)
	if err != nil {
		return err
	}
	model, err := hf.Config(t.source)
	if err != nil {
		return err
	}
	longest := model.Context
	model.Context = cmp.Or(t.flags.context, min(hf.DefaultContext, longest))
	var text *tokens.Text
	if !t.flags.ids {
		if text, err = tokens.NewText(t.source.Dir()); err != nil {
			return fmt.Errorf("%w: without text give and print IDs of tokens with --ids", err)
		}
	}
	for i := range prompts {
		p := &prompts[i]
		r := generate.Request{
			Name: p.From, Tokens: p.Tokens, Ends: ends, Sampling: p.Sampling,
			LogProbs: t.flags.asJSON,
		}
		if r.Prompt, err = t.encode(p, text); err == nil {
			err = r.Check(model)
		}
		if n := len(r.Prompt); n > model.Context && n <= longest {
			err = fmt.Errorf("%w, or --context %d or more: the model is for %d", err, n, longest)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.From, err)
		}
		t.requests = append(t.requests, r)
	}
	return nil
}

// encode returns the tokens of a prompt, and keeps what makes text of those that follow.
func (t *continuation) encode(p *show.Prompt, text *tokens.Text) (ids []int32, err error) {
	var stream *tokenizer.Stream
	switch ids = p.IDs; {
	case text == nil && ids == nil:
		ids, err = tokens.Numbers(p.Text)
	case text != nil && ids == nil:
		ids, stream, err = text.Begin(p.Text)
	case text != nil:
		stream, err = text.Stream(len(ids) == 0)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(ids) > 0:
	case stream == nil:
		return nil, errors.New("the prompt is empty: give it tokens to continue")
	default:
		return nil, errors.New("the prompt is empty, and the model has no token that begins " +
			"texts: give it something to continue")
	}
	if text != nil {
		t.streams = append(t.streams, stream)
	}
	return ids, nil
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

// print has the requests tell what to print. A bar is shown unless text on a terminal shows
// how far it is.
func (t *continuation) print(prompts []show.Prompt, bar *display.Display) *show.Printer {
	var labels []string
	for i := range prompts {
		labels = append(labels, fmt.Sprintf("%d: %s", i+1, prompts[i].Excerpt()))
	}
	total := t.most()
	t.texts = make([]strings.Builder, len(prompts))
	printer := show.NewPrinter(soleOutputOf(t.cmd), labels)
	onTerminal := display.IsTerminal(t.cmd.OutOrStdout()) && !t.flags.asJSON
	write := func(i int, text string) error {
		if t.flags.asJSON {
			t.texts[i].WriteString(text)
			return nil
		}
		return printer.Print(i, text)
	}
	for i := range t.requests {
		t.requests[i].Emit = func(token int32) error {
			if t.emitted++; onTerminal && t.emitted == 1 {
				bar.Finish()
			} else if !onTerminal {
				bar.Progress("generate", int64(t.emitted), int64(total))
			}
			if t.streams == nil {
				return write(i, strconv.Itoa(int(token))+"\n")
			}
			return write(i, t.streams[i].Add(token))
		}
		t.requests[i].Done = func() error {
			if t.streams != nil {
				if err := write(i, t.streams[i].End()); err != nil {
					return err
				}
			}
			if t.flags.asJSON {
				return nil
			}
			return printer.Done(i)
		}
	}
	return printer
}

// most returns how many tokens there will be at most, or 0 if some prompts have no limit but
// the context.
func (t *continuation) most() (n int) {
	for i := range t.requests {
		r := &t.requests[i]
		if r.Tokens == 0 {
			return 0
		}
		n += min(r.Tokens, t.generator.Config().Context-len(r.Prompt)+1)
	}
	return n
}

// flush prints what was held back, and ends the line on a terminal.
func (t *continuation) flush(printer *show.Printer) error {
	if t.flags.asJSON {
		return nil
	}
	if err := printer.Flush(); err != nil {
		return err
	}
	t.open = printer.Open() && oneStream(t.cmd.OutOrStdout(), t.cmd.ErrOrStderr())
	if printer.Open() && display.IsTerminal(t.cmd.OutOrStdout()) {
		t.open = false
		_, err := io.WriteString(t.cmd.OutOrStdout(), "\n")
		return err
	}
	return nil
}

// report says why it ended and how fast it went.
func (t *continuation) report() error {
	f, timing := t.flags, &t.timing
	workers := f.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	together := len(t.requests)
	if f.batch > 0 {
		together = min(together, f.batch)
	}
	report := show.Report{
		Model: textout.Name(f.model), Recipe: recipeName(f.recipe), Head: recipeName(f.head),
		Cache: f.cache.String(), Together: together,
		Prefill: show.Took(timing.PromptTokens, timing.Prefill),
		Decode:  show.Took(timing.Tokens, timing.Decode), Steps: timing.Steps,
		WeightBytes: t.generator.WeightBytes(), Workers: workers,
	}
	for i := range t.requests {
		report.Requests = append(report.Requests, t.reportOf(i))
	}
	if timing.Steps > 0 {
		report.CacheBytes = timing.CacheBytes / int64(timing.Steps)
		if !quiet(t.cmd) {
			report.ReadRate = show.Read(workers)
		}
	}
	if !f.asJSON {
		if t.open && !quiet(t.cmd) {
			fmt.Fprintln(t.cmd.ErrOrStderr())
		}
		note(t.cmd, "%s", report.Summary())
		return nil
	}
	return jsonout.Print(t.cmd.OutOrStdout(), report)
}

// reportOf returns what became of a request.
func (t *continuation) reportOf(i int) show.Request {
	request, result := &t.requests[i], &t.results[i]
	s := request.Sampling
	r := show.Request{
		Prompt: request.Prompt, Temperature: s.Temperature, TopK: s.TopK, TopP: s.TopP,
		Seed:   s.Seed,
		Tokens: result.Tokens, LogProbs: result.LogProbs, Stop: result.Stop, Why: t.why(result),
	}
	if t.streams != nil {
		text := t.texts[i].String()
		r.Text = &text
	}
	return r
}

// why says why no more tokens came.
func (t *continuation) why(r *generate.Result) string {
	n := len(r.Tokens)
	switch r.Stop {
	case generate.StopEnd:
		return fmt.Sprintf("the text ended with token %d", r.Tokens[n-1])
	case generate.StopContext:
		return fmt.Sprintf("the context of %d tokens is full", t.generator.Config().Context)
	}
	if n == 1 {
		return "1 token, as asked"
	}
	return fmt.Sprintf("%d tokens, as asked", n)
}
