package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Form and Version say what a verdict is.
const (
	Form    = "octavo selftest pack"
	Version = 1
)

// Outcome is what a verdict says.
type Outcome string

// The outcomes.
const (
	Pass       Outcome = "pass"
	Fail       Outcome = "fail"
	Incomplete Outcome = "incomplete" // stopped before its end, or an operator was left out
)

// Result is what a run of the pack found, here or by the script for PyTorch. Its JSON is
// stable.
type Result struct {
	Form        string     `json:"form"`
	Version     int        `json:"version"`
	Outcome     Outcome    `json:"verdict"`
	Size        string     `json:"size"` // burst, endurance, or files
	Seed        uint64     `json:"seed"`
	Seconds     float64    `json:"seconds"`
	Repetitions int        `json:"repetitions"` // of all operators
	Machine     Machine    `json:"machine"`
	Operators   []Operator `json:"operators"`
	Failure     *Failure   `json:"failure,omitempty"`
}

// Machine is what the operators ran on.
type Machine struct {
	Device     string   `json:"device"` // model of the processor or GPU
	System     string   `json:"system"`
	Software   string   `json:"software"`
	Processors int      `json:"processors,omitempty"`
	Levels     []string `json:"levels,omitempty"`
	Refused    []string `json:"refused,omitempty"` // levels that the system does not allow
}

// Operator is how often an operator gave what is right.
type Operator struct {
	Name        string `json:"name"`
	How         string `json:"how,omitempty"` // by what, where there are several ways
	Repetitions int    `json:"repetitions"`
	Elements    int64  `json:"elements"`           // compared, at all levels
	Checksum    string `json:"checksum,omitempty"` // of the first repetition
	Skipped     string `json:"skipped,omitempty"`  // why it was not run
}

// Failure is the first wrong result.
type Failure struct {
	Operator   string `json:"operator"`
	Level      string `json:"level,omitempty"`
	Seed       uint64 `json:"seed"`
	Repetition int    `json:"repetition"`
	Place      string `json:"place"`
	Expected   string `json:"expected"`
	Got        string `json:"got"`
}

func (f *Failure) String() string {
	at := ""
	if f.Level != "" {
		at = " at level " + f.Level
	}
	return fmt.Sprintf("%s%s, seed %d, repetition %d: %s: got %s, want %s",
		f.Operator, at, f.Seed, f.Repetition, f.Place, f.Got, f.Expected)
}

func (r *runner) newResult() *Result {
	m := machine.Current()
	v := &Result{Form: Form, Version: Version, Outcome: Incomplete, Size: r.size.Name, Seed: r.Seed,
		Machine: Machine{Device: m.Processor(), System: m.OS + "/" + m.Arch,
			Software: "octavo " + m.Build.String() + ", " + m.Go, Processors: m.GOMAXPROCS}}
	for _, l := range r.levels {
		v.Machine.Levels = append(v.Machine.Levels, l.String())
		if l == cpu.AMX && !cpu.AMXPermitted() {
			v.Machine.Refused = append(v.Machine.Refused, l.String())
		}
	}
	for _, o := range r.operators {
		v.Operators = append(v.Operators, Operator{Name: o.name})
	}
	return v
}

