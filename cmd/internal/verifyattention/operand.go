package verifyattention

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle/operands"
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

// array is an operand that was read: its codes or values with heads before tokens.
type array struct {
	flag, name string
	rank       int
	extents
	codes    []byte
	format   fp8.Format
	bfloat16 []fp8.BFloat16

	// one scale, or a grid of them for each head: of all its tokens or of each token, and of
	// parts of a token's row.
	scales     []float32
	down, over int
}

// read reads an operand whose flags begin with a name.
func (o *Operand) read(s *operands.Source, l Layout, flag string) (*array, error) {
	values, err := s.Find(o.Values)
	if err != nil {
		return nil, fmt.Errorf("%w: name %s with --%s", err, upper(flag), flag)
	}
	e, ok := l.of(values.Shape)
	if !ok {
		return nil, fmt.Errorf("tensor %q of shape %v is no %s: want %s or %s", values.Name, values.Shape, upper(flag), l.text(3), l.text(4))
	}
	if slices.Contains(e[:], 0) {
		return nil, fmt.Errorf("tensor %q of shape %v has no elements", values.Name, values.Shape)
	}
	a := &array{flag: flag, name: values.Name, rank: len(values.Shape), extents: e}
	if values.DType == safetensors.BF16 {
		if o.Scales != "" {
			return nil, fmt.Errorf("tensor %q is BF16, which has no scales: leave --%s-scales out", values.Name, flag)
		}
		all, err := safetensors.Elements[fp8.BFloat16](values.File, values.Name)
		a.bfloat16 = inOrder(l, all, e)
		return a, err
	}
	if err := o.readCodes(a, values, l); err != nil {
		return nil, err
	}
	return a, o.readScales(a, s, l)
}

