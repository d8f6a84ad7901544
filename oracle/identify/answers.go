package identify

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Answers are what a kernel returned for [Probes].
type Answers struct {
	Type Type                 // to which the kernel rounds C
	C    map[string][]float32 // by a product's name: [M, N], dense
}

// Type is what the elements of C are.
type Type uint8

// Types of C.
const (
	Float32 Type = iota
	BFloat16
	Float16
)

var types = enum.Enum[Type]{Type: "Type", What: "type of C", Names: []string{"F32", "BF16", "F16"}, Err: ErrFile}

// String returns the name that safetensors files have for the type.
func (t Type) String() string { return types.String(t) }

// MarshalText returns that name.
func (t Type) MarshalText() ([]byte, error) { return types.MarshalText(t) }

// UnmarshalText takes it, in any case.
func (t *Type) UnmarshalText(text []byte) error { return types.UnmarshalText(t, text) }

// fraction is the number of fraction bits of a normal number.
func (t Type) fraction() int { return [...]int{23, 7, 10}[t] }

// check reports whether there is an answer for every product.
func (a *Answers) check(p *Probes) error {
	if !types.Valid(a.Type) {
		return sentinel.Errorf(ErrFile, "identify: unknown type of C %v", a.Type)
	}
	for i := range p.Products {
		product := &p.Products[i]
		c, there := a.C[product.Name]
		m, n, _ := product.Size()
		switch {
		case !there:
			return sentinel.Errorf(ErrFile, "identify: there is no C of %s", product.Name)
		case len(c) != m*n:
			return sentinel.Errorf(ErrFile, "identify: C of %s has %d elements: want %s", product.Name, len(c), fmt.Sprintf("%dx%d", m, n))
		}
	}
	return nil
}

// silent reports whether all answers are 0.
func (a *Answers) silent() bool {
	for _, c := range a.C {
		if slices.ContainsFunc(c, func(x float32) bool { return x != 0 }) {
			return false
		}
	}
	return true
}
