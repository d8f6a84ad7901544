package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Array says which tensors make up Q, K or V.
type Array struct {
	Values string      // name of a tensor of codes or BF16
	Scales string      // of codes: the name of a tensor, or a number; "": Values_scale_inv
	Format *fp8.Format // of codes of type U8
	Packed bool        // codes of type U8 lie side by side
	Block  int         // tokens that share a scale; 0: what fits
}

// shape is how an array lies in a file.
type shape struct {
	extents     [4]int // batch, heads, tokens, dim
	rank        int    // 3 without a batch
	tokensFirst bool
}

// newShape reads three or four dimensions.
func newShape(dims []int, tokensFirst bool) (s shape, ok bool) {
	s = shape{rank: len(dims), tokensFirst: tokensFirst}
	if s.rank < 3 || s.rank > 4 {
		return s, false
	}
	e := [4]int{1}
	copy(e[4-s.rank:], dims)
	s.extents = s.order(e)
	return s, true
}

// order puts heads and tokens in the order of the file, or those of the file in ours.
func (s shape) order(e [4]int) [4]int {
	if s.tokensFirst {
		e[1], e[2] = e[2], e[1]
	}
	return e
}

// dims is what newShape reads.
func (s shape) dims() []int {
	e := s.order(s.extents)
	return e[4-s.rank:]
}

// names names the dimensions.
func (s shape) names() string {
	names := []string{"batch", "heads", "tokens", "dim"}
	if s.tokensFirst {
		names[1], names[2] = names[2], names[1]
	}
	return "[" + strings.Join(names[4-s.rank:], ", ") + "]"
}

// row is the number of a row of the last dimension.
func (s shape) row(entry, head, token int) int {
	if s.tokensFirst {
		return (entry*s.extents[2]+token)*s.extents[1] + head
	}
	return (entry*s.extents[1]+head)*s.extents[2] + token
}

// gather returns [heads, tokens, dim] of the tokens of some places.
func gather[T any](x []T, s shape, places []place) []T {
	d := s.extents[3]
	r := make([]T, 0, s.extents[1]*len(places)*d)
	for h := range s.extents[1] {
		for _, p := range places {
			r = append(r, x[s.row(p.entry, h, p.token)*d:][:d]...)
		}
	}
	return r
}

// array is an operand that was read, and its grid of scales.
type array struct {
	shape
	flag, name string
	codes      []byte
	format     fp8.Format
	bfloat16   []fp8.BFloat16

	scales []float32
	grid   grid
	outer  tensor.Outer // one, or none
}

// read reads an operand whose flags begin with a name.
//
// n is how many sequences there are of which its first dimension does not say how many; 0 is
// as many as that has.
func (o *Array) read(s *operands.Source, tokensFirst bool, flag string, n int) (*array, error) {
	values, err := s.Find(o.Values)
	if err != nil {
		return nil, fmt.Errorf("%w: name %s with --%s", err, strings.ToUpper(flag), flag)
	}
	a := &array{flag: flag, name: values.Name}
	var ok bool
	if a.shape, ok = newShape(values.Shape, tokensFirst); !ok {
		return nil, fmt.Errorf("tensor %q of shape %v is no %s: want %s or %s", values.Name, values.Shape, strings.ToUpper(flag),
			shape{rank: 3, tokensFirst: tokensFirst}.names(), shape{rank: 4, tokensFirst: tokensFirst}.names())
	}
	if slices.Contains(values.Shape, 0) {
		return nil, fmt.Errorf("tensor %q of shape %v has no elements", values.Name, values.Shape)
	}
	if values.DType == safetensors.BF16 {
		if o.Scales != "" {
			return nil, fmt.Errorf("tensor %q is BF16, which has no scales: leave --%s-scales out", values.Name, flag)
		}
		a.bfloat16, err = safetensors.Elements[fp8.BFloat16](values.File, values.Name)
		return a, err
	}
	t, err := readCodes(&operands.Operand{Format: o.Format, Packed: o.Packed}, values, flag+"-", "FP8 or BF16")
	if err != nil {
		return nil, err
	}
	if t.Shape[len(t.Shape)-1] != values.Shape[len(values.Shape)-1] {
		if a.shape, ok = newShape(t.Shape, tokensFirst); !ok {
			return nil, fmt.Errorf("tensor %q of shape %v is no %s", values.Name, t.Shape, strings.ToUpper(flag))
		}
	}
	a.codes, a.format = t.Codes, t.Format
	if err := o.readScales(a, s, n); err != nil {
		return nil, err
	}
	a.outer, err = readOuter(s, values.Name)
	return a, err
}

