package verifyattention

import "fmt"

// Layout is the order of dimensions in files.
type Layout uint8

// The layouts. Without a batch the first dimension is left out.
const (
	BHSD Layout = iota // [batch, heads, tokens, dim]
	BSHD               // [batch, tokens, heads, dim], as FlashAttention has it
)

// Layouts returns their names, the default first.
func Layouts() []string { return []string{"bhsd", "bshd"} }

func (l Layout) String() string { return Layouts()[l] }

// ParseLayout reads a name.
func ParseLayout(name string) (Layout, error) {
	for i, n := range Layouts() {
		if n == name {
			return Layout(i), nil
		}
	}
	return 0, fmt.Errorf("want bhsd or bshd")
}

// extents are [batch, heads, tokens, dim] of an array.
type extents [4]int

// of reads a shape of three or four dimensions.
func (l Layout) of(shape []int) (extents, bool) {
	if len(shape) < 3 || len(shape) > 4 {
		return extents{}, false
	}
	e := extents{1}
	copy(e[4-len(shape):], shape)
	if l == BSHD {
		e[1], e[2] = e[2], e[1]
	}
	return e, true
}

// shape is what of reads.
func (l Layout) shape(e extents, rank int) []int {
	if l == BSHD {
		e[1], e[2] = e[2], e[1]
	}
	return append([]int(nil), e[4-rank:]...)
}

// text names the dimensions.
func (l Layout) text(rank int) string {
	switch {
	case l == BSHD && rank == 3:
		return "[tokens, heads, dim]"
	case l == BSHD:
		return "[batch, tokens, heads, dim]"
	case rank == 3:
		return "[heads, tokens, dim]"
	}
	return "[batch, heads, tokens, dim]"
}

// inOrder returns an array of the layout with heads before tokens.
func inOrder[T any](l Layout, x []T, e extents) []T {
	if l == BHSD || e[1] == 1 || e[2] == 1 {
		return x
	}
	r, n := make([]T, 0, len(x)), e[3]
	for b := range e[0] {
		for h := range e[1] {
			for s := range e[2] {
				at := ((b*e[2]+s)*e[1] + h) * n
				r = append(r, x[at:at+n]...)
			}
		}
	}
	return r
}
