package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// fields reads the members of a configuration. The first that is wrong is its error, after
// which it reads nothing.
type fields struct {
	file   string
	within string // what they are members of, with a dot behind it; "" for the file
	values map[string]json.RawMessage
	err    error
}

// read reads a member, if it is there and not null, and reports whether it was.
func (f *fields) read(key, want string, to any) bool {
	raw := f.values[key]
	if f.err != nil || raw == nil || string(raw) == "null" {
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
		f.err = configError(f.file, "%s is %s: want %s", f.within+key, excerpt(f.values[key]), want)
	}
}

// excerpt returns the beginning of a value, without space between its parts.
func excerpt(raw json.RawMessage) string {
	const most = 60
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		raw = compact.Bytes()
	}
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most]) + "…"
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

// needed reads a positive number that must be there.
func (f *fields) needed(key string) float64 {
	x := f.number(key, 0)
	if x == 0 && f.err == nil {
		f.err = configError(f.file, "%s is absent: want a positive number", f.within+key)
	}
	return x
}

// never refuses a member that is true.
func (f *fields) never(key string) {
	const want = "false: package nn has no biases"
	var set bool
	if f.read(key, want, &set) && set {
		f.refuse(key, want)
	}
}

// only refuses a member that is there and is not one of the words.
func (f *fields) only(key, why string, words ...string) {
	want := fmt.Sprintf("%q: %s", words[0], why)
	var word string
	if !f.read(key, want, &word) {
		return
	}
	for _, w := range words {
		if w == word {
			return
		}
	}
	f.refuse(key, want)
}

// object returns the members of a member that is an object.
func (f *fields) object(key string) *fields {
	inner := &fields{file: f.file, within: f.within + key + "."}
	f.read(key, "an object", &inner.values)
	return inner
}
