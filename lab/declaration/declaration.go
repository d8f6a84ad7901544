// Package declaration reads what an experiment of octavo lab declares before it is run, and
// judges by it. The file is declaration.toml in the experiment's folder; docs/adding.md says
// what is in it.
//
// A goal with a sample is judged by the interval of its values' mean. Undecided are one whose
// interval is across a limit, one with a value that is not a finite number, and one whose
// values are all equal: their standard deviation of 0 is no estimate, and would make anything
// certain. An arm that was never used, which differs from nothing in any seed, looks like
// that. A figure that may well be the same for all seeds is declared as exact, of their
// largest for example, and is then one of these seeds alone. An interval that was found
// otherwise is treated alike.
package declaration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/octavo-fp8/octavo/lab/report"
)

// Declaration is a declaration.toml.
type Declaration struct {
	Experiment string   `toml:"experiment"`
	Declared   string   `toml:"declared"` // the date
	Known      string   `toml:"known"`    // before: pilots with their figures, simulations, published figures
	Hypotheses []Goal   `toml:"hypothesis"`
	Controls   []Goal   `toml:"control"` // what a sound experiment has to see
	Changes    []Change `toml:"change"`  // after the first commit of the file

	sum [sha256.Size]byte
}

// Goal is a hypothesis or a control.
type Goal struct {
	Name       string `toml:"name"`       // unique; code refers to it
	Family     string `toml:"family"`     // of those that are judged on the same runs
	Hypothesis string `toml:"hypothesis"` // in one sentence
	Metric     string `toml:"metric"`     // what is measured, over what, paired how
	Unit       string `toml:"unit"`
	Test       Test   `toml:"test"`

	Margin *float64 `toml:"margin"` // of Equivalent
	Lower  *float64 `toml:"lower"`  // of Within and, either may be absent, of Exact
	Upper  *float64 `toml:"upper"`
	Bound  *float64 `toml:"bound"` // of Above and Below

	Sample int      `toml:"sample"` // seeds, clusters, ... of which the metric is one value each
	Power  *float64 `toml:"power"`  // chance to decide, if the truth is Truth, with SD
	Truth  *float64 `toml:"truth"`
	SD     *float64 `toml:"sd"` // of one value, from the pilot

	Published *float64 `toml:"published"` // figure that is reproduced
	Source    string   `toml:"source"`    // of it
	Ours      bool     `toml:"ours"`      // our own question or simulation: nothing is reproduced

	Refuted string `toml:"refuted"` // what would refute it
}

// Test is how a figure is judged.
type Test string

// The tests. But for Exact, all are of a mean's interval.
const (
	Equivalent Test = "equivalent" // inside ± margin
	Within     Test = "within"     // inside [lower, upper]
	Above      Test = "above"      // wholly above the bound
	Below      Test = "below"      // wholly below the bound
	Exact      Test = "exact"      // a figure without sampling: from lower to upper, or a yes
)

// Change is a change of the declaration.
type Change struct {
	Date string   `toml:"date"`
	Of   []string `toml:"of"` // names of goals; "known" and "declared" are those fields
	What string   `toml:"what"`
	Why  string   `toml:"why"`
	Seen bool     `toml:"seen"` // after a look at the result
}

// Parse reads a declaration and refuses one that lacks anything, has what it should not have,
// or states a power that its sample does not reach.
func Parse(file []byte) (*Declaration, error) {
	d := &Declaration{sum: sha256.Sum256(file)}
	decoder := toml.NewDecoder(bytes.NewReader(file)).DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		return nil, fmt.Errorf("declaration: %s", described(err))
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("declaration of %s: %w", d.Experiment, err)
	}
	return d, nil
}

// described returns an error of the decoder with its place.
func described(err error) string {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		row, column := strict.Errors[0].Position()
		return fmt.Sprintf("line %d, column %d: there is no field %s", row, column, strings.Join(strict.Errors[0].Key(), "."))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		row, column := bad.Position()
		return fmt.Sprintf("line %d, column %d: %v", row, column, bad)
	}
	return err.Error()
}

// OnUse returns the declaration of an embedded file, which is parsed at the first call: every
// command would pay for parsing at startup. The function panics where Parse returns an error.
func OnUse(file []byte) func() *Declaration {
	return sync.OnceValue(func() *Declaration { return mustParse(file) })
}

func mustParse(file []byte) *Declaration {
	d, err := Parse(file)
	if err != nil {
		panic(err)
	}
	return d
}

// Plan returns what of the declaration a page shows beside its goals.
func (d *Declaration) Plan() *report.Plan {
	p := &report.Plan{Date: d.Declared, SHA256: hex.EncodeToString(d.sum[:]), Known: d.Known, Changes: []report.Change{}}
	for _, c := range d.Changes {
		p.Changes = append(p.Changes, report.Change(c))
	}
	return p
}

// Names returns the names of all hypotheses and controls, in their order.
func (d *Declaration) Names() (names []string) {
	for g := range d.goals {
		names = append(names, g.Name)
	}
	return names
}

// goals yields all, and whether each is a control.
func (d *Declaration) goals(yield func(g *Goal, control bool) bool) {
	for i := range d.Hypotheses {
		if !yield(&d.Hypotheses[i], false) {
			return
		}
	}
	for i := range d.Controls {
		if !yield(&d.Controls[i], true) {
			return
		}
	}
}

// find returns the goal of a name. A name that code has and the file lacks is a bug.
func (d *Declaration) find(name string) (g *Goal, control bool) {
	for g, control := range d.goals {
		if g.Name == name {
			return g, control
		}
	}
	panic(fmt.Sprintf("declaration: %s declares no %s", d.Experiment, name))
}

// Compared returns how many goals the family of a goal has: as many intervals as are
// corrected for together. Controls are compared with controls only: they are about what the
// experiment can see, and there are as many as one likes.
func (d *Declaration) Compared(name string) (n int) {
	g, control := d.find(name)
	for other, alike := range d.goals {
		if other.Family == g.Family && alike == control && other.Test != Exact {
			n++
		}
	}
	return max(n, 1)
}

// isDate reports whether a text is one as 2026-11-23.
func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}
