package verifyattention

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Inputs says what to read.
type Inputs struct {
	File     string // safetensors with what has no file of its own; "": there is none
	Got      string // likewise with the results; "": File
	Q, K, V  Operand
	ValueDim int // V is so many columns of K; 0: it has a name
	Out      string
	LSE      string // "": lse, if there is one
	Sinks    string // "": there are none
	BFloat16 bool   // arrays of type <u2 are bfloat16
	Layout   Layout

	Scale float32
	Mask  attention.Mask
	Keys  int // that count of each sequence; 0: all
	Lengths
}

// task is what is judged: sequences, each with what the kernel made of it.
type task struct {
	problems []*attention.Problem
	got      []flash.Got
	out      flash.Cast
	want     []*flash.Result[float64] // of what is looked at

	queries [][]place // where in the output sequences are
	heads   int
	tokens  [2]int // entries and tokens of Q in the file
}

// read reads everything.
func (i *Inputs) read() (*task, error) {
	in, err := open(i.File, i.BFloat16)
	if err != nil {
		return nil, err
	}
	defer in.File.Close()
	t, err := i.readProblems(in)
	if err != nil {
		return nil, of(i.File, err)
	}
	got, where := in, i.File
	if i.Got != "" {
		where = i.Got
		if got, err = open(i.Got, i.BFloat16); err != nil {
			return nil, err
		}
		defer got.File.Close()
	}
	if err := i.readResults(t, got); err != nil {
		return nil, of(where, err)
	}
	return t, nil
}

// open opens a file, of which there may be none.
func open(path string, bfloat16 bool) (*operands.Source, error) {
	s := &operands.Source{BFloat16: bfloat16}
	if path == "" {
		return s, nil
	}
	file, err := safetensors.Open(path)
	s.File = file
	return s, err
}

// of names the file that an error is about, unless it is about another.
func of(path string, err error) error {
	var system *fs.PathError
	if path == "" || errors.As(err, &system) {
		return err
	}
	if errors.Is(err, operands.ErrName) {
		err = fmt.Errorf("%w; octavo inspect lists the tensors", err)
	}
	return fmt.Errorf("%s: %w", textout.Name(path), err)
}

func (i *Inputs) readProblems(s *operands.Source) (*task, error) {
	lengths, err := i.Lengths.read(s)
	if err != nil {
		return nil, err
	}
	q, err := i.Q.read(s, i.Layout, "q", lengths.count(true))
	if err != nil {
		return nil, err
	}
	k, err := i.K.read(s, i.Layout, "k", lengths.count(false))
	if err != nil {
		return nil, err
	}
	v := k
	if i.ValueDim > 0 {
		v, err = k.columns(i.ValueDim, "v")
	} else {
		v, err = i.V.read(s, i.Layout, "v", lengths.count(false))
	}
	if err != nil {
		return nil, err
	}
	t := &task{heads: q.extents[1], tokens: [2]int{q.extents[0], q.extents[2]}}
	if t.queries, err = lengths.ofQueries(q); err != nil {
		return nil, err
	}
	var places [2][][]place
	for n, x := range []*array{k, v} {
		if places[n], err = lengths.ofKeys(x, i.Keys); err != nil {
			return nil, err
		}
		if len(places[n]) != len(t.queries) {
			return nil, fmt.Errorf("tensor %q has %d sequences and tensor %q %d",
				x.name, len(places[n]), q.name, len(t.queries))
		}
	}
	sinks, err := i.readSinks(s, q.extents[1])
	if err != nil {
		return nil, err
	}
	for b := range t.queries {
		p := &attention.Problem{Q: q.sequence(b, t.queries[b]), K: k.sequence(b, places[0][b]),
			V: v.sequence(b, places[1][b]), Scale: i.Scale, Mask: i.Mask, Sinks: sinks}
		if err := p.Check(); err != nil {
			return nil, err
		}
		for _, o := range []attention.Operand{p.Q, p.K, p.V} {
			if err := checkZeros(o); err != nil {
				return nil, err
			}
		}
		t.problems = append(t.problems, p)
	}
	return t, nil
}

