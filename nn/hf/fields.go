package hf

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// fields reads the members of a configuration. The first that is wrong is its error, after
// which it reads nothing.
type fields struct {
	file     string
	within   string // what they are members of, with a dot behind it; "" for the file
	values   map[string]json.RawMessage
	defaults map[string]json.RawMessage // of the class, of members that are absent
	known    map[string]bool            // members that were asked for
	err      error
}

// raw returns a member, or its default; nil for none and for null.
func (f *fields) raw(key string) json.RawMessage {
	f.know(key)
	raw, ok := f.values[key]
	if !ok {
		raw = f.defaults[key]
	}
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// know says of members that they are understood.
func (f *fields) know(keys ...string) {
	if f.known == nil {
		f.known = map[string]bool{}
	}
	for _, key := range keys {
		f.known[key] = true
	}
}

// read reads a member, if it is there and not null, and reports whether it was.
func (f *fields) read(key, want string, to any) bool {
	raw := f.raw(key)
	if f.err != nil || raw == nil {
		return false
	}
	if json.Unmarshal(raw, to) != nil {
		f.refuse(key, want)
		return false
	}
	return true
}

// refuse says of a member that is there that it is not what there must be.
func (f *fields) refuse(key, want string) {
	if f.err == nil {
		f.err = configError(f.file, "%s is %s: want %s", f.within+key, textout.JSON(f.raw(key)), want)
	}
}

const positive = "a positive integer"

// size reads a size that must be there.
func (f *fields) size(key string) int {
	n := 0
	switch there := f.read(key, positive, &n); {
	case f.err != nil:
	case !there:
		f.err = configError(f.file, "%s is absent: want %s", f.within+key, positive)
	case n <= 0:
		f.refuse(key, positive)
	}
	return n
}

// sizeOr is size of what may be absent.
func (f *fields) sizeOr(key string, otherwise int) int {
	n := otherwise
	if f.read(key, positive, &n) && n <= 0 {
		f.refuse(key, positive)
	}
	return n
}

const notNegative = "an integer from 0 on"

// count reads a number of something that must be there and may be 0.
func (f *fields) count(key string) int {
	n := f.countOr(key, -1)
	if n < 0 && f.err == nil {
		f.err = configError(f.file, "%s is absent: want %s", f.within+key, notNegative)
	}
	return n
}

// countOr is count of what may be absent.
func (f *fields) countOr(key string, otherwise int) int {
	n := otherwise
	if f.read(key, notNegative, &n) && n < 0 {
		f.refuse(key, notNegative)
	}
	return n
}

// number reads a number that must be positive.
func (f *fields) number(key string, otherwise float64) float64 {
	const want = "a positive number"
	x := otherwise
	if f.read(key, want, &x) && !(x > 0) {
		f.refuse(key, want)
	}
	return x
}

// notNegative reads a number from 0 on, which it is where it is absent.
func (f *fields) notNegative(key string) (x float64) {
	const want = "a number from 0 on"
	if f.read(key, want, &x) && !(x >= 0) {
		f.refuse(key, want)
	}
	return x
}

// needed reads a positive number that must be there.
func (f *fields) needed(key string) float64 {
	x := f.number(key, 0)
	if x == 0 && f.err == nil {
		f.err = configError(f.file, "%s is absent: want a positive number", f.within+key)
	}
	return x
}

// truth reads true or false; absent is false.
func (f *fields) truth(key string) (set bool) {
	f.read(key, "true or false", &set)
	return set
}

// never refuses a member that is true.
func (f *fields) never(key, why string) {
	if f.truth(key) {
		f.refuse(key, "false: "+why)
	}
}

// word reads one of some words; "" where it is absent.
func (f *fields) word(key, why string, words ...string) (word string) {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	want := strings.Join(quoted, ", ")
	if last := len(quoted) - 1; last > 0 {
		want = strings.Join(quoted[:last], ", ") + " or " + quoted[last]
	}
	want += ": " + why
	if f.read(key, want, &word) && !slices.Contains(words, word) {
		f.refuse(key, want)
	}
	return word
}

// object reads the members of a member that is an object; none where it is absent. One that is null
// is the default. Its error is that of f.
func (f *fields) object(key string, read func(*fields)) {
	inner := &fields{file: f.file, within: f.within + key + "."}
	if !f.read(key, "an object", &inner.values) && f.err == nil {
		_ = json.Unmarshal(f.defaults[key], &inner.values) // which families has
	}
	if f.err == nil {
		read(inner)
		f.err = inner.err
	}
}

// refuseOthers refuses the first member that nothing has asked for and whose value is neither null
// nor false, which is an option that is not taken.
func (f *fields) refuseOthers(harmless func(key string) bool) {
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		raw := string(f.values[key])
		if f.err == nil && !f.known[key] && raw != "null" && raw != "false" && !harmless(key) {
			f.refuse(key, "none: what it changes is not known; without it, if it changes nothing, the model runs")
		}
	}
}
