package collective

import (
	"maps"
	"slices"
)

// Volume is how much was sent.
type Volume struct{ Messages, Bytes int64 }

// Traffic is what each rank has sent, by the name of the [Wire]; amaxes that are shared
// are "amax", and the norm of gradients "norm".
type Traffic []map[string]Volume

// newTraffic returns that of so many ranks.
func newTraffic(ranks int) Traffic {
	t := make(Traffic, ranks)
	for r := range t {
		t[r] = map[string]Volume{}
	}
	return t
}

func (t Traffic) count(from int, format string, bytes int64) {
	v := t[from][format]
	t[from][format] = Volume{v.Messages + 1, v.Bytes + bytes}
}

// Add adds other, which may be of more ranks.
func (t *Traffic) Add(other Traffic) {
	for r, formats := range other {
		if r == len(*t) {
			*t = append(*t, map[string]Volume{})
		}
		for name, v := range formats {
			sum := (*t)[r][name]
			(*t)[r][name] = Volume{sum.Messages + v.Messages, sum.Bytes + v.Bytes}
		}
	}
}

// Bytes returns what all ranks have sent.
func (t Traffic) Bytes() (n int64) {
	for _, v := range t.ByFormat() {
		n += v.Bytes
	}
	return n
}

// ByFormat returns what all ranks have sent in each format.
func (t Traffic) ByFormat() map[string]Volume {
	sum := newTraffic(1)
	for _, formats := range t {
		sum.Add(Traffic{formats})
	}
	return sum[0]
}

// Formats returns the names of formats that were sent, in alphabetical order.
func (t Traffic) Formats() []string { return slices.Sorted(maps.Keys(t.ByFormat())) }

const amaxFormat = "amax"
