package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	judged "github.com/octavo-fp8/octavo/oracle/judge/cache"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Cache says what to read of K and V and of what an engine wrote of them and read back.
type Cache struct {
	File, Got string // safetensors; Got "": File, in which names of what was written are other ones
	K, V      string // names, in both files
	Format    *fp8.Format
	Scales    *tensor.ScaleFormat // of scales of type U8
	Packed    bool
	Divides   bool // outer scales are divisors

	Page   int    // tokens of a page, where scales are for pages or records lie in them; 0: none
	Slots  string // name of the slot of each token, in the file of results; "": in order
	Record *attention.Record
	Name   string // of records
}

// What is added to a name for what was kept without codes and for what was read.
const (
	wideSuffix = "_wide"
	readSuffix = "_read"
)

// Run reads everything and judges it. When ctx ends it returns an error.
func (c *Cache) Run(ctx context.Context, claim judged.Claim, o judged.Options) (*judged.Verdict, error) {
	in, err := openSource(c.File, false)
	if err != nil {
		return nil, err
	}
	defer in.File.Close()
	got, err := openSource(c.Got, false)
	if err != nil {
		return nil, err
	}
	defer got.File.Close()
	var slots []int
	if c.Slots != "" {
		if _, slots, err = wholes(got, c.Slots); err != nil {
			return nil, about(c.Got, err)
		}
	}
	var sides [2]*judged.Side
	for n, name := range []string{c.K, c.V} {
		s, err := readInput(in, name)
		if err != nil {
			if n == 1 && c.Record != nil && errors.Is(err, operands.ErrName) {
				continue
			}
			return nil, about(c.File, err)
		}
		switch {
		case c.Record == nil:
			err = c.readWritten(got, name, s, slots)
		case n == 0:
			err = c.readRecords(got, s, slots, &claim)
		}
		if err == nil && (c.Record == nil || n == 0) {
			err = readBack(got, name, s)
		}
		if err != nil {
			return nil, about(c.Got, err)
		}
		sides[n] = s
	}
	return judged.Check(ctx, sides[0], sides[1], claim, o)
}

// readInput reads what was to be written.
func readInput(s *operands.Source, name string) (*judged.Side, error) {
	t, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	bits, ok := map[safetensors.DType]int{safetensors.BF16: 7, safetensors.F16: 10, safetensors.F32: 23}[t.DType]
	if !ok || len(t.Shape) != 3 || slices.Contains(t.Shape, 0) {
		return nil, fmt.Errorf("tensor %q is %s of shape %v: want BF16, F16 or F32, [tokens, heads, dim]", t.Name, t.DType, t.Shape)
	}
	r := &judged.Side{Tokens: t.Shape[0], Heads: t.Shape[1], Dim: t.Shape[2], InputBits: bits}
	r.Input, err = t.File.Float32s(t.Name)
	return r, err
}

// flat makes [pages, tokens, heads, dim] three dimensions; page is 0 where there are three.
func flat(dims []int) (flat []int, page int) {
	if len(dims) != 4 {
		return dims, 0
	}
	return []int{dims[0] * dims[1], dims[2], dims[3]}, dims[1]
}

// readWritten reads codes, scales and what was kept without codes, as far as there are any.
func (c *Cache) readWritten(got *operands.Source, name string, s *judged.Side, slots []int) error {
	t, err := got.Find(name)
	if err != nil {
		return nil // it is not judged
	}
	o := &operands.Operand{Codes: name, Format: c.Format, Packed: c.Packed, ScaleFormat: c.Scales}
	scales, err := got.Find(name + operands.ScaleSuffix)
	if err != nil {
		return err
	}
	outer, err := readOuter(got, name)
	if err != nil {
		return err
	}
	guess(o, t, scales, s, !outer.None())
	codes, err := readCodes(o, t, "", "codes of 8 bits or fewer")
	if err != nil {
		return err
	}
	dims, page := flat(codes.Shape)
	if len(dims) != 3 || dims[1] != s.Heads || dims[2] < 1 || dims[2] > s.Dim {
		return fmt.Errorf("tensor %q has shape %v: want [tokens, heads, dim] or [pages, tokens, heads, dim] with %d heads and at most %d columns, as the input",
			name, codes.Shape, s.Heads, s.Dim)
	}
	if page == 0 {
		page = c.Page
	}
	s.Codes, s.Format, s.Cols = codes.Codes, codes.Format, dims[2]
	if s.Scales, s.ScaleFormat, err = o.ReadScales(scales); err != nil {
		return err
	}
	if s.Grid, err = gridOfCache(scales, dims, page); err != nil {
		return err
	}
	if s.Grid.Tokens == dims[0] && dims[0] > 1 {
		s.Grid.Tokens = max(dims[0], s.Tokens) // one for all, also of tokens that are not there
	}
	if !outer.None() {
		s.Outer, s.Divides = &outer.Scales[0], outer.Divide || c.Divides
	}
	if t, err := got.Find(name + wideSuffix); err == nil {
		if s.Wide, err = t.File.Float32s(t.Name); err != nil {
			return err
		}
	}
	return inOrder(s, slots, dims[0])
}

