package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/textout"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Attention says what to read of a batch of attention and of what a kernel made of it.
type Attention struct {
	File     string // safetensors with what has no file of its own; "": there is none
	Got      string // likewise with the results; "": File
	Q, K, V  Array
	ValueDim int // V is so many columns of K; 0: it has a name
	Out      string
	LSE      string // "": lse, if there is one
	Sinks    string // "": there are none
	BFloat16 bool   // arrays of type <u2 are bfloat16

	// TokensFirst says that arrays are [batch, tokens, heads, dim], as FlashAttention has
	// them, and not [batch, heads, tokens, dim]. Without a batch the first is left out.
	TokensFirst bool

	Scale float32
	Mask  attention.Mask
	Keys  int // that count of each sequence; 0: all
	Lengths
}

// Run reads everything and judges it. When ctx ends it returns an error.
func (i *Attention) Run(ctx context.Context, c judged.Claim, o judged.Options) (*judged.Verdict, error) {
	in, err := openSource(i.File, i.BFloat16)
	if err != nil {
		return nil, err
	}
	defer in.File.Close()
	got := in
	if i.Got != "" {
		if got, err = openSource(i.Got, i.BFloat16); err != nil {
			return nil, err
		}
		defer got.File.Close()
	}
	return i.Judge(ctx, in, got, c, o)
}

// Judge is [Attention.Run] of what two open files hold, the second the results.
func (i *Attention) Judge(ctx context.Context, in, got *operands.Source, c judged.Claim, o judged.Options) (*judged.Verdict, error) {
	b, err := i.readBatch(in)
	if err != nil {
		return nil, about(i.File, err)
	}
	if err := i.findResults(b, got); err != nil {
		return nil, about(cmp.Or(i.Got, i.File), err)
	}
	switch b.out.DType {
	case safetensors.BF16:
		return checkBatch[fp8.BFloat16](ctx, b, c, o)
	case safetensors.F16:
		return checkBatch[float16.Float16](ctx, b, c, o)
	}
	return checkBatch[float32](ctx, b, c, o)
}

// Check refuses names and numbers of keys that do not go together.
func (i *Attention) Check() error {
	switch {
	case i.Lengths.Keys != "" && i.Pages != "":
		return errors.New("--cu-seqlens-k packs K and V, and --block-table has pages of them: leave one out")
	case i.Pages != "" && i.Used == "":
		return errors.New("--block-table says which pages of keys there are: name how many keys count with --seqlens-k")
	case i.Used != "" && i.Keys > 0:
		return errors.New("--keys is of all sequences and --seqlens-k of each: leave one out")
	}
	return nil
}

// openSource opens a file, of which there may be none.
func openSource(path string, bfloat16 bool) (*operands.Source, error) {
	s := &operands.Source{BFloat16: bfloat16}
	if path == "" {
		return s, nil
	}
	file, err := safetensors.Open(path)
	s.File = file
	return s, err
}

// about names the file that an error is about, unless it is about another.
func about(path string, err error) error {
	var system *fs.PathError
	if path == "" || errors.As(err, &system) {
		return err
	}
	if errors.Is(err, operands.ErrName) {
		err = fmt.Errorf("%w; octavo inspect lists the tensors", err)
	}
	return fmt.Errorf("%s: %w", textout.Name(path), err)
}

// batch is what was read, but for the output.
type batch struct {
	problems []*attention.Problem
	queries  [][]place // of each sequence, in Q and in the output
	q        shape

	out, lse           operands.Tensor
	outShape, lseShape shape // without log-sum-exps lse has no file
}

func (i *Attention) readBatch(s *operands.Source) (*batch, error) {
	lengths, err := i.Lengths.read(s)
	if err != nil {
		return nil, err
	}
	q, err := i.Q.read(s, i.TokensFirst, "q", count(lengths.queries, nil))
	if err != nil {
		return nil, err
	}
	n := count(lengths.keys, lengths.pages)
	k, err := i.K.read(s, i.TokensFirst, "k", n)
	if err != nil {
		return nil, err
	}
	var v *array
	if i.ValueDim > 0 {
		v, err = k.columns(i.ValueDim)
	} else {
		v, err = i.V.read(s, i.TokensFirst, "v", n)
	}
	if err != nil {
		return nil, err
	}
	b := &batch{q: q.shape}
	if b.queries, err = q.sequences(lengths.queries, i.Lengths.Queries); err != nil {
		return nil, err
	}
	var places [2][][]place
	for n, x := range []*array{k, v} {
		if places[n], err = lengths.ofKeys(x, i.Keys); err != nil {
			return nil, err
		}
		if len(places[n]) != len(b.queries) {
			return nil, fmt.Errorf("tensor %q has %d sequences and tensor %q %d", x.name, len(places[n]), q.name, len(b.queries))
		}
	}
	sinks, err := i.readSinks(s, q.extents[1])
	if err != nil {
		return nil, err
	}
	for n := range b.queries {
		p := &attention.Problem{Q: q.sequence(n, b.queries[n]), K: k.sequence(n, places[0][n]), V: v.sequence(n, places[1][n]),
			Scale: i.Scale, Mask: i.Mask, Sinks: sinks}
		if err := p.Check(); err != nil {
			return nil, err
		}
		for _, o := range []attention.Operand{p.Q, p.K, p.V} {
			if err := checkZeros(o); err != nil {
				return nil, err
			}
		}
		b.problems = append(b.problems, p)
	}
	return b, nil
}

