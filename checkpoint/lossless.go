package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// LosslessClaim says that a weight of codes can be stored in another way without losing
// anything.
type LosslessClaim struct {
	// Weight is of codes under scales that are powers of two, such as MXFP4's.
	Weight *Weight

	// Scheme is how it is to be stored, and Block its block, under scales that are powers of
	// two; Type is the type of values if Scheme is nil: then there is no scale.
	Scheme *Scheme
	Block  tensor.Block
	Type   safetensors.DType

	// Arithmetic, unless "", is what finds the scales: the claim is then that those it
	// finds lose nothing, rather than that there are such scales.
	Arithmetic Arithmetic
}

// Claim returns the claim that the conversion of a target loses nothing, and whether it can be
// made: for codes under scales that may be powers of two, which become codes or values of
// which each shares its scale with none of another weight.
func (t *Target) Claim() (c LosslessClaim, ok bool) {
	if t.Weight == nil || t.Weight.Scheme == nil || t.Copied() || len(t.Group()) > 1 {
		return LosslessClaim{}, false
	}
	c = LosslessClaim{Weight: t.Weight, Scheme: t.Scheme, Arithmetic: t.Arithmetic}
	if t.Scheme == nil {
		c.Type = t.Parts[0].DType
	} else {
		c.Block = t.Scheme.Block
	}
	return c, c.check() == nil
}

func (c *LosslessClaim) check() error {
	fail := func(why string) error {
		name := ""
		if c.Weight != nil {
			name = c.Weight.Name
		}
		return sentinel.Errorf(ErrLayout, "weight %q: %s: there is nothing to prove", name, why)
	}
	switch {
	case c.Weight == nil || c.Weight.Scheme == nil:
		return fail("it is not of codes")
	case c.Weight.Has(Outer) || c.Scheme != nil && !c.Scheme.Parts[Outer].None():
		return fail("with an outer scale values are no codes times powers of two")
	case c.Scheme == nil && !isFloat(c.Type):
		return fail(fmt.Sprintf("it is to be values of type %q", c.Type))
	case c.Scheme != nil && c.Arithmetic != "":
		return c.Arithmetic.Check(c.Scheme)
	}
	return nil
}

// Proof is what became of a claim.
type Proof struct {
	LosslessClaim

	Blocks int64 // of the scheme, or where that is nil of the weight; all were looked at

	// Spread is the largest ratio of the scales of a block, as an exponent of two: of the
	// scales that values other than zero have. Reach is the largest distance in a block from
	// the lowest bit of a value to the highest of one. A block can be stored if that is at
	// most Limit, and there is a scale for it.
	Spread, Reach, Limit int

	// Broken is the first block that breaks the claim; nil if it is proved.
	Broken *Break
}

// Break is a block that cannot be stored without losing something.
type Break struct {
	Matrix, Row, Col int // of the block, in the grid of the scheme

	// Largest and Lowest are indexes, in the weight's shape, of the element of the largest
	// magnitude and of one whose lowest bit is the lowest, or both of the one that Why is
	// about.
	Largest, Lowest []int

	Why string

	// Chosen says that there is a scale that loses nothing, and that the claim's arithmetic
	// has chosen another.
	Chosen bool
}

// String says where the block is, and why.
func (b *Break) String() string {
	return fmt.Sprintf("block [%d, %d] of matrix %d: %s", b.Row, b.Col, b.Matrix, b.Why)
}

