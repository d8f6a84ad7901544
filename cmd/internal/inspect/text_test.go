package inspect

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		name, want string
		width      int
	}{
		{"lm_head.weight", "lm_head.weight", 14},
		{"model.layers.12.self_attn.q_proj.weight", "model.layers.12.self_attn.q_proj.weight", 39},
		{"model.layers.12.self_attn.q_proj.weight", "m.layers.12.self_attn.q_proj.weight", 38},
		{"model.layers.12.self_attn.q_proj.weight", "m.l.12.s.q_proj.weight", 22},
		{"model.layers.12.self_attn.q_proj.weight", "m.l.12..proj.weight", 19},
		{strings.Repeat("é", 50), strings.Repeat("é", 6) + ".." + strings.Repeat("é", 12), 20},
		{"a..b", "a..b", 4},
		{"..........", "......", 6},
	} {
		got := shorten(c.name, c.width)
		require.Equal(t, c.want, got)
		require.LessOrEqual(t, utf8.RuneCountInString(got), c.width)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 9999: "9999 B", 10000: "10 kB", 999_499: "999 kB", 999_500: "1 MB", 12_345_678: "12.3 MB", 5e9: "5 GB", 3e15: "3000 TB"} {
		require.Equal(t, want, size(n))
	}
}

func TestPercent(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "<0.001%", 10: "0.001%", 99: "0.010%", 123: "0.012%", 123456: "12%", 999999: "99.9%", 992300: "99.2%", 1000000: "100%"} {
		require.Equal(t, want, percent(n, 1000000), n)
	}
}

func TestDecibels(t *testing.T) {
	for want, x := range map[string]float64{"-": math.NaN(), "exact": math.Inf(1), "NaN": math.Inf(-1), "31.58": 31.584, "152.11": 152.112} {
		require.Equal(t, want, decibels(x))
	}
}
