package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/safetensors"
)

// comparing is the work of one call of Diff.
type comparing struct {
	ctx     context.Context
	o       Options
	pairs   []*pair
	strips  []span // of which target is the pair
	tallies []tally
}

// pair are two weights at work.
type pair struct {
	Difference
	cross    bool        // one is stored as the transpose of the other
	alike    bool        // in the same parts, of the same types and shapes
	numbers  bool        // values are compared, rather than bytes
	unlike   atomic.Bool // some byte differs
	problems []error
}

// tally is what was counted in a strip.
type tally struct {
	differ, rounded, nonFinite, zeroSigns int64
	first, firstNonFinite                 int64 // -1: none
	Error
	problem error
}

// match pairs the weights.
func (j *comparing) match(a, b *Checkpoint, choose func(string) bool) {
	if choose == nil {
		choose = func(string) bool { return true }
	}
	in := map[string]*Weight{}
	for _, w := range b.weights {
		in[w.Name] = w
	}
	for _, w := range a.weights {
		if choose(w.Name) {
			p := newPair(w, in[w.Name])
			p.alone("B", b)
			j.pairs = append(j.pairs, p)
		}
		delete(in, w.Name)
	}
	for _, w := range b.weights {
		if in[w.Name] != nil && choose(w.Name) {
			p := newPair(nil, w)
			p.alone("A", a)
			j.pairs = append(j.pairs, p)
		}
	}
}

func newPair(a, b *Weight) *pair {
	p := &pair{Difference: Difference{A: a, B: b, First: -1, FirstNonFinite: -1}}
	if a == nil {
		p.Name, p.Why = b.Name, "it is only in B"
		p.Unread, _ = b.unreadOf()
		return p
	}
	p.Name = a.Name
	p.Unread, _ = a.unreadOf()
	if b == nil {
		p.Why = "it is only in A"
		return p
	}
	if p.Unread == "" {
		p.Unread, _ = b.unreadOf()
	}
	p.cross = transposed(a.Scheme) != transposed(b.Scheme)
	p.alike = alike(a, b)
	p.numbers = isNumeric(a) && isNumeric(b)
	p.Type = commonType(a, b)
	shape := slices.Clone(b.Shape)
	if n := len(shape); p.cross && n > 1 {
		shape[n-1], shape[n-2] = shape[n-2], shape[n-1]
	}
	switch one := a.Len() == 1 && b.Len() == 1; {
	case !one && !slices.Equal(a.Shape, shape):
		p.Why = fmt.Sprintf("its shape is %v and %v", a.Shape, shape)
	case !p.numbers && a.Parts[Codes].DType != b.Parts[Codes].DType:
		p.Why = fmt.Sprintf("it is %s and %s", kind(a), kind(b))
	default:
		p.Elements = a.Len()
	}
	return p
}

// alone notes that a weight is in one alone because the other has its module in a method that is
// not read.
func (p *pair) alone(which string, in *Checkpoint) {
	if method := moduleMethod(in.modules, p.Name); method != "" && (p.A == nil || p.B == nil) {
		p.Unread, p.Why = method, fmt.Sprintf("not judged: in %s its module is of %s, which is not read", which, method)
	}
}

// kind says what a weight is stored as.
func kind(w *Weight) string {
	switch d := w.Parts[Codes].DType; {
	case w.Scheme != nil:
		return w.Scheme.Name
	case hasCodesName(w.Parts[Codes]):
		return string(d) + " without scales"
	default:
		return string(d)
	}
}

// alike reports whether two weights are stored in the same way, so that the same bytes are
// the same values.
func alike(a, b *Weight) bool {
	if a.Scheme != b.Scheme || a.Block != b.Block {
		return false
	}
	for r := range roles {
		x, y := a.Parts[r], b.Parts[r]
		if a.Has(r) != b.Has(r) || x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) {
			return false
		}
	}
	return true
}

// commonType returns the type in which values that were rounded to it are the same.
func commonType(a, b *Weight) safetensors.DType {
	x, y := valuesOf(a), valuesOf(b)
	switch {
	case x == y:
		return ""
	case x == safetensors.F64 || x == safetensors.F32 && y != safetensors.F64:
		x = y
	case y != safetensors.F32 && y != safetensors.F64:
		return "" // BF16 and F16, of which neither has the other's values
	}
	if !isFloat(x) {
		return ""
	}
	return x
}

// inputs compares the scales of inputs, where both have one with the same meaning.
func (p *pair) inputs() error {
	if !p.A.Has(Input) || !p.B.Has(Input) || p.A.Scheme.Divide != p.B.Scheme.Divide {
		return nil
	}
	var err, err2 error
	p.InputA, _, err = p.A.InputScale()
	p.InputB, _, err2 = p.B.InputScale()
	p.Inputs = p.InputA != p.InputB && (p.InputA == p.InputA || p.InputB == p.InputB)
	return cmp.Or(err, err2)
}

// merge adds what was counted in the next strip.
func (p *pair) merge(t *tally) {
	if p.First < 0 {
		p.First = t.first
	}
	if p.FirstNonFinite < 0 {
		p.FirstNonFinite = t.firstNonFinite
	}
	p.Differ += t.differ
	p.Rounded += t.rounded
	p.NonFinite += t.nonFinite
	p.ZeroSigns += t.zeroSigns
	p.Error.Merge(&t.Error)
	if t.problem != nil {
		p.problems = append(p.problems, t.problem)
	}
}

// unjudged says why two weights of a method that is not read are not comparable, "" if they are
// the same whatever their bytes mean.
func (p *pair) unjudged() string {
	switch {
	case !p.alike || p.unlike.Load():
		return fmt.Sprintf("not judged: %s is not read, and its bytes are not the same", p.Unread)
	case !reflect.DeepEqual(p.A.from.Config.Quantization, p.B.from.Config.Quantization):
		return fmt.Sprintf("not judged: %s is not read, and under the same bytes quantization_config is not the same", p.Unread)
	}
	return ""
}

// conclude says how much is the same.
func (p *pair) conclude() *Difference {
	d := &p.Difference
	if len(p.problems) > 0 {
		d.Why = p.problems[0].Error()
	}
	if d.Type == "" {
		d.Rounded = 0
	}
	if d.Unread != "" && d.Why == "" {
		d.Why = p.unjudged()
	}
	switch {
	case d.Why != "":
		d.Same = Incomparable
	case d.Inputs || d.Differ > 0 && (d.Type == "" || d.Rounded > 0):
		d.Same = Different
	case d.Differ > 0:
		d.Same = RoundedValues
	case p.alike && !p.unlike.Load():
		d.Same = SameBytes
	default:
		d.Same = SameValues
	}
	return d
}
