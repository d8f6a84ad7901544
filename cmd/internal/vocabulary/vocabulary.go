// Package vocabulary is the vocabulary of the commands: what they call recipes, formats, layouts and
// caches, which command takes which recipe, and what somebody may have meant by another name.
package vocabulary

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/plan"
)

// Error says why a name is not taken. There is nothing to add to it.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

// Unknown returns the error about a name that is none of a kind, such as "recipe", of which some
// are taken.
func Unknown(kind, name string, taken []string) error {
	text := fmt.Sprintf("there is no %s %.80q", kind, name)
	what, meant := looked(name, taken)
	if what != "" {
		text = fmt.Sprintf("%s is %s, and no %s", name, what, kind)
	}
	switch {
	case len(meant) > 0:
		text += question(meant)
	case kind == "recipe" && len(taken) > most/2:
		text += ": octavo help recipes lists them"
	default:
		text += ": want one of " + List(taken)
	}
	return &Error{text}
}

// most is how many names an error lists: those of all layouts, not of all recipes.
const most = 24

// List lists names that are taken, or the first of more than an error lists, which are recipes.
func List(taken []string) string {
	const first = 6
	if len(taken) <= most {
		return strings.Join(taken, ", ")
	}
	return strings.Join(taken[:first], ", ") + " or others, which octavo help recipes lists"
}

// Hint returns what may have been meant by a name that is none of those that are taken, as the
// end of a sentence; "" if nobody knows.
func Hint(name string, taken []string) string {
	what, meant := looked(name, taken)
	text := question(meant)
	if what != "" {
		text = ": " + name + " is " + what + text
	}
	return text
}

// looked returns what a name is that is not taken, in words, and which of those that are may have
// been meant. What has a meaning is never taken for a misspelling.
func looked(name string, taken []string) (what string, meant []string) {
	if n := slices.IndexFunc(taken, func(n string) bool { return strings.EqualFold(n, name) }); n >= 0 {
		return "", taken[n : n+1]
	}
	what, meant = meaning(name)
	meant = slices.DeleteFunc(meant, func(n string) bool { return !slices.Contains(taken, n) })
	if what == "" && len(meant) == 0 {
		meant = misspelt(name, taken)
	}
	return what, meant
}

// question asks for the first of some names.
func question(meant []string) string {
	const most = 3
	if len(meant) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(meant[:min(most, len(meant))], " or ") + "?"
}

// misspelt returns those of some names that differ from one in two letters or begin with it, the
// nearest first, if they are few. A short name with two other letters is another word, and one of
// a letter or two with any other.
func misspelt(name string, taken []string) (near []string) {
	const long, most = 64, 3
	letters := 2
	switch n := len(strings.TrimLeft(name, "-")); {
	case n <= 2:
		letters = 0
	case n <= 4:
		letters = 1
	}
	name = strings.ToLower(name)
	if name == "" || len(name) > long { // the beginning of all of them; like none of them
		return nil
	}
	for _, n := range taken {
		if strings.HasPrefix(strings.ToLower(n), name) || distance(name, strings.ToLower(n)) <= letters {
			near = append(near, n)
		}
	}
	if len(near) > most {
		return nil
	}
	slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return near
}

