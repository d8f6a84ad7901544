package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/planning"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/plan"
)

const planLong = `Plan says what training a model takes in memory on a rank of each pipeline
stage, by kind, under a parallel layout and a recipe; or with --serve, what
serving it takes. MODEL is a known name or the config.json of a model, or the
directory that has one; weights are not needed. Nothing is run.

%s

Parameters, weights, gradients, states of the optimizer and the KV cache are
exact. Activations are those of Megatron-LM with TransformerEngine, with flash
attention and experts of equal load: within 1.4%% of the peaks published for 8
B200, which --measured lists. Layers of multi-token prediction, contexts of
devices and communication buffers are not counted. Allocators reserve more than
is allocated: 3 to 8%% more than those peaks, 3 to 10%% more than is counted. What
--card is to hold is what is counted and --headroom of it, 10%% by default.

Layouts are Megatron-LM's. What is left of --ranks after tensor, context and
pipeline parallelism is data parallel; without --ranks there are as few as the
layout needs. Recipes say how everything is stored:

  bf16           gradients, master weights and moments in FP32
  fp8            primary weights and inputs of linear layers in FP8, as
                 TransformerEngine under Megatron-LM
  deepseek-v3    FP8 under scales of blocks, moments in BF16, inputs of SwiGLU
                 in FP8 in place of its result
  octavo         as deepseek-v3, with moments in FP8
  fp8-serve      weights as DeepSeek-V3 is published, KV cache in FP8
  mxfp4-experts  as gpt-oss is published: experts in MXFP4

What --recompute lists is computed again in the backward pass: so many first
layers of each stage, or all; attention, latent (of MLA, queries, keys and
values), mlp (dense layers), moe (experts), norms, activation (SwiGLU of
experts).

With --library octavo activations are those that octavo's own nn would keep, in
the numbers of the recipe; attention is not flash there. --policies says of its
classes norms, latents, projections, probabilities, mixed, middle, branches,
product and outputs, or all, which are kept, kept in FP8 or computed again, as
in "recompute norms, product; fp8 mixed"; others are as the recipe has them.
Gradients have the same bits, and what would change them is refused. --policies
search finds, for each stage, those with the fewest operations done again that
--card holds with --headroom. What is kept is shown by class.

FLOPs are exact, and time is only what follows from an efficiency: with --mfu a
step is timed, and with --tokens the whole training in days; with --days and
--tokens the MFU follows. MFU is of the FLOPs with a causal mask; what is
computed again does not count. --quoted prints days that practice quotes for
three models on 1,024, 5,000 and 10,000 cards, what MFU they imply, and what of
it does not fit.

JSON has the keys model, parameters, layout, data (data-parallel ranks),
precision, training (with policies) or serving, stages (bytes by kind; with
--library octavo also by class, operations and those done again), highest (the
stage that needs most), card, headroom, tooLarge (stages that a card does not
hold with it), flops, step and run.`

const planExample = `  octavo plan llama-3-70b --ranks 64 --tp 8 --pp 4 --micro-batches 32
  octavo plan deepseek-v3 --ranks 2048 --pp 16 --last 1 --ep 64 \
    --recipe deepseek-v3 --recompute norms,latent --card 80 \
    --tokens 14.8e12 --mfu 0.4 --html plan.html
  octavo plan llama-3-8b --ranks 8 --card 80 --policies search
  octavo plan model/config.json --serve --tp 8 --batch 64 --sequence 32768
  octavo plan --quoted --html days.html
  octavo plan --measured`

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
		Long:    fmt.Sprintf(planLong, known),
		Example: planExample,
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
			return fmt.Errorf("want one model, there are %d arguments", len(args))
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
		{&l.Ranks, "ranks", "cards altogether; 0 is the fewest that the layout needs"},
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
		wholeFlag(cmd, f.value, 0, most, f.name, f.usage)
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
	var recipes []choice[plan.Precision]
	for _, r := range plan.Precisions() {
		recipes = append(recipes, choice[plan.Precision]{r.Name, r})
	}
	nameFlag(cmd, &p.recipe, "recipe", "how numbers are stored", recipes...)
	choiceFlag(cmd, &p.library, "library", "what keeps activations: TransformerEngine 2.11; 2.1 with no fused loss; nothing more than it must; octavo's nn",
		choice[plan.Library]{"te", plan.TransformerEngine}, choice[plan.Library]{"te-2.1", plan.TransformerEngine21},
		choice[plan.Library]{"none", plan.Library{}}, choice[plan.Library]{"octavo", plan.Library{Octavo: true}})
	cmd.Flags().Var(&parsed[plan.Recompute]{&p.recompute, "", "LIST", parseRecompute}, "recompute", "what the backward pass computes again")
	cmd.Flags().Var(&parsed[string]{&p.policies, "", "TEXT|search", parsePolicies}, "policies", "how octavo's nn keeps classes of activations")
	cmd.Flags().BoolVar(&p.serve, "serve", false, "serve the model instead of training it")
}

