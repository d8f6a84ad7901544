package collective

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/tensor"
)

// Exchange says how values are exchanged. The zero Exchange sends FP32 and adds at rank
// 0 in the order of ranks, which is the reference for all others.
type Exchange struct {
	Name string // of the tensor, for reports and errors

	// Cols is the number of columns of operands, which are matrices then and are cut by
	// rows, such as tokens; 0 is a vector, of one row, cut by elements. Every part of an
	// operand is a message of its own. Part r is the r-th of R ranges of as many rows as
	// a R-th rounded up, of which the last may have fewer or none.
	Cols int

	Wire Wire // of operands and partial sums, and of all that is sent without a reduction

	// Of a reduction. Each part of the result is sent in the form of Result, and what
	// that decodes to is the result of all ranks, also of those that have summed it, so
	// that ranks cannot drift apart.
	Order    Order
	Rounding Rounding
	Result   Wire

	// Amax is which amaxes the scales of Wire follow from, in a reduction. Partial sums
	// are larger than operands, so that they may saturate with any but AmaxOwn unless
	// operands are small: see [Division]. Result's scales are its own.
	Amax   AmaxRule
	Memory *AmaxMemory // of AmaxLate; each rank and each tensor needs its own

	// Reporter, unless nil, hears of every message that is encoded and of every sum, as
	// operations "send", "sum", "result" and so on, from several goroutines in a [Run].
	Reporter tensor.Reporter

	// Cuts, unless nil, are where parts begin and end, in elements, in place of the rule: one
	// more than there are parts.
	Cuts []int
}

// AmaxMemory is what [AmaxLate] keeps from one exchange to the next. The zero value is
// that before the first, which exchanges its amaxes in time.
type AmaxMemory struct{ amax, before [][]float32 }

// Drop forgets the last exchange, such as that of a step that is not to count.
func (m *AmaxMemory) Drop() { m.amax = m.before }

// What happens to values, as a Reporter hears it.
const (
	opSend   = "send"   // an operand or a partial sum is encoded
	opSum    = "sum"    // two are added
	opResult = "result" // the result of a reduction is encoded
	opGather = "gather" // a part of an all-gather
)

// Check returns an error, [ErrInput], that names the first option that is out of range.
func (x *Exchange) Check() error {
	for _, err := range []error{
		x.Wire.Check(), x.Result.Check(),
		orders.Check(x.Order), roundings.Check(x.Rounding), amaxRules.Check(x.Amax),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case x.Cols < 0:
		return inputError("%q: Exchange.Cols is %d: it must not be negative", x.Name, x.Cols)
	case x.Amax != AmaxOwn && x.Wire.kind != kindCoded:
		return inputError("%q: Exchange.Amax is %v: a wire of %v has no scales: leave it own",
			x.Name, x.Amax, x.Wire)
	case x.Amax != AmaxOwn && x.Wire.Recipe.Profile.Outer():
		return inputError("%q: Exchange.Amax is %v: scales of the recipe %v depend on outer ones: leave it own",
			x.Name, x.Amax, x.Wire.Recipe)
	case x.Amax == AmaxLate && x.Memory == nil:
		return inputError("%q: Exchange.Amax is late without a Memory", x.Name)
	}
	return nil
}

// check is Check for operands of n elements on so many ranks.
func (x *Exchange) check(ranks, n int) error {
	if err := x.Check(); err != nil {
		return err
	}
	switch {
	case ranks < 1:
		return inputError("%q: %d ranks: there must be at least 1", x.Name, ranks)
	case x.Cols > 0 && n%x.Cols != 0:
		return inputError("%q: an operand of %d elements is not whole rows of %d", x.Name, n, x.Cols)
	case x.Cuts != nil && (len(x.Cuts) != ranks+1 || x.Cuts[0] != 0 || x.Cuts[ranks] != n || !slices.IsSorted(x.Cuts)):
		return inputError("%q: cuts %v are not those of %d elements over %d ranks",
			x.Name, x.Cuts, n, ranks)
	}
	return nil
}

// cut returns the range of a part of n elements.
func (x *Exchange) cut(n, part, parts int) (lo, hi int) {
	if x.Cuts != nil && parts == len(x.Cuts)-1 {
		return x.Cuts[part], x.Cuts[part+1]
	}
	unit := max(x.Cols, 1)
	per := (n/unit + parts - 1) / parts * unit
	return min(part*per, n), min((part+1)*per, n)
}

