package attention

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// Records is memory that holds records of tokens in blocks, as kernels with a paged cache
// read it: token i is slot i mod Tokens of block i/Tokens.
//
// Tokens may be written by several goroutines at once as long as nobody else reads or
// writes the same ones.
type Records struct {
	Kind   Record
	Tokens int // of a block

	// Stride is the number of bytes from block to block; 0 is Kind.BlockBytes(Tokens).
	// FlashMLA's tests have a token to spare in each block, for one.
	Stride int

	Data []byte

	// ScaleBFloat16 has float32 scales rounded to bfloat16 before codes are multiplied,
	// as FlashMLA's kernel for Hopper does; its reference, and zero, multiplies in float32.
	// It is the same for powers of two.
	ScaleBFloat16 bool
}

// stride is the distance of blocks.
func (r *Records) stride() int {
	if r.Stride != 0 {
		return r.Stride
	}
	return r.Kind.BlockBytes(r.Tokens)
}

// Check reports, as [ErrShape], a kind or a layout that is not possible.
func (r *Records) Check() error {
	switch {
	case !r.Kind.Valid():
		return fmt.Errorf("%w: unknown record %d", ErrShape, r.Kind)
	case r.Tokens <= 0 || r.Tokens > maxElements/1024:
		return fmt.Errorf("%w: blocks of %d tokens", ErrShape, r.Tokens)
	case r.Stride != 0 && r.Stride < r.Tokens*r.Kind.TokenBytes():
		return fmt.Errorf("%w: blocks of %d tokens of %s take %d bytes: they cannot be %d apart",
			ErrShape, r.Tokens, r.Kind, r.Tokens*r.Kind.TokenBytes(), r.Stride)
	}
	return nil
}

// Len returns how many tokens there is room for. The last block may lack what fills it
// up, and counts only if it is whole otherwise. It panics if r does not pass Check, as the
// other methods do.
func (r *Records) Len() int {
	if r.Check() != nil {
		panic(badRecords)
	}
	stride, whole := r.stride(), r.Tokens*r.Kind.TokenBytes()
	if len(r.Data) < whole {
		return 0
	}
	return ((len(r.Data)-whole)/stride + 1) * r.Tokens
}

const (
	badRecords = "attention: Records do not pass Check"
	badRows    = "attention: values are not whole rows, or tokens beyond the records"
)

// token returns what of token i lies together, and its scales.
func (r *Records) token(l *recordLayout, i int) (inner, scales []byte) {
	block, slot := r.Data[i/r.Tokens*r.stride():], i%r.Tokens
	inner = block[slot*l.inner():][:l.inner()]
	if l.behind {
		return inner, block[r.Tokens*l.inner()+slot*l.scaleBytes():][:l.scaleBytes()]
	}
	return inner, inner[l.codes:][:l.scaleBytes()]
}

// span panics unless rows are of whole tokens that are there, from token at on.
func (r *Records) span(at, values int) (tokens int) {
	tokens = values / r.Kind.Dim()
	if at < 0 || values%r.Kind.Dim() != 0 || at > r.Len()-tokens {
		panic(badRows)
	}
	return tokens
}

// PutRecords encodes rows, of [Record.Dim] values each, as tokens at and following.
// Padding bytes of a token become 0; float32 values become the nearest bfloat16 where the
// record has such. It panics if r does not pass Check or has no room for the tokens.
func PutRecords[T float32 | fp8.BFloat16](r *Records, at int, rows []T) {
	tokens, l := r.span(at, len(rows)), r.Kind.layout()
	dim := r.Kind.Dim()
	e := fp8.NewEncoder(fp8.E4M3, l.policy)
	for i := range tokens {
		putRecord(r, l, &e, at+i, rows[i*dim:(i+1)*dim])
	}
}

func putRecord[T float32 | fp8.BFloat16](
	r *Records, l *recordLayout, e *fp8.Encoder, i int, row []T,
) {
	inner, scales := r.token(l, i)
	clear(scales)
	for t := range l.tiles() {
		tile := row[t*l.tile : (t+1)*l.tile]
		s := l.scale(fp8.Amax(tile))
		fp8.EncodeBlock(e, inner[t*l.tile:], tile, s, 0, nil)
		l.putScale(scales, t, s.Stored)
	}
	putWide(inner[len(inner)-2*l.wide:], row[l.codes:])
}

