package textout

import (
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
		got := Shorten(c.name, c.width)
		require.Equal(t, c.want, got)
		require.LessOrEqual(t, utf8.RuneCountInString(got), c.width)
	}
}
