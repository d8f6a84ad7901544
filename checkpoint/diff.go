package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/safetensors"
)

// Sameness is how much two weights have in common.
type Sameness uint8

const (
	Incomparable  Sameness = iota // one is absent, or types or shapes do not go together
	Different                     // some values, or the scales of the input, are not the same
	RoundedValues                 // all values are, once rounded to the type of one of them
	SameValues                    // all values are, zeros of either sign being the same
	SameBytes                     // stored alike, byte for byte
)

var samenessNames = [...]string{"incomparable", "different", "same once rounded", "same values", "same bytes"}

// String returns it in words, such as "same values".
func (s Sameness) String() string {
	if int(s) >= len(samenessNames) {
		return fmt.Sprintf("Sameness(%d)", uint8(s))
	}
	return samenessNames[s]
}

// Difference is what tells two weights of one name apart, in whatever layouts. The first is
// taken for what is right. Indexes are of elements of the first, in row-major order.
type Difference struct {
	Name string
	A, B *Weight // nil where there is none
	Same Sameness

	// Why says what kept values from being compared; "" if they were.
	Why string

	// Unread is the method of quantization of one of them that is not read, "" for none. Such
	// weights have the same bytes, under the same configuration, or are not comparable.
	Unread string

	// Elements were compared: values as float32, which [ReadValues] gives, or float64 where one
	// of them is that, and bytes of what holds no floats. Differ are those that are not the
	// same, and First is the first of them; -1 for none.
	Elements, Differ, First int64

	// Rounded to Type, the narrower of the types of values that are not quantized, so many
	// elements differ. Type is "" where there is none or it is that of both.
	Type    safetensors.DType
	Rounded int64

	// NonFinite elements are NaN or infinite in one and something else in the other, and
	// FirstNonFinite is the first of them; -1 for none.
	NonFinite, FirstNonFinite int64

	ZeroSigns int64 // zeros of different sign, which are the same value

	// Error is that of B where both are finite.
	Error Error

	// Inputs says that both have a scale of the layer's input, which InputA and InputB are,
	// that is not the same.
	Inputs         bool
	InputA, InputB float32
}

// Tolerance says which differences count. The zero value wants the same values.
type Tolerance struct {
	SQNR    float64 // in decibels, at least that; 0 asks for none
	Largest float64 // error, at most that; 0 allows none where SQNR is 0, and any otherwise
	Rounded bool    // what is the same once rounded is the same
}

// Within reports whether the weights are the same but for what t allows. Other shapes, a NaN
// or an infinity in one of them and other scales of inputs are never allowed.
func (d *Difference) Within(t Tolerance) bool {
	switch {
	case d.Same >= SameValues || d.Same == RoundedValues && t.Rounded:
		return true
	case d.Same == Incomparable || d.Inputs || d.NonFinite > 0 || !d.numeric():
		return false
	}
	return (t.SQNR != 0 || t.Largest != 0) &&
		(t.SQNR == 0 || d.SQNR() >= t.SQNR) && (t.Largest == 0 || d.Error.Largest <= t.Largest)
}

// SQNR returns the signal-to-quantization-noise ratio in decibels: +Inf if nothing differs, -Inf
// where there is noise alone, NaN where what differs has none, as bytes and infinities.
func (d *Difference) SQNR() float64 {
	switch {
	case d.Error.Squared == 0 && d.Differ > 0:
		return math.NaN()
	case d.Error.Squared == 0:
		return math.Inf(1)
	case d.Error.Signal == 0:
		return math.Inf(-1)
	}
	return d.Error.SQNR()
}

// Index returns the indexes along the dimensions of the first weight of an element.
func (d *Difference) Index(element int64) []int {
	shape := d.A.Shape
	at := make([]int, len(shape))
	for i, n := range slices.Backward(shape) {
		at[i] = int(element % int64(n))
		element /= int64(n)
	}
	return at
}

// numeric reports whether values were compared, rather than bytes.
func (d *Difference) numeric() bool {
	return d.A != nil && d.B != nil && isNumeric(d.A) && isNumeric(d.B)
}

func isNumeric(w *Weight) bool {
	return w.Scheme != nil || isFloat(w.Parts[Codes].DType) || isDouble(w)
}

// Diff compares the weights of two checkpoints by value, in whatever layouts they are: those
// that choose returns true for, or all if it is nil. The result has those that differ most
// first: what is in one alone or cannot be compared, then the largest share of NaN or
// infinities that are no such thing in the other, then the lowest SQNR; what is equal comes in
// the order of names.
//
// Weights are matched by their names, whatever those of their codes and scales are; one that a
// scheme stores transposed is compared with the transpose. Weights that are stored alike are
// compared by bytes first. Only what is left is decoded: in strips, on all processors, in
// memory of a few strips for each worker. Sums do not depend on how many there are.
//
// A scale that is none is no error: it is among the differences, with what is wrong in Why.
func Diff(
	ctx context.Context, a, b *Checkpoint, choose func(weight string) bool, o Options,
) ([]Difference, error) {
	j := &comparing{ctx: ctx, o: o}
	j.match(a, b, choose)
	if err := j.compareBytes(); err != nil {
		return nil, err
	}
	if err := j.compareValues(); err != nil {
		return nil, err
	}
	all := make([]Difference, len(j.pairs))
	for i, p := range j.pairs {
		all[i] = *p.conclude()
	}
	slices.SortStableFunc(all, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(y.nonFiniteShare(), x.nonFiniteShare()),
			cmp.Compare(x.SQNR(), y.SQNR()), cmp.Compare(x.Name, y.Name))
	})
	return all, nil
}

func (d *Difference) nonFiniteShare() float64 {
	return float64(d.NonFinite) / float64(max(d.Elements, 1))
}

// rank puts what differs most first.
func (d *Difference) rank() int {
	if d.Same == Different && d.NonFinite > 0 {
		return 1
	}
	return 2 * int(d.Same)
}
