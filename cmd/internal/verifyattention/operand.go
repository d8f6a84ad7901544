package verifyattention

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Operand says which tensors make up Q, K or V.
type Operand struct {
	Values string      // name of a tensor of codes or BF16
	Scales string      // of codes: the name of a tensor, or a number; "": Values_scale_inv
	Format *fp8.Format // of codes of type U8
	Block  int         // tokens that share a scale; 0: what fits
}

// array is an operand that was read: its codes or values with heads before tokens, and a
// grid of scales.
type array struct {
	flag, name string
	rank       int
	extents
	codes    []byte
	format   fp8.Format
	bfloat16 []fp8.BFloat16

	scales []float32
	grid
}

// read reads an operand whose flags begin with a name.
//
// n is how many sequences there are of which its first dimension does not say how many; 0 is
// as many as that has.
func (o *Operand) read(s *operands.Source, l Layout, flag string, n int) (*array, error) {
	values, err := s.Find(o.Values)
	if err != nil {
		return nil, fmt.Errorf("%w: name %s with --%s", err, upper(flag), flag)
	}
	e, ok := l.of(values.Shape)
	if !ok {
		return nil, fmt.Errorf("tensor %q of shape %v is no %s: want %s or %s", values.Name,
			values.Shape, upper(flag), l.text(3), l.text(4))
	}
	if slices.Contains(e[:], 0) {
		return nil, fmt.Errorf("tensor %q of shape %v has no elements", values.Name, values.Shape)
	}
	a := &array{flag: flag, name: values.Name, rank: len(values.Shape), extents: e}
	if values.DType == safetensors.BF16 {
		if o.Scales != "" {
			return nil, fmt.Errorf("tensor %q is BF16, which has no scales: leave --%s-scales out",
				values.Name, flag)
		}
		all, err := safetensors.Elements[fp8.BFloat16](values.File, values.Name)
		a.bfloat16 = inOrder(l, all, e)
		return a, err
	}
	if err := o.readCodes(a, values, l); err != nil {
		return nil, err
	}
	return a, o.readScales(a, s, l, n)
}

// readCodes reads codes without their scales.
func (o *Operand) readCodes(a *array, values operands.Tensor, l Layout) error {
	one, err := operands.InMemory(safetensors.Tensor{Info: safetensors.Info{Name: "1",
		DType: safetensors.F32, Shape: []int{1}},
		Data: []byte{0, 0, 0x80, 0x3f}})
	if err != nil {
		return err
	}
	t, err := (&operands.Operand{Format: o.Format, Block: &tensor.Block{}}).Join(values, one)
	switch {
	case errors.Is(err, operands.ErrFloats):
		return fmt.Errorf("%w: want FP8 or BF16", err)
	case errors.Is(err, operands.ErrFormat) && o.Format == nil:
		return fmt.Errorf("%w: add --%s-format e4m3 or another", err, a.flag)
	case err != nil:
		return err
	}
	a.codes, a.format = inOrder(l, t.Codes, a.extents), t.Format
	return nil
}

// readScales reads scales.
func (o *Operand) readScales(a *array, s *operands.Source, l Layout, n int) error {
	name := o.Scales
	if x, err := strconv.ParseFloat(name, 32); err == nil {
		a.scales = []float32{float32(x)}
		return a.checkScale(textout.Quoted(name), 0, float32(x))
	}
	if name == "" {
		name = o.Values + operands.ScaleSuffix
	}
	t, err := s.Find(name)
	if err != nil {
		return fmt.Errorf("%w: name the scales of %s with --%s-scales, or say one as a number",
			err, upper(a.flag), a.flag)
	}
	a.scales, err = scaleValues(t)
	if err != nil {
		return err
	}
	for i, x := range a.scales {
		if err := a.checkScale(fmt.Sprintf("tensor %q", t.Name), i, x); err != nil {
			return err
		}
	}
	if len(a.scales) == 1 {
		return nil
	}
	if a.grid, err = a.gridOf(t, l, n, o.Block); err != nil {
		return err
	}
	a.scales = inOrder(l, a.scales, a.grid.extents)
	return nil
}

// scaleValues reads scales of a type that has them.
func scaleValues(t operands.Tensor) ([]float32, error) {
	switch t.DType {
	case safetensors.F32:
		return t.File.Float32s(t.Name)
	case safetensors.F8E8M0, safetensors.U8:
		data, err := t.File.Bytes(t.Name)
		r := make([]float32, len(data))
		for i, b := range data {
			r[i] = fp8.E8M0(b).Float32()
		}
		return r, err
	}
	return nil, fmt.Errorf("tensor %q is %s: scales are F32, F8_E8M0 or its bytes", t.Name, t.DType)
}

func (a *array) checkScale(of string, at int, x float32) error {
	if !(x >= 0) || math.IsInf(float64(x), 0) {
		return fmt.Errorf("%s: scale %d of %s is %v: scales are positive and finite", of, at,
			upper(a.flag), x)
	}
	return nil
}

// sequence returns the operand of sequence b, whose tokens are those of the given places in
// the file.
func (a *array) sequence(b int, places []place) attention.Operand {
	h, d := a.extents[1], a.extents[3]
	shape := [3]int{h, len(places), d}
	if a.codes == nil {
		return attention.Operand{BFloat16: gather(a.bfloat16, a.extents, places), Shape: shape}
	}
	t := &tensor.Tensor{Name: a.name, Format: a.format, Shape: shape[:],
		Codes: gather(a.codes, a.extents, places), Scales: a.scales}
	if len(a.scales) > 1 || len(places) == 0 {
		t.Scales, t.Block = a.scalesOf(b, places)
	}
	return attention.Operand{Codes: t}
}

// columns returns the first n columns of every row, as absorbed MLA takes V from K.
func (a *array) columns(n int, flag string) (*array, error) {
	d, parts := a.extents[3], max(a.grid.extents[3], 1)
	switch {
	case n > d:
		return nil, fmt.Errorf("--value-dim %d: rows of K have %d elements", n, d)
	case n%(d/parts) != 0 && parts > 1:
		return nil, fmt.Errorf("--value-dim %d is no multiple of the %d elements of K that share a scale",
			n, d/parts)
	}
	r := *a
	r.flag, r.extents[3] = flag, n
	r.codes, r.bfloat16 = firstColumns(a.codes, d, n), firstColumns(a.bfloat16, d, n)
	if parts > 1 {
		r.grid.extents[3] = parts * n / d
		r.scales = firstColumns(a.scales, parts, r.grid.extents[3])
	}
	return &r, nil
}

func firstColumns[T any](x []T, of, n int) (r []T) {
	for at := 0; at < len(x); at += of {
		r = append(r, x[at:at+n]...)
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
			return fmt.Errorf("tensor %q: the scale of head %d, token %d, column %d is 0 and the code "+
				"there %#02x",
				t.Name, row/tokens, row%tokens, col, c)
		}
	}
	return nil
}

func upper(flag string) string { return map[string]string{"q": "Q", "k": "K", "v": "V"}[flag] }