// guess completes what flags leave out of codes and scales that are bytes, where metadata say
// nothing: rows of half as many bytes as values are E2M1, two a byte, and scales under an outer
// one are UE4M3.
func guess(o *operands.Operand, codes, scales operands.Tensor, s *judged.Side, outer bool) {
	_, known := operands.FormatIn(codes.File, codes.Info)
	if n := len(codes.Shape); codes.DType == safetensors.U8 && o.Format == nil && !known && n > 0 && 2*codes.Shape[n-1] == s.Dim {
		narrow := fp8.E2M1
		o.Format, o.Packed = &narrow, true
	}
	if _, known := operands.ScaleFormatIn(scales.File, scales.Info); scales.DType == safetensors.U8 && !known && o.ScaleFormat == nil && outer {
		f := tensor.UE4M3Scales
		o.ScaleFormat = &f
	}
}

// gridOfCache is how many tokens, heads and columns share a scale, by the shapes of scales and
// codes.
func gridOfCache(t operands.Tensor, codes []int, page int) (g judged.Grid, err error) {
	tokens, heads, cols := codes[0], codes[1], codes[2]
	dims := slices.Clone(t.Shape)
	if len(dims) == 4 && dims[0]*dims[1] == tokens {
		dims = []int{tokens, dims[2], dims[3]}
	}
	pages := 0
	if page > 0 {
		pages = ceilDiv(tokens, page)
	}
	bad := func(why string) (judged.Grid, error) {
		return g, fmt.Errorf("tensor %q of shape %v does not say which of [%d tokens, %d heads, %d columns] share a scale: %s",
			t.Name, t.Shape, tokens, heads, cols, why)
	}
	n := 1
	for _, d := range dims {
		n *= d
	}
	if n == 1 {
		return judged.Grid{Tokens: tokens, Heads: heads, Cols: cols}, nil
	}
	switch {
	case len(dims) == 1:
		fits := 0
		for i, of := range []int{tokens, heads, pages} {
			if of == n {
				fits, dims = fits+1, [][]int{{tokens, 1, 1}, {1, heads, 1}, {pages, 1, 1}}[i]
			}
		}
		if fits != 1 {
			return bad("write it as [tokens, heads, blocks of columns], with 1 where one is for all")
		}
	case len(dims) == 2 && dims[1] != heads && dims[1] != 1 && heads == 1:
		dims = []int{dims[0], 1, dims[1]}
	case len(dims) == 2:
		dims = append(dims, 1)
	case len(dims) != 3:
		return bad("want 1 to 3 dimensions")
	}
	var share [3]int
	for i, n := range dims {
		switch whole := []int{tokens, heads, cols}[i]; {
		case n == whole:
			share[i] = 1
		case n == 1:
			share[i] = whole
		case i == 0 && n == pages:
			share[i] = page
		case i == 2 && n > 0:
			for share[i] = 1; n*share[i] < cols; share[i] *= 2 {
			}
			if ceilDiv(cols, share[i]) != n {
				share[i] = ceilDiv(cols, n)
			}
		}
		if share[i] == 0 || i == 2 && ceilDiv(cols, share[i]) != n {
			return bad([]string{"the first dimension is of tokens, of pages (--page says how many tokens one has), or 1",
				"the second dimension is of heads, or 1", "the last dimension is of blocks of columns, or 1"}[i])
		}
	}
	return judged.Grid{Tokens: share[0], Heads: share[1], Cols: share[2]}, nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// readRecords reads records of tokens.
func (c *Cache) readRecords(got *operands.Source, s *judged.Side, slots []int, claim *judged.Claim) error {
	t, err := got.Find(c.Name)
	if err != nil {
		return err
	}
	kind := *c.Record
	if t.DType != safetensors.U8 || len(t.Shape) < 2 || slices.Contains(t.Shape, 0) {
		return fmt.Errorf("tensor %q is %s of shape %v: records are U8, [blocks, tokens, bytes] or [blocks, bytes]", t.Name, t.DType, t.Shape)
	}
	data, err := t.File.Bytes(t.Name)
	if err != nil {
		return err
	}
	stride := len(data) / t.Shape[0]
	tokens := c.Page
	if tokens == 0 {
		tokens = stride / kind.TokenBytes()
		if len(t.Shape) > 2 {
			tokens = t.Shape[1]
		}
	}
	r := &attention.Records{Kind: kind, Tokens: tokens, Stride: stride, Data: data}
	if err := r.Check(); err != nil {
		return err
	}
	if s.Heads != 1 || s.Dim != kind.Dim() {
		return fmt.Errorf("the input has %d heads of %d columns: records of %v are of one head of %d", s.Heads, s.Dim, kind, kind.Dim())
	}
	n := r.Len()
	dst := make([]byte, kind.Dim())
	values := make([]fp8.BFloat16, kind.Dim())
	scales := make([]float32, 8)
	s.Wide = []float32{}
	for i := range n {
		cols := r.Codes(dst, i)
		tiles := r.Scales(scales, i)
		s.Cols, s.Grid = cols, judged.Grid{Tokens: 1, Heads: 1, Cols: cols / tiles}
		s.Codes, s.Scales = append(s.Codes, dst[:cols]...), append(s.Scales, scales[:tiles]...)
		r.Values(values, i)
		for _, v := range values[cols:] {
			s.Wide = append(s.Wide, v.Float32())
		}
	}
	s.Format = fp8.E4M3
	if claim.Rule == "" {
		claim.Rule = map[attention.Record]string{attention.FlashMLAV32: judged.Pow2, attention.FlashMLAModel1: judged.Pow2,
			attention.VLLMDeepSeek: judged.Amax, attention.DeepGEMMIndexer: "deepgemm"}[kind]
		if claim.Rule == judged.Pow2 {
			claim.Floor, claim.Log2 = 1e-4, true
		}
	}
	return inOrder(s, slots, n)
}

// inOrder takes the tokens from their slots.
func inOrder(s *judged.Side, slots []int, n int) error {
	if slots == nil {
		return nil
	}
	if len(slots) != s.Tokens {
		return fmt.Errorf("there are %d slots, and the input has %d tokens", len(slots), s.Tokens)
	}
	for i, at := range slots {
		if at < 0 || at >= n {
			return fmt.Errorf("slot %d of token %d: the cache has %d", at, i, n)
		}
	}
	s.Codes, s.Wide = pick(s.Codes, slots, n), pick(s.Wide, slots, n)
	switch {
	case s.Grid.Tokens == 1 && n > 1:
		s.Scales = pick(s.Scales, slots, n)
	case s.Grid.Tokens < n:
		return errors.New("scales are for pages, and --slots has tokens of any page: leave one out")
	}
	return nil
}

// pick takes rows, of which there are n.
func pick[T any](all []T, rows []int, n int) (some []T) {
	if len(all) == 0 {
		return all
	}
	each := len(all) / n
	for _, r := range rows {
		some = append(some, all[r*each:(r+1)*each]...)
	}
	return some
}

// readBack reads what an engine read, in the order of tokens.
func readBack(got *operands.Source, name string, s *judged.Side) error {
	t, err := got.Find(name + readSuffix)
	if err != nil {
		return nil // it is not judged
	}
	as, ok := map[safetensors.DType]judged.ReadType{safetensors.BF16: judged.BFloat16, safetensors.F16: judged.Float16, safetensors.F32: judged.Float32}[t.DType]
	dims, _ := flat(t.Shape)
	if !ok || len(dims) != 3 || dims[1] != s.Heads || dims[2] != s.Dim {
		return fmt.Errorf("tensor %q is %s of shape %v: want BF16, F16 or F32, [tokens, %d, %d]", t.Name, t.DType, t.Shape, s.Heads, s.Dim)
	}
	s.ReadAs = as
	s.Read, err = t.File.Float32s(t.Name)
	return err
}
