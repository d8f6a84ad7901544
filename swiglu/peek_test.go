package swiglu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/swiglu"
)

// TestPeek gives the scales of Scales, and records nothing.
func TestPeek(t *testing.T) {
	for _, axis := range []swiglu.Axis{swiglu.PerChannel, swiglu.PerToken} {
		s := swiglu.Smoother{Smoothing: swiglu.Smoothing{Axis: axis, Delay: 2}}
		for step := range 3 {
			u := []float32{1, float32(step + 2), -3, 40}
			before := s.State()
			peeked := s.Peek(u, 2)
			require.Equal(t, before, s.State())
			require.Equal(t, peeked, s.Scales(u, 2))
			require.NotEqual(t, before, s.State())
			s.Update()
		}
	}
}