func (p *planFlags) addTime(cmd *cobra.Command) {
	numberFlag(cmd, &p.card, positives, "card", "memory of a card in GiB, to say which stages do not fit, and for --policies search")
	p.headroom = plan.Headroom
	numberFlag(cmd, &p.headroom, shares, "headroom", "share of what is counted that --card holds beside it, for fragments")
	numberFlag(cmd, &p.tokens, positives, "tokens", "tokens of the whole training, such as 14.8e12")
	numberFlag(cmd, &p.mfu, rates, "mfu", "stated share of the cards' peak, to say how long it takes")
	numberFlag(cmd, &p.days, positives, "days", "stated days of the whole training, to say what MFU that is")
	numberFlag(cmd, &p.peak, positives, "peak", "TFLOP/s of a card (default 989: an H100 in BF16)")
	cmd.Flags().BoolVar(&p.quoted, "quoted", false, "print the days that practice quotes, and what they imply")
	cmd.Flags().BoolVar(&p.measured, "measured", false, "print memory that was measured beside what is counted")
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

// searched asks for policies to be found.
const searched = "search"

// parsePolicies reads a policy for all layers, or that one is to be found.
func parsePolicies(text string) (string, error) {
	if text == searched {
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
	ask, err := p.ask(m)
	if err != nil {
		return planUsage(err)
	}
	report, err := planning.New(ctx, ask)
	if errors.Is(err, context.Canceled) {
		return stopped(ctx, "no policies were found")
	}
	if least := new(plan.BudgetError); errors.As(err, &least) {
		return fmt.Errorf("--card is %g GiB: on a rank of stage %d at least %.2f GiB are reserved with a headroom of %.4g%%, whatever the policies",
			p.card, least.Stage, math.Ceil(float64(least.Least)/(1<<30)*100)/100, p.headroom*100)
	}
	if err != nil {
		return planUsage(err)
	}
	return p.write(cmd, args, report)
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
	case p.policies == searched && p.card == 0:
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

func (p *planFlags) ask(m plan.Model) (planning.Ask, error) {
	a := planning.Ask{Card: p.card, Headroom: p.headroom, Tokens: p.tokens, MFU: p.mfu, Days: p.days, Peak: p.peak * 1e12}
	if p.serve {
		l := p.layout
		l.Zero = 0
		a.Serve = &plan.ServeJob{Model: m, Layout: l, Precision: p.recipe, Sequences: p.batch, Tokens: p.sequence, Chunk: p.chunk}
		return a, nil
	}
	a.Train = plan.TrainJob{
		Model: m, Layout: p.layout, Precision: p.recipe, Recompute: p.recompute, Library: p.library,
		Sequence: p.sequence, Batch: p.batch, Batches: p.batches,
	}
	return a, p.askPolicies(&a)
}

// askPolicies has policies of all layers in what is asked, if there are some.
func (p *planFlags) askPolicies(a *planning.Ask) error {
	switch p.policies {
	case "":
		return nil
	case searched:
		a.Search = true
	}
	a.Train.Library = plan.Library{Octavo: true}
	own, err := p.recipe.Policy()
	if err != nil || a.Search {
		return err
	}
	policy, err := nn.ParsePolicy(p.policies, own)
	a.Train.Policies = slices.Repeat([]nn.Policy{policy}, a.Train.Model.Layers)
	return err
}

// planModel returns the model of a name, or of a file.
func planModel(name string) (plan.Model, error) {
	m, err := plan.Named(name)
	if err == nil {
		return m, nil
	}
	if _, missing := os.Stat(name); missing == nil || strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".json") {
		return plan.ReadModel(name)
	}
	return m, usageError{fmt.Errorf("%w, or a file%s", err, similar(name, planNames()))}
}

// planNames lists the known models.
func planNames() (names []string) {
	for _, m := range plan.Models() {
		names = append(names, m.Name)
	}
	return names
}

// planUsage says of a layout that does not fit which flag is to be changed.
func planUsage(err error) error {
	if !errors.Is(err, plan.ErrJob) {
		return err
	}
	text := strings.TrimPrefix(err.Error(), "plan: ")
	return usageError{errors.New(strings.NewReplacer(
		"layout.ranks", "--ranks", "layout.tensor", "--tp", "layout.context", "--cp", "layout.pipeline", "--pp", "layout.virtual", "--vpp",
		"layout.group", "--group", "layout.first", "--first", "layout.last", "--last", "layout.expertTensor", "--etp", "layout.expert", "--ep",
		"policies[0] ", "--policies ", "layout.wholeSequence", "--no-sp", "layout.zero", "--zero", "batches is", "--micro-batches is", "sequence is", "--sequence is",
	).Replace(text))}
}
