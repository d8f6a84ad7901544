package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	show "github.com/octavo-fp8/octavo/cmd/internal/evaluate"
	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// parseBits reads a budget such as 4.5bits.
func parseBits(text string) (float64, error) {
	number := strings.TrimSpace(strings.TrimSuffix(text, "bits"))
	bits, err := strconv.ParseFloat(number, 64)
	if err != nil || !(bits > 0 && bits <= 32) {
		return 0, fmt.Errorf("want bits a weight, above 0 and at most 32, such as 4.5bits")
	}
	return bits, nil
}

// checkBudget refuses flags that do not go with a budget, or that do with nothing else.
func (f *evaluateFlags) checkBudget() error {
	switch {
	case f.budget == 0 && f.recipeOut != "":
		return usagef("--recipe-out is for what --budget finds: give that too")
	case f.budget == 0:
		return nil
	case f.recipeFile != "":
		return usagef("--budget finds what --recipe-file would have: give one of them")
	case len(f.recipes) < 2:
		return usagef("--budget wants recipes to choose among: such as --recipe mxfp4,mxfp8,bf16")
	case len(f.modes) > 1 || len(f.modes) == 1 && f.modes[0] == evaluate.Activations:
		return usagef("--budget is for one --mode, weights or both")
	case f.layers == 0:
		return usagef("--budget chooses by the runs layer by layer: leave out --layer-tokens 0")
	case f.recipeOut == "":
		return nil
	}
	if _, err := vocabulary.Holding(f.names()); err != nil {
		return usagef("--recipe-out: %w", err)
	}
	recipes, errRecipes := filepath.Abs(f.recipeOut)
	page, errPage := filepath.Abs(f.html)
	if f.html != "" && errRecipes == nil && errPage == nil && recipes == page {
		return usagef("--html and --recipe-out name the same file: give two")
	}
	file, err := atomicfile.Create(f.recipeOut) // which says now what would else be said after all the work
	if err != nil {
		return aboutRecipeOut(err)
	}
	file.Close()
	return nil
}

// names returns those of the recipes.
func (f *evaluateFlags) names() (names []string) {
	for _, r := range f.recipes {
		names = append(names, r.Name)
	}
	return names
}

// unwritten says which recipes convert cannot write, each alone or, of those that are chosen among,
// together.
func (f *evaluateFlags) unwritten() (why []error) {
	together := [][]string{f.names()}
	switch {
	case len(f.modes) == 1 && f.modes[0] == evaluate.Activations:
		return nil
	case f.budget == 0:
		together = slices.Collect(slices.Chunk(f.names(), 1))
	}
	for _, names := range together {
		if _, err := vocabulary.Holding(names); err != nil {
			why = append(why, err)
		}
	}
	return why
}

func aboutRecipeOut(err error) error {
	return fmt.Errorf("%w: name another file with --recipe-out", err)
}

// judging is the directory in the stage with the state of the run that judges what was chosen.
const judging = "judge"

// budgeted is a model of which a recipe is chosen for each linear layer.
type budgeted struct {
	*evaluateFlags
	from    *hf.Unread
	options evaluate.Options
	bar     *display.Display
}

// run chooses on the first tokens of a text and judges by the rest.
func (b *budgeted) run(ctx context.Context, read tokens.Tokens) (*show.Budget, *evaluate.Evaluation, error) {
	if len(read.IDs) < b.layers+2 {
		return nil, nil, usagef("%s has %d tokens: the first %d are to choose by, and none are left to judge by: "+
			"give more, or fewer --layer-tokens", read.From, len(read.IDs), b.layers)
	}
	mode := evaluate.Weights
	if len(b.modes) > 0 {
		mode = b.modes[0]
	}
	o := b.options
	o.Modes = []evaluate.Mode{mode}
	b.bar.Unit("layers", "evaluate")
	sensitivity, err := evaluate.Run(ctx, b.from.Model, read.IDs[:b.layers], o)
	if err != nil {
		return nil, nil, err
	}
	mixed, err := evaluate.Mix(ctx, b.from.Model, sensitivity, evaluate.MixOptions{
		Recipes: b.recipes, Mode: mode, Bits: b.budget,
		Together: func(layer string) string {
			name, _ := b.module(layer)
			return checkpoint.OneScheme(name)
		},
	})
	if err != nil {
		return nil, nil, err
	}
	o.Recipes, o.LayerTokens = append(slices.Clone(b.recipes), mixed), -1
	if o.State.Dir != "" { // that of the first run stays, so that --resume chooses the same
		o.State.Dir = filepath.Join(o.State.Dir, judging)
		if err := os.MkdirAll(o.State.Dir, 0o777); err != nil {
			return nil, nil, err
		}
	}
	b.bar.Unit("layers", "evaluate")
	judged, err := evaluate.Run(ctx, b.from.Model, read.IDs[b.layers:], o)
	if err != nil {
		return nil, nil, err
	}
	for i := range judged.Results { // places are those in the whole text
		of := &judged.Results[i]
		of.LargestKL.Place += b.layers
		of.LargestLogit.Place += b.layers
	}
	bits := map[string]float64{}
	for _, r := range o.Recipes {
		if bits[r.Name], err = evaluate.Bits(b.from.Model, r); err != nil {
			return nil, nil, err
		}
	}
	var chosen []show.Choice
	for _, l := range sensitivity.Results[0].Linears {
		name, _ := b.module(l.Name)
		chosen = append(chosen, show.Choice{Name: name, Layer: l.Layer, Kind: l.Kind, Recipe: mixed.Layers[l.Name].Name})
	}
	found := show.NewBudget(b.budget, bits[mixed.Name], bits, chosen, sensitivity, judged)
	b.found = evaluate.NewRecipeFile(found.Bits, found.Mode, b.modules(mixed))
	return found, judged, nil
}

