package bench

import (
	"slices"
	"testing"
)

// TestOperands compares all ways to compute a product with the first: the bits are
// those of any level, and of packed weights.
func TestOperands(t *testing.T) {
	for _, s := range []Shape{{M: 3, N: 40, K: 200, Experts: 1}, {M: 6, N: 33, K: 130, Experts: 3}} {
		o, err := NewOperands(s)
		if err != nil {
			t.Fatal(err)
		}
		var want []float32
		for _, l := range Levels() {
			for _, c := range o.Cases(l, 2) {
				clear(o.c)
				if _, err := c.Measure(0); err != nil {
					t.Fatalf("%v: %v", c, err)
				}
				if want == nil {
					want = slices.Clone(o.c)
				}
				if !slices.Equal(o.c, want) || slices.Contains(o.c, 0) {
					t.Errorf("%v: other results than at level generic", c)
				}
			}
		}
	}
}

func TestCaseString(t *testing.T) {
	o, err := NewOperands(Shape{M: 2, N: 4, K: 8, Experts: 1})
	if err != nil {
		t.Fatal(err)
	}
	cases := append(o.Cases(Levels()[0], 1), peerCases(o.shape, 1)...)
	for i, want := range []string{"2x4x8, generic", "2x4x8, generic, packed", "2x4x8, gonum", "2x4x8, vek"} {
		if got := cases[i].String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
