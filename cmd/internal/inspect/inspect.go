// Package inspect is what octavo inspect does: it says what is in a safetensors file
// and what FP8 would do to it.
package inspect

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/cmd/internal/counter"
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// fileReport is what inspect --json prints, before the list of tensorReports.
type fileReport struct {
	File     string            `json:"file"`
	Metadata map[string]string `json:"metadata"`
	Format   string            `json:"format"` // that the recipes encode to
}

// tensorReport says what is in a tensor.
type tensorReport struct {
	Name    string            `json:"name"`
	DType   safetensors.DType `json:"dtype"`
	Shape   []int             `json:"shape"`
	Bytes   int64             `json:"bytes"`
	Values  *valuesReport     `json:"values,omitempty"`  // of floating-point types
	Scales  *scalesReport     `json:"scales,omitempty"`  // of FP8 codes
	Recipes []recipeReport    `json:"recipes,omitempty"` // of float matrices
}

// valuesReport says what values there are.
type valuesReport struct {
	Elements int64          `json:"elements"`
	Amax     jsonout.Number `json:"amax"`     // largest finite magnitude
	Smallest jsonout.Number `json:"smallest"` // smallest nonzero magnitude
	Range    jsonout.Number `json:"rangeBits"`
	Zeros    int64          `json:"zeros"`
	NaN      int64          `json:"nan"`
	PosInf   int64          `json:"posInf"`
	NegInf   int64          `json:"negInf"`

	FirstNonFinite *int `json:"firstNonFinite,omitempty"` // index, row-major
}

// scalesReport describes the scales of a tensor of codes.
type scalesReport struct {
	Name  string            `json:"name"`
	DType safetensors.DType `json:"dtype"`
	Shape []int             `json:"shape"`
	Min   scaling.Float     `json:"min"`
	Max   scaling.Float     `json:"max"`
}

// recipeReport says what a recipe would do to a matrix.
type recipeReport struct {
	Profile         scaling.Profile `json:"profile"`
	Block           string          `json:"block"`
	Saturated       int64           `json:"saturated"`
	Flushed         int64           `json:"flushed"`
	BecameNonFinite int64           `json:"becameNonFinite"` // though finite
	Subnormal       int64           `json:"subnormal"`
	SQNR            jsonout.Number  `json:"sqnrDecibels"`
	ScaleMin        scaling.Float   `json:"scaleMin"`
	ScaleMax        scaling.Float   `json:"scaleMax"`
}

// Inspector makes reports of the tensors of a file.
type Inspector struct {
	File   *safetensors.File
	Format fp8.Format     // that recipes encode to
	Only   *regexp.Regexp // matches the names of the tensors to report; nil: all

	Progress progress.Reporter // hears of bytes inspected; nil: silent
}

// each calls visit with a report of every selected tensor, one at a time.
func (in *Inspector) each(ctx context.Context, visit func(tensorReport) error) error {
	selected := in.selected()
	if in.Only != nil && len(selected) == 0 {
		return fmt.Errorf("no tensor has a name that matches --only %q", in.Only)
	}
	total := int64(0)
	for _, info := range selected {
		total += info.Bytes()
	}
	done := counter.New(in.Progress, "inspecting", total)
	for _, info := range selected {
		if ctx.Err() != nil {
			return fmt.Errorf("inspect: %w", context.Cause(ctx))
		}
		report, err := in.report(ctx, info)
		if err != nil {
			return err
		}
		if err := visit(report); err != nil {
			return err
		}
		done.Add(info.Bytes())
	}
	return nil
}

func (in *Inspector) selected() []safetensors.Info {
	return slices.DeleteFunc(in.File.Tensors(), func(info safetensors.Info) bool {
		return !tensorfile.Selects(in.Only, info.Name)
	})
}

func (in *Inspector) report(ctx context.Context, info safetensors.Info) (tensorReport, error) {
	r := tensorReport{Name: info.Name, DType: info.DType, Shape: info.Shape, Bytes: info.Bytes()}
	values, err := tensorfile.ReadArray(in.File, info)
	if err != nil || values == nil {
		return r, err
	}
	if r.Values, err = reportValues(ctx, values); err != nil {
		return r, err
	}
	if r.Scales, err = in.reportScales(info); err != nil {
		return r, err
	}
	if tensorfile.IsMatrix(in.File, info) {
		r.Recipes, err = reportRecipes(ctx, values, info, in.Format)
	}
	return r, err
}

func reportValues(ctx context.Context, values tensorfile.Array) (*valuesReport, error) {
	st, first, err := values.Measure(ctx)
	if err != nil {
		return nil, err
	}
	r := &valuesReport{
		Elements: st.Elements, Amax: jsonout.Number(st.Amax), Smallest: jsonout.Number(st.Smallest),
		Range: jsonout.Number(math.Log2(st.Amax) - math.Log2(st.Smallest)),
		Zeros: st.Zeros, NaN: st.NaN, PosInf: st.PosInf, NegInf: st.NegInf,
	}
	if st.NonFinite() > 0 {
		r.FirstNonFinite = &first.Index
	}
	return r, nil
}

// reportScales describes the scales of a tensor of codes, where the file has
// them.
func (in *Inspector) reportScales(codes safetensors.Info) (*scalesReport, error) {
	if _, isFP8 := tensorfile.FormatOf(codes.DType); !isFP8 {
		return nil, nil
	}
	info, ok := in.File.Info(codes.Name + tensorfile.ScaleSuffix)
	if !ok || !tensorfile.CanBeScales(info.DType) {
		return nil, nil
	}
	scales, err := tensorfile.ReadScales(in.File, info)
	if err != nil {
		return nil, err
	}
	r := &scalesReport{Name: info.Name, DType: info.DType, Shape: info.Shape}
	r.Min, r.Max = tensorfile.ScaleRange(scales)
	return r, nil
}

// reportRecipes quantizes a matrix under every recipe, several at a time.
func reportRecipes(ctx context.Context, values tensorfile.Array, info safetensors.Info, f fp8.Format) ([]recipeReport, error) {
	profiles := tensorfile.Profiles()
	reports, errs := make([]recipeReport, len(profiles)), make([]error, len(profiles))
	var wait sync.WaitGroup
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, p := range profiles {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			reports[i], errs[i] = reportRecipe(ctx, values, info, p, f)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return reports, nil
}

func reportRecipe(ctx context.Context, values tensorfile.Array, info safetensors.Info, p scaling.Profile, f fp8.Format) (recipeReport, error) {
	recipe := p.Recipe(scaling.Weight)
	recipe.Format = f
	st := fp8.Stats{Detail: new(fp8.Detail)}
	t := tensor.Tensor{Name: info.Name, Shape: info.Shape}
	if err := values.Quantize(ctx, &t, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st}}); err != nil {
		return recipeReport{}, err
	}
	r := recipeReport{
		Profile: p, Block: recipe.Block.String(),
		Saturated: st.Saturated(), Flushed: st.Flushed, BecameNonFinite: st.BecameNonFinite, Subnormal: st.Subnormal,
		SQNR: jsonout.Number(st.Detail.SQNR()),
	}
	r.ScaleMin, r.ScaleMax = tensorfile.ScaleRange(t.Scales)
	return r, nil
}
