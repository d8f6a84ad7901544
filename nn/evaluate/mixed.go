package evaluate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/knapsack"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// weightBits returns how many bits the weight of a linear layer takes under r: its codes, the
// scales of its blocks and the scales above them.
func (r Recipe) weightBits(rows, cols int) int64 {
	n := int64(rows) * int64(cols)
	format, block := 32, r.Weight.Block
	scale, outer := int64(8), int64(0) // a power of two
	switch q := r.Weight.Recipe; {
	case q != nil:
		format, block = q.Format.Bits(), q.Block
		if q.Profile.ScaleFormat() == tensor.Float32Scales {
			scale = 32
		}
		if q.Profile.Outer() {
			under := q.OuterRows
			if under == 0 && q.Profile == scaling.NVFP4TERow {
				under = 1
			}
			outer = 32
			if under > 0 {
				outer *= int64((rows + under - 1) / under)
			}
		}
	case r.Weight.Format == "":
		scale = 0
	case r.Weight.Format == nn.NarrowBF16:
		format, scale = 16, 0
	default:
		f, _ := number.Parse(string(r.Weight.Format))
		format = 1 + f.Exponent + f.Mantissa
	}
	gridRows, gridCols := block.Grid(rows, cols)
	return n*int64(format) + int64(gridRows)*int64(gridCols)*scale + outer
}

// Bits returns how many bits a weight of the linear layers that [Run] quantizes takes under a
// recipe, on average over all of their values: codes, in as many bits as their format has, scales
// of blocks, of 8 bits or, in FP32, 32, and of NVFP4 those of 32 above them. Biases, embedding,
// norms, routers and head do not count. The error is [ErrOptions], of a recipe for other layers.
func Bits(m *nn.Llama, r Recipe) (float64, error) {
	run, err := newRunner(m)
	if err != nil {
		return 0, err
	}
	defer run.restore()
	if err := run.checkMixed(r); err != nil {
		return 0, err
	}
	bits := int64(0)
	for _, s := range run.slots {
		bits += r.of(s.name).weightBits(s.plain.Weight.Rows, s.plain.Weight.Cols)
	}
	return float64(bits) / float64(run.weights()), nil
}

// weights returns how many values the weights in all slots have.
func (r *runner) weights() (n int64) {
	for _, s := range r.slots {
		n += int64(s.plain.Weight.Rows) * int64(s.plain.Weight.Cols)
	}
	return n
}

// of returns the recipe of a linear layer.
func (r Recipe) of(layer string) Recipe {
	if r.Layers == nil {
		return r
	}
	return r.Layers[layer]
}

