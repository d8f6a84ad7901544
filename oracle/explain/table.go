package explain

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Table has a row R for each kind of fault, in the order in which equally good
// explanations are told: the likelier first. A kind is the name of its row. The first row
// is that of an honest kernel, whose kind is "" and whose text form is its name.
//
// A Table must not be changed after NewTable. It is safe for concurrent use.
type Table[K ~string, R any] struct {
	prefix string
	err    error
	rows   []R
	names  []string
	index  map[K]int
}

// NewTable returns a table of rows, where name returns a row's name, in lower case. Errors
// begin with prefix, such as "fault", and are err if that is not nil.
func NewTable[K ~string, R any](prefix string, err error, rows []R, name func(R) string) *Table[K, R] {
	t := &Table[K, R]{prefix: prefix, err: err, rows: rows, index: map[K]int{"": 0}}
	for n, r := range rows {
		t.names = append(t.names, name(r))
		if n > 0 {
			t.index[K(name(r))] = n
		}
	}
	return t
}

// Kinds returns all kinds but that of an honest kernel, in order.
func (t *Table[K, R]) Kinds() (all []K) {
	for _, name := range t.names[1:] {
		all = append(all, K(name))
	}
	return all
}

// Known is a kind of fault in words, and the public reports of it, as owner/name#number.
type Known struct {
	Kind    string   `json:"kind"`
	Text    string   `json:"text"`
	Reports []string `json:"reports,omitempty"`
}

// Known returns what of says of each row but that of an honest kernel, in order.
func (t *Table[K, R]) Known(of func(*R) Known) (all []Known) {
	for n := range t.rows[1:] {
		all = append(all, of(&t.rows[1+n]))
	}
	return all
}

// Row returns the row of a kind, and an error for an unknown one.
func (t *Table[K, R]) Row(k K) (*R, error) {
	n, ok := t.index[k]
	if !ok {
		return nil, t.unknown(string(k))
	}
	return &t.rows[n], nil
}

// Of returns the row of a kind, and an empty one for an unknown kind.
func (t *Table[K, R]) Of(k K) (r R) {
	if row, err := t.Row(k); err == nil {
		r = *row
	}
	return r
}

// Compare orders kinds as their rows are ordered.
func (t *Table[K, R]) Compare(a, b K) int { return t.index[a] - t.index[b] }

// Parse returns the kind of the given name, in any case.
func (t *Table[K, R]) Parse(name string) (K, error) {
	k := K(strings.ToLower(name))
	if string(k) == t.names[0] {
		return "", nil
	}
	if _, ok := t.index[k]; !ok || k == "" {
		return "", t.unknown(name)
	}
	return k, nil
}

// String returns a kind's name.
func (t *Table[K, R]) String(k K) string {
	if k == "" {
		return t.names[0]
	}
	return string(k)
}

// MarshalText returns a kind's name, and an error for an unknown kind.
func (t *Table[K, R]) MarshalText(k K) ([]byte, error) {
	_, err := t.Row(k)
	return []byte(t.String(k)), err
}

// UnmarshalText sets k to the kind of the given name, or leaves it as it is.
func (t *Table[K, R]) UnmarshalText(k *K, text []byte) error {
	parsed, err := t.Parse(string(text))
	if err == nil {
		*k = parsed
	}
	return err
}

func (t *Table[K, R]) unknown(name string) error {
	err := fmt.Errorf("%s: unknown kind of fault %q: want one of %s", t.prefix, name, strings.Join(t.names, ", "))
	if t.err != nil {
		err = sentinel.Errorf(t.err, "%w", err)
	}
	return err
}
