package verifyattention

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/safetensors"
)

// place is where a token is in an array of [batch, heads, tokens, dim].
type place struct{ entry, token int }

// gather returns [heads, tokens, dim] of the tokens of some places.
func gather[T any](x []T, e extents, places []place) []T {
	d := e[3]
	r := make([]T, 0, e[1]*len(places)*d)
	for h := range e[1] {
		for _, p := range places {
			r = append(r, x[((p.entry*e[1]+h)*e[2]+p.token)*d:][:d]...)
		}
	}
	return r
}

// Lengths says which tensors tell sequences apart whose lengths differ. All are of whole
// numbers; "" is none.
type Lengths struct {
	// Queries and Keys are where sequences begin among the tokens of Q, and of K and V, which
	// have no batch: 0 and the end of each, FlashAttention's cu_seqlens_q and cu_seqlens_k.
	Queries, Keys string

	Used string // how many keys of each sequence count: seqused_k or cache_seqlens

	// Pages are [batch, most pages], which pages of K and V are whose, of which their first
	// dimension is. Keys is then "", and Used not.
	Pages string
}

// packing is what Lengths say.
type packing struct {
	queries, keys, used []int
	pages               [][]int
	name                Lengths
}

func (l Lengths) read(s *operands.Source) (p packing, err error) {
	p.name = l
	for _, x := range []struct {
		to   *[]int
		name string
	}{{&p.queries, l.Queries}, {&p.keys, l.Keys}, {&p.used, l.Used}} {
		if x.name == "" {
			continue
		}
		t, all, err := wholes(s, x.name)
		if err != nil {
			return p, err
		}
		if len(t.Shape) != 1 || len(all) == 0 {
			return p, fmt.Errorf("tensor %q has shape %v: lengths are a row of numbers", t.Name, t.Shape)
		}
		*x.to = all
	}
	for _, x := range []struct {
		starts []int
		name   string
	}{{p.queries, l.Queries}, {p.keys, l.Keys}} {
		for i, n := range x.starts {
			if i == 0 && n != 0 || i > 0 && n < x.starts[i-1] || len(x.starts) < 2 {
				return p, fmt.Errorf("tensor %q: place %d is %d: sequences begin at 0 and one after the "+
					"other, with the end last",
					x.name, i, n)
			}
		}
	}
	if l.Pages != "" {
		t, all, err := wholes(s, l.Pages)
		if err != nil {
			return p, err
		}
		if len(t.Shape) != 2 || len(all) == 0 {
			return p, fmt.Errorf("tensor %q has shape %v: pages are [batch, pages]", t.Name, t.Shape)
		}
		for len(all) > 0 {
			p.pages, all = append(p.pages, all[:t.Shape[1]]), all[t.Shape[1]:]
		}
	}
	return p, nil
}

// wholes reads whole numbers.
func wholes(s *operands.Source, name string) (t operands.Tensor, all []int, err error) {
	if t, err = s.Find(name); err != nil {
		return t, nil, err
	}
	var numbers []float64
	switch t.DType {
	case safetensors.I32:
		numbers, err = numbersOf[int32](t)
	case safetensors.I64:
		numbers, err = numbersOf[int64](t)
	case safetensors.F32: // arrays of NumPy are read as that
		numbers, err = numbersOf[float32](t)
	default:
		err = fmt.Errorf("tensor %q is %s: want I32, I64 or whole numbers in F32", t.Name, t.DType)
	}
	for i, x := range numbers {
		if x != math.Trunc(x) || math.Abs(x) >= 1<<31 {
			return t, nil, fmt.Errorf("tensor %q: place %d is %v: want a whole number below 2^31", t.Name,
				i, x)
		}
		all = append(all, int(x))
	}
	return t, all, err
}

func numbersOf[T int32 | int64 | float32](t operands.Tensor) (r []float64, err error) {
	all, err := safetensors.Elements[T](t.File, t.Name)
	for _, x := range all {
		r = append(r, float64(x))
	}
	return r, err
}

// count is how many sequences there are of an array that starts or pages tell apart, or 0.
func (p *packing) count(q bool) int {
	switch {
	case q && p.queries != nil:
		return len(p.queries) - 1
	case !q && p.keys != nil:
		return len(p.keys) - 1
	case !q && p.pages != nil:
		return len(p.pages)
	}
	return 0
}

// ofQueries returns the places of the tokens of each sequence of Q.
func (p *packing) ofQueries(a *array) ([][]place, error) {
	if p.queries != nil {
		return packed(a, p.queries, p.name.Queries)
	}
	return batched(a.extents), nil
}

// ofKeys returns the same of K or V, of which most, if not 0, count.
func (p *packing) ofKeys(a *array, most int) (all [][]place, err error) {
	switch {
	case p.keys != nil:
		all, err = packed(a, p.keys, p.name.Keys)
	case p.pages != nil:
		all, err = p.paged(a)
	default:
		all = batched(a.extents)
	}
	if err != nil {
		return nil, err
	}
	if p.used != nil && len(p.used) != len(all) {
		return nil, fmt.Errorf("tensor %q has the lengths of %d sequences: there are %d", p.name.Used,
			len(p.used), len(all))
	}
	for b := range all {
		n := len(all[b])
		if most > n {
			return nil, fmt.Errorf("--keys %d: sequence %d of tensor %q has %d keys", most, b, a.name, n)
		}
		if most > 0 {
			n = most
		}
		if p.used != nil {
			if n = p.used[b]; n < 0 || n > len(all[b]) {
				return nil, fmt.Errorf("tensor %q: the length of sequence %d is %d: tensor %q has room for "+
					"%d keys of it",
					p.name.Used, b, n, a.name, len(all[b]))
			}
		}
		all[b] = all[b][:n]
	}
	return all, nil
}

// batched are the places where each entry of the batch is a sequence.
func batched(e extents) (all [][]place) {
	for b := range e[0] {
		places := make([]place, e[2])
		for t := range places {
			places[t] = place{b, t}
		}
		all = append(all, places)
	}
	return all
}

// packed are those of sequences that lie one after the other.
func packed(a *array, starts []int, name string) (all [][]place, err error) {
	if a.rank != 3 {
		return nil, fmt.Errorf("tensor %q says where sequences begin, and tensor %q of %d dimensions "+
			"has a batch", name, a.name, a.rank)
	}
	if last := starts[len(starts)-1]; last > a.extents[2] {
		return nil, fmt.Errorf("tensor %q: the last sequence ends at token %d: tensor %q has %d", name,
			last, a.name, a.extents[2])
	}
	for b, from := range starts[:len(starts)-1] {
		places := make([]place, starts[b+1]-from)
		for t := range places {
			places[t] = place{0, from + t}
		}
		all = append(all, places)
	}
	return all, nil
}

// paged are those of sequences that are in pages, as far as they count.
func (p *packing) paged(a *array) (all [][]place, err error) {
	size := a.extents[2]
	for b, pages := range p.pages {
		places := make([]place, 0, len(pages)*size)
		for i, page := range pages {
			counts := b >= len(p.used) || i*size < p.used[b] // others may be any number
			if counts && (page < 0 || page >= a.extents[0]) {
				return nil, fmt.Errorf("tensor %q: page %d of sequence %d is number %d: tensor %q has %d pages",
					p.name.Pages, i, b, page, a.name, a.extents[0])
			}
			for t := range size {
				places = append(places, place{page, t})
			}
		}
		all = append(all, places)
	}
	return all, nil
}