func putWide[T float32 | fp8.BFloat16](dst []byte, src []T) {
	switch src := any(src).(type) {
	case []fp8.BFloat16:
		for j, x := range src {
			binary.LittleEndian.PutUint16(dst[2*j:], uint16(x))
		}
	case []float32:
		for j, x := range src {
			binary.LittleEndian.PutUint16(dst[2*j:], uint16(fp8.BFloat16FromFloat32(x)))
		}
	}
}

// putScale writes a scale. An infinite one has no E8M0, and is NaN there as torch casts it.
func (l *recordLayout) putScale(scales []byte, t int, s float32) {
	if !l.e8m0 {
		binary.LittleEndian.PutUint32(scales[4*t:], math.Float32bits(s))
		return
	}
	code, ok := fp8.E8M0FromFloat32(s)
	if !ok {
		code = fp8.E8M0NaN
	}
	scales[t] = byte(code)
}

func (l *recordLayout) scaleAt(scales []byte, t int) float32 {
	if l.e8m0 {
		return fp8.E8M0(scales[t]).Float32()
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(scales[4*t:]))
}

// Values writes the values of tokens at and following to dst, [Record.Dim] of each:
// code times scale in float32, rounded to bfloat16, as FlashMLA's tests/quant.py and its
// kernels compute with. It panics if dst is not whole rows of tokens that are there.
func (r *Records) Values(dst []fp8.BFloat16, at int) {
	tokens, dim := r.span(at, len(dst)), r.Kind.Dim()
	row := make([]float32, dim)
	for i := range tokens {
		r.floats(row, at+i)
		for j, x := range row {
			dst[i*dim+j] = fp8.BFloat16FromFloat32(x)
		}
	}
}

// floats writes the first values of token i to dst, those of whole tiles at least.
func (r *Records) floats(dst []float32, i int) {
	l := r.Kind.layout()
	inner, scales := r.token(l, i)
	n := min(l.codes, len(dst))
	for t := 0; t*l.tile < n; t++ {
		s := r.scale(l, scales, t)
		fp8.DecodeScaled(dst[t*l.tile:n], inner[t*l.tile:][:min(l.tile, n-t*l.tile)], fp8.E4M3, s)
	}
	rounding.NearestBF16(dst[:n], dst[:n])
	wide := inner[len(inner)-2*l.wide:]
	for j := range dst[n:] {
		dst[n+j] = fp8.BFloat16(binary.LittleEndian.Uint16(wide[2*j:])).Float32()
	}
}

// scale returns the scale of tile t as codes are multiplied by it.
func (r *Records) scale(l *recordLayout, scales []byte, t int) float32 {
	s := l.scaleAt(scales, t)
	if r.ScaleBFloat16 {
		s = number.BF16.Round(s)
	}
	return s
}

// firstSpecial returns the first value of token i that is NaN or infinite, or -1.
func (r *Records) firstSpecial(i int) (element int, value float32) {
	l := r.Kind.layout()
	inner, scales := r.token(l, i)
	for t := range l.tiles() {
		s, codes := r.scale(l, scales, t), inner[t*l.tile:(t+1)*l.tile]
		if number.IsFinite(number.BF16.Round(fp8.E4M3.Max()*s)) && !anySpecial(fp8.E4M3, codes) {
			continue
		}
		for j, code := range codes {
			if x := number.BF16.Round(fp8.E4M3.Float32(code) * s); !number.IsFinite(x) {
				return t*l.tile + j, x
			}
		}
	}
	wide := inner[len(inner)-2*l.wide:]
	for j := range l.wide {
		x := fp8.BFloat16(binary.LittleEndian.Uint16(wide[2*j:])).Float32()
		if !number.IsFinite(x) {
			return l.codes + j, x
		}
	}
	return -1, 0
}

// Codes writes the codes of token i to dst, and returns how many there are. It panics if dst is
// shorter or the token is not there.
func (r *Records) Codes(dst []byte, i int) int {
	if i < 0 || i >= r.Len() {
		panic(badRows)
	}
	l := r.Kind.layout()
	inner, _ := r.token(l, i)
	return copy(dst[:l.codes], inner)
}

// Scales writes the scales of token i to dst, one for each tile of its codes, and returns
// how many there are: 4 in the records of 656 bytes, 7 in that of 584, 1 in the indexer's.
// It panics if dst is shorter or the token is not there.
func (r *Records) Scales(dst []float32, i int) int {
	if i < 0 || i >= r.Len() {
		panic(badRows)
	}
	l := r.Kind.layout()
	_, scales := r.token(l, i)
	for t := range l.tiles() {
		dst[t] = l.scaleAt(scales, t)
	}
	return l.tiles()
}
