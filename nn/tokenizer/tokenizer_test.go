package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// TestGolden compares with IDs that Hugging Face's tokenizers 0.22.2 gives to the same texts,
// from tokenizers of the kinds that models have.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/ids.json")
	require.NoError(t, err)
	var golden struct {
		Texts []string             `json:"texts"`
		IDs   map[string][][]int32 `json:"ids"`
	}
	require.NoError(t, json.Unmarshal(data, &golden))
	require.GreaterOrEqual(t, len(golden.IDs), 10)
	for name, want := range golden.IDs {
		tokenizer, err := Read(filepath.Join("testdata", name))
		require.NoError(t, err)
		for i, text := range golden.Texts {
			got, err := tokenizer.Encode(text)
			require.NoError(t, err, "%s: %q", name, text)
			require.Equal(t, want[i], append([]int32{}, got...), "%s: %q", name, text)
		}
		prefix := map[string][]int32{"llama3-like.json": {348}, "llama2-like.json": {1}, "llama2-normalized.json": {1}}
		require.Equal(t, prefix[name], tokenizer.Prefix(), name)
	}
}

// bytesOnly is a tokenizer whose tokens are bytes, as octavo train writes it.
func bytesOnly(t *testing.T) string {
	vocab := map[string]int{}
	for b, r := range runeOf {
		vocab[r] = b
	}
	text, err := json.Marshal(map[string]any{
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}},
	})
	require.NoError(t, err)
	return string(text)
}

func TestBytes(t *testing.T) {
	tokenizer, err := parse([]byte(bytesOnly(t)))
	require.NoError(t, err)
	var text []byte
	var want []int32
	for b := range 256 {
		text, want = append(text, byte(b)), append(want, int32(b))
	}
	got, err := tokenizer.Encode(string(text)) // no UTF-8
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestNotUTF8(t *testing.T) {
	for _, name := range []string{"gpt2-like", "llama2-like", "metaspace-first"} {
		path := filepath.Join("testdata", name+".json")
		tokenizer, err := Read(path)
		require.NoError(t, err)
		_, err = tokenizer.Encode("é\xff")
		require.EqualError(t, err, "byte 2 is 0xff, which is not UTF-8: "+path+" takes UTF-8 only")
	}
}

// TestRefused has tokenizers of kinds that are not known: the error names what it is.
func TestRefused(t *testing.T) {
	bpe := `"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []`
	split := func(pattern string) string {
		return `{` + bpe + `}, "pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {` + pattern + `}}}`
	}
	for text, want := range map[string]string{
		`[]`:                 "want a tokenizer.json",
		`{}`:                 "there is no model that is an object",
		`{"version": "2.0"}`: `version is "2.0", which is not supported`,
		`{"model": {"type": "WordPiece", "vocab": {"a": 0}}}`:                                                                        `model is "WordPiece", which is not supported`,
		`{"model": {"type": "Unigram", "vocab": [["a", 0.5]]}}`:                                                                      `model is "Unigram"`,
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}}`:                                                             `merge "a" is not of two tokens`,
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}}`:                                                           "is not of two tokens",
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}}`:                                                           `merge 0, "a" and "a", is not of tokens of the vocabulary`,
		`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}}`:                                                        `model: "a" and "b" both are token 0`,
		`{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}`:                                                               `model: "a" is token -1`,
		`{` + bpe + `, "dropout": 0.1}}`:                                                                                             "model has a dropout",
		`{` + bpe + `, "end_of_word_suffix": "</w>"}}`:                                                                               "end_of_word_suffix",
		`{` + bpe + `}, "normalizer": {"type": "Lowercase"}}`:                                                                        `normalizer is "Lowercase"`,
		`{` + bpe + `}, "normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled"}]}}`:                               `normalizer is "Precompiled"`,
		`{` + bpe + `}, "normalizer": {"type": "Replace", "pattern": {"Regex": "(?<=a)b"}}}`:                                         `normalizer Replace: the expression "(?<=a)b" has a group (?<=, which is not supported`,
		`{` + bpe + `}, "normalizer": ` + strings.Repeat(`{"type": "Sequence", "normalizers": [`, 9) + strings.Repeat(`]}`, 9) + `}`: "normalizer has more than 8 sequences in each other",
		`{` + bpe + `}, "normalizer": {"type": "Replace"}}`:                                                                          "normalizer Replace has no pattern",
		`{` + bpe + `}, "pre_tokenizer": {"type": "BertPreTokenizer"}}`:                                                              `pre_tokenizer is "BertPreTokenizer"`,
		`{` + bpe + `}, "pre_tokenizer": {"type": "Split", "behavior": "Gone"}}`:                                                     `Split has behavior "Gone"`,
		`{` + bpe + `}, "pre_tokenizer": {"type": "Punctuation", "behavior": "Gone"}}`:                                               `Punctuation has behavior "Gone"`,
		`{` + bpe + `}, "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "sometimes"}}`:                  `prepend_scheme "sometimes"`,
		`{` + bpe + `}, "pre_tokenizer": {"type": "Metaspace", "replacement": ""}}`:                                                  `replacement ""`,
		split(`"Regex": "("`):                                          `the expression "(" has a ( without )`,
		split(`"Regex": "a)"`):                                         "a ) without (",
		split(`"Regex": "\\bq"`):                                       `has \b, which`,
		split(`"Regex": "(a)\\1"`):                                     `has \1, which`,
		split(`"Regex": "\\p{Klingon}"`):                               `the property \p{Klingon}`,
		split(`"Regex": "[[:alpha:]]"`):                                "a class [:",
		split(`"Regex": "[z-a]"`):                                      "a range in a class",
		split(`"Regex": "[a"`):                                         "an end too early",
		split(`"Regex": "(?i:é)"`):                                     "characters beyond ASCII without regard to case",
		split(`"Regex": "(?i:st)"`):                                    `"st" without regard to case`,
		split(`"Regex": "(?:a*)*"`):                                    "a repeat of what may be empty",
		split(`"Regex": "a{1001}"`):                                    "the interval {1001}",
		split(`"Regex": "((a{999}){999}){999}"`):                       "too large when its repeats are written out",
		split(`"Regex": "` + strings.Repeat("(", 1e5) + `"`):           "too many groups in each other",
		split(`"Regex": "` + strings.Repeat("[", 1e5) + `"`):           "too many classes in each other",
		`{` + bpe + `}, "post_processor": {"type": "Postfix"}}`:        `post_processor is "Postfix"`,
		`{` + bpe + `}, "post_processor": {"type": "BertProcessing"}}`: `post_processor BertProcessing: there is no cls or sep`,
		`{` + bpe + `}, "post_processor": {"type": "TemplateProcessing", "single": []}}`:                                `TemplateProcessing has the text 0 times in single`,
		`{` + bpe + `}, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}]}}`: `TemplateProcessing: special_tokens lacks "<s>"`,
		`{` + bpe + `}, "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B"}}]}}`:       `something else in single`,
	} {
		_, err := parse([]byte(text))
		require.ErrorContains(t, err, want, text[:min(len(text), 200)])
	}
	tokenizer, err := parse([]byte(`{` + bpe + `, "unk_token": "?"}}`))
	require.NoError(t, err)
	_, err = tokenizer.Encode("abc")
	require.ErrorContains(t, err, `the vocabulary lacks "c", and the unk_token "?" that stands for such`)
	_, err = Read(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o666))
	_, err = Read(path)
	require.ErrorContains(t, err, path+": want a tokenizer.json")
}

