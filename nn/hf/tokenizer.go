package hf

const (
	tokenizerName       = "tokenizer.json"
	tokenizerConfigName = "tokenizer_config.json"
)

// byteValues is the size of a vocabulary of bytes.
const byteValues = 256

// byteTokenizer returns a tokenizer of Hugging Face whose tokens are the bytes of a text: a
// BPE of single bytes, as in GPT-2, without merges, so that none are joined.
func byteTokenizer() any {
	vocabulary := map[string]int{}
	for b, r := range byteRunes() {
		vocabulary[string(r)] = b
	}
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{},
		"normalizer": nil, "post_processor": nil,
		"pre_tokenizer": byteLevel(), "decoder": byteLevel(),
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false,
			"ignore_merges": false, "vocab": vocabulary, "merges": []any{},
		},
	}
}

// byteLevel replaces bytes by runes, or runes by bytes, and splits nothing.
func byteLevel() any {
	return map[string]any{
		"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
	}
}

// byteRunes returns the runes that stand for bytes, which are those of GPT-2
// (bytes_to_unicode): the rune of Latin-1 where that is visible, and else the next from U+0100
// on.
func byteRunes() (runes [byteValues]rune) {
	next := rune(byteValues)
	for b := range runes {
		r := rune(b)
		visible := '!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ'
		if !visible {
			r, next = next, next+1
		}
		runes[b] = r
	}
	return runes
}

// tokenizerConfig names the class that takes tokenizer.json as it is.
func tokenizerConfig(context int) any {
	return map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": context,
		"clean_up_tokenization_spaces": false, "add_bos_token": false, "add_eos_token": false,
		"bos_token": nil, "eos_token": nil, "unk_token": nil, "pad_token": nil,
	}
}