// module returns the name of the module that a linear layer is in, and the shape of its weight.
func (b *budgeted) module(layer string) (name string, shape []int) {
	return b.from.Module(b.from.Model.Param(layer + ".weight"))
}

// checkConvert returns an error unless convert can write whatever is chosen: in one layout every
// linear layer can have each recipe.
func (b *budgeted) checkConvert(c *checkpoint.Checkpoint) error {
	layouts, first := vocabulary.Holding(b.names())
	for _, l := range layouts {
		err := b.checkLayout(c, l)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

func (b *budgeted) checkLayout(c *checkpoint.Checkpoint, l *checkpoint.Layout) error {
	for _, r := range b.recipes {
		all := evaluate.Recipe{Layers: map[string]evaluate.Recipe{}}
		o := checkpoint.PlanOptions{Amax: map[string]float32{}}
		for _, p := range b.from.Model.Params() {
			if layer, ok := strings.CutSuffix(p.Name, ".weight"); ok && strings.Contains(layer, "_proj") {
				all.Layers[layer] = r
				name, _ := b.module(layer)
				o.Amax[name] = 1 // which it may be that convert finds
			}
		}
		var err error
		if o.Recipes, err = recipesFor(c, evaluate.NewRecipeFile(0, evaluate.Weights, b.modules(all)), "--recipe"); err != nil {
			return err
		}
		if r.Weight.Recipe == nil {
			continue // they stay as they are
		}
		if _, err := checkpoint.NewPlan(c, l, o); err != nil {
			return fmt.Errorf("convert cannot write %s for every linear layer, as --recipe-out needs: %w", r.Name, err)
		}
	}
	return nil
}

// modules returns a mixed recipe by modules.
func (b *budgeted) modules(mixed evaluate.Recipe) evaluate.RecipesOfModules {
	modules := evaluate.RecipesOfModules{}
	for layer, r := range mixed.Layers {
		name, shape := b.module(layer)
		modules[name] = evaluate.ModuleRecipe{Recipe: r.Name, Shape: shape}
	}
	return modules
}

// writeRecipes writes the recipe file that --recipe-out asks for.
func (f *evaluateFlags) writeRecipes() error {
	if f.recipeOut == "" {
		return nil
	}
	if err := atomicfile.Write(f.recipeOut, func(w io.Writer) error { return jsonout.Print(w, f.found) }); err != nil {
		return aboutRecipeOut(err)
	}
	return nil
}

// readRecipeFile reads a recipe file.
func readRecipeFile(path string) (*evaluate.RecipeFile, error) {
	data, err := inputfile.ReadAll(path, 64<<20)
	if err != nil {
		return nil, err
	}
	file, err := evaluate.ParseRecipeFile(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	return file, nil
}

// mixedFrom returns the recipe that a file has for a model.
func mixedFrom(path string, from *hf.Unread) (evaluate.Recipe, error) {
	file, err := readRecipeFile(path)
	if err != nil {
		return evaluate.Recipe{}, err
	}
	mixed := evaluate.Recipe{Name: show.Mixed, Layers: map[string]evaluate.Recipe{}}
	used := map[string]bool{}
	for _, p := range from.Model.Params() {
		name, shape := from.Module(p)
		layer, isWeight := strings.CutSuffix(p.Name, ".weight")
		if of, ok := file.Modules[name]; ok && isWeight {
			used[name] = true
			if of.Shape != nil && !slices.Equal(of.Shape, shape) {
				return evaluate.Recipe{}, fmt.Errorf("%s: %s is %v there and %v in the model: the file is of another one",
					textout.Name(path), textout.Name(name), of.Shape, shape)
			}
			if mixed.Layers[layer], err = evaluate.ParseRecipe(of.Recipe); err != nil {
				return evaluate.Recipe{}, err
			}
		}
	}
	for name := range file.Modules {
		if !used[name] {
			return evaluate.Recipe{}, fmt.Errorf("%s: module %s is none of the model's: the file is of another one", textout.Name(path), textout.Name(name))
		}
	}
	return mixed, nil
}