// TestBacktracking has an expression that takes 2^60 steps.
func TestBacktracking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
		"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(a+)+[bc]"}}}`), 0o666))
	tokenizer, err := Read(path)
	require.NoError(t, err)
	got, err := tokenizer.Encode("aab")
	require.NoError(t, err)
	require.Equal(t, []int32{0, 0, 1}, got)
	_, err = tokenizer.Encode("aab" + strings.Repeat("a", 60))
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, path+`: the expression "(a+)+[bc]" backtracks too often in "aaaaaaaa`)
	require.Less(t, len(err.Error()), 400, "it has no whole text")
}

// TestJoin compares with the definition: the pair of the lowest rank is joined, and of those
// the leftmost, until there is none. The words are long enough to be cut.
func TestJoin(t *testing.T) {
	text, err := os.ReadFile(testutil.Shared(t, "data", "tinyshakespeare.txt"))
	require.NoError(t, err)
	for _, style := range []string{"llama2", "gemma"} {
		tokenizer, err := Read(testutil.Shared(t, "models", "tokenizers", style+".tokenizer.json"))
		require.NoError(t, err)
		ranks, ids := map[[2]string]int{}, tokenizer.model.vocab
		data, err := os.ReadFile(tokenizer.path)
		require.NoError(t, err)
		var file struct{ Model struct{ Merges [][2]string } }
		require.NoError(t, json.Unmarshal(data, &file))
		for i, m := range file.Model.Merges {
			ranks[m] = i
		}
		for at := 0; at < 100_000; at += 5000 {
			word := strings.ReplaceAll(string(text[at:at+600]), " ", "▁")
			parts := strings.Split(word, "")
			for {
				best, where := len(ranks), -1
				for i := range len(parts) - 1 {
					if rank, ok := ranks[[2]string{parts[i], parts[i+1]}]; ok && rank < best {
						best, where = rank, i
					}
				}
				if where < 0 {
					break
				}
				parts[where] += parts[where+1]
				parts = append(parts[:where+1], parts[where+2:]...)
			}
			var want []int32
			for _, p := range parts {
				id, ok := ids[p]
				if !ok {
					id, ok = ids[fmt.Sprintf("<0x%02X>", p)]
				}
				require.True(t, ok, "%q", p)
				want = append(want, id)
			}
			j := joiner{model: tokenizer.model}
			require.NoError(t, j.encode(word))
			require.Equal(t, want, j.tokens, "%s at %d", style, at)
		}
		// Of the pairs that may be cut and of those that may not there are some.
		inside := tokenizer.model.inside()
		require.Negative(t, inside.rank(ids["▁"], ids["▁"]))
		require.GreaterOrEqual(t, inside.rank(ids["t"], ids["h"]), int32(0))
	}
	// A token is a byte, and what characters that spell it become: nothing is cut.
	tokenizer, err := parse([]byte(`{"model": {"type": "BPE", "vocab": {"<": 0, "0x61>": 1, "<0x61>": 2, "b": 3, "<0x61>b": 4},
		"merges": [["<", "0x61>"], ["<0x61>", "b"]], "byte_fallback": true}}`))
	require.NoError(t, err)
	got, err := tokenizer.Encode("b" + strings.Repeat("ab", 40))
	require.NoError(t, err)
	require.Equal(t, append([]int32{3}, slices.Repeat([]int32{4}, 40)...), got)
}

// TestLong joins a long word: as many tokens as there are pairs.
func TestLong(t *testing.T) {
	tokenizer, err := parse([]byte(`{"model": {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": ["a a"]}}`))
	require.NoError(t, err)
	got, err := tokenizer.Encode(strings.Repeat("a", 100_001))
	require.NoError(t, err)
	require.Len(t, got, 50_001)
	require.Equal(t, []int32{1, 1, 0}, got[49_998:])
}
