package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	auditing "github.com/octavo-fp8/octavo/cmd/internal/audit"
	"github.com/octavo-fp8/octavo/cmd/internal/claim"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	verdicts "github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/audit"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	productFlags
	model    modelFlags
	test     tolerance
	size     auditing.Size
	recipe   evaluate.Recipe // of drawn operands
	kase     string
	list     bool
	typ      fault.Type
	source   source
	broken   fault.Fault
	faults   []fault.Fault
	worst    string
	operands string
	all      bool
	verdictFlags
}

// tolerance are the flags of a test.
type tolerance struct {
	rtol, atol, within  float64
	equalNaN, nanPasses bool
	defaults            string
	cosine              float64
	limits              [5]float64
}

// limits are the flags of measures that have one limit.
var limits = [len(tolerance{}.limits)]struct {
	name    string
	measure audit.Measure
	usage   string
}{
	{"calc-diff", audit.CalcDiff, "largest calc_diff"},
	{"relative-l2", audit.RelativeL2, "largest relative L2 norm of the error"},
	{"relative-max", audit.RelativeMax, "largest error over the largest element"},
	{"mean-error", audit.MeanError, "largest mean error"},
	{"relative-mean", audit.RelativeMean, "largest mean error over the mean magnitude"},
}

// source is a value of --reference.
type source struct {
	of    audit.Source
	model oracle.Model
}

func newAuditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:     "audit [IN...] --a A --b B | --generate MxNxK | --case NAME",
		Short:   "Say which faults of a kernel a test would let pass",
		Long:    helpOf("audit"),
		Example: examplesOf("audit"),
		Args:    productFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Files = args
			if f.list {
				return f.listCases(cmd)
			}
			in, err := f.inputs(cmd)
			if err != nil {
				return err
			}
			found, err := work(cmd, "the test was not audited", func(ctx context.Context, d *display.Display) (*auditing.Found, error) {
				d.Unit("faults")
				d.Unit("steps", "the reference")
				d.Unit("kernels", "correct kernels")
				found, err := in.Run(ctx, audit.Options{Faults: f.faults, Seed: f.size.Seed, Workers: int(min(f.workers, 1<<16)), Progress: d})
				d.Finish()
				if err != nil {
					return nil, err
				}
				return found, f.write(ctx, cmd, found)
			})
			if err != nil {
				return err
			}
			return f.report(cmd, found)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *auditFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.addFlags(cmd, "")
	flags.Var(&parsed[auditing.Size]{&f.size, "", "MxNxK", f.parseSize}, "generate", "draw operands of shapes [M, K] and [N, K]")
	flags.Var(oneOf{&parsed[oracle.Pattern]{&f.size.Pattern, "bell", "NAME", oracle.ParsePattern}, namesOf(oracle.Patterns())}, "pattern", "distribution of drawn operands")
	recipeFlag(cmd, &f.recipe, "fp8", vocabulary.Quantizing, "quantizes drawn operands, see octavo help recipes", vocabulary.Quantizing.Recipe)
	seedFlag(cmd, &f.size.Seed, "seed of drawn operands")
	flags.StringVar(&f.kase, "case", "", "`NAME` of a public case")
	flags.BoolVar(&f.list, "list", false, "list the public cases")
	choiceFlag(cmd, &f.typ, "type", "type of C", choice[fault.Type]{"f32", fault.Float32}, choice[fault.Type]{"bf16", fault.BFloat16}, choice[fault.Type]{"f16", fault.Float16})
	f.model.add(cmd)
	f.test.add(cmd)
	flags.Var(oneOf{&parsed[source]{&f.source, "exact", "NAME", parseSource}, append(claim.GPUs(), "exact", "canonical", "dequantized", "itself")}, "reference",
		"what the test compares with: exact, canonical, dequantized, itself or a GPU model")
	flags.Var(&parsed[fault.Fault]{&f.broken, "", "JSON", parseFault}, "reference-fault", "fault of the reference")
	flags.Var(&repeated[fault.Fault]{&f.faults, nil, "JSON", parseFault}, "fault", "try this fault alone or, with --case, this one too; may be given several times")
	flags.StringVar(&f.worst, "worst", "", "`FILE` to write the most wrong C that passes to, with its operands")
	flags.StringVar(&f.operands, "operands", "", "`FILE` to write the proposed operands to")
	flags.BoolVar(&f.all, "all", false, "list every fault, and not only the worst")
	f.verdictFlags.add(cmd, "what passes and what is caught")
}