func (i *Attention) readSinks(s *operands.Source, heads int) ([]float32, error) {
	if i.Sinks == "" {
		return nil, nil
	}
	t, err := s.Find(i.Sinks)
	if err != nil {
		return nil, err
	}
	if n := t.Len(); n != int64(heads) {
		return nil, fmt.Errorf("tensor %q of shape %v holds %d sinks: want one for each of %d query heads", t.Name, t.Shape, n, heads)
	}
	if !isFloat(t.DType) {
		return nil, noFloats(t)
	}
	return t.File.Float32s(t.Name)
}

// isFloat reports whether a type is one of results.
func isFloat(d safetensors.DType) bool {
	return d == safetensors.F32 || d == safetensors.BF16 || d == safetensors.F16
}

// noFloats refuses a type of results.
func noFloats(t operands.Tensor) error {
	if t.DType == safetensors.U16 {
		return fmt.Errorf("tensor %q is U16: --npy-bf16 says that <u2 is bfloat16", t.Name)
	}
	return fmt.Errorf("tensor %q is %s: want F32, BF16 or F16", t.Name, t.DType)
}

// converted reads a tensor into elements of another type.
func converted[F safetensors.Element, T any](t operands.Tensor, convert func(F) T) (r []T, err error) {
	all, err := safetensors.Elements[F](t.File, t.Name)
	for _, x := range all {
		r = append(r, convert(x))
	}
	return r, err
}

// findResults finds the output and, if there are some, log-sum-exps.
func (i *Attention) findResults(b *batch, s *operands.Source) (err error) {
	if b.out, err = s.Find(i.Out); err != nil {
		return fmt.Errorf("%w: name the kernel's output with --out", err)
	}
	want := b.q
	want.extents[3] = b.problems[0].Sizes().ValueDim
	got, ok := newShape(b.out.Shape, i.TokensFirst)
	if !ok || got.extents != want.extents {
		if want.rank = 4; want.extents[0] == 1 {
			want.rank = 3
		}
		return fmt.Errorf("tensor %q has shape %v: the output of Q, K and V is %s, %v", b.out.Name, b.out.Shape, want.names(), want.dims())
	}
	b.outShape = got
	if !isFloat(b.out.DType) {
		return noFloats(b.out)
	}
	return i.findLSE(b, s)
}

// findLSE finds log-sum-exps with heads before queries, as FlashAttention has them in whatever
// layout, or in the order of the layout where only that fits.
func (i *Attention) findLSE(b *batch, s *operands.Source) (err error) {
	name := i.LSE
	if name == "" {
		name = "lse"
		if _, ok := s.File.Info(name); !ok {
			return nil
		}
	}
	if b.lse, err = s.Find(name); err != nil {
		return err
	}
	rows := shape{extents: b.outShape.extents, rank: 4}
	rows.extents[3] = 1
	turned := rows
	turned.tokensFirst = true
	dims := slices.Clone(b.lse.Shape)
	if len(dims) < 4 {
		dims = append(dims, 1)
	}
	for len(dims) < 4 {
		dims = append([]int{1}, dims...)
	}
	switch {
	case slices.Equal(dims, rows.dims()):
		b.lseShape = rows
	case slices.Equal(dims, turned.dims()):
		b.lseShape = turned
	default:
		want := rows.dims()[:3]
		if want[0] == 1 {
			want = want[1:]
		}
		return fmt.Errorf("tensor %q has shape %v: log-sum-exps are %v, heads and queries", name, b.lse.Shape, want)
	}
	if b.lse.DType != safetensors.F32 {
		return fmt.Errorf("tensor %q is %s: log-sum-exps are F32", name, b.lse.DType)
	}
	return nil
}

// checkBatch reads the results as the type that they have, and has them judged.
func checkBatch[T gemm.Output](ctx context.Context, b *batch, c judged.Claim, o judged.Options) (*judged.Verdict, error) {
	out, err := safetensors.Elements[T](b.out.File, b.out.Name)
	if err != nil {
		return nil, err
	}
	var lse []float32
	if b.lse.File != nil {
		if lse, err = b.lse.File.Float32s(b.lse.Name); err != nil {
			return nil, err
		}
	}
	var results []judged.Result[T]
	for n, p := range b.problems {
		r := judged.Result[T]{Problem: p, Out: gather(out, b.outShape, b.queries[n])}
		if lse != nil {
			r.LSE = gather(lse, b.lseShape, b.queries[n])
		}
		results = append(results, r)
	}
	return judged.Check(ctx, results, c, o)
}
