package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/planning"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/plan"
)

// planFlags are the flags of plan.
type planFlags struct {
	layout    plan.Layout
	recipe    plan.Precision
	library   plan.Library
	recompute plan.Recompute

	layers, sequence, batch, batches, chunk int

	policies string // "", search, or one for all layers

	card, headroom, tokens, mfu, days, peak float64

	serve, quoted, measured, asJSON bool
	html                            string
}

func newPlanCommand() *cobra.Command {
	var p planFlags
	known := textout.Wrap("Known models are "+strings.Join(planNames(), ", ")+".", 80, "")
	cmd := &cobra.Command{
		Use:     "plan MODEL|config.json",
		Short:   "Say what a model takes in memory and time under a layout",
		Long:    helpOf("plan", "{models}", known),
		Example: examplesOf("plan"),
		Args:    oneModel(&p),
		RunE:    func(cmd *cobra.Command, args []string) error { return p.run(cmd, args) },
	}
	p.addLayout(cmd)
	p.addJob(cmd)
	p.addTime(cmd)
	jsonFlag(cmd, &p.asJSON)
	htmlFlag(cmd, &p.html, "bars")
	return cmd
}

// oneModel is the Args of plan.
func oneModel(p *planFlags) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case p.quoted && len(args) > 0:
			return fmt.Errorf("--quoted takes no model, there is %q", args[0])
		case p.measured && len(args) > 0:
			return fmt.Errorf("--measured takes no model, there is %q", args[0])
		case !p.quoted && !p.measured && len(args) != 1:
			return fmt.Errorf("want one model, %s", thereAre(args))
		}
		return nil
	}
}

func (p *planFlags) addLayout(cmd *cobra.Command) {
	const most = 1 << 30
	l := &p.layout
	l.Zero = 1
	for _, f := range []struct {
		value       *int
		name, usage string
	}{
		{&l.Ranks, "ranks", "cards altogether (default the fewest that the layout needs)"},
		{&l.Tensor, "tp", "ranks that share heads, MLPs and the vocabulary (default 1)"},
		{&l.Context, "cp", "ranks that share the tokens of a sequence (default 1)"},
		{&l.Pipeline, "pp", "pipeline stages (default 1)"},
		{&l.Virtual, "vpp", "chunks of layers on each stage (default 1)"},
		{&l.Group, "group", "micro-batches that a chunk does in turn (default --pp)"},
		{&l.First, "first", "layers of the first stage (default as many as others)"},
		{&l.Last, "last", "layers of the last stage (default as many as others)"},
		{&l.Expert, "ep", "ranks that share out experts (default 1)"},
		{&l.ExpertTensor, "etp", "ranks that share an expert (default --tp)"},
		{&p.layers, "layers", "layers, in place of the model's"},
	} {
		wholeFlag(cmd, f.value, 1, most, f.name, f.usage)
	}
	wholeFlag(cmd, &l.Zero, 0, 3, "zero", "stage of ZeRO: 1 divides the optimizer, 2 gradients, 3 weights")
	cmd.Flags().BoolVar(&l.WholeSequence, "no-sp", false, "no sequence parallelism: norms are whole on each tensor-parallel rank")
}

func (p *planFlags) addJob(cmd *cobra.Command) {
	p.sequence, p.batch = 4096, 1
	const most = math.MaxInt32
	wholeFlag(cmd, &p.sequence, 1, most, "sequence", "tokens of a sequence; with --serve, prompt and answer")
	wholeFlag(cmd, &p.batch, 1, most, "batch", "sequences of a micro-batch; with --serve, at once on a data-parallel rank")
	wholeFlag(cmd, &p.batches, 0, most, "micro-batches", "micro-batches of a step on a data-parallel rank (default 4 times --pp)")
	wholeFlag(cmd, &p.chunk, 0, most, "chunk", "with --serve, tokens computed at once (default 8192, or all)")
	p.recipe = plan.Precisions()[0]
	recipeFlag(cmd, &p.recipe, p.recipe.Name, vocabulary.Planning, "how numbers are stored; with --serve and none given, as published:\n"+strings.Join(vocabulary.Planning.Names(), ", "),
		func(name string) (plan.Precision, error) {
			if err := vocabulary.Planning.Check(name); err != nil {
				return plan.Precision{}, err
			}
			return plan.NamedPrecision(name)
		})
	choiceFlag(cmd, &p.library, "library", "what keeps activations: TransformerEngine 2.11; 2.1 with no fused loss; nothing more than it must; octavo's nn",
		choice[plan.Library]{"te", plan.TransformerEngine}, choice[plan.Library]{"te-2.1", plan.TransformerEngine21},
		choice[plan.Library]{"none", plan.Library{}}, choice[plan.Library]{"octavo", plan.Library{Octavo: true}})
	valueFlag(cmd, &parsed[plan.Recompute]{&p.recompute, "", "LIST", parseRecompute}, "recompute", "what the backward pass computes again",
		"all", "attention", "latent", "mlp", "moe", "norms", "activation")
	valueFlag(cmd, &parsed[string]{&p.policies, "", "TEXT|search", parsePolicies}, "policies", "how octavo's nn keeps classes of activations", planning.Searched)
	cmd.Flags().BoolVar(&p.serve, "serve", false, "serve the model instead of training it")
}