// ProveLossless proves claims by the codes and scales of weights, or names of each the first
// block that breaks it. It reads every code once, in strips, on all processors, and quantizes
// nothing. Results are in the order of claims.
//
// A value other than zero is an odd integer times 2^l, whose highest bit is 2^h. Under a scale
// 2^t a format with p bits of fraction, the lowest bit 2^b and the largest value M, whose
// highest bit is 2^e, has it exactly if and only if
//
//	h-l ≤ p,   l-t ≥ b,   h'-t ≤ e,
//
// h' being h, or h+1 where the value's fraction is larger than that of M. So a block of values
// has a scale that loses nothing if and only if each passes the first test, max h' - min l is
// at most e-b, and one of the t from max h' - e to min l - b is a scale that can be stored:
// 2^-127 to 2^127 in E8M0, 2^-126 to 2^127 in F32 and BF16.
//
// For E4M3, with subnormals down to 2^-9 and 448 as M, e-b is 17. Codes of E2M1, 0.5 to 6, pass
// the first test and reach from 2^-1 to 2^2: so MXFP4 becomes E4M3 in larger blocks without loss
// where the scales in a block differ by 2^14 at most, whatever the codes; never where they
// differ by more than 2^20; and between, as the codes have it. Blocks of zeros do not count.
// Zeros keep their sign. A NaN or an infinity, in codes or scales, breaks a claim.
//
// An arithmetic such as deepgemm-ue8m0 takes t = max h' - e where there is no lower bound for
// amax. Its 1e-4 may break claims that some scale would keep.
//
// It is an error, ErrLayout, if the weight is not of codes, or if an outer scale is above its
// scales or those of the scheme.
func ProveLossless(ctx context.Context, claims []LosslessClaim, o Options) ([]Proof, error) {
	jobs := make([]*proofJob, len(claims))
	var strips []span
	for i, c := range claims {
		if err := c.check(); err != nil {
			return nil, err
		}
		jobs[i] = newProofJob(c)
		for _, s := range jobs[i].spans(o.strip()) {
			s.target = i
			strips = append(strips, s)
		}
	}
	err := eachStrip(ctx, o, "prove", strips, func(s *scratch, i int) error {
		return jobs[strips[i].target].strip(s, strips[i])
	})
	if err != nil {
		return nil, err
	}
	proofs := make([]Proof, len(claims))
	for i, job := range jobs {
		job.finish()
		proofs[i] = job.Proof
	}
	return proofs, nil
}

// numbers are what values a format has.
type numbers struct {
	fraction      int // bits
	highest       int // bit of the largest value
	lowest        int // bit of the smallest
	most          float64
	least, upmost int // exponents of scales
}

func numbersOf(c *LosslessClaim) numbers {
	switch c.Type {
	case safetensors.BF16:
		return numbers{7, 127, -133, 0x1.FEp127, 0, 0}
	case safetensors.F16:
		return numbers{10, 15, -24, 65504, 0, 0}
	case safetensors.F32:
		return numbers{23, 127, -149, math.MaxFloat32, 0, 0}
	}
	f := c.Scheme.Format
	n := numbers{fraction: f.Mantissa(), most: float64(f.Max()), least: -126, upmost: 127}
	n.highest = math.Ilogb(n.most)
	n.lowest = math.Ilogb(float64(f.MinSubnormal()))
	if c.Scheme.ScaleFormat == tensor.E8M0Scales && c.Scheme.Parts[Scales].DTypes[0].Size() == 1 {
		n.least = -127
	}
	return n
}

// letter is what a code of the weight is.
type letter struct {
	magnitude float64 // 0: zero
	low, bits int     // exponent of the lowest bit, and from there to the highest
	special   bool    // NaN or infinite
}

func alphabet(f fp8.Format) (all [256]letter) {
	for c := range 1 << f.Bits() {
		x := math.Abs(float64(f.Float32(byte(c))))
		l := letter{magnitude: x, special: x-x != 0}
		if x != 0 && !l.special {
			l.low = lowestBit(x)
			l.bits = math.Ilogb(x) - l.low
		}
		all[c] = l
	}
	return all
}

// lowestBit returns the exponent of the lowest bit of a number that is not 0.
func lowestBit(x float64) int {
	fraction, exponent := math.Frexp(x)
	for fraction != math.Trunc(fraction) {
		fraction *= 2
		exponent--
	}
	for math.Mod(fraction, 2) == 0 {
		fraction /= 2
		exponent++
	}
	return exponent
}

// cell is what was seen of a block.
type cell struct {
	largest     float64 // magnitude; 0: nothing but zeros
	low         int
	largestAt   int64
	lowAt       int64
	small, tall int // exponents of scales

	why string // what is wrong with one element, whatever the others are
	at  int64
}

// merge adds what was seen of a part of the same block.
func (c *cell) merge(o *cell) {
	if o.why != "" && (c.why == "" || o.at < c.at) {
		c.why, c.at = o.why, o.at
	}
	switch {
	case o.largest == 0:
		return
	case c.largest == 0:
		why, at := c.why, c.at
		*c = *o
		c.why, c.at = why, at
		return
	}
	if o.largest > c.largest || o.largest == c.largest && o.largestAt < c.largestAt {
		c.largest, c.largestAt = o.largest, o.largestAt
	}
	if o.low < c.low || o.low == c.low && o.lowAt < c.lowAt {
		c.low, c.lowAt = o.low, o.lowAt
	}
	c.small, c.tall = min(c.small, o.small), max(c.tall, o.tall)
}

