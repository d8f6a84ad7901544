package planning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/plan"
)

// knobs are the flags that a reader of the page can change, but for the recipe.
var knobs = []struct {
	flag, name string
	of         func(*Ask) *int
	usual      int
}{
	{"ranks", "ranks", func(a *Ask) *int { return &a.layout().Ranks }, 0},
	{"tp", "tensor parallel", func(a *Ask) *int { return &a.layout().Tensor }, 1},
	{"pp", "pipeline stages", func(a *Ask) *int { return &a.layout().Pipeline }, 1},
	{"batch", "sequences of a micro-batch", func(a *Ask) *int { return a.batch() }, 1},
}

const recipeFlag = "recipe"

// Knobs are the flags that a reader of the page can change.
func Knobs() []string {
	all := []string{recipeFlag}
	for _, k := range knobs {
		all = append(all, k.flag)
	}
	return all
}

func (a *Ask) layout() *plan.Layout {
	if a.Serve != nil {
		return &a.Serve.Layout
	}
	return &a.Train.Layout
}

func (a *Ask) batch() *int {
	if a.Serve != nil {
		return &a.Serve.Sequences
	}
	return &a.Train.Batch
}

func (a *Ask) model() plan.Model {
	if a.Serve != nil {
		return a.Serve.Model
	}
	return a.Train.Model
}

// Usual is the recipe where none is asked for: what a model is served in is what it is published in. The
// error is [plan.ErrJob], of one that no recipe counts.
func (a *Ask) Usual() (plan.Precision, error) {
	if a.Serve == nil || a.Serve.Model.Published == "" {
		return plan.Precisions()[0], nil
	}
	return plan.NamedPrecision(a.Serve.Model.Published)
}

func (a *Ask) precision() *plan.Precision {
	if a.Serve != nil {
		return &a.Serve.Precision
	}
	return &a.Train.Precision
}

// Change is what a reader of the page asks: the same with other values of flags.
type Change struct {
	Ask    Ask               `json:"ask"`
	Values map[string]string `json:"values"` // by flag
}

// Changed is the answer to a change.
type Changed struct {
	Command string     `json:"command"`           // that gives it
	Refused string     `json:"refused,omitempty"` // why there is none, as the command says it
	Head    frame.HTML `json:"head,omitempty"`
	Main    frame.HTML `json:"main,omitempty"`
}

// WhatIf answers a change as the command does. There is no file to read.
func WhatIf(c Change, _ *io.SectionReader) (Changed, error) {
	a := c.Ask
	if a.Serve != nil {
		serve := *a.Serve
		a.Serve = &serve
	}
	for _, k := range knobs {
		n, err := strconv.Atoi(c.Values[k.flag])
		if err != nil {
			return Changed{}, fmt.Errorf("planning: --%s is %q: want a number", k.flag, c.Values[k.flag])
		}
		*k.of(&a) = n
	}
	var err error
	if *a.precision(), err = plan.NamedPrecision(c.Values[recipeFlag]); err != nil {
		return Changed{}, err
	}
	out := Changed{Command: a.command()}
	r, err := answer(context.Background(), a)
	if errors.Is(err, plan.ErrJob) {
		out.Refused = a.Refusal(err)
		return out, nil
	}
	if err != nil {
		return out, err
	}
	var head, main page.Page
	r.putHead(&head)
	r.putMain(&main)
	out.Head, out.Main = head.HTML(), main.HTML()
	return out, nil
}

// command is what asks it.
func (a *Ask) command() string {
	text := a.Command
	for _, k := range knobs {
		if n := *k.of(a); n > k.usual {
			text += fmt.Sprintf(" --%s %d", k.flag, n)
		}
	}
	usual, _ := a.Usual() // of what none counts all are written
	if name := a.precision().Name; name != "" && name != usual.Name {
		text += fmt.Sprintf(" --%s %s", recipeFlag, name)
	}
	return text
}

// Refusal says of an error of [New] which flag is to be changed.
func (a Ask) Refusal(err error) string {
	if least := new(plan.BudgetError); errors.As(err, &least) {
		return fmt.Sprintf("--card is %g GiB: on a rank of stage %d at least %.2f GiB are reserved with a headroom of %.4g%%, whatever the policies",
			a.Card, least.Stage, gibUp(least.Least), a.Headroom*100)
	}
	return strings.NewReplacer(
		"layout.ranks", "--ranks", "layout.tensor", "--tp", "layout.context", "--cp", "layout.pipeline", "--pp", "layout.virtual", "--vpp",
		"layout.group", "--group", "layout.first", "--first", "layout.last", "--last", "layout.expertTensor", "--etp", "layout.expert", "--ep",
		"precision.name is", "--recipe is", "policies[0] ", "--policies ", "layout.wholeSequence", "--no-sp", "layout.zero", "--zero", "batches is", "--micro-batches is", "sequence is", "--sequence is",
	).Replace(strings.TrimPrefix(err.Error(), "plan: "))
}

// steps are values of a knob: those that are usual, and the one that was asked for.
func steps(flag string, asked, least, most int) (all []int) {
	if flag == "ranks" { // the fewest, and powers of two
		all = []int{0}
	}
	for n := 1; n <= most; n *= 2 {
		all = append(all, n)
		if three := n / 2 * 3; flag != "ranks" && n > 1 && three <= most {
			all = append(all, three)
		}
	}
	all = append(all, max(asked, least))
	slices.Sort(all)
	return slices.Compact(all)
}

// putControls adds what changes flags, which the script of the page shows.
func (r *Report) putControls(p *page.Page) {
	a := r.ask
	p.Put("<fieldset id=\"what-if\" hidden>\n<legend>What if</legend>\n")
	for _, k := range knobs {
		if k.flag == "batch" && a.Serve != nil { // which has no micro-batches
			k.name = "sequences at once on a data-parallel rank"
		}
		asked, most := *k.of(&a), map[string]int{"ranks": 1 << 16, "tp": 64, "pp": min(r.Model.Layers, 128), "batch": 64}[k.flag]
		all := steps(k.flag, asked, k.usual, most)
		p.Put("<label>%s <input type=\"range\" name=\"%s\" min=\"0\" max=\"%s\" value=\"%s\" data-values=\"%s\"><output></output></label>\n",
			k.name, k.flag, len(all)-1, slices.Index(all, max(asked, k.usual)), strings.Trim(fmt.Sprint(all), "[]"))
	}
	p.Put("<label>recipe <select name=\"%s\">", recipeFlag)
	for _, recipe := range plan.Precisions() {
		if recipe.ServeOnly && a.Serve == nil {
			continue
		}
		chosen := frame.HTML("")
		if recipe.Name == a.precision().Name {
			chosen = " selected"
		}
		p.Put("<option%s>%s</option>", chosen, recipe.Name)
	}
	p.Put("</select></label>\n<p id=\"refused\" class=\"bad\" role=\"status\"></p>\n<p class=\"note\">Computed in this page by the command's own code. It prints the same: <code id=\"command\">%s</code></p>\n</fieldset>\n", a.command())
}
