package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Recipe names what operands of a product are made of. The empty one is FP8: E4M3 with
// scales for blocks of 1x128 of A and 128x128 of B.
type Recipe string

// The recipes of narrow formats. MX blocks are 1x32 under a scale of a byte; those of NVFP4
// are 1x16, of weights too, as they are served, under a scale of a byte and one in float32
// for the tensor.
const (
	MXFP8 Recipe = "mxfp8" // E4M3
	MXFP6 Recipe = "mxfp6" // E2M3
	MXFP4 Recipe = "mxfp4" // E2M1
	NVFP4 Recipe = "nvfp4" // E2M1
)

// NarrowRecipes returns all but the empty one.
func NarrowRecipes() []Recipe { return []Recipe{MXFP8, MXFP6, MXFP4, NVFP4} }

// ingredients are what follows from a recipe.
type ingredients struct {
	recipe     Recipe
	input      scaling.Recipe
	weight     scaling.Recipe
	scaleBytes float64
	integer    bool // sums within a block may be of integers, which have another roof
}

func mx(f fp8.Format) scaling.Recipe {
	return scaling.Recipe{Profile: scaling.MXRCeil, Format: f, Block: tensor.Block{Rows: 1, Cols: 32}}
}

var recipes = []ingredients{
	{"", scaling.Default(scaling.Input), scaling.Default(scaling.Weight), 4, false},
	{MXFP8, mx(fp8.E4M3), mx(fp8.E4M3), 1, false},
	{MXFP6, mx(fp8.E2M3), mx(fp8.E2M3), 1, true},
	{MXFP4, mx(fp8.E2M1), mx(fp8.E2M1), 1, true},
	{NVFP4, scaling.NVFP4TE.Recipe(scaling.Input), scaling.NVFP4TE.Recipe(scaling.Input), 1, true},
}

// of returns what follows from a recipe, which must be one of this package.
func (r Recipe) of() ingredients {
	i := slices.IndexFunc(recipes, func(i ingredients) bool { return i.recipe == r })
	if i < 0 {
		panic("bench: unknown recipe")
	}
	return recipes[i]
}

// parseRecipe cuts the name of a recipe off a shape's text.
func parseRecipe(text string) (r Recipe, shape string, err error) {
	name, rest, ok := strings.Cut(text, " ")
	if !ok || len(name) > 0 && name[0] >= '0' && name[0] <= '9' {
		return "", text, nil
	}
	if !slices.Contains(NarrowRecipes(), Recipe(name)) {
		return "", "", fmt.Errorf("unknown recipe %q: want %s or none", name, strings.Join(recipeNames(), ", "))
	}
	return Recipe(name), rest, nil
}

func recipeNames() (names []string) {
	for _, r := range NarrowRecipes() {
		names = append(names, string(r))
	}
	return names
}
