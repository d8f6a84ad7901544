package textout

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPercent(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "<0.001%", 10: "0.001%", 99: "0.010%", 123: "0.012%", 123456: "12%", 999999: "99.9%", 992300: "99.2%", 1000000: "100%"} {
		require.Equal(t, want, Percent(n, 1000000), n)
	}
}

func TestDecibels(t *testing.T) {
	for want, x := range map[string]float64{"-": math.NaN(), "exact": math.Inf(1), "NaN": math.Inf(-1), "31.58": 31.584, "152.11": 152.112} {
		require.Equal(t, want, Decibels(x))
	}
}