func (t *tolerance) add(cmd *cobra.Command) {
	number := func(value *float64, name, usage string) {
		numberFlag(cmd, value, limited, name, usage)
	}
	number(&t.rtol, "rtol", "relative tolerance of each element (default 0)")
	number(&t.atol, "atol", "absolute tolerance of each element (default 0)")
	number(&t.within, "within", "share of elements that must be within (default 1)")
	number(&t.cosine, "cosine", "least cosine")
	for i, x := range limits {
		number(&t.limits[i], x.name, x.usage)
	}
	choiceFlag(cmd, &t.defaults, "default", "use the default tolerance of a function", choice[string]{"none", ""},
		choice[string]{"assert-close", "assert-close"}, choice[string]{"allclose", "allclose"}, choice[string]{"assert-allclose", "assert-allclose"})
	cmd.Flags().BoolVar(&t.equalNaN, "equal-nan", false, "NaN is equal to NaN")
	cmd.Flags().BoolVar(&t.nanPasses, "nan-passes", false, "NaN passes: the test fails where an error > limit")
}

func (f *auditFlags) parseSize(text string) (auditing.Size, error) {
	s := f.size
	return s, s.Parse(text)
}

func parseSource(name string) (source, error) {
	var s source
	if err := s.of.UnmarshalText([]byte(name)); err == nil && s.of != audit.Predicted {
		return s, nil
	}
	m, err := claim.ParseModel(name)
	return source{audit.Predicted, m.GPU}, err
}

func parseFault(text string) (fault.Fault, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	var f fault.Fault
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("want a fault as --json prints it: %w", err)
	}
	if f.Kind == fault.None {
		return f, errors.New("want a fault as --json prints it, with its kind")
	}
	return f, nil
}

// criteria are the conditions that the flags say.
func (t *tolerance) criteria(cmd *cobra.Command, typ fault.Type) (all []audit.Criterion, err error) {
	set := cmd.Flags().Changed
	closeness := audit.Criterion{Rtol: t.rtol, Atol: t.atol, Within: t.within}
	switch {
	case t.defaults != "" && (set("rtol") || set("atol")):
		return nil, usagef("--default has a tolerance: leave out --rtol and --atol")
	case t.defaults != "":
		closeness = map[string]audit.Criterion{"assert-close": audit.AssertClose(typ), "allclose": audit.AllClose(), "assert-allclose": audit.AssertAllClose()}[t.defaults]
		closeness.Within = t.within
	case (set("within") || set("equal-nan")) && !set("rtol") && !set("atol"):
		return nil, usagef("--within and --equal-nan are of --rtol, --atol or --default")
	}
	if t.within > 1 || set("within") && t.within == 0 {
		return nil, usagef("--within %v: want a share over 0 up to 1", t.within)
	}
	if t.defaults != "" || set("rtol") || set("atol") {
		closeness.EqualNaN = closeness.EqualNaN || t.equalNaN
		all = append(all, closeness)
	}
	if set("cosine") {
		if t.cosine > 1 {
			return nil, usagef("--cosine %v: want 1 at most", t.cosine)
		}
		all = append(all, audit.Criterion{Measure: audit.CosineDistance, Limit: 1 - t.cosine})
	}
	for i, x := range limits {
		if set(x.name) {
			all = append(all, audit.Criterion{Measure: x.measure, Limit: t.limits[i]})
		}
	}
	for i := range all {
		all[i].NaNPasses = t.nanPasses
	}
	if len(all) == 0 {
		return nil, usagef("want the tolerance of a test: --rtol and --atol, --default, --calc-diff or another")
	}
	return all, nil
}

// ofCases are the flags of what a case says for itself.
func ofCases() []string {
	ofProduct := flagNames(func(cmd *cobra.Command) { new(productFlags).addFlags(cmd, "") }, "a", "b")
	return slices.Concat(flagNames(new(tolerance).add), flagNames(new(modelFlags).add), ofProduct,
		[]string{"reference", "reference-fault", "type", "pattern", flagOfRecipes})
}

// ofFiles are the flags of operands that are read.
func ofFiles() []string {
	return flagNames(func(cmd *cobra.Command) { new(productFlags).addFlags(cmd, "") },
		"a", "b", "a-block", "b-block", "a-format", "b-format")
}

