package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// parsed is a flag that is read by a function, so that a value that makes no
// sense is refused with the command line. It is a pflag.Value.
type parsed[T any] struct {
	value *T
	text  string
	kind  string // what --help calls a value
	parse func(string) (T, error)
}

func (p *parsed[T]) String() string { return p.text }
func (p *parsed[T]) Type() string   { return p.kind }

func (p *parsed[T]) Set(text string) error {
	value, err := p.parse(text)
	if err != nil {
		return err
	}
	*p.value, p.text = value, text
	return nil
}

// repeated are values of a flag that is given for each of them.
type repeated[T any] struct {
	values *[]T
	texts  []string
	kind   string // what --help calls a value
	parse  func(string) (T, error)
}

func (r *repeated[T]) String() string     { return strings.Join(r.texts, " ") }
func (r *repeated[T]) Type() string       { return r.kind }
func (r *repeated[T]) GetSlice() []string { return r.texts }

func (r *repeated[T]) Set(text string) error {
	value, err := r.parse(text)
	if err != nil {
		return err
	}
	*r.values, r.texts = append(*r.values, value), append(r.texts, text)
	return nil
}

// optionalFlag adds a flag of a value that is nil without it: one of some names, if there are
// any.
func optionalFlag[T any](cmd *cobra.Command, value **T, name, kind, usage string, parse func(string) (T, error), names ...string) {
	pointer := func(text string) (*T, error) {
		v, err := parse(text)
		return &v, err
	}
	valueFlag(cmd, &parsed[*T]{value, "", kind, pointer}, name, usage, names...)
}

// valueFlag adds a flag of a value: one of some names, if there are any.
func valueFlag(cmd *cobra.Command, value pflag.Value, name, usage string, names ...string) {
	if len(names) > 0 {
		value = oneOf{value, names}
	}
	cmd.Flags().Var(value, name, usage)
}

// listOf is a flag that takes values of one kind, again and again. Of those with the same name
// one counts.
type listOf[T any] struct {
	values *[]T
	kind   string // what --help calls a value
	parse  func(string) (T, error)
	name   func(T) string
}

func (l listOf[T]) Type() string { return l.kind }

func (l listOf[T]) String() string {
	var names []string
	if l.values != nil {
		for _, v := range *l.values {
			names = append(names, l.name(v))
		}
	}
	return strings.Join(names, ",")
}

func (l listOf[T]) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		v, err := l.parse(name)
		if err != nil {
			return err
		}
		same := func(other T) bool { return l.name(other) == l.name(v) }
		if !slices.ContainsFunc(*l.values, same) {
			*l.values = append(*l.values, v)
		}
	}
	return nil
}

// refuse returns an error if one of some flags was given, with why it cannot be.
func refuse(cmd *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("--%s%s", name, why)
		}
	}
	return nil
}

// alone refuses arguments and flags, but for some, beside one that does nothing else.
func alone(cmd *cobra.Command, flag string, but ...string) error {
	if args := cmd.Flags().Args(); len(args) > 0 {
		return usagef("--%s reads nothing: leave %s out", flag, args[0])
	}
	names := flagNames(func(c *cobra.Command) { c.Flags().AddFlagSet(cmd.LocalFlags()) }, append(but, flag)...)
	return refuse(cmd, " does nothing beside --"+flag, names...)
}

// flagNames returns the names of the flags that a function adds, but for some.
func flagNames(add func(cmd *cobra.Command), except ...string) (names []string) {
	cmd := new(cobra.Command)
	add(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(except, f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// choice is one of the names that a flag takes.
type choice[T any] struct {
	name  string
	value T
}

// named returns values as the choices of a flag, by their names.
func named[T any](values []T) []choice[T] {
	choices := make([]choice[T], len(values))
	for i, v := range values {
		choices[i] = choice[T]{fmt.Sprint(v), v}
	}
	return choices
}

// choiceFlag adds a flag that takes one of a few names, by default the first.
func choiceFlag[T any](cmd *cobra.Command, value *T, name, usage string, choices ...choice[T]) {
	addChoice(cmd, value, name, strings.Join(choiceNames(choices), "|"), usage, choices)
}

// nameFlag is choiceFlag with names that are listed behind the usage: together they are too
// long for the column of flags.
func nameFlag[T any](cmd *cobra.Command, value *T, name, usage string, choices ...choice[T]) {
	addChoice(cmd, value, name, "NAME", usage+":\n"+strings.Join(choiceNames(choices), ", "), choices)
}

func choiceNames[T any](choices []choice[T]) (names []string) {
	for _, c := range choices {
		names = append(names, c.name)
	}
	return names
}

func addChoice[T any](cmd *cobra.Command, value *T, name, kind, usage string, choices []choice[T]) {
	names := choiceNames(choices)
	parse := func(text string) (T, error) {
		i := slices.Index(names, text)
		if i < 0 {
			return *value, fmt.Errorf("want %s", strings.Join(names, " or "))
		}
		return choices[i].value, nil
	}
	*value = choices[0].value
	valueFlag(cmd, &parsed[T]{value, names[0], kind, parse}, name, usage, names...)
}

// formatNames lists the formats: "e4m3", "e5m2" and so on.
func formatNames() (names []string) {
	for _, f := range fp8.Formats() {
		names = append(names, strings.ToLower(f.String()))
	}
	return names
}

// formatFlag adds --format; def is "" where there is no default.
func formatFlag(cmd *cobra.Command, value *fp8.Format, def, usage string) {
	cmd.Flags().Var(oneOf{&parsed[fp8.Format]{value, def, "FORMAT", fp8.ParseFormat}, formatNames()}, "format", usage)
}

func blockFlag(cmd *cobra.Command, value *tensor.Block, name, usage string) {
	valueFlag(cmd, &parsed[tensor.Block]{value, "", "RxC|row|tensor", tensor.ParseBlock}, name, usage, "row", "tensor")
}

// recipeFlag adds --recipe, whose names are those of a use.
func recipeFlag[T any](cmd *cobra.Command, value *T, def string, use vocabulary.Use, usage string, parse func(string) (T, error)) {
	cmd.Flags().Var(oneOf{&parsed[T]{value, def, "NAME", parse}, use.Names()}, flagOfRecipes, usage)
}

// flagOfRecipes is the flag that takes a recipe, which was called profile where it takes one for
// weights.
const flagOfRecipes = "recipe"

func oldNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "profile" {
		name = flagOfRecipes
	}
	return pflag.NormalizedName(name)
}

// namesOf returns the names of values.
func namesOf[T any](values []T) (names []string) {
	for _, v := range values {
		names = append(names, fmt.Sprint(v))
	}
	return names
}

// onlyFlag adds --only; without it the pattern stays nil, which selects all.
func onlyFlag(cmd *cobra.Command, value **regexp.Regexp, usage string) {
	cmd.Flags().Var(&parsed[*regexp.Regexp]{value, "", "REGEXP", regexp.Compile}, "only", usage)
}

// outFlag adds the required -o.
func outFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "out", "o", "", "`FILE` to write, replaced if it exists (required)")
	markRequired(cmd, "out")
}

