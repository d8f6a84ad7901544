package verify

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/safetensors"
)

// place is where a token is in an array.
type place struct{ entry, token int }

// run returns places of an entry.
func run(entry, from, to int) []place {
	places := make([]place, to-from)
	for t := range places {
		places[t] = place{entry, from + t}
	}
	return places
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
		to     *[]int
		name   string
		starts bool
	}{{&p.queries, l.Queries, true}, {&p.keys, l.Keys, true}, {&p.used, l.Used, false}} {
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
		for i, n := range all {
			if x.starts && (i == 0 && n != 0 || i > 0 && n < all[i-1] || len(all) < 2) {
				return p, fmt.Errorf("tensor %q: place %d is %d: sequences begin at 0 and one after the other, with the end last", x.name, i, n)
			}
		}
		*x.to = all
	}
	if l.Pages != "" {
		t, all, err := wholes(s, l.Pages)
		if err != nil {
			return p, err
		}
		if len(t.Shape) != 2 || len(all) == 0 {
			return p, fmt.Errorf("tensor %q has shape %v: pages are [batch, pages]", t.Name, t.Shape)
		}
		p.pages = slices.Collect(slices.Chunk(all, t.Shape[1]))
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
		numbers, err = converted(t, func(x int32) float64 { return float64(x) })
	case safetensors.I64:
		numbers, err = converted(t, func(x int64) float64 { return float64(x) })
	case safetensors.F32: // arrays of NumPy are read as that
		numbers, err = converted(t, func(x float32) float64 { return float64(x) })
	default:
		err = fmt.Errorf("tensor %q is %s: want I32, I64 or whole numbers in F32", t.Name, t.DType)
	}
	for i, x := range numbers {
		if x != math.Trunc(x) || math.Abs(x) >= 1<<31 {
			return t, nil, fmt.Errorf("tensor %q: place %d is %v: want a whole number below 2^31", t.Name, i, x)
		}
		all = append(all, int(x))
	}
	return t, all, err
}

// count is how many sequences starts or pages tell apart, or 0.
func count(starts []int, pages [][]int) int { return max(len(starts)-1, len(pages), 0) }

// sequences returns the places of the tokens of each sequence: those between starts, which
// a tensor has, or, where that is nil, of an entry of the batch.
func (a *array) sequences(starts []int, name string) (all [][]place, err error) {
	tokens := a.extents[2]
	switch {
	case starts == nil:
		for b := range a.extents[0] {
			all = append(all, run(b, 0, tokens))
		}
		return all, nil
	case a.rank != 3:
		return nil, fmt.Errorf("tensor %q says where sequences begin, and tensor %q of %d dimensions has a batch", name, a.name, a.rank)
	case starts[len(starts)-1] > tokens:
		return nil, fmt.Errorf("tensor %q: the last sequence ends at token %d: tensor %q has %d", name, starts[len(starts)-1], a.name, tokens)
	}
	for b, from := range starts[:len(starts)-1] {
		all = append(all, run(0, from, starts[b+1]))
	}
	return all, nil
}

// ofKeys returns the places of the tokens of each sequence of K or V, of which most, if not
// 0, count.
func (p *packing) ofKeys(a *array, most int) (all [][]place, err error) {
	if p.pages != nil {
		all, err = p.paged(a)
	} else {
		all, err = a.sequences(p.keys, p.name.Keys)
	}
	if err != nil {
		return nil, err
	}
	if p.used != nil && len(p.used) != len(all) {
		return nil, fmt.Errorf("tensor %q has the lengths of %d sequences: there are %d", p.name.Used, len(p.used), len(all))
	}
	for b := range all {
		n := len(all[b])
		switch {
		case p.used != nil && (p.used[b] < 0 || p.used[b] > n):
			return nil, fmt.Errorf("tensor %q: the length of sequence %d is %d: tensor %q has room for %d keys of it",
				p.name.Used, b, p.used[b], a.name, n)
		case p.used != nil:
			n = p.used[b]
		case most > n:
			return nil, fmt.Errorf("--keys %d: sequence %d of tensor %q has %d keys", most, b, a.name, n)
		case most > 0:
			n = most
		}
		all[b] = all[b][:n]
	}
	return all, nil
}

// paged are the places of sequences that are in pages, as far as they count.
func (p *packing) paged(a *array) (all [][]place, err error) {
	size := a.extents[2]
	for b, pages := range p.pages {
		var places []place
		for i, page := range pages {
			counts := b >= len(p.used) || i*size < p.used[b] // others may be any number
			if counts && (page < 0 || page >= a.extents[0]) {
				return nil, fmt.Errorf("tensor %q: page %d of sequence %d is number %d: tensor %q has %d pages",
					p.name.Pages, i, b, page, a.name, a.extents[0])
			}
			places = append(places, run(page, 0, size)...)
		}
		all = append(all, places)
	}
	return all, nil
}
