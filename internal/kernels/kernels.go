// Package kernels is the registry of octavo's kernels: every implementation of every
// operation, with the level of package cpu that it needs. Packages with kernels
// dispatch through it, and tests enumerate it, so that an implementation that
// dispatch can reach cannot be missing from the tests: see package kernelstest.
//
// An [Operation] is a package variable, made by [New] when the package is
// initialized:
//
//	var decode = kernels.New("convert.Decode",
//		kernels.At(cpu.AVX2, decodeAVX2), kernels.At(cpu.AVX512, decodeAVX512))
//
// and dispatch is an array index by the level in use:
//
//	if f, ok := decode.For(level); ok { ... }
//
// An implementation may need a feature that not all processors of its level have:
//
//	kernels.At(cpu.AVX512, multiplyVNNI).With(cpu.VNNI)
package kernels

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// Operation is one operation and what serves it at each level: usually a function
// of type F.
type Operation[F any] struct {
	name   string
	serves [cpu.NumLevels][]Implementation[F] // the first that there is does
}

// Implementation is one of an operation, to be given to [New].
type Implementation[F any] struct {
	Level   cpu.Level
	Feature cpu.Feature // needed too
	Func    F
}

// At is an implementation that needs a level.
func At[F any](l cpu.Level, f F) Implementation[F] { return Implementation[F]{Level: l, Func: f} }

// With is the implementation that needs a feature of its level too. It comes before one
// that does not.
func (x Implementation[F]) With(f cpu.Feature) Implementation[F] {
	x.Feature = f
	return x
}

// New registers an operation and its implementations. A level without one of its
// own, or of which the processor lacks the feature that it needs, is served by that of
// the highest level below it. New is for the initialization of packages, and panics where
// a name, or a level with a feature, comes twice.
func New[F any](name string, implementations ...Implementation[F]) *Operation[F] {
	o := &Operation[F]{name: name}
	entries := make([]Entry, len(implementations))
	for i, x := range implementations {
		entries[i] = Entry{name, x.Level, x.Feature}
	}
	for _, i := range register(name, entries) {
		x := implementations[i : i+1 : i+1]
		for l := x[0].Level; l < cpu.NumLevels; l++ {
			o.serves[l] = append(x, o.serves[l]...)
		}
	}
	return o
}

// register adds an operation's entries to the registry and returns their order there. It is
// no part of New, of which a program has a copy for each type of kernels.
func register(name string, entries []Entry) []int {
	for _, e := range registry {
		if e.Operation == name {
			panic(fmt.Sprintf("kernels: %s is registered twice", name))
		}
	}
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		x, y := entries[i], entries[j]
		return cmp.Or(cmp.Compare(x.Level, y.Level), cmp.Compare(x.Feature, y.Feature))
	})
	for i, at := range order {
		e := entries[at]
		if i > 0 && e == entries[order[i-1]] {
			panic(fmt.Sprintf("kernels: %s has two implementations for level %v", name, e.Place()))
		}
		registry = append(registry, e)
	}
	return order
}

// For returns what serves the operation at a level, and false if nothing does: then
// the caller has a loop in plain Go.
func (o *Operation[F]) For(l cpu.Level) (f F, ok bool) {
	for i := range o.serves[l] {
		if x := &o.serves[l][i]; cpu.Has(x.Feature) {
			return x.Func, true
		}
	}
	return f, false
}

// Name returns the operation's name: the package's and the function's.
func (o *Operation[F]) Name() string { return o.name }

// Entry is one implementation in the registry.
type Entry struct {
	Operation string
	Level     cpu.Level
	Feature   cpu.Feature
}

// Place is the level, and the feature if there is one: avx512 or avx512+avx512vnni.
func (e Entry) Place() string {
	if e.Feature == cpu.NoFeature {
		return e.Level.String()
	}
	return e.Level.String() + "+" + e.Feature.String()
}

func (e Entry) String() string { return e.Operation + " at level " + e.Place() }

// registry is written to by the initialization of packages only.
var registry []Entry

// Entries returns the implementations in this program of the operation of the given
// name, or of all of a package if the name is that with a dot, as in "convert.", or
// of all if it is empty.
func Entries(name string) []Entry {
	var list []Entry
	for _, e := range registry {
		if e.Operation == name || name == "" || strings.HasSuffix(name, ".") && strings.HasPrefix(e.Operation, name) {
			list = append(list, e)
		}
	}
	return list
}

// Levels returns the levels of [Entries], in rising order.
func Levels(name string) []cpu.Level {
	var levels []cpu.Level
	for _, e := range Entries(name) {
		levels = append(levels, e.Level)
	}
	slices.Sort(levels)
	return slices.Compact(levels)
}

// NoEscape returns p. The compiler must assume that a function that is called
// through a variable keeps its pointers, and allocates what they point to; NoEscape
// hides from it where p comes from. It is for arguments of kernels, which keep none.
func NoEscape[T any](p *T) *T {
	address := uintptr(unsafe.Pointer(p))
	return *(**T)(unsafe.Pointer(&address))
}

// NoEscapeSlice is [NoEscape] for what a slice refers to.
func NoEscapeSlice[T any](s []T) []T {
	return unsafe.Slice(NoEscape(unsafe.SliceData(s)), len(s))
}
