package tokenizer

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"unicode"
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

// TestVariants compares with what tokenizers 0.23.2 gives for the shared tokenizers when
// parts of them are others: expressions, behaviors, normalizers, added tokens, characters that
// the vocabulary lacks, decoders and post-processors.
func TestVariants(t *testing.T) {
	data, err := os.ReadFile("testdata/variants.json")
	require.NoError(t, err)
	var variants []struct {
		Name, Base string
		Override   map[string]any
		Model      map[string]any
		Lacks      []string
		Cases      []struct {
			Text, Decoded, Special string
			IDs                    []int32
			Random                 []int32
			RandomDecoded          string `json:"random_decoded"`
		}
	}
	require.NoError(t, json.Unmarshal(data, &variants))
	require.Greater(t, len(variants), 80)
	for _, v := range variants {
		base, err := os.ReadFile(testutil.Shared(t, "models", "tokenizers", v.Base+".tokenizer.json"))
		require.NoError(t, err)
		var file map[string]any
		require.NoError(t, json.Unmarshal(base, &file))
		model := file["model"].(map[string]any)
		maps.Copy(file, v.Override)
		maps.Copy(model, v.Model)
		if len(v.Lacks) > 0 {
			without(model, v.Lacks)
		}
		text, err := json.Marshal(file)
		require.NoError(t, err)
		tokenizer, err := parse(text)
		require.NoError(t, err, v.Name)
		require.NotEmpty(t, v.Cases)
		for _, c := range v.Cases {
			ids, err := tokenizer.EncodeSpecial(c.Text)
			require.NoError(t, err, v.Name)
			require.Equal(t, c.IDs, append([]int32{}, ids...), "%s: %q", v.Name, c.Text)
			decoded, err := tokenizer.Decode(ids)
			require.NoError(t, err, v.Name)
			require.Equal(t, c.Decoded, decoded, "%s: %v", v.Name, ids)
			decoded, err = tokenizer.DecodeSpecial(ids)
			require.NoError(t, err, v.Name)
			require.Equal(t, c.Special, decoded, "%s: %v", v.Name, ids)
			decoded, err = tokenizer.Decode(c.Random)
			require.NoError(t, err, v.Name)
			require.Equal(t, c.RandomDecoded, decoded, "%s: %v", v.Name, c.Random)
		}
	}
}

// without takes tokens from a model, and the merges in which their characters are.
func without(model map[string]any, lacks []string) {
	chars := ""
	for _, l := range lacks {
		delete(model["vocab"].(map[string]any), l)
		if utf8.RuneCountInString(l) == 1 {
			chars += l
		}
	}
	var merges []any
	for _, m := range model["merges"].([]any) {
		pair := m.([]any)
		if !strings.ContainsAny(pair[0].(string)+pair[1].(string), chars) {
			merges = append(merges, m)
		}
	}
	model["merges"] = merges
}

// TestCategories compares general categories with those of package unicode, where both know a
// character. Unicode changed these since its version 15.
func TestCategories(t *testing.T) {
	changed := map[rune]bool{}
	c := unicodeData()
	unassigned := c.sets["Cn"].class()
	for name, table := range unicode.Categories {
		s, ok := c.sets[name]
		if len(name) > 2 || name[0] == 'C' || name == "LC" || !ok {
			continue
		}
		class := s.class()
		for r := rune(0); r <= utf8.MaxRune; r++ {
			if class.has(r) != unicode.Is(table, r) && !unassigned.has(r) && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z) {
				changed[r] = true
			}
		}
	}
	require.Equal(t, map[rune]bool{0x1171E: true}, changed)
}

// forms returns a text in NFC, NFD, NFKC and NFKD.
func forms(text string) [4]string {
	return [4]string{normalForm(text, true, false), normalForm(text, false, false), normalForm(text, true, true), normalForm(text, false, true)}
}

