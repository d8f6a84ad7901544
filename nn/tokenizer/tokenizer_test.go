package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// TestRefused has tokenizers of kinds that are not known.
func TestRefused(t *testing.T) {
	bpe := `"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []`
	for text, want := range map[string]string{
		`[]`: "want a tokenizer.json",
		`{}`: "there is no model that is an object",
		`{"model": {"type": "WordPiece", "vocab": {"a": 0}}}`:                                                   `model is "WordPiece", which is not supported`,
		`{"model": {"type": "Unigram", "vocab": [["a", 0.5]]}}`:                                                 `model is "Unigram"`,
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}}`:                                        `merge "a" is not of two tokens`,
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}}`:                                      "is not of two tokens",
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}}`:                                      `merge 0, "a" and "a", is not of tokens of the vocabulary`,
		`{` + bpe + `, "dropout": 0.1}}`:                                                                        "model has a dropout",
		`{` + bpe + `, "end_of_word_suffix": "</w>"}}`:                                                          "end_of_word_suffix",
		`{` + bpe + `, "unk_token": "?"}}`:                                                                      `unk_token "?" is not in the vocabulary`,
		`{` + bpe + `}, "normalizer": {"type": "Lowercase"}}`:                                                   `normalizer is "Lowercase"`,
		`{` + bpe + `}, "normalizer": {"type": "Replace", "pattern": {"Regex": " "}}}`:                          "normalizer Replace has a regular expression",
		`{` + bpe + `}, "pre_tokenizer": {"type": "BertPreTokenizer"}}`:                                         `pre_tokenizer is "BertPreTokenizer"`,
		`{` + bpe + `}, "pre_tokenizer": {"type": "Split", "behavior": "Removed"}}`:                             `Split has behavior "Removed"`,
		`{` + bpe + `}, "pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "("}}}`: "pre_tokenizer Split: ",
		`{` + bpe + `}, "post_processor": {"type": "BertProcessing"}}`:                                          `post_processor is "BertProcessing"`,
	} {
		_, err := parse([]byte(text))
		require.ErrorContains(t, err, want)
	}
	tokenizer, err := parse([]byte(`{` + bpe + `}, "added_tokens": [{"id": 5, "content": "<mask>", "lstrip": true}]}`))
	require.NoError(t, err)
	_, err = tokenizer.Encode("ab <mask>")
	require.ErrorContains(t, err, `the text has "<mask>", a token that takes what is around it into account`)
	_, err = tokenizer.Encode("abc")
	require.ErrorContains(t, err, "byte 2 of \"abc\" begins a character that the vocabulary lacks")
	_, err = Read(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o666))
	_, err = Read(path)
	require.ErrorContains(t, err, path+": want a tokenizer.json")
}

// TestBacktracking has an expression that takes 2^60 steps, and one that is late without that.
func TestBacktracking(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Millisecond
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
		"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(a+)+[bc]"}}}`), 0o666))
	tokenizer, err := Read(path)
	require.NoError(t, err)
	got, err := tokenizer.Encode("aab")
	require.NoError(t, err)
	require.Equal(t, []int32{0, 0, 1}, got)
	_, err = tokenizer.Encode("aab" + strings.Repeat("a", 60))
	require.ErrorContains(t, err, path+`: pre_tokenizer: the expression "(a+)+[bc]" takes too long or too much memory in "aaaaaaaa`)
	require.Less(t, len(err.Error()), 400, "it has no whole text")
	_, err = tokenizer.split[0](piece{"aab", true}, time.Now().Add(-time.Hour))
	require.ErrorContains(t, err, `the expression "(a+)+[bc]" takes too long`)
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
