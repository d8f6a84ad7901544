package hf

import (
	"cmp"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn"
)

// described is a model as its files describe it.
type described struct {
	nn.Config          // Context is the longest sequence that there can be
	family      family // where tensors are
	interleaved bool   // rows that are rotated are in the order of package nn
	predicted   int    // layers behind the last one, which predict further tokens
	scored      bool   // routers have biases for choosing, e_score_correction_bias
	within      string // what names of tensors have in the place of "model.", in a model of more than text
	file        string
	limit       string // the field that Context comes from
}

// Config returns the sizes and constants of the model in a checkpoint. Context is the
// longest sequence that it is made for, max_position_embeddings. Everything that is a choice,
// such as FP8, has its zero value, but for the BiasRate of experts that have biases by it: that
// is DeepSeek-V3's 0.001. The error is [ErrConfig].
func Config(c *checkpoint.Checkpoint) (nn.Config, error) {
	d, err := describe(c)
	return d.Config, err
}

func describe(c *checkpoint.Checkpoint) (d described, err error) {
	f, fromMetadata, err := findFields(c)
	if err != nil {
		return d, err
	}
	if fromMetadata {
		d.readMetadata(f, c)
	} else {
		d.readConfig(f)
		d.findText(c)
	}
	if f.err != nil {
		return described{}, f.err
	}
	usual := d.Config
	usual.Context = min(usual.Context, DefaultContext)
	if err := usual.Validate(); err != nil {
		return described{}, configError(f.file, "%w", err)
	}
	return d, nil
}

// findFields returns what describes the model, and whether that is the metadata of a file.
func findFields(c *checkpoint.Checkpoint) (f *fields, fromMetadata bool, err error) {
	if c.Config.Model != nil {
		file := filepath.Join(c.Dir(), checkpoint.ConfigName)
		return &fields{file: file, values: c.Config.Model}, false, nil
	}
	for _, name := range c.Files() {
		metadata := c.File(name).Metadata()
		if _, ok := metadata["hidden_size"]; !ok {
			continue
		}
		f = &fields{file: filepath.Join(c.Dir(), name), within: "metadata "}
		f.values = map[string]json.RawMessage{}
		for key, text := range metadata {
			if !json.Valid([]byte(text)) {
				quoted, _ := json.Marshal(text)
				text = string(quoted)
			}
			f.values[key] = json.RawMessage(text)
		}
		return f, true, nil
	}
	return nil, false, configError(c.Dir(),
		"there is no %s, and no metadata says how the model is built", checkpoint.ConfigName)
}

// findText sets what names of the text's tensors begin with, in a model of more.
func (d *described) findText(c *checkpoint.Checkpoint) {
	for _, within := range []string{"model.language_model.", "language_model.model."} {
		if d.family.text != "" && c.Weight(within+"norm.weight") != nil {
			d.within = within
		}
	}
}

// mostPositions is what package nn has angles for.
const mostPositions = 1_000_000

func (d *described) readConfig(f *fields) {
	d.family = readFamily(f)
	if f.err != nil {
		return
	}
	if d.family.text == "" {
		d.readMembers(f)
		return
	}
	f.object(d.family.text, d.readMembers)
}

func (d *described) readMembers(f *fields) {
	f.defaults = d.family.members()
	d.file, d.interleaved = f.file, d.family.interleaved
	for _, feature := range d.family.features {
		feature.read(d, f)
	}
	f.know(strings.Fields(d.family.unread)...)
	f.refuseOthers(harmless)
}

// readFamily returns the family of the model. It refuses models of other structure.
func readFamily(f *fields) family {
	var names []string
	var kind string
	f.read("model_type", "a name", &kind)
	if !f.read("architectures", wantFamily(), &names) {
		for _, x := range families {
			if slices.Contains(strings.Fields(x.types), kind) {
				return x
			}
		}
		if kind != "" {
			f.refuse("model_type", wantFamily())
		} else if f.err == nil {
			f.err = configError(f.file, "architectures is absent: want %s", wantFamily())
		}
		return family{}
	}
	for _, x := range families {
		if len(names) == 1 && x.architecture == names[0] {
			if kind != "" && !slices.Contains(strings.Fields(x.types), kind) {
				f.refuse("model_type", strconv.Quote(strings.Fields(x.types)[0])+", as architectures say")
			}
			return x
		}
	}
	f.refuse("architectures", wantFamily())
	return family{}
}

