package chart

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireGoodTicks: in order and inside, with 3 to 8 labels, all different, that say where they are.
func requireGoodTicks(t *testing.T, all []tick, low, high float64) {
	t.Helper()
	at := fmt.Sprintf("%v to %v: %v", low, high, all)
	seen := make(map[string]bool)
	last := math.Inf(-1)
	for _, k := range all {
		require.Greater(t, k.at, last, at)
		last = k.at
		around := (high - low) / 1e6
		require.True(t, k.at >= low-around && k.at <= high+around, at)
		if k.label == "" {
			continue
		}
		require.False(t, seen[k.label], "twice %s: %s", k.label, at)
		seen[k.label] = true
		said, err := strconv.ParseFloat(k.label, 64)
		require.NoError(t, err, at)
		require.InDelta(t, k.at, said, 1e-6*(high-low)+1e-12*math.Abs(k.at), at)
		require.Less(t, len(k.label), 16, at)
	}
	require.GreaterOrEqual(t, len(seen), 3, at)
	require.LessOrEqual(t, len(seen), mostLabels, at)
}

func TestLinearTicks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		length := math.Pow(10, r.Float64()*24-12)
		low := (r.Float64()*4 - 3) * length
		if r.IntN(4) == 0 {
			low *= 1000
		}
		high := low + length
		all := linearTicks(low, high, false)
		requireGoodTicks(t, all, low, high)
		if low > 0 || high < 0 {
			continue
		}
		zero := false
		for _, k := range all {
			zero = zero || k.at == 0 && k.label == "0"
		}
		require.True(t, zero, "%v to %v has no 0: %v", low, high, all)
	}
}

func TestWholeTicks(t *testing.T) {
	for high := 1.0; high < 5000; high++ {
		for _, k := range linearTicks(-0.02*high, high*1.02, true) {
			require.Equal(t, math.Trunc(k.at), k.at)
		}
	}
}

func TestLogTicks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		low := math.Pow(10, r.Float64()*60-30)
		high := low * math.Pow(10, math.Pow(10, r.Float64()*2.5-1))
		requireGoodTicks(t, logTicks(low, high, false), low, high)
	}
}

// TestDecadesHaveLabels, where they are not too many.
func TestDecadesHaveLabels(t *testing.T) {
	for decades := 3; decades <= mostLabels; decades++ {
		labels := make(map[string]bool)
		for _, k := range logTicks(0.9e-3, 1.1e-3*math.Pow10(decades-1), false) {
			if k.label != "" {
				labels[k.label] = true
			}
		}
		require.Len(t, labels, decades)
		require.True(t, labels["0.001"] && labels["0.01"] && labels["0.1"])
	}
}

func TestPowersOfTwoHaveLabels(t *testing.T) {
	var labels []string
	for _, k := range logTicks(200, 70000, true) {
		if k.label != "" {
			labels = append(labels, k.label)
		}
	}
	require.Equal(t, []string{"256", "1024", "4096", "16384", "65536"}, labels)
}