// proofJob is a claim at work.
type proofJob struct {
	Proof
	block      tensor.Block // the scheme's, as the weight is stored
	crosses    bool
	matrices   int
	rows, cols int
	letters    [256]letter
	to         numbers

	mu     sync.Mutex
	merged []cell // of blocks as high as a matrix, which several strips share
}

func newProofJob(c LosslessClaim) *proofJob {
	j := &proofJob{Proof: Proof{LosslessClaim: c}, block: c.Block, letters: alphabet(c.Weight.Scheme.Format), to: numbersOf(&c)}
	j.matrices, j.rows, j.cols = c.Weight.Dims()
	switch {
	case c.Scheme == nil:
		j.block = c.Weight.Block
	case transposed(c.Scheme) != transposed(c.Weight.Scheme):
		j.block, j.crosses = c.Block.Transposed(), true
	}
	r, n := j.block.Grid(j.rows, j.cols)
	j.Blocks = int64(j.matrices) * int64(r) * int64(n)
	j.Limit = j.to.highest - j.to.lowest
	if j.block.Rows == 0 {
		j.merged = make([]cell, j.Blocks)
	}
	return j
}

func (j *proofJob) spans(strip int) []span {
	return spansOf(j.Weight, j.matrices, j.rows, j.cols, stripRows(j.Weight, j.rows, j.cols, j.block, strip))
}

