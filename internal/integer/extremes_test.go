package integer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestExtremes has the largest values of either sign everywhere, in blocks as long as sums
// of 16 bits allow, and one quad longer.
func TestExtremes(t *testing.T) {
	compareKernels(t, "Multiply", func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(3, 16))
		for a := range steps {
			for b := range steps {
				bias := 0
				if k.Unsigned {
					bias = steps[b].largest
				}
				if steps[a].largest*(steps[b].largest+bias) > k.Largest {
					continue
				}
				longest := max(1, math.MaxInt16/(2*steps[a].largest*(steps[b].largest+bias)))
				for _, quads := range []int{longest, longest + 1} {
					for signs := range 4 {
						q := newProblem(t, r, k, pair{a, b}, k.MR, 1, quads, false)
						x, y := extreme(steps[a].largest, signs&1), extreme(steps[b].largest, signs>>1)
						for i := range q.a {
							q.a[i] = int8(x)
						}
						for i := range q.b {
							q.b[i], q.panel[i] = y, byte(y+bias)
						}
						for i := range q.start {
							q.start[i] = int32(math.Float32bits(Magic(q.exponent))) - int32(bias*x*quads*Quad)
						}
						q.check(t, k, false, First|Last|Canonical, fmt.Sprintf("%d times %d, %d quads", x, y, quads))
					}
				}
			}
		}
	})
}

func extreme(largest, sign int) int {
	if sign == 0 {
		return min(largest, math.MaxInt8)
	}
	return -largest
}
