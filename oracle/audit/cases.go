package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// ErrCase is of a case that is not known.
var ErrCase = errors.New("audit: no such case")

// Case is a test that was found in public to let a fault pass, or to fail a correct
// kernel: what its source says, and what was assumed where that says nothing.
type Case struct {
	Name    string     `json:"name"`
	Issue   string     `json:"issue"` // its address
	Title   string     `json:"title"`
	Says    []string   `json:"says"`
	Assumed []string   `json:"assumed"`
	Type    fault.Type `json:"type"` // of C

	build  func(ctx context.Context) (fault.Product, Test, error)
	faults []fault.Fault // beside those of Faults
	claims []claim
}

// claim is what an audit of a case has to say.
type claim struct {
	text  string
	holds func(r *Report) bool
}

// CaseResult is a case and whether the audit says what its source does.
type CaseResult struct {
	Name    string           `json:"name"`
	Issue   string           `json:"issue"`
	Title   string           `json:"title"`
	Says    []string         `json:"says"`
	Assumed []string         `json:"assumed"`
	Claims  []SentenceResult `json:"claims"`
}

// SentenceResult is a sentence and whether it holds.
type SentenceResult struct {
	Text  string `json:"text"`
	Holds bool   `json:"holds"`
}

// Cases lists the cases, by name.
func Cases() []Case { return slices.Clone(cases) }

// CaseNamed returns a case, or an ErrCase.
func CaseNamed(name string) (*Case, error) {
	for i := range cases {
		if cases[i].Name == name {
			c := cases[i]
			return &c, nil
		}
	}
	return nil, sentinel.Errorf(ErrCase, "audit: no case %q", name)
}

// Product returns the product and the test of the case.
func (c *Case) Product(ctx context.Context) (fault.Product, Test, error) { return c.build(ctx) }

// Run audits the case. Of the options, Faults adds to those that are tried.
func (c *Case) Run(ctx context.Context, o Options) (*Report, error) {
	p, test, err := c.build(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: %s: %w", c.Name, err)
	}
	all := append(slices.Clone(c.faults), o.Faults...)
	for _, f := range Faults(c.Type, p) {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	o.Faults = all
	r, err := RunType(ctx, c.Type, p, test, o)
	if err != nil {
		return nil, err
	}
	r.Case = &CaseResult{Name: c.Name, Issue: c.Issue, Title: c.Title, Says: c.Says, Assumed: c.Assumed}
	for _, claim := range c.claims {
		r.Case.Claims = append(r.Case.Claims, SentenceResult{claim.text, claim.holds(r)})
	}
	return r, nil
}

// Reproduced reports whether all claims hold.
func (c *CaseResult) Reproduced() bool {
	return !slices.ContainsFunc(c.Claims, func(r SentenceResult) bool { return !r.Holds })
}

// Find returns what became of a fault, or nil if it was not tried.
func (r *Report) Find(f fault.Fault) *Trial {
	for i := range r.Faults {
		if r.Faults[i].Fault == f {
			return &r.Faults[i]
		}
	}
	return nil
}

// survives claims that a fault passes the test.
func survives(text string, f fault.Fault) claim {
	return claim{text, func(r *Report) bool { o := r.Find(f); return o != nil && o.Outcome == Survives }}
}

// caught claims that the test catches a fault.
func caught(text string, f fault.Fault) claim {
	return claim{text, func(r *Report) bool { o := r.Find(f); return o != nil && o.Outcome == Caught }}
}

// honestPass claims that correct kernels pass.
func honestPass() claim {
	return claim{"correct kernels pass", func(r *Report) bool { return r.FalseFailures == 0 }}
}