func (p *planFlags) addTime(cmd *cobra.Command) {
	valueFlag(cmd, &parsed[float64]{&p.card, "", "GIB", parseCard}, "card", "memory of a card in GiB, such as 80, to say which stages do not fit, and for --policies search")
	p.headroom = plan.Headroom
	numberFlag(cmd, &p.headroom, shares, "headroom", "share of what is counted that --card holds beside it, for fragments")
	numberFlag(cmd, &p.tokens, positives, "tokens", "tokens of the whole training, such as 14.8e12")
	numberFlag(cmd, &p.mfu, rates, "mfu", "stated share of the cards' peak, to say how long it takes")
	numberFlag(cmd, &p.days, positives, "days", "stated days of the whole training, to say what MFU that is")
	numberFlag(cmd, &p.peak, positives, "peak", "TFLOP/s of a card (default 989: an H100 in BF16)")
	cmd.Flags().BoolVar(&p.quoted, "quoted", false, "print the days that practice quotes, and what they imply")
	cmd.Flags().BoolVar(&p.measured, "measured", false, "print memory that was measured beside what is counted")
}

// parseCard reads a number of GiB. Cards that are sold with so many GB have so many GiB.
func parseCard(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(text, "GiB"), "GB"), " "), 64)
	if err != nil || !positives.has(x) {
		return 0, errors.New("want the memory of a card in GiB, a positive number such as 80, and not its name")
	}
	return x, nil
}

// parseRecompute reads a list of what is computed again.
func parseRecompute(text string) (r plan.Recompute, err error) {
	all := map[string]*bool{
		"attention": &r.Attention, "latent": &r.Latent, "mlp": &r.MLP, "moe": &r.MoE, "norms": &r.Norms, "activation": &r.ExpertActivation,
	}
	for name := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(name, 10, 16)
		switch {
		case err == nil && n > 0:
			r.Layers = int(n)
		case name == "all":
			r.Layers = -1
		case all[name] != nil:
			*all[name] = true
		default:
			return r, errors.New("want a number of layers or all, and attention, latent, mlp, moe, norms, activation, with commas between")
		}
	}
	return r, nil
}

// parsePolicies reads a policy for all layers, or that one is to be found.
func parsePolicies(text string) (string, error) {
	if text == planning.Searched {
		return text, nil
	}
	_, err := nn.ParsePolicy(text, nn.Policy{})
	return text, err
}

func (p *planFlags) run(cmd *cobra.Command, args []string) error {
	if err := p.check(cmd); err != nil {
		return err
	}
	if p.quoted || p.measured {
		return p.runFacts(cmd, args)
	}
	if err := sameFiles(args[:1], p.html); err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	m, err := planModel(args[0])
	if err != nil {
		return err
	}
	if p.layers > 0 {
		m.Layers = p.layers
	}
	ask, err := p.ask(cmd, m)
	if err != nil {
		return err
	}
	ask.Command = commandLine(cmd, args, append(planning.Knobs(), "html", "json")...)
	report, err := planning.New(ctx, ask)
	switch least := new(plan.BudgetError); {
	case errors.Is(err, context.Canceled):
		return stopped(ctx, "no plan was made")
	case errors.As(err, &least):
		ways, searching := ask.Nearest(ctx)
		if searching != nil {
			return stopped(ctx, "no plan was made")
		}
		return errors.New(ask.Refusal(err) + "; " + ask.NearestText(ways))
	case errors.Is(err, plan.ErrJob):
		return usageError{errors.New(ask.Refusal(err))}
	case err != nil:
		return err
	}
	if err := p.write(cmd, args, report); err != nil || len(report.TooLarge) == 0 {
		return err
	}
	return fmt.Errorf("%s does not fit a card of %g GiB", report.ModelName(), report.Card)
}

// runFacts prints published figures.
func (p *planFlags) runFacts(cmd *cobra.Command, args []string) error {
	if p.quoted {
		return p.write(cmd, args, planning.QuotesFacts())
	}
	facts, err := planning.MeasuredFacts()
	if err != nil {
		return err
	}
	return p.write(cmd, args, facts)
}

// write writes what was found as a page, where asked for, and prints it.
func (p *planFlags) write(cmd *cobra.Command, args []string, found interface {
	WritePage(w io.Writer, command, machine string) error
	WriteJSON(w io.Writer) error
	WriteText(w io.Writer) error
},
) error {
	if err := writePage(p.html, "--html", func(w io.Writer, machine string) error {
		return found.WritePage(w, commandLine(cmd, args), machine)
	}); err != nil {
		return err
	}
	if p.asJSON {
		return found.WriteJSON(cmd.OutOrStdout())
	}
	return found.WriteText(cmd.OutOrStdout())
}

