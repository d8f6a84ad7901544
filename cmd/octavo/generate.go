package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/generate"
)

const generateLong = `Generate continues prompts with a Hugging Face Llama, or a mixture of experts as
DeepSeek-V3, in any layout that convert reads, on this machine's processors, and
prints the text as it comes. Linear layers have their weights in FP8, and keys
and values of the tokens so far lie in a cache in FP8. Each token is run through
the model once.

A prompt is each --prompt, the text of --prompt-file, each line of --prompts, or
standard input. Tokens are made of it, and text of tokens, by the tokenizer.json
beside the model; one that octavo train --save wrote takes bytes. With --ids a
prompt is whole numbers, and so is what is printed.

In --prompts lines of nothing but space are no prompts. If its name ends in
.jsonl, a line is a JSON string, a list of tokens, or an object of which the
"prompt" is one of these, and "tokens", "temperature", "topK", "topP" and "seed"
say what is not as the flags have it.

Several prompts are run together, --batch at once: a step, which reads the
weights once, gives each one token. When one ends, the next begins. Texts come
in the order of the prompts, each under a line that repeats the prompt: the
first one that has not ended as it comes, others after it.

A recipe is one of train's --recipe or a profile as in inspect, for the inputs
and the weights of all linear layers but routers and head, which stay FP32; none
multiplies weights in FP32 as they were loaded. The cache has a scale for each
token and head, or k_scale and v_scale where the model has them. Attention
multiplies the queries in BF16 with what is in the cache.

The most likely token is taken, or with --temperature one at random: of the
--top-k most likely ones, and of those the fewest that have --top-p of the
probability. The same seed gives the same tokens on every machine, of the same
prompt twice in a batch, too. It ends at the model's end of a text
(eos_token_id), after --tokens, or where the context is full. A prompt that is
longer than the context is refused.

A request's tokens and their probabilities, which --json has as logProbs, are
the same bits alone and in any batch if each token's input has scales of its
own: --batch-invariant refuses other recipes.

Then comes a line about speed, on standard error: prompts and what follows
apart, and which share of the rate at which memory can be read was used. That is
measured then, unless --quiet is given: all threads read 256 MiB nine times, of
which the fastest counts.`

const generateExample = `  octavo generate --model Llama-3.2-1B --prompt 'Once upon a time'
  octavo generate --model model --temperature 0.8 --top-p 0.9 --seed 7 < prompt
  octavo generate --model model --prompts prompts.txt --batch-invariant --json
  octavo generate --model s.safetensors --ids --prompt '1 403' --recipe none`

// noRecipe is the recipe of those that multiply weights as they were loaded.
const noRecipe = "none"

// generateFlags are the flags of generate.
type generateFlags struct {
	model                   string
	prompts                 []string
	promptFile, promptsFile string
	tokens, context, batch  int
	sampling                generate.Sampling
	recipe                  *evaluate.Recipe // nil: none
	cache                   generate.CacheFormat
	invariant               bool
	ids, asJSON             bool
	workers                 int
}

func newGenerateCommand() *cobra.Command {
	f := generateFlags{tokens: 256, batch: 16}
	fp8, err := parseGenerateRecipe("fp8")
	if err != nil {
		panic(err) // it is one of the recipes
	}
	f.recipe = fp8
	cmd := &cobra.Command{
		Use:     "generate --model DIR|FILE.safetensors",
		Short:   "Continue prompts with a model in FP8",
		Long:    generateLong,
		Example: generateExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runGenerate(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "", "`DIR` with the model, or its file (required)")
	markRequired(cmd, "model")
	flags.StringArrayVar(&f.prompts, "prompt", nil, "`TEXT` to continue; may be given again")
	flags.StringVar(&f.promptFile, "prompt-file", "", "`FILE` with the text to continue")
	flags.StringVar(&f.promptsFile, "prompts", "", "`FILE` with a prompt on each line")
	wholeFlag(cmd, &f.batch, 0, 1<<20, "batch", "requests that are run at once; 0 is all")
	wholeFlag(cmd, &f.tokens, 0, 1<<30, "tokens",
		"tokens at most for each prompt; 0 is until the context is full")
	wholeFlag(cmd, &f.context, 0, 1<<20, "context",
		"tokens of a prompt and what follows; 0 is the model's, at most 4096 (default 0)")
	numberFlag(cmd, &f.sampling.Temperature, math.MaxFloat64, "temperature",
		"of the choice at random; 0 takes the most likely token")
	wholeFlag(cmd, &f.sampling.TopK, 0, 1<<30, "top-k",
		"choose among the `N` most likely; 0 is all (default 0)")
	numberFlag(cmd, &f.sampling.TopP, 1, "top-p",
		"choose among the fewest with this much of the probability; 0 is all")
	seedFlag(cmd, &f.sampling.Seed, "seed of the choices")
	recipe := &parsed[*evaluate.Recipe]{&f.recipe, f.recipe.Name, "NAME", parseGenerateRecipe}
	names := append(slices.DeleteFunc(evaluate.Names(), func(name string) bool {
		return name == "bf16" // which has no codes; parsing all recipes here takes a millisecond
	}), noRecipe)
	flags.Var(oneOf{recipe, names}, "recipe",
		"recipe of weights and of what they are multiplied with")
	var caches []choice[generate.CacheFormat]
	for _, c := range generate.CacheFormats() {
		caches = append(caches, choice[generate.CacheFormat]{c.String(), c})
	}
	choiceFlag(cmd, &f.cache, "cache", "how keys and values are kept", caches...)
	flags.BoolVar(&f.invariant, "batch-invariant", false,
		"refuse recipes under which tokens depend on what they are run with")
	flags.BoolVar(&f.ids, "ids", false, "take and print IDs of tokens instead of text")
	workersFlag(cmd, &f.workers)
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// parseGenerateRecipe returns the recipe of a name; nil is none.
func parseGenerateRecipe(name string) (*evaluate.Recipe, error) {
	if name == noRecipe {
		return nil, nil
	}
	r, err := evaluate.ParseRecipe(name)
	if err != nil {
		return nil, err
	}
	if r.Input.Recipe == nil || r.Weight.Recipe == nil {
		return nil, fmt.Errorf("recipe %s rounds values and has no codes: want fp8, another one, "+
			"or none", name)
	}
	return &r, nil
}

// numberFlag adds a flag that takes a number from 0 to most, by default *value.
func numberFlag(cmd *cobra.Command, value *float64, most float64, name, usage string) {
	parse := func(text string) (float64, error) {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0 && x <= most) {
			if most < math.MaxFloat64 {
				return 0, fmt.Errorf("want a number from 0 to %v", most)
			}
			return 0, fmt.Errorf("want a number that is not negative")
		}
		return x, nil
	}
	cmd.Flags().Var(&parsed[float64]{value, fmt.Sprint(*value), "X", parse}, name, usage)
}