// outDirFlag adds -o of a command that writes several files, with what is in brackets
// about it in --help.
func outDirFlag(cmd *cobra.Command, path *string, what, otherwise string) {
	cmd.Flags().StringVarP(path, "out", "o", "", fmt.Sprintf("`DIR` for %s, made if need be (%s)", what, otherwise))
}

// overwriteFlag adds --overwrite of a command whose run has a directory.
func overwriteFlag(cmd *cobra.Command, overwrite *bool) {
	cmd.Flags().BoolVar(overwrite, "overwrite", false, "replace the run that is in --out")
}

// htmlFlag adds --html.
func htmlFlag(cmd *cobra.Command, path *string, what string) {
	cmd.Flags().StringVar(path, "html", "", fmt.Sprintf("`FILE` to write a page with %s to, replaced if it exists", what))
}

// textFlag adds --text.
func textFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "text", "", "`FILE` to train on (default: the source of the Go standard library)")
}

// mostWorkers is more than any machine has processors.
const mostWorkers = 1 << 16

// workersFlag adds --workers.
func workersFlag[T int | uint64](cmd *cobra.Command, workers *T) {
	wholeFlag(cmd, workers, 0, mostWorkers, "workers", "threads at most; 0 is one for each processor (default 0)")
}

// seedFlag adds --seed, by default *seed.
func seedFlag(cmd *cobra.Command, seed *uint64, usage string) {
	wholeFlag(cmd, seed, 0, math.MaxUint64, "seed", usage)
}

func jsonFlag(cmd *cobra.Command, json *bool) {
	cmd.Flags().BoolVar(json, "json", false, "print JSON instead of text")
}

// wholeFlag adds a flag that takes a whole number from least to most, by default
// *value.
func wholeFlag[T int | uint64](cmd *cobra.Command, value *T, least, most T, name, usage string) {
	parse := func(text string) (T, error) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n < uint64(least) || n > uint64(most) {
			return *value, fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return T(n), nil
	}
	cmd.Flags().Var(&parsed[T]{value, fmt.Sprint(*value), "N", parse}, name, usage)
}

// numberRange is the numbers that a flag takes, in words and as a condition that a NaN does not meet.
type numberRange struct {
	want string
	has  func(x float64) bool
}

var (
	rates     = numberRange{"a number above 0 and below 1", func(x float64) bool { return x > 0 && x < 1 }}
	shares    = numberRange{"a share from 0 to 1", func(x float64) bool { return x >= 0 && x <= 1 }}
	positives = numberRange{"a positive number", func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }}
	limited   = numberRange{"a number of 0 or more", func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }}
)

// numberFlag adds a flag that takes a number, by default *value.
func numberFlag(cmd *cobra.Command, value *float64, among numberRange, name, usage string) {
	parse := func(text string) (float64, error) {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !among.has(x) {
			return 0, errors.New("want " + among.want)
		}
		return x, nil
	}
	cmd.Flags().Var(&parsed[float64]{value, fmt.Sprint(*value), "X", parse}, name, usage)
}

// markRequired makes flags of cmd required.
func markRequired(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is not defined
		}
	}
}

// one is the Args of a command that takes one file, one model and so on.
func one(what string) cobra.PositionalArgs { return takes(1, 1, "one "+what) }

// oneOr is the Args of a command that takes one of what, which a flag may name instead.
func oneOr(flag *string, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case *flag != "" && len(args) > 0:
			return fmt.Errorf("want one %s, as an argument or by its flag, not both", what)
		case *flag != "":
			return nil
		}
		return one(what)(cmd, args)
	}
}

// takes is the Args of a command that takes from least to most arguments.
func takes(least, most int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("want %s, %s", want, thereAre(args))
		}
		return nil
	}
}

// thereAre says how many arguments there are.
func thereAre(args []string) string {
	if len(args) == 1 {
		return "there is 1 argument"
	}
	return fmt.Sprintf("there are %d arguments", len(args))
}

// noArguments is the Args of a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("want no arguments, there is %q", args[0])
	}
	return nil
}