// TestNormalForms compares with what tokenizers 0.23.2 gives, and has the laws of normal forms
// for all characters that change in one (Unicode, UAX 15).
func TestNormalForms(t *testing.T) {
	data, err := os.ReadFile("testdata/normal.json")
	require.NoError(t, err)
	var golden [][5]string
	require.NoError(t, json.Unmarshal(data, &golden))
	require.Len(t, golden, 150)
	for _, g := range golden {
		require.Equal(t, [4]string(g[1:]), forms(g[0]), "%+q", g[0])
	}
	c := unicodeData()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if c.compat[r] == nil && c.canonical[r] == nil && c.combining[r] == 0 && r%1009 != 0 || !utf8.ValidRune(r) {
			continue
		}
		// Marks are out of order, with the character between them and in front.
		text := string(r) + "\u0301\u0323" + string(r) + "a"
		f := forms(text)
		for i, again := range [][4]string{forms(f[0]), forms(f[1]), forms(f[2]), forms(f[3])} {
			for j := range again {
				want := f[j]
				if i >= 2 && j < 2 { // compatibility is lost
					want = f[j+2]
				}
				if again[j] != want {
					t.Fatalf("%+q: form %d of form %d is %+q, not %+q", text, j, i, again[j], want)
				}
			}
		}
	}
	for text, want := range map[string][4]string{ // NFC, NFD, NFKC, NFKD as UAX 15 has them
		"\u1e9b\u0323": {"\u1e9b\u0323", "\u017f\u0323\u0307", "\u1e69", "s\u0323\u0307"},
		"\u212b":       {"\u00c5", "A\u030a", "\u00c5", "A\u030a"},
		"\u1e0b\u0323": {"\u1e0d\u0307", "d\u0323\u0307", "\u1e0d\u0307", "d\u0323\u0307"},
		"\ufb01":       {"\ufb01", "\ufb01", "fi", "fi"},
		"2\u2075":      {"2\u2075", "2\u2075", "25", "25"},
		"\ud55c":       {"\ud55c", "\u1112\u1161\u11ab", "\ud55c", "\u1112\u1161\u11ab"},
		"\u0958":       {"\u0915\u093c", "\u0915\u093c", "\u0915\u093c", "\u0915\u093c"}, // excluded from composition
	} {
		require.Equal(t, want, forms(text), "%+q", text)
	}
}

// TestStreams: streams give what Decode gives, also of tokens at random, but where tokens of
// bytes are no UTF-8.
func TestStreams(t *testing.T) {
	state := uint32(1)
	for _, style := range styles {
		tokenizer, err := Read(testutil.Shared(t, "models", "tokenizers", style+".tokenizer.json"))
		require.NoError(t, err)
		compared, replaced := 0, 0
		for range 300 {
			var ids []int32
			for range 12 {
				state = state*1664525 + 1013904223
				ids = append(ids, int32(state>>16)%900)
			}
			want, err := tokenizer.Decode(ids)
			require.NoError(t, err)
			stream, err := tokenizer.Stream(true)
			require.NoError(t, err)
			got := ""
			for _, id := range ids {
				got += stream.Add(id)
			}
			if got += stream.End(); strings.Contains(want, "\ufffd") {
				replaced++
				if style == "gemma" || style == "llama2" {
					continue
				}
			}
			require.Equal(t, want, got, "%s: %v", style, ids)
			compared++
		}
		require.Greater(t, compared, 20, style)
		require.Greater(t, replaced, 20, style)
	}
}

func FuzzTokenizer(f *testing.F) {
	for _, name := range []string{"llama3-like", "llama2-normalized", "metaspace-first", "digits-together", "unknown-fused"} {
		data, err := os.ReadFile("testdata/" + name + ".json")
		require.NoError(f, err)
		f.Add(data, "To be, or not to be: \u00e9\u0301 <s>\r\n 123 \u4f60")
	}
	f.Add([]byte(`{"model": {"type": "BPE", "vocab": {"": 0, "a": 1, "<0x61>": 2}, "merges": [["", "a"]], "byte_fallback": true}}`), "aaa\xff")
	f.Add([]byte(`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": "Replace", "pattern": {"Regex": "a{1}}"}}}`), "a}")
	f.Add([]byte(`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "Split", "behavior": "MergedWithNext",
		"pattern": {"Regex": "(?i:'s|ll)|[^\\r\\p{L}&&[a-f]]?+\\p{Lu}{1,3}?(?!\\S)|(?>a|b*)"}}, "added_tokens": [{"content": " ", "rstrip": true}]}`), "  a's")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tokenizer, err := parse(data)
		if err != nil {
			return
		}
		ids, err := tokenizer.EncodeSpecial(text)
		if err != nil {
			return
		}
		if _, err := tokenizer.DecodeSpecial(ids); err != nil {
			return
		}
		stream, err := tokenizer.Stream(true)
		require.NoError(t, err)
		for _, id := range ids {
			require.True(t, utf8.ValidString(stream.Add(id)))
		}
		require.True(t, utf8.ValidString(stream.End()))
	})
}