func (i *Inputs) readSinks(s *operands.Source, heads int) ([]float32, error) {
	if i.Sinks == "" {
		return nil, nil
	}
	t, err := s.Find(i.Sinks)
	if err != nil {
		return nil, err
	}
	sinks, _, err := floats(t)
	if err == nil && len(sinks) != heads {
		err = fmt.Errorf("tensor %q of shape %v holds %d sinks: want one for each of %d query heads",
			t.Name, t.Shape, len(sinks), heads)
	}
	return sinks, err
}

// readResults reads out and, if there are some, log-sum-exps.
func (i *Inputs) readResults(t *task, s *operands.Source) error {
	found, err := s.Find(i.Out)
	if err != nil {
		return fmt.Errorf("%w: name the kernel's output with --out", err)
	}
	want := extents{t.tokens[0], t.heads, t.tokens[1], t.problems[0].Sizes().ValueDim}
	if e, ok := i.Layout.of(found.Shape); !ok || e != want {
		rank := 4
		if want[0] == 1 {
			rank = 3
		}
		return fmt.Errorf("tensor %q has shape %v: the output of Q, K and V is %s, %v",
			found.Name, found.Shape, i.Layout.text(rank), i.Layout.shape(want, rank))
	}
	out, cast, err := floats(found)
	if err != nil {
		return err
	}
	lse, err := i.readLSE(s, want)
	if err != nil {
		return err
	}
	out, t.out = inOrder(i.Layout, out, want), cast
	rows := want
	rows[3] = 1
	for _, places := range t.queries {
		got := flash.Got{Out: gather(out, want, places)}
		if lse != nil {
			got.LSE = gather(lse, rows, places)
		}
		t.got = append(t.got, got)
	}
	return nil
}

// readLSE returns log-sum-exps with heads before queries, as FlashAttention has them in
// whatever layout, or in the order of the layout where only that fits.
func (i *Inputs) readLSE(s *operands.Source, out extents) ([]float32, error) {
	name := i.LSE
	if name == "" {
		name = "lse"
		if _, ok := s.File.Info(name); !ok {
			return nil, nil
		}
	}
	t, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	want := []int{out[0], out[1], out[2]}
	shape := slices.Clone(t.Shape)
	for len(shape) < 3 {
		shape = append([]int{1}, shape...)
	}
	if slices.Equal(shape, []int{out[0], out[1], out[2], 1}) {
		shape = shape[:3]
	}
	turned := slices.Equal(shape, []int{out[0], out[2], out[1]})
	if !slices.Equal(shape, want) && !turned {
		if out[0] == 1 {
			want = want[1:]
		}
		return nil, fmt.Errorf("tensor %q has shape %v: log-sum-exps are %v, heads and queries", t.Name,
			t.Shape, want)
	}
	lse, cast, err := floats(t)
	switch {
	case err != nil:
		return nil, err
	case cast != flash.Float32:
		return nil, fmt.Errorf("tensor %q is %s: log-sum-exps are F32", t.Name, t.DType)
	case slices.Equal(shape, want):
		return lse, nil
	}
	return inOrder(BSHD, lse, extents{out[0], out[1], out[2], 1}), nil
}

// floats reads numbers, and says what they were rounded to.
func floats(t operands.Tensor) (r []float32, out flash.Cast, err error) {
	switch t.DType {
	case safetensors.F32:
		r, err = t.File.Float32s(t.Name)
		return r, flash.Float32, err
	case safetensors.BF16:
		all, err := safetensors.Elements[fp8.BFloat16](t.File, t.Name)
		for _, x := range all {
			r = append(r, x.Float32())
		}
		return r, flash.BFloat16, err
	case safetensors.F16:
		all, err := safetensors.Elements[float16.Float16](t.File, t.Name)
		for _, x := range all {
			r = append(r, x.Float32())
		}
		return r, flash.Float16, err
	case safetensors.U16:
		return nil, 0, fmt.Errorf("tensor %q is U16: --npy-bf16 says that <u2 is bfloat16", t.Name)
	}
	return nil, 0, fmt.Errorf("tensor %q is %s: want F32, BF16 or F16", t.Name, t.DType)
}
