package tokenizer

import (
	"encoding/json"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// TestShared compares IDs and texts with those that python3-tokenizers has for its tokenizers
// in the styles of published models.
func TestShared(t *testing.T) {
	for _, style := range styles {
		data, err := os.ReadFile(testutil.Shared(t, "models", "tokenizers", style+".golden.json"))
		require.NoError(t, err)
		var golden struct {
			Cases []struct {
				Text        string  `json:"text"`
				IDs         []int32 `json:"ids"`
				Plain       []int32 `json:"plain"`
				Decoded     string  `json:"decoded"`
				WithSpecial string  `json:"with_special"`
			} `json:"cases"`
		}
		require.NoError(t, json.Unmarshal(data, &golden))
		require.GreaterOrEqual(t, len(golden.Cases), 199, style)
		tokenizer, err := Read(testutil.Shared(t, "models", "tokenizers", style+".tokenizer.json"))
		require.NoError(t, err)
		for _, c := range golden.Cases {
			plain, err := tokenizer.Encode(c.Text)
			require.NoError(t, err)
			require.Equal(t, c.Plain, append([]int32{}, plain...), "%s: %q", style, c.Text)
			ids, err := tokenizer.EncodeSpecial(c.Text)
			require.NoError(t, err)
			require.Equal(t, c.IDs, append([]int32{}, ids...), "%s: %q", style, c.Text)
			decoded, err := tokenizer.Decode(ids)
			require.NoError(t, err)
			require.Equal(t, c.Decoded, decoded, style)
			decoded, err = tokenizer.DecodeSpecial(ids)
			require.NoError(t, err)
			require.Equal(t, c.WithSpecial, decoded, style)
			stream, err := tokenizer.Stream(true)
			require.NoError(t, err)
			text := ""
			for _, id := range ids {
				part := stream.Add(id)
				require.True(t, utf8.ValidString(part), "%q", part)
				text += part
			}
			require.Equal(t, c.Decoded, text+stream.End(), style)
		}
	}
}