// shape returns the rows and columns of a message of n elements.
func (x *Exchange) shape(n int) (rows, cols int) {
	if x.Cols > 0 {
		return n / x.Cols, x.Cols
	}
	return 1, n
}

// slot is a sum at some rank, of one operand at first.
type slot struct {
	values  []float32
	parcel  *parcel // what values were decoded from, if they were
	partial bool    // of more than one operand
}

// partReduction is the reduction of one part, as any rank knows it.
type partReduction struct {
	ctx  context.Context
	x    *Exchange
	part int
	n    int       // elements
	amax []float32 // shared, or nil
}

// salt makes numbers of rounding at random: other ones for each message.
func (p *partReduction) salt(kind, i int) uint64 {
	return random.Hash(uint64(p.part), uint64(kind), uint64(i))
}

// Kinds of salt.
const (
	saltOperand = iota
	saltA
	saltB
	saltStored
	saltResult
)

// operand returns the slot of a rank's operand, whose values it takes over.
func (p *partReduction) operand(values []float32, rank int) (s slot, err error) {
	s = slot{values: values}
	if p.x.Rounding != RoundSent {
		err = p.round(&s, p.salt(saltOperand, rank))
	}
	return s, err
}

// round rounds a slot to the wire.
func (p *partReduction) round(s *slot, salt uint64) (err error) {
	if s.parcel, err = p.x.pack(p.ctx, opSend, p.x.Wire, s.values, p.amax, salt); err == nil {
		s.parcel.decode(s.values)
	}
	return err
}

// message returns what is sent of a slot.
func (p *partReduction) message(s slot, salt uint64) (*parcel, error) {
	switch {
	case s.parcel != nil:
		return s.parcel, nil
	case p.x.Rounding == RoundOnce:
		return p.x.pack(p.ctx, opSend, Wire{}, s.values, nil, salt)
	}
	return p.x.pack(p.ctx, opSend, p.x.Wire, s.values, p.amax, salt)
}

// received returns the slot of what was sent, or the error.
func (p *partReduction) received(m *parcel, err error) (slot, error) {
	if err != nil {
		return slot{}, err
	}
	s := slot{values: make([]float32, m.len())}
	m.decode(s.values)
	return s, nil
}

// add adds b to a, in addition i.
func (p *partReduction) add(a *slot, b slot, i int) error {
	if p.x.Reporter != nil {
		var st fp8.Stats
		for i, x := range a.values {
			rounding.CountSum(&st, x, b.values[i], x+b.values[i])
		}
		AddTo(a.values, b.values)
		p.x.report(opSum, &st, a.values)
	} else {
		AddTo(a.values, b.values)
	}
	a.parcel, a.partial = nil, true
	if p.x.Rounding == RoundStored {
		return p.round(a, p.salt(saltStored, i))
	}
	return nil
}

// result returns the result of the part as it is sent.
func (p *partReduction) result(s slot) (*parcel, error) {
	if s.parcel != nil && p.x.Rounding == RoundStored && p.x.Result == p.x.Wire {
		return s.parcel, nil
	}
	return p.x.pack(p.ctx, opResult, p.x.Result, s.values, nil, p.salt(saltResult, 0))
}

// newAmaxes returns amaxes of 0 for the blocks of a message of n elements.
func (x *Exchange) newAmaxes(n int) []float32 {
	rows, cols := x.shape(n)
	gridRows, gridCols := x.Wire.Recipe.Block.Grid(rows, cols)
	return make([]float32, gridRows*gridCols)
}

// raise raises amaxes, one for each block, to those of values.
func (x *Exchange) raise(amax, values []float32) {
	rows, cols := x.shape(len(values))
	blockRows, blockCols := x.Wire.Recipe.Block.Extents(rows, cols)
	_, gridCols := x.Wire.Recipe.Block.Grid(rows, cols)
	for i := range rows {
		fp8.AmaxBlocks(amax[i/blockRows*gridCols:][:gridCols], values[i*cols:][:cols], blockCols)
	}
}

// remember keeps the amaxes of all parts where they are late, and returns those to use.
func (x *Exchange) remember(now [][]float32) [][]float32 {
	if x.Amax != AmaxLate {
		return now
	}
	before := x.Memory.amax
	x.Memory.before, x.Memory.amax = before, now
	for part, amax := range now {
		if len(before) != len(now) || len(before[part]) != len(amax) {
			return now
		}
	}
	return before
}

// checkMessage is check of an operand that is one message.
func (x *Exchange) checkMessage(ranks, n int) error {
	whole := *x
	whole.Cuts = nil
	return whole.check(ranks, n)
}

func identity(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
