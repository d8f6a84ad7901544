package evaluate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
)

// RecipeFile says which recipe each linear layer of a checkpoint has: JSON of a version, for those
// who convert it.
type RecipeFile struct {
	Version int     `json:"version"` // 1
	Bits    float64 `json:"bits"`    // a weight, as [Bits] counts them
	Mode    Mode    `json:"mode"`    // what the recipes were chosen for

	// Modules are the recipes by the names of modules of the checkpoint, such as
	// "model.layers.0.mlp.up_proj".
	Modules RecipesOfModules `json:"modules"`
}

// RecipesOfModules are recipes by the names of modules.
type RecipesOfModules map[string]ModuleRecipe

// ModuleRecipe is the recipe of a module.
type ModuleRecipe struct {
	Recipe string `json:"recipe"`          // as [ParseRecipe] reads it
	Shape  []int  `json:"shape,omitempty"` // of the weight; nil: any
}

const recipeFileVersion = 1

// NewRecipeFile returns a file of recipes.
func NewRecipeFile(bits float64, mode Mode, modules RecipesOfModules) *RecipeFile {
	return &RecipeFile{Version: recipeFileVersion, Bits: bits, Mode: mode, Modules: modules}
}

// ParseRecipeFile reads the JSON of a [RecipeFile]. The error, [ErrOptions], names what there is that
// should not be, or the first module, by name, whose recipe or shape cannot be.
func ParseRecipeFile(data []byte) (*RecipeFile, error) {
	f := new(RecipeFile)
	if err := decodeStrictly(data, f); err != nil {
		return nil, optionError("recipe file: %w", err)
	}
	switch {
	case f.Version != recipeFileVersion:
		return nil, optionError("recipe file: it has version %d: want %d", f.Version, recipeFileVersion)
	case len(f.Modules) == 0:
		return nil, optionError("recipe file: it has no modules")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Modules)) {
		of := f.Modules[name]
		if _, err := ParseRecipe(of.Recipe); err != nil {
			return nil, optionError("recipe file: module %.80q: %w", name, err)
		}
		if slices.ContainsFunc(of.Shape, func(n int) bool { return n < 1 }) {
			return nil, optionError("recipe file: module %.80q: shape %v has a size below 1", name, of.Shape)
		}
	}
	return f, nil
}

// decodeStrictly reads one JSON value that has no fields but those of v.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// UnmarshalJSON implements [json.Unmarshaler]. A module must not be there twice.
func (r *RecipesOfModules) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errors.Join(err, errors.New("modules: want an object of recipes by the names of modules"))
	}
	*r = RecipesOfModules{}
	for d.More() {
		name, err := d.Token() // a string, in an object
		if err != nil {
			return err
		}
		var value json.RawMessage
		var of ModuleRecipe
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := decodeStrictly(value, &of); err != nil {
			return optionError("module %.80q: %w", name, err)
		}
		if _, twice := (*r)[name.(string)]; twice {
			return optionError("module %.80q is there twice", name)
		}
		(*r)[name.(string)] = of
	}
	return nil
}