// inputs says what is audited, if the flags go together.
func (f *auditFlags) inputs(cmd *cobra.Command) (*auditing.Inputs, error) {
	set := cmd.Flags().Changed
	named := len(f.Files) > 0 || f.A.Codes != "" || f.B.Codes != ""
	generated := f.size.M > 0
	in := &auditing.Inputs{Product: f.Product, Case: f.kase, Size: f.size, Type: f.typ}
	if !generated {
		in.Size = auditing.Size{}
	} else if f.recipe.Name != "" {
		in.Size.A, in.Size.B = *f.recipe.Input.Recipe, *f.recipe.Weight.Recipe
	} else {
		in.Size.A, in.Size.B = scaling.Default(scaling.Input), scaling.Default(scaling.Weight)
	}
	switch {
	case f.kase != "" && (named || generated), named && generated:
		return nil, usagef("want operands, --generate or --case: one of them")
	case f.kase != "":
		if err := refuse(cmd, " is not for --case, which has operands and a test of its own", ofCases()...); err != nil {
			return nil, err
		}
		if _, err := audit.CaseNamed(f.kase); err != nil {
			return nil, usagef("--case %q: want one of %s%s", f.kase, strings.Join(caseNames(), ", "), vocabulary.Hint(f.kase, caseNames()))
		}
		return in, f.checkFiles()
	case generated && slices.ContainsFunc(ofFiles(), set):
		return nil, refuse(cmd, " is of operands that are read: --generate draws them", ofFiles()...)
	case !generated && (f.A.Codes == "" || f.B.Codes == ""):
		return nil, usagef("want operands by --a and --b, --generate or --case")
	case !generated && (set("pattern") || set(flagOfRecipes)):
		return nil, usagef("--pattern and --recipe are of what is drawn: add --generate")
	case f.source.of == audit.Itself && f.broken.Kind != fault.None:
		return nil, usagef("--reference-fault is of a reference that is not the kernel itself")
	}
	var err error
	if in.Claim, err = f.model.claim(); err != nil {
		return nil, err
	}
	if in.Test.Criteria, err = f.test.criteria(cmd, f.typ); err != nil {
		return nil, err
	}
	in.Test.Reference = audit.Reference{Of: f.source.of, Fault: f.broken, Kernel: oracle.Kernel{Model: f.source.model}}
	if f.source.of == audit.Predicted {
		in.Test.Reference.Kernel.Promote, in.Test.Reference.Kernel.Scales = f.model.Promote, f.model.Order
	}
	return in, f.checkFiles()
}

// checkFiles refuses to write over what is read.
func (f *auditFlags) checkFiles() error {
	for _, out := range []string{f.worst, f.operands, f.html} {
		if err := sameFiles(f.read(), out); err != nil {
			return err
		}
	}
	for _, two := range [][2]string{{f.worst, f.operands}, {f.worst, f.html}, {f.operands, f.html}} {
		if two[0] != "" && two[0] == two[1] {
			return usagef("two of --worst, --operands and --html are the same file")
		}
	}
	return nil
}

func caseNames() (names []string) {
	for _, c := range audit.Cases() {
		names = append(names, c.Name)
	}
	return names
}

// listCases lists the public cases.
func (f *auditFlags) listCases(cmd *cobra.Command) error {
	if err := alone(cmd, "list", "json"); err != nil {
		return err
	}
	cases := audit.Cases()
	if f.asJSON {
		return jsonout.Print(cmd.OutOrStdout(), cases)
	}
	w := verdicts.NewWriter(cmd.OutOrStdout())
	var lines []verdicts.Line
	for _, c := range cases {
		lines = append(lines, verdicts.Line{Name: c.Name, Value: c.Title}, verdicts.Line{Value: c.Issue})
	}
	verdicts.WriteTable(w, lines)
	return w.Flush()
}

// write writes the files that were asked for.
func (f *auditFlags) write(ctx context.Context, cmd *cobra.Command, found *auditing.Found) error {
	for _, wrong := range f.faults {
		if found.Find(wrong) == nil {
			return fmt.Errorf("the product cannot have the fault that %v", wrong)
		}
	}
	if f.worst != "" {
		switch err := found.WriteWorst(ctx, f.worst); {
		case errors.Is(err, auditing.ErrNone):
			note(cmd, "no fault passes: %s is not written", f.worst)
		case err != nil:
			return unwritten(f.worst, err)
		}
	}
	if f.operands == "" {
		return nil
	}
	return unwritten(f.operands, found.WriteOperands(f.operands))
}

// report prints what was found, and returns an error if a fault passes or a correct kernel
// fails.
func (f *auditFlags) report(cmd *cobra.Command, found *auditing.Found) error {
	text := func(w io.Writer) error { return found.WriteText(w, f.all) }
	if err := f.show(cmd, found.Report, text); err != nil {
		return err
	}
	switch {
	case found.Case != nil && !found.Case.Reproduced():
		return fmt.Errorf("%s: not all that was reported is found", found.Case.Name)
	case found.Case != nil:
		return nil
	case found.FalseFailures > 0: // what is worst is enough
		return fmt.Errorf("the test fails %s", textout.Count(found.FalseFailures, "correct kernel"))
	case found.Survive > 0:
		return fmt.Errorf("the test lets %s pass", textout.Count(found.Survive, "fault"))
	}
	return nil
}