// WriteText writes the verdict for people.
func (v *Result) WriteText(w io.Writer) error {
	head := fmt.Sprintf("%s, %s, %s", v.Machine.Device, v.Machine.System, v.Machine.Software)
	if len(v.Machine.Levels) > 0 {
		head += fmt.Sprintf("; levels %s on %d processors", strings.Join(v.Machine.Levels, ", "), v.Machine.Processors)
	}
	head += fmt.Sprintf("; %s, seed %d, %d repetitions, %.1f s", v.Size, v.Seed, v.Repetitions, v.Seconds)
	textout.Paragraph(w, textout.Line(head), "")
	for _, l := range v.Machine.Refused {
		fmt.Fprintf(w, "the system refuses %s: its products were those of the level below\n", textout.Line(l))
	}
	t := textout.NewTable(w)
	fmt.Fprintln(t, "operator\trepetitions\telements\tchecksum\t")
	for _, o := range v.Operators {
		note := o.Checksum
		if o.Skipped != "" {
			note = "skipped: " + o.Skipped
		} else if o.How != "" {
			note += " by " + o.How
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", textout.Line(o.Name), o.Repetitions, o.Elements, textout.Line(note))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	last := "PASS: every result is the right one"
	switch {
	case v.Failure != nil:
		last = "FAIL: " + textout.Line(v.Failure.String())
	case v.Outcome != Pass:
		last = "INCOMPLETE: what was run is right"
	}
	if v.Failure == nil && len(v.Machine.Refused) > 0 {
		last += "; not judged: " + textout.Line(strings.Join(v.Machine.Refused, ", "))
	}
	_, err := fmt.Fprintln(w, last)
	return err
}

// ErrVerdict is what is wrong with a file that is no verdict.
var ErrVerdict = errors.New("this is no verdict of octavo selftest")

// mostVerdict is more bytes than a verdict has.
const mostVerdict = 1 << 20

// Read reads a verdict and compares its checksums with those that follow from its seed. The
// error is [ErrVerdict] if it is none, or one that contradicts itself or the checksums.
func Read(r io.Reader) (*Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostVerdict+1))
	if err != nil {
		return nil, err
	}
	v := new(Result)
	if err := json.Unmarshal(data, v); err != nil || len(data) > mostVerdict {
		return nil, wrong("it is not its JSON")
	}
	if v.Form != Form || v.Version != Version {
		return nil, wrong("its form is %.40q, version %d: want %q, version %d", v.Form, v.Version, Form, Version)
	}
	s, ok := sizeOf(v.Size)
	if !ok {
		return nil, wrong("its size is %.40q", v.Size)
	}
	return v, v.compare(s)
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrVerdict, fmt.Sprintf(format, args...))
}

// compare says what a verdict has that it cannot have.
func (v *Result) compare(s size) error {
	operators := operatorsOf(s)
	if len(v.Operators) != len(operators) {
		return wrong("it has %d operators, not %d", len(v.Operators), len(operators))
	}
	whole := v.Failure == nil
	for i, o := range operators {
		got := v.Operators[i]
		if got.Name != o.name {
			return wrong("operator %d is %.60q: want %s", i, got.Name, o.name)
		}
		whole = whole && got.Repetitions > 0 && got.Skipped == ""
		if got.Repetitions == 0 {
			continue
		}
		if want, ok := v.want(o, s); ok && got.Checksum != want {
			return wrong("the checksum of %s is %.40q: with seed %d it is %s", o.name, got.Checksum, v.Seed, want)
		}
	}
	switch {
	case v.Outcome == Pass && !whole:
		return wrong(`it says "pass" and has a failure or an operator that was not run`)
	case v.Outcome == Fail && v.Failure == nil, v.Outcome == Incomplete && v.Failure != nil:
		return wrong("it says %q, which does not go with what it says of a failure", v.Outcome)
	case v.Outcome != Pass && v.Outcome != Fail && v.Outcome != Incomplete:
		return wrong("it says %.40q", v.Outcome)
	}
	return nil
}

// want returns the checksum of an operator's first repetition, where it is known without
// running it.
func (v *Result) want(o operator, s size) (string, bool) {
	if strings.HasPrefix(o.name, "rounded/") {
		return recorded(v.Seed, 0, s, o.name)
	}
	return o.prepare(keyOf(v.Seed, o.name, 0), s).checksum(), true
}

// operatorsOf returns the operators of a size.
func operatorsOf(s size) (all []operator) {
	if s.GPU {
		for _, p := range gpuProducts {
			all = append(all, p.operator())
		}
		all = append(all, gpuGrouped)
		for _, a := range gpuAttentions {
			all = append(all, a.operator())
		}
		return append(append(all, gpuCasts()...), gated, normed)
	}
	for _, p := range products {
		all = append(all, p.operator())
	}
	all = append(all, grouped...)
	for _, a := range attentions {
		all = append(all, a.operator())
	}
	all = append(all, casts()...)
	for _, q := range quantizations {
		all = append(all, q.operator())
	}
	return append(append(all, gated, normed), rounded...)
}

// name is that of a format in names of operators.
func name(f fp8.Format) string { return strings.ToLower(f.String()) }