// wantFamily returns what architectures may be.
func wantFamily() string {
	var names []string
	for _, x := range families {
		names = append(names, x.architecture)
	}
	return "one of " + strings.Join(names, ", ") + ": package nn has no other model"
}

// harmless reports whether a member of a configuration changes no number, by its name: what is of
// files, generation, training or of what a model returns beside its logits.
func harmless(key string) bool {
	return strings.HasPrefix(key, "_") || slices.Contains(strings.Fields(harmlessKeys), key) ||
		slices.ContainsFunc(strings.Fields(harmlessStarts), func(s string) bool { return strings.HasPrefix(key, s) }) ||
		slices.ContainsFunc(strings.Fields(harmlessEnds), func(s string) bool { return strings.HasSuffix(key, s) })
}

const (
	harmlessStarts = "output_ return_ initializer_ unsloth_ transformers transformers.js"
	harmlessEnds   = "_token_id _token_ids _token_index _version dropout pdrop _loss_coef"
	harmlessKeys   = `architectures model_type auto_map dtype torch_dtype use_cache quantization_config
		compression_config expert_dtype pretraining_tp chunk_size_feed_forward attn_implementation
		experts_implementation cache_implementation gradient_checkpointing model_max_length
		max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty
		temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size
		encoder_no_repeat_ngram_size bad_words_ids num_return_sequences remove_invalid_values
		exponential_decay_length_penalty suppress_tokens begin_suppress_tokens
		id2label label2id num_labels problem_type finetuning_task task_specific_params
		tokenizer_class prefix torchscript use_bfloat16 is_decoder is_llama_config
		aux_loss_alpha seq_aux ep_size router_jitter_noise max_sequence_length pruned_heads`
)

func (d *described) readMetadata(f *fields, c *checkpoint.Checkpoint) {
	d.file, d.family = f.file, families[0]
	sizes.read(d, f)
	heads.read(d, f)
	d.NormEps = f.number("rms_norm_eps", 0)
	if !f.read("tie_word_embeddings", "true or false", &d.TieHead) {
		d.TieHead = c.Weight(headName) == nil
	}
	d.readContext(f, 2048)
	d.readRopeText(f)
}

func (d *described) readContext(f *fields, otherwise int) {
	d.limit = "max_position_embeddings"
	d.Context = f.sizeOr(d.limit, otherwise)
	if d.Context > mostPositions {
		d.limit, d.Context = "the accuracy of angles", mostPositions
	}
}

// readRopeText reads how rows are ordered, and the base of the angles.
func (d *described) readRopeText(f *fields) {
	const key, pairs = "rope", "interleaved pairs"
	const want = `"interleaved pairs, theta 10000" or "rotated halves, theta 10000"`
	var text string
	if !f.read(key, want, &text) {
		if f.err == nil {
			f.err = configError(f.file, "%s is absent: want %s", f.within+key, want)
		}
		return
	}
	order, number, _ := strings.Cut(text, ", theta ")
	theta, err := strconv.ParseFloat(number, 64)
	if err != nil || !slices.Contains([]string{pairs, "rotated halves"}, order) {
		f.refuse(key, want)
		return
	}
	d.interleaved, d.RopeTheta = order == pairs, theta
}

// headDim returns the elements of a head, and rotated how many of them are.
func headDim(c nn.Config) int {
	if c.MLA != nil {
		return c.MLA.NoPE + c.MLA.RoPE
	}
	return cmp.Or(c.HeadDim, c.Dim/max(c.Heads, 1))
}

func rotated(c nn.Config) int {
	if c.MLA != nil {
		return c.MLA.RoPE
	}
	return cmp.Or(c.RotaryDim, headDim(c))
}

// scoreScale returns what scores are multiplied by where nothing else is said.
func scoreScale(c nn.Config) float64 { return 1 / math.Sqrt(float64(headDim(c))) }