// readCodes reads codes, one a byte, of which the names of flags begin with a prefix.
func readCodes(o *operands.Operand, t operands.Tensor, prefix, want string) (*tensor.Tensor, error) {
	codes, err := o.ReadCodes(t)
	if err == nil {
		whole := *codes
		whole.Scales = []float32{1}
		err = whole.CheckCodes()
	}
	switch {
	case errors.Is(err, operands.ErrFloats):
		return nil, fmt.Errorf("%w: want %s", err, want)
	case errors.Is(err, operands.ErrFormat) && o.Format == nil:
		return nil, fmt.Errorf("%w: add --%sformat e4m3 or another", err, prefix)
	}
	return codes, err
}

// readOuter reads the outer scale of codes, if there is one, whose name follows from theirs.
func readOuter(s *operands.Source, codes string) (o tensor.Outer, err error) {
	for _, suffix := range []string{operands.OuterSuffix, "_outer", operands.OuterDivisorSuffix} {
		t, err := s.Find(codes + suffix)
		if err != nil {
			continue
		}
		if t.Len() != 1 || t.DType != safetensors.F32 || !o.None() {
			return o, fmt.Errorf("tensor %q is %s of shape %v: want one outer scale of tensor %q, F32", t.Name, t.DType, t.Shape, codes)
		}
		if o.Scales, err = t.File.Float32s(t.Name); err != nil {
			return o, err
		}
		o.Divide = suffix == operands.OuterDivisorSuffix
	}
	return o, nil
}

// readScales reads scales.
func (o *Array) readScales(a *array, s *operands.Source, n int) error {
	name := o.Scales
	if x, err := strconv.ParseFloat(name, 32); err == nil {
		a.scales = []float32{float32(x)}
		return a.checkScales(textout.Quoted(name))
	}
	if name == "" {
		name = o.Values + operands.ScaleSuffix
	}
	t, err := s.Find(name)
	if err != nil {
		return fmt.Errorf("%w: name the scales of %s with --%s-scales, or say one as a number", err, strings.ToUpper(a.flag), a.flag)
	}
	if a.scales, _, err = (&operands.Operand{}).ReadScales(t); err != nil {
		return err
	}
	if err = a.checkScales(fmt.Sprintf("tensor %q", t.Name)); err == nil && len(a.scales) > 1 {
		a.grid, err = a.gridOf(t, n, o.Block)
	}
	return err
}

func (a *array) checkScales(of string) error {
	for i, x := range a.scales {
		if !(x >= 0) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("%s: scale %d of %s is %v: scales are positive and finite", of, i, strings.ToUpper(a.flag), x)
		}
	}
	return nil
}

// sequence returns the operand of sequence b, whose tokens are those of the given places in
// the file.
func (a *array) sequence(b int, places []place) attention.Operand {
	dims := [3]int{a.extents[1], len(places), a.extents[3]}
	if a.codes == nil {
		return attention.Operand{BFloat16: gather(a.bfloat16, a.shape, places), Shape: dims}
	}
	t := &tensor.Tensor{Name: a.name, Format: a.format, Shape: dims[:], Codes: gather(a.codes, a.shape, places), Scales: a.scales, Outer: a.outer}
	if len(a.scales) > 1 || len(places) == 0 {
		t.Scales, t.Block = a.scalesOf(b, places)
	}
	return attention.Operand{Codes: t}
}

// columns returns the first n columns of every row of K, as absorbed MLA takes V from it.
func (a *array) columns(n int) (*array, error) {
	d, parts := a.extents[3], max(a.grid.extents[3], 1)
	switch {
	case n > d:
		return nil, fmt.Errorf("--value-dim %d: rows of K have %d elements", n, d)
	case n%(d/parts) != 0 && parts > 1:
		return nil, fmt.Errorf("--value-dim %d is no multiple of the %d elements of K that share a scale", n, d/parts)
	}
	r := *a
	r.flag, r.extents[3] = "v", n
	r.codes, r.bfloat16 = firstColumns(a.codes, d, n), firstColumns(a.bfloat16, d, n)
	if parts > 1 {
		r.grid.extents[3] = parts * n / d
		r.scales = firstColumns(a.scales, parts, r.grid.extents[3])
	}
	return &r, nil
}

func firstColumns[T any](x []T, of, n int) (r []T) {
	for row := range slices.Chunk(x, of) {
		r = append(r, row[:n]...)
	}
	return r
}

// checkZeros refuses a scale of 0 whose codes are not all 0.
func checkZeros(o attention.Operand) error {
	t := o.Codes
	if t == nil || !slices.Contains(t.Scales, 0) {
		return nil
	}
	_, tokens, d := o.Dims()
	for i, c := range t.Codes {
		row, col := i/d, i%d
		if t.Scale(row, col) == 0 && t.Format.Float32(c) != 0 {
			return fmt.Errorf("tensor %q: the scale of head %d, token %d, column %d is 0 and the code there %#02x",
				t.Name, row/tokens, row%tokens, col, c)
		}
	}
	return nil
}