// readCodes reads codes without their scales.
func (o *Operand) readCodes(a *array, values operands.Tensor, l Layout) error {
	one, err := operands.InMemory(safetensors.Tensor{Info: safetensors.Info{Name: "1", DType: safetensors.F32, Shape: []int{1}},
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

// readScales reads scales and repeats them so that each head has one, or each token.
func (o *Operand) readScales(a *array, s *operands.Source, l Layout) error {
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
		return fmt.Errorf("%w: name the scales of %s with --%s-scales, or say one as a number", err, upper(a.flag), a.flag)
	}
	values, err := scaleValues(t)
	if err != nil {
		return err
	}
	for i, x := range values {
		if err := a.checkScale(fmt.Sprintf("tensor %q", t.Name), i, x); err != nil {
			return err
		}
	}
	if len(values) == 1 {
		a.scales = values
		return nil
	}
	g, ok := a.grid(t.Shape, l)
	if !ok {
		return fmt.Errorf("tensor %q of shape %v does not hold the scales of tensor %q of shape %v: want one, one for each head, or, in the order of its dimensions, for tokens or blocks of them",
			t.Name, t.Shape, a.name, l.shape(a.extents, a.rank))
	}
	block, err := o.tokens(a, t, g[2])
	if err != nil {
		return err
	}
	a.spread(inOrder(l, values, g), g, block)
	return nil
}

// scaleValues reads scales of a type that has them.
func scaleValues(t operands.Tensor) ([]float32, error) {
	switch t.DType {
	case safetensors.F32:
		return t.File.Float32s(t.Name)
	case safetensors.F8E8M0:
		data, err := t.File.Bytes(t.Name)
		r := make([]float32, len(data))
		for i, b := range data {
			r[i] = fp8.E8M0(b).Float32()
		}
		return r, err
	}
	return nil, fmt.Errorf("tensor %q is %s: scales are F32 or F8_E8M0", t.Name, t.DType)
}

func (a *array) checkScale(of string, at int, x float32) error {
	if !(x >= 0) || math.IsInf(float64(x), 0) {
		return fmt.Errorf("%s: scale %d of %s is %v: scales are positive and finite", of, at, upper(a.flag), x)
	}
	return nil
}

// grid reads the shape of scales as that of parts of [batch, heads, tokens, dim].
func (a *array) grid(shape []int, l Layout) (extents, bool) {
	e, fits := extents{}, func(e extents) bool {
		return (e[0] == a.extents[0] || e[0] == 1) && a.extents[1]%e[1] == 0 && (e[1] == a.extents[1] || a.flag == "q" || e[1] == 1) &&
			e[2] <= a.extents[2] && a.extents[3]%e[3] == 0
	}
	if slices.Contains(shape, 0) {
		return e, false
	}
	for _, whole := range [][]int{shape, append(slices.Clone(shape), 1)} { // the last dimension may be left out
		if e, ok := l.of(whole); ok && len(whole) == a.rank && fits(e) {
			return e, true
		}
	}
	switch len(shape) { // of heads
	case 1:
		e = extents{1, shape[0], 1, 1}
	case 2:
		e = extents{shape[0], shape[1], 1, 1}
	default:
		return e, false
	}
	return e, fits(e)
}

// tokens returns how many tokens share a scale where there are some number of parts.
func (o *Operand) tokens(a *array, t operands.Tensor, parts int) (int, error) {
	n := a.extents[2]
	if o.Block > 0 {
		if (n-1)/o.Block+1 != parts {
			return 0, fmt.Errorf("tensor %q of shape %v has %d scales for %d tokens, and not one for %d tokens each: change --%s-block", t.Name, t.Shape, parts, n, o.Block, a.flag)
		}
		return o.Block, nil
	}
	var fitting []int
	for b := 1; b < 2*n; b *= 2 {
		if (n-1)/b+1 == parts && (parts > 1 || len(fitting) == 0) {
			fitting = append(fitting, b)
		}
	}
	if b := n / parts; n%parts == 0 && !slices.Contains(fitting, b) && parts > 1 {
		fitting = append(fitting, b)
	}
	if len(fitting) != 1 {
		return 0, fmt.Errorf("tensor %q of shape %v has %d scales for %d tokens: say with --%s-block how many tokens share one", t.Name, t.Shape, parts, n, a.flag)
	}
	return fitting[0], nil
}

// spread repeats a grid of scales, of so many tokens each.
func (a *array) spread(grid []float32, g extents, block int) {
	a.down, a.over = 1, g[3]
	if g[2] > 1 {
		a.down = a.extents[2]
	}
	for b := range a.extents[0] {
		for h := range a.extents[1] {
			h = h / (a.extents[1] / g[1])
			for t := range a.down {
				row := ((min(b, g[0]-1)*g[1]+h)*g[2] + min(t/block, g[2]-1)) * g[3]
				a.scales = append(a.scales, grid[row:row+g[3]]...)
			}
		}
	}
}

// sequence returns the operand of one sequence of the batch.
func (a *array) sequence(b int) attention.Operand {
	h, s, d := a.extents[1], a.extents[2], a.extents[3]
	n := h * s * d
	if a.codes == nil {
		return attention.Operand{BFloat16: a.bfloat16[b*n : (b+1)*n], Shape: [3]int{h, s, d}}
	}
	t := &tensor.Tensor{Name: a.name, Format: a.format, Shape: []int{h, s, d}, Codes: a.codes[b*n : (b+1)*n], Scales: a.scales}
	if len(a.scales) > 1 {
		m := h * a.down * a.over
		t.Scales = a.scales[b*m : (b+1)*m]
		t.Block = tensor.Block{Rows: s / a.down}
		if a.over > 1 {
			t.Block.Cols = d / a.over
		}
	}
	return attention.Operand{Codes: t}
}

// columns returns the first n columns of every row, as absorbed MLA takes V from K.
func (a *array) columns(n int, flag string) (*array, error) {
	d := a.extents[3]
	switch {
	case n > d:
		return nil, fmt.Errorf("--value-dim %d: rows of K have %d elements", n, d)
	case a.over > 1 && n%(d/a.over) != 0:
		return nil, fmt.Errorf("--value-dim %d is no multiple of the %d elements of K that share a scale", n, d/a.over)
	}
	r := *a
	r.flag, r.extents[3] = flag, n
	r.codes, r.bfloat16 = firstColumns(a.codes, d, n), firstColumns(a.bfloat16, d, n)
	if a.over > 1 {
		r.over = a.over * n / d
		r.scales = firstColumns(a.scales, a.over, r.over)
	}
	return &r, nil
}

func firstColumns[T any](x []T, of, n int) (r []T) {
	for at := 0; at < len(x); at += of {
		r = append(r, x[at:at+n]...)
	}
	return r
}

// checkZeros refuses a scale of 0 whose codes are not all 0. Keys from the given number on
// do not count.
func (a *array) checkZeros(tokens int) error {
	if a.codes == nil || !slices.Contains(a.scales, 0) {
		return nil
	}
	d := a.extents[3]
	for i, c := range a.codes {
		row, col := i/d, i%d
		at := 0
		if len(a.scales) > 1 {
			at = row/(a.extents[2]/a.down)*a.over + col/(d/a.over)
		}
		if token := row % a.extents[2]; token < tokens && a.scales[at] == 0 && a.format.Float32(c) != 0 {
			head := row / a.extents[2] % a.extents[1]
			return fmt.Errorf("tensor %q: the scale of head %d, token %d, column %d is 0 and the code there %#02x", a.name, head, token, col, c)
		}
	}
	return nil
}

func upper(flag string) string { return map[string]string{"q": "Q", "k": "K", "v": "V"}[flag] }