// distance is Levenshtein's: bytes to put in, to take out and to change.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the beginning of a before
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// meanings are words that people have, and names of recipes, formats, layouts and experiments
// for the same, the usual ones first. What is taken of them is meant.
var meanings = []struct{ words, names string }{
	{"fp8 float8 f8 w8a8", "fp8 e4m3 ct-fp8 deepseek-v3 fp8-serve parity"},
	{"e4m3 e4m3fn float8-e4m3fn f8-e4m3 f8e4m3", "e4m3 fp8 te-current"},
	{"e5m2 float8-e5m2 f8-e5m2 f8e5m2 bf8", "e5m2 te-current:e5m2"},
	{"fp6 mxfp6 float6 f6 e3m2 e2m3", "e3m2 e2m3 mx-rceil:e3m2 mx-rceil:e2m3"},
	{"fp4 float4 f4 w4a4 w4a16 e2m1 e2m1fn float4-e2m1fn-x2", "e2m1 nvfp4 mxfp4 ct-nvfp4a16 ct-mxfp4 mxfp4-experts fp4"},
	{"nvfp4 nv4 nvfp4a16 nvfp4-4over6 4over6", "nvfp4 e2m1 ct-nvfp4a16 ct-nvfp4 modelopt-nvfp4 fp4 nvfp4-te"},
	{"mxfp4 mx4", "mxfp4 e2m1 ct-mxfp4 gpt-oss mxfp4-experts fp4"},
	{"mxfp8 mx8 mx", "mxfp8 e4m3 ct-mxfp8"},
	{"deepseek deepseek-v3 deepseekv3 dsv3", "deepseek-v3 deepseek deepseek-v2 parity"},
	{"deepseek-ue8m0 deepseek-v3-ue8m0", "deepseek-ue8m0 deepseek-v3-ue8m0"},
	{"deepseek-v4", "deepseek-v4 deepgemm-ue8m0 deepseek-v3"},
	{"block blocks blockwise block-wise per-block groupwise per-group", "te-block deepseek-v3 fp8 ct-fp8-block granularity"},
	{"tensor tensors tensorwise tensor-wise per-tensor current", "tensor te-current torchao-tensorwise ct-fp8"},
	{"row rows rowwise row-wise per-row channel channelwise per-channel token per-token", "row torchao-rowwise ct-fp8-dynamic fp8-rows"},
	{"delayed", "te-delayed te-current"},
	{"ue8m0 e8m0 e8m0fnu float8-e8m0fnu", "e8m0 deepgemm-ue8m0 deepseek-v3-ue8m0"},
	{"bf16 bfloat16", "bf16"},
	{"fp16 f16 float16 half", "fp16 f16"},
	{"fp32 f32 float32 none full", "none fp32 f32"},
	{"compressed-tensors llm-compressor", "compressed-tensors nvfp4-compressed-tensors mx-compressed-tensors"},
	{"modelopt", "modelopt-fp8 modelopt-nvfp4 nvfp4-modelopt mx-modelopt"},
	{"vllm", "ct-fp8-dynamic ct-nvfp4 ct-fp8-block"},
	{"sglang", "ct-fp8-dynamic deepseek-v3 modelopt-nvfp4"},
	{"transformers", "deepseek-v3 ct-fp8-dynamic ct-mxfp4"},
	{"tensorrt-llm", "modelopt-fp8 modelopt-nvfp4"},
	{"autofp8", "autofp8 fp8 torchao-tensorwise"},
	{"modelopt-fp8", "modelopt-fp8 torchao-tensorwise"},
}

// integers are names of quantization to whole numbers, which octavo does not do.
const integers = "int8 int4 int3 int2 i8 i4 uint8 uint4 w8a8-int8 w4a16-int4 q8-0 q4-0 q4-k q8 q4 nf4 gptq awq bnb bitsandbytes"

// loaders are programs that load layouts, each some.
const loaders = "vllm sglang transformers tensorrt-llm"

// meaning returns what a name is, beside a recipe, in words, and names for the same or for what
// belongs to it.
func meaning(name string) (what string, meant []string) {
	word := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if slices.Contains(strings.Fields(integers), word) {
		return "of plain integers, which octavo does not quantize to", strings.Fields("mxint8")
	}
	for _, m := range meanings {
		if slices.Contains(strings.Fields(m.words), word) {
			meant = append(meant, strings.Fields(m.names)...)
		}
	}
	layout, err := checkpoint.ParseLayout(word)
	switch {
	case slices.Contains(recipes(), word):
		if len(meant) == 0 {
			meant = layoutsOf(word)
		}
		return "a recipe", meant
	case err == nil:
		return "a layout of checkpoints", append(meant, ofLayout(layout)...)
	case slices.Contains(strings.Fields(loaders), word):
		return "a loader", meant
	case slices.Contains(precisions(), word):
		return "a recipe of plan", meant
	case slices.Contains(libraries(), word):
		return "the arithmetic of a layout", meant
	case slices.ContainsFunc(plan.Models(), func(m plan.Model) bool { return m.Name == word }):
		return "a model", meant
	}
	if _, err := fp8.ParseFormat(word); err == nil {
		return "a format of codes", meant
	}
	return "", meant
}