// checkMixed returns an error unless a recipe has one for each linear layer of the model, and no
// others.
func (r *runner) checkMixed(of Recipe) error {
	if of.Layers == nil {
		return nil
	}
	known := map[string]bool{}
	for _, s := range r.slots {
		if _, ok := of.Layers[s.name]; !ok {
			return optionError("recipe %.80q has none for %s", of.Name, s.name)
		}
		known[s.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(of.Layers)) {
		if !known[name] {
			return optionError("recipe %.80q has one for %.80q, which is no linear layer of the model", of.Name, name)
		}
	}
	return nil
}

// mixedString says how many linear layers have which recipe.
func (r Recipe) mixedString() string {
	layers := map[string]int{}
	for _, of := range r.Layers {
		layers[of.Name]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(layers)) {
		parts = append(parts, fmt.Sprintf("%d in %s", layers[name], name))
	}
	return "of the linear layers " + strings.Join(parts, ", ")
}

// MixOptions are those of [Mix].
type MixOptions struct {
	Recipes []Recipe // among which each linear layer has one; the evaluation has all of them
	Mode    Mode     // in which costs count
	Bits    float64  // a weight at most, as [Bits] counts them

	// Together, unless nil, returns one name for all linear layers that must have the same recipe.
	Together func(layer string) string
}

// Mix returns the recipe that has for each linear layer one of several, takes at most so many bits
// and costs least, going by an evaluation of the same model in which each layer and each kind of
// linear layer was quantized alone. What a linear layer costs is what its layer costs, in divergence
// from FP32, times the share that its kind has among those of its layer: costs of layers are
// taken to add up. The choice is exact for these costs; what it costs indeed [Run] says on a text
// that they are not from. A recipe is not chosen for a layer with which alone logits are not finite, nor
// where they are not with a kind alone that the layer has.
//
// The error is [ErrOptions], with the fewest bits that there can be where Bits are too few, or that
// of ctx.
func Mix(ctx context.Context, m *nn.Llama, e *Evaluation, o MixOptions) (Recipe, error) {
	r, err := newRunner(m)
	if err != nil {
		return Recipe{}, err
	}
	defer r.restore()
	units, err := r.units(e, o)
	if err != nil {
		return Recipe{}, err
	}
	groups := make([]knapsack.Group, len(units))
	largest := 0.0
	for _, u := range units {
		for _, c := range u.costs {
			largest = max(largest, c)
		}
	}
	for i, u := range units {
		groups[i].Items = 1
		for k, c := range u.costs {
			cost := int64(0)
			if largest > 0 {
				cost = int64(c / largest * costLevels)
			}
			groups[i].Choices = append(groups[i].Choices, knapsack.Choice{Bytes: u.bits[k], Cost: cost})
		}
	}
	weights := r.weights()
	chosen, least, err := knapsack.Search(ctx, groups, 0, int64(math.Floor(o.Bits*float64(weights))))
	switch {
	case err != nil:
		return Recipe{}, err
	case chosen == nil:
		return Recipe{}, optionError("%v bits a weight are too few: these recipes take at least %.4g",
			o.Bits, math.Ceil(float64(least)/float64(weights)*1000)/1000)
	}
	mixed := Recipe{Name: "mixed", Layers: map[string]Recipe{}}
	for i, u := range units {
		for _, name := range u.layers {
			mixed.Layers[name] = u.recipes[chosen[i][0]]
		}
	}
	return mixed, nil
}

// costLevels is how many levels the costs of choices have.
const costLevels = 1 << 30

// unit is linear layers that have one recipe.
type unit struct {
	layers  []string
	recipes []Recipe
	costs   []float64 // of the recipes
	bits    []int64
}

// units returns the choices there are, with what each costs.
func (r *runner) units(e *Evaluation, o MixOptions) (units []unit, err error) {
	index := map[string]int{}
	costs := make([]map[string]float64, len(o.Recipes))
	for k, recipe := range o.Recipes {
		if costs[k], err = r.costs(e, recipe.Name, o.Mode); err != nil {
			return nil, err
		}
	}
	for _, s := range r.slots {
		key := s.name
		if o.Together != nil {
			key = o.Together(key)
		}
		i, ok := index[key]
		if !ok {
			i = len(units)
			index[key] = i
			units = append(units, unit{recipes: o.Recipes, costs: make([]float64, len(o.Recipes)), bits: make([]int64, len(o.Recipes))})
		}
		u := &units[i]
		u.layers = append(u.layers, s.name)
		for k, recipe := range o.Recipes {
			u.costs[k] += costs[k][s.name]
			u.bits[k] += recipe.weightBits(s.plain.Weight.Rows, s.plain.Weight.Cols)
		}
	}
	for i := range units {
		if units[i] = units[i].finite(); len(units[i].recipes) == 0 {
			return nil, optionError("%s has no recipe under which logits are finite", units[i].layers[0])
		}
	}
	return units, nil
}

// finite returns a unit with those choices whose cost is finite.
func (u unit) finite() unit {
	f := unit{layers: u.layers}
	for k, c := range u.costs {
		if c-c == 0 {
			f.recipes, f.costs, f.bits = append(f.recipes, u.recipes[k]), append(f.costs, c), append(f.bits, u.bits[k])
		}
	}
	return f
}

// costs returns what each linear layer costs under a recipe, NaN where something is not finite.
func (r *runner) costs(e *Evaluation, recipe string, mode Mode) (map[string]float64, error) {
	i := slices.IndexFunc(e.Results, func(of Result) bool { return of.Recipe == recipe && of.Mode == mode })
	if i < 0 || len(e.Results[i].Layers) != len(r.blocks) {
		return nil, optionError("the evaluation has no layers alone under %.80q, %v, of a model of %d layers", recipe, mode, len(r.blocks))
	}
	of := &e.Results[i]
	kinds := map[string]float64{}
	for _, k := range of.Kinds {
		kinds[k.Name] = max(float64(k.KL.Mean), 0)
	}
	sums, counts := make([]float64, len(r.blocks)), make([]float64, len(r.blocks))
	alike := map[string]float64{} // how many linear layers of a kind a layer has
	in := func(s slot) string { return fmt.Sprint(s.layer, " ", s.kind) }
	for _, s := range r.slots {
		if alike[in(s)]++; alike[in(s)] == 1 {
			sums[s.layer] += kinds[s.kind]
		}
		counts[s.layer]++
	}
	costs := map[string]float64{}
	for _, s := range r.slots {
		share := 1 / counts[s.layer] // where no kind costs anything
		if sums[s.layer] != 0 {
			share = kinds[s.kind] / alike[in(s)] / sums[s.layer]
		}
		costs[s.name] = max(float64(of.Layers[s.layer].KL.Mean), 0) * share
	}
	return costs, nil
}

// Against returns how much more is lost under r than under other, a result of the same evaluation,
// and how much further the distribution is from FP32's, in nats a token. Their errors are those of
// differences from window to window.
func (r *Result) Against(other *Result) (loss, kl Mean) {
	var losses, divergences sums
	for i, own := range r.Sums {
		losses.add(float64(own.Loss-other.Sums[i].Loss), own.Targets)
		divergences.add(float64(own.KL-other.Sums[i].KL), own.Targets)
	}
	return losses.mean(), divergences.mean()
}
