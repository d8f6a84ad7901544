package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Severity is how much a finding hurts. The zero value is none.
type Severity uint8

const (
	Info    Severity = iota + 1 // to be tidied up
	Warning                     // accuracy or portability is at risk
	Error                       // wrong numbers, or loading fails
)

// String returns the severity in a word.
func (s Severity) String() string {
	if s > Error {
		return fmt.Sprintf("Severity(%d)", uint8(s))
	}
	return [...]string{"none", "info", "warning", "error"}[s]
}

// MarshalText gives the letter of the severity: I, W or E. It is an error if there is none.
func (s Severity) MarshalText() ([]byte, error) {
	if s > Error {
		return nil, fmt.Errorf("lint: there is no %v", s)
	}
	return []byte{"-IWE"[s]}, nil
}

// Finding is a defect at one place.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`

	// File is where it is, "" where that is not one file.
	File string `json:"file,omitempty"`

	// Tensors are those concerned. It may be empty.
	Tensors []string `json:"tensors"`

	What        string   `json:"what"`        // was seen
	Consequence string   `json:"consequence"` // of leaving it
	Mend        string   `json:"mend"`
	Loaders     []string `json:"loaders"` // that it concerns
}

// Rule is a kind of defect.
type Rule struct {
	ID    string `json:"id"` // in kebab case
	Title string `json:"title"`

	// Severity is that of most findings. Others have their own.
	Severity Severity `json:"severity"`

	// Data says that headers and configurations do not suffice.
	Data bool `json:"data"`

	Consequence string   `json:"consequence"`
	Mend        string   `json:"mend"`
	Loaders     []string `json:"loaders"`

	// Sources are reports of the defect: owner/repository#number.
	Sources []string `json:"sources"`

	check func(m *model, found func(Finding))

	broken bool // it holds of a checkpoint of which no file can be read, too
}

// Rules returns all rules. They must not be changed.
func Rules() []*Rule { return slices.Clone(rules) }

// Known reports whether there is a rule of that ID.
func Known(id string) bool {
	return slices.ContainsFunc(rules, func(r *Rule) bool { return r.ID == id })
}

// Options say what is looked at, and how. The zero value looks at everything, by all rules, on
// all processors, in silence.
type Options struct {
	// Headers leaves out the rules that read data.
	Headers bool

	// Skip are the IDs of rules that are left out.
	Skip []string

	// TensorParallel is over how many devices loaders split weights; 0 means one.
	TensorParallel int

	// Workers is the number of goroutines at most; 0 means GOMAXPROCS.
	Workers int

	// Progress, unless nil, hears of bytes that are read.
	Progress progress.Reporter
}

// Report is what was found.
type Report struct {
	Path    string `json:"path"`
	Files   int    `json:"files"` // that could be read
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"` // of all tensors' data

	// Layout is the one that the checkpoint is in, "" if that cannot be told.
	Layout string `json:"layout"`

	// NotJudged are the methods of quantization that are not read, and their tensors. Findings
	// may be of these, too, but that there are none says nothing of them.
	NotJudged []checkpoint.Unread `json:"notJudged"`

	// Headers says that no data was read.
	Headers bool `json:"headers"`

	// Rules are the IDs of those that were looked by.
	Rules []string `json:"rules"`

	// Findings are in the order of severity, the worst first, and then of rules and files.
	Findings []Finding `json:"findings"`
}

// Count returns the number of findings of a severity.
func (r *Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Check looks at the checkpoint at path: a safetensors file, a directory, or an index, as
// [checkpoint.Open] has it. A file that is malformed is a finding. It is an error if there is
// no checkpoint at path, if reading fails, if a rule to skip is unknown, or if ctx ends.
func Check(ctx context.Context, path string, o Options) (*Report, error) {
	for _, id := range o.Skip {
		if !Known(id) {
			return nil, fmt.Errorf("lint: there is no rule %q", id)
		}
	}
	c, problems, err := checkpoint.OpenLenient(path)
	malformed := func(err error) bool { return errors.Is(err, safetensors.ErrFile) }
	if err != nil && !slices.ContainsFunc(problems, malformed) {
		return nil, err
	}
	m := newModel(path, c, problems, o)
	if c != nil {
		defer c.Close()
		if !o.Headers {
			if err := m.survey(ctx, o); err != nil {
				return nil, err
			}
		}
	}
	return m.report(ctx, o)
}

// report applies the rules.
func (m *model) report(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Path: m.path, Headers: o.Headers, NotJudged: []checkpoint.Unread{}, Findings: []Finding{}}
	if m.c != nil {
		r.NotJudged = append(r.NotJudged, m.unread...)
		r.Files, r.Tensors, r.Bytes = len(m.c.Files()), len(m.entries), m.c.TotalSize()
		if found, err := m.c.Detect(); err == nil && len(found) > 0 {
			r.Layout = found[0].Name
		}
	}
	order := map[string]int{}
	for i, rule := range rules {
		order[rule.ID] = i
		if rule.Data && o.Headers || slices.Contains(o.Skip, rule.ID) {
			continue
		}
		if m.c == nil && !rule.broken {
			continue
		}
		r.Rules = append(r.Rules, rule.ID)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rule.check(m, func(f Finding) {
			r.Findings = append(r.Findings, rule.complete(f))
		})
	}
	if m.err != nil {
		return nil, m.err
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(order[a.Rule], order[b.Rule]),
			cmp.Compare(a.File, b.File))
	})
	return r, nil
}

// complete fills in what a rule says of all findings that say nothing else.
func (r *Rule) complete(f Finding) Finding {
	f.Rule = r.ID
	f.Severity = cmp.Or(f.Severity, r.Severity)
	f.Consequence, f.Mend = cmp.Or(f.Consequence, r.Consequence), cmp.Or(f.Mend, r.Mend)
	if f.Loaders == nil {
		f.Loaders = r.Loaders
	}
	if f.Tensors == nil {
		f.Tensors = []string{}
	}
	return f
}

// counted says how many there are, in other words of one.
func counted[N int | int64](n N, one, several string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(several, n)
}