// ofLayout returns the recipes whose weights are as a layout has them, the one with its
// arithmetic first.
func ofLayout(l *checkpoint.Layout) (meant []string) {
	for _, r := range l.Rules {
		if n := string(r.Arithmetic); slices.Contains(recipes(), n) {
			meant = append(meant, n)
		}
		for _, name := range recipes() {
			if holds(r.Scheme, name) {
				meant = append(meant, name)
			}
		}
	}
	return meant
}

// layoutsOf returns the layouts that can be written with the weights of a recipe.
func layoutsOf(name string) (meant []string) {
	for _, l := range checkpoint.Layouts() {
		if len(l.Rules) == 1 && l.Writable() && holds(l.Rules[0].Scheme, name) {
			meant = append(meant, l.Name)
		}
	}
	return meant
}

// holds reports whether a scheme has the format, the blocks and the scales of a recipe.
func holds(s *checkpoint.Scheme, name string) bool {
	w, err := Arithmetic.Weights(name)
	return err == nil && w.Format == s.Format && w.Block == s.Block && checkpoint.Arithmetic(w.Profile).Check(s) == nil
}

// Holding returns the layouts that convert writes in each of which weights may have any of some
// recipes, or the error, an [Error], that names the nearest ones for which there is such a layout.
func Holding(names []string) (all []*checkpoint.Layout, err error) {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == BF16 })
	nearest := math.MaxInt
	var instead string
	for _, l := range checkpoint.Layouts() {
		if !l.Writable() || l.Plain != "" {
			continue
		}
		away := 0
		var others []string
		for _, name := range names {
			other, d := nearestIn(l, name)
			if away += d; d > 0 {
				others = append(others, other+" in place of "+name)
			}
		}
		if away == 0 {
			all = append(all, l)
		} else if away < nearest {
			nearest, instead = away, fmt.Sprintf("the nearest, %s, has %s", l, strings.Join(others, " and "))
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	together := map[bool]string{true: " together"}[len(names) > 1]
	return nil, &Error{fmt.Sprintf("convert has no layout for weights by %s%s: %s", strings.Join(names, " and "), together, instead)}
}

// nearestIn returns the recipe most like a given one that a layout can have for any weight, and how
// far away it is: 0 for itself.
func nearestIn(l *checkpoint.Layout, name string) (nearest string, away int) {
	away = math.MaxInt32
	for _, other := range append([]string{name}, recipes()...) {
		of := func(r checkpoint.Rule) bool { return (r.Match == nil || l.Mixed) && holds(r.Scheme, other) }
		if d := apart(name, other); d < away && slices.ContainsFunc(l.Rules, of) {
			nearest, away = other, d
		}
	}
	return nearest, away
}

// apart says how unlike the weights of two recipes are: by their format first, and by the arithmetic
// of their scales last.
func apart(a, b string) (away int) {
	x, errX := Arithmetic.Weights(a)
	y, errY := Arithmetic.Weights(b)
	if errX != nil || errY != nil {
		return math.MaxInt32
	}
	for i, unlike := range []bool{
		x.Profile != y.Profile, x.Block != y.Block, x.Profile.Outer() != y.Profile.Outer(),
		x.Profile.ScaleFormat() != y.Profile.ScaleFormat(), x.Format != y.Format,
	} {
		if unlike {
			away += 1 << i
		}
	}
	return away
}