// strip looks at rows of the weight.
func (j *proofJob) strip(s *scratch, x span) error {
	high, wide := j.block.Extents(j.rows, j.cols)
	_, across := j.block.Grid(j.rows, j.cols)
	first := x.lo / high
	cells := make([]cell, ((x.hi-1)/high-first+1)*across)
	t, err := s.reader.Tensor(j.Weight, x.matrix, x.lo, x.hi)
	if err != nil {
		return err
	}
	ownRows, ownCols := t.Block.Extents(x.hi-x.lo, j.cols)
	_, ownAcross := t.Block.Grid(x.hi-x.lo, j.cols)
	for r := range x.hi - x.lo {
		row := cells[((x.lo+r)/high-first)*across:][:across]
		scales := t.Scales[r/ownRows*ownAcross:][:ownAcross]
		codes := t.Codes[r*j.cols:][:j.cols]
		at := (int64(x.matrix)*int64(j.rows) + int64(x.lo+r)) * int64(j.cols)
		for lo := 0; lo < j.cols; {
			hi := min((lo/ownCols+1)*ownCols, (lo/wide+1)*wide, j.cols)
			j.look(&row[lo/wide], codes[lo:hi], scales[lo/ownCols], at+int64(lo))
			lo = hi
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.merged != nil {
		for i := range cells {
			j.merged[x.matrix*across+i].merge(&cells[i])
		}
		return nil
	}
	for i := range cells {
		j.judge(&cells[i], x.matrix, first+i/across, i%across)
	}
	return nil
}

// look adds a run of codes under one scale to what was seen of a block.
func (j *proofJob) look(c *cell, codes []byte, scale float32, at int64) {
	seen := cell{}
	low := math.MaxInt
	for i, code := range codes {
		l := &j.letters[code]
		switch {
		case l.special:
			c.merge(&cell{why: "a code is NaN or infinite", at: at + int64(i)})
			continue
		case l.magnitude == 0:
			continue
		case l.bits > j.to.fraction:
			c.merge(&cell{why: fmt.Sprintf("%v needs %d bits of fraction: there are %d", l.magnitude, l.bits, j.to.fraction),
				at: at + int64(i)})
		}
		if l.magnitude > seen.largest {
			seen.largest, seen.largestAt = l.magnitude, at+int64(i)
		}
		if l.low < low {
			low, seen.lowAt = l.low, at+int64(i)
		}
	}
	if scale-scale != 0 {
		c.merge(&cell{why: fmt.Sprintf("a scale is %v", scale), at: at})
		return
	}
	if scale == 0 || seen.largest == 0 {
		return
	}
	fraction, exponent := math.Frexp(float64(scale))
	if exponent--; fraction != 0.5 {
		c.merge(&cell{why: fmt.Sprintf("a scale is %v, no power of two", scale), at: at})
		return
	}
	seen.largest = math.Ldexp(seen.largest, exponent)
	seen.low = low + exponent
	seen.small, seen.tall = exponent, exponent
	c.merge(&seen)
}

// judge decides of a block, and keeps the first that breaks the claim.
func (j *proofJob) judge(c *cell, matrix, row, col int) {
	if j.crosses {
		row, col = col, row
	}
	b := &Break{Matrix: matrix, Row: row, Col: col}
	if c.why != "" {
		b.Largest, b.Lowest, b.Why = j.index(c.at), j.index(c.at), c.why
		j.broken(b)
		return
	}
	if c.largest == 0 {
		return
	}
	top := math.Ilogb(c.largest)
	if math.Ldexp(c.largest, j.to.highest-top) > j.to.most {
		top++
	}
	j.Spread, j.Reach = max(j.Spread, c.tall-c.small), max(j.Reach, top-c.low)
	b.Largest, b.Lowest = j.index(c.largestAt), j.index(c.lowAt)
	least, most := top-j.to.highest, c.low-j.to.lowest
	name := string(j.Type)
	if j.Scheme != nil {
		name = j.Scheme.Format.String()
	}
	switch {
	case least > most:
		b.Why = fmt.Sprintf("from %v down to 2^%d it spans 2^%d: one scale of %s allows 2^%d; its scales differ by 2^%d",
			c.largest, c.low, top-c.low, name, j.Limit, c.tall-c.small)
	case j.Scheme == nil && (least > 0 || most < 0):
		b.Why = fmt.Sprintf("%s does not have all from %v down to 2^%d", name, c.largest, c.low)
	case max(least, j.to.least) > min(most, j.to.upmost):
		b.Why = fmt.Sprintf("it needs a scale from 2^%d to 2^%d, which cannot be stored", least, most)
	case j.Scheme != nil && j.Arithmetic != "":
		if b.Why = j.chosen(c, least, most); b.Why == "" {
			return
		}
		b.Chosen = true
	default:
		return
	}
	j.broken(b)
}

// chosen says what is wrong with the scale that the arithmetic finds for a block.
func (j *proofJob) chosen(c *cell, least, most int) string {
	amax := float32(c.largest)
	s, _, _ := ownScale[float32](j.Arithmetic, amax, j.Scheme.Format.Max())
	if p, ok := j.Arithmetic.profile(); ok {
		chosen, err := scaling.Scale[float32](recipeOf(p, j.Scheme, j.Block), amax, false)
		if err != nil {
			return err.Error()
		}
		s = chosen.Stored
	}
	fraction, exponent := math.Frexp(float64(s))
	if exponent--; fraction != 0.5 || exponent < least || exponent > most {
		return fmt.Sprintf("by %s its scale is %v: want a power of two from 2^%d to 2^%d", j.Arithmetic, s, least, most)
	}
	return ""
}

// broken keeps the first block of all.
func (j *proofJob) broken(b *Break) {
	o := j.Broken
	if o == nil || b.Matrix < o.Matrix || b.Matrix == o.Matrix &&
		(b.Row < o.Row || b.Row == o.Row && b.Col < o.Col) {
		j.Broken = b
	}
}

func (j *proofJob) index(at int64) []int {
	d := Difference{A: j.Weight}
	return d.Index(at)
}

// finish judges blocks that strips shared.
func (j *proofJob) finish() {
	_, across := j.block.Grid(j.rows, j.cols)
	for i := range j.merged {
		j.judge(&j.merged[i], i/across, 0, i%across)
	}
}

// Lossless is [ProveLossless] of what [Diff] compared: of the weights of codes in the first that
// are stored in other codes or types in the second. Others, of which nothing can be claimed,
// are left out.
func Lossless(ctx context.Context, all []Difference, o Options) ([]Proof, error) {
	var claims []LosslessClaim
	for _, d := range all {
		if d.A == nil || d.B == nil || d.A.Scheme == d.B.Scheme || d.Unread != "" {
			continue
		}
		c := LosslessClaim{Weight: d.A, Scheme: d.B.Scheme, Block: d.B.Block}
		if c.Scheme == nil {
			c.Type = d.B.Parts[Codes].DType
		}
		if err := c.check(); err == nil {
			claims = append(claims, c)
		} else if !errors.Is(err, ErrLayout) {
			return nil, err
		}
	}
	return ProveLossless(ctx, claims, o)
}