// flagsOfModels are flags of which nothing comes without a model.
var flagsOfModels = []string{
	"serve", "policies", "library", "recipe", "recompute", "card", "headroom", "tokens", "mfu", "days", "peak", "layers",
	"ranks", "tp", "cp", "pp", "vpp", "group", "first", "last", "ep", "etp", "zero", "no-sp",
	"sequence", "batch", "micro-batches", "chunk",
}

// check refuses flags that say nothing together.
func (p *planFlags) check(cmd *cobra.Command) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	of := func(flag string, others ...string) error {
		return refuse(cmd, ": it does not go with --"+flag, others...)
	}
	var err error
	switch {
	case p.quoted:
		err = of("quoted", append(flagsOfModels, "measured")...)
	case p.measured:
		err = of("measured", flagsOfModels...)
	case p.serve:
		err = of("serve", "micro-batches", "recompute", "policies", "library", "zero", "vpp", "group", "tokens", "mfu", "days", "peak")
	case p.policies != "" && given("library") && !p.library.Octavo:
		return usagef("--policies: they are of --library octavo")
	case p.recompute != (plan.Recompute{}) && (p.policies != "" || p.library.Octavo):
		return usagef("--recompute: with --library octavo --policies say what is computed again")
	case p.policies == planning.Searched && p.card == 0:
		return usagef("--policies: say with --card what is to hold what they keep")
	case given("headroom") && p.card == 0:
		return usagef("--headroom: say with --card what is to hold it")
	case given("chunk"):
		return usagef("--chunk: it goes with --serve")
	case p.mfu > 0 && p.days > 0:
		return usagef("--days: with --mfu the days follow: give one of both")
	case p.days > 0 && p.tokens == 0:
		return usagef("--days: say with --tokens how many are trained on in that time")
	case p.tokens > 0 && p.mfu == 0 && p.days == 0:
		return usagef("--tokens: say with --mfu how fast they are, or with --days how long they take")
	}
	return err
}

// ask is what the flags ask of a model.
func (p *planFlags) ask(cmd *cobra.Command, m plan.Model) (planning.Ask, error) {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	a := planning.Ask{
		Card: p.card, Headroom: p.headroom, Tokens: p.tokens, MFU: p.mfu, Days: p.days, Peak: p.peak * 1e12,
		Policies: p.policies, OtherLibrary: given("library"),
	}
	if p.serve {
		l := p.layout
		l.Zero = 0
		a.Serve = &plan.ServeJob{Model: m, Layout: l, Precision: p.recipe, Sequences: p.batch, Tokens: p.sequence, Chunk: p.chunk}
		if given(flagOfRecipes) {
			return a, nil
		}
		var err error
		if a.Serve.Precision, err = a.Usual(); err != nil {
			return a, usagef("weights are published in %s, which no recipe counts: say with --recipe in what they are served", m.Published)
		}
		return a, nil
	}
	a.Train = plan.TrainJob{
		Model: m, Layout: p.layout, Precision: p.recipe, Recompute: p.recompute, Library: p.library,
		Sequence: p.sequence, Batch: p.batch, Batches: p.batches,
	}
	if p.policies != "" {
		a.Train.Library = plan.Library{Octavo: true}
	}
	return a, nil
}

// planModel returns the model of a name, or of a file, which is called as its directory is.
func planModel(name string) (plan.Model, error) {
	m, err := plan.Named(name)
	if err == nil {
		return m, nil
	}
	stat, missing := os.Stat(name)
	if missing != nil && !strings.ContainsAny(name, `/\`) && !strings.HasSuffix(name, ".json") {
		return m, usageError{fmt.Errorf("%w, or a file%s", err, vocabulary.Hint(name, planNames()))}
	}
	switch m, err = plan.ReadModel(name); {
	case missing != nil && errors.Is(err, checkpoint.ErrConfig):
		return m, fmt.Errorf("%w: want the config.json of a model, the directory that has one, or a known name, such as %s", err, planNames()[0])
	case errors.Is(err, checkpoint.ErrConfig) && !stat.IsDir() && filepath.Ext(name) != ".json":
		return m, fmt.Errorf("%s is no configuration: want the config.json of a model, or the directory that has one", name)
	case err != nil:
		return m, err
	}
	if filepath.Base(name) == checkpoint.ConfigName {
		name = filepath.Dir(name)
	}
	if full, err := filepath.Abs(name); err == nil {
		name = full
	}
	m.Name = filepath.Base(name)
	return m, nil
}

// planNames lists the known models.
func planNames() (names []string) {
	for _, m := range plan.Models() {
		names = append(names, m.Name)
	}
	return names
}
