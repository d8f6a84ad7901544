package hf

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn"
)

// described is a model as its files describe it.
type described struct {
	nn.Config        // Context is the longest sequence that there can be
	interleaved bool // rows that are rotated are in the order of package nn
	predicted   int  // layers behind the last one, which predict further tokens
	file        string
	limit       string // the field that Context comes from
}

// Config returns the sizes and constants of the model in a checkpoint. Context is the
// longest sequence that it is made for: max_position_embeddings, or the sliding window
// within which every token sees all before it. Everything that is a choice, such as FP8, has
// its zero value, but for the BiasRate of experts, which have their biases by it: that is
// DeepSeek-V3's 0.001. The error is [ErrConfig].
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

// Models that package nn runs, as transformers names them.
const (
	llamaArchitecture    = "LlamaForCausalLM"
	mistralArchitecture  = "MistralForCausalLM"
	deepseekArchitecture = "DeepseekV3ForCausalLM"
	llamaType            = "llama"
	mistralType          = "mistral"
	deepseekType         = "deepseek_v3"
)

// types of models by their architecture.
var types = map[string]string{
	llamaArchitecture: llamaType, mistralArchitecture: mistralType,
	deepseekArchitecture: deepseekType,
}

// Defaults of transformers.
const (
	llamaPositions   = 2048
	mistralPositions = 4096 * 32
	mistralWindow    = 4096
	configNormEps    = 1e-6
)

// mostPositions is what package nn has angles for.
const mostPositions = 1_000_000

func (d *described) readConfig(f *fields) {
	kind := readArchitecture(f)
	d.readSizes(f)
	d.NormEps = f.number("rms_norm_eps", configNormEps)
	f.read("tie_word_embeddings", "true or false", &d.TieHead)
	f.only("hidden_act", "package nn has no other activation", "silu", "swish")
	f.never("attention_bias")
	f.never("mlp_bias")
	d.readRope(f)
	switch kind {
	case deepseekType:
		d.readContext(f, deepseekPositions)
		d.readDeepSeek(f)
	case mistralType:
		d.readContext(f, mistralPositions)
		d.readHeads(f)
		d.readWindow(f)
	default:
		d.readContext(f, llamaPositions)
		d.readHeads(f)
	}
}

// readArchitecture returns the type of the model. It refuses models of other structure.
func readArchitecture(f *fields) (kind string) {
	const why = "package nn has no other model"
	const want = `["` + llamaArchitecture + `"], ["` + mistralArchitecture + `"] or ["` +
		deepseekArchitecture + `"]: ` + why
	var names []string
	if !f.read("architectures", want, &names) {
		f.only("model_type", why, llamaType, mistralType, deepseekType)
		if !f.read("model_type", "", &kind) && f.err == nil {
			f.err = configError(f.file, "architectures is absent: want %s", want)
		}
		return kind
	}
	if len(names) != 1 || types[names[0]] == "" {
		f.refuse("architectures", want)
		return ""
	}
	return types[names[0]]
}

func (d *described) readSizes(f *fields) {
	d.file = f.file
	d.Vocab = f.size("vocab_size")
	d.Dim = f.size("hidden_size")
	d.Hidden = f.size("intermediate_size")
	d.Layers = f.size("num_hidden_layers")
	d.Heads = f.size("num_attention_heads")
}

// readHeads reads the heads of keys and values, and how large all are.
func (d *described) readHeads(f *fields) {
	d.KVHeads = f.sizeOr("num_key_value_heads", d.Heads)
	if f.err != nil {
		return
	}
	if d.Dim%d.Heads != 0 {
		f.refuse("hidden_size",
			"a multiple of num_attention_heads, which is "+strconv.Itoa(d.Heads))
		return
	}
	head := d.Dim / d.Heads
	if f.sizeOr("head_dim", head) != head {
		f.refuse("head_dim",
			strconv.Itoa(head)+": package nn has heads of hidden_size/num_attention_heads alone")
	}
}

// readRope reads the frequencies of rotary positions, which newer configurations keep in an
// object of their own.
func (d *described) readRope(f *fields) {
	d.RopeTheta = f.number("rope_theta", 0)
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		o := f.object(key)
		d.RopeTheta = o.number("rope_theta", d.RopeTheta)
		o.wholeHead()
		if s := o.ropeScaling(); !s.IsZero() {
			d.RopeScaling = s
		}
		if f.err == nil {
			f.err = o.err
		}
	}
	f.wholeHead()
}

// ropeScaling reads how frequencies are scaled, by the names of transformers
// (modeling_rope_utils.py).
func (f *fields) ropeScaling() (s nn.RopeScaling) {
	const want = `"default", "linear" or "llama3": package nn scales rotary positions in no other way`
	kind, key := "default", "type" // as it was called at first
	if _, ok := f.values["rope_type"]; ok {
		key = "rope_type"
	}
	f.read(key, want, &kind)
	switch kind {
	case "default":
		return s
	case "linear":
		s.Factor = f.needed("factor")
	case "llama3":
		s.Factor = f.needed("factor")
		s.Original = f.size("original_max_position_embeddings")
		s.Low, s.High = f.needed("low_freq_factor"), f.needed("high_freq_factor")
	default:
		f.refuse(key, want)
	}
	var scores float64 // which multiplies scores under any scaling
	const none = "0: package nn scales positions alone"
	if f.read("mscale_all_dim", none, &scores) && scores != 0 {
		f.refuse("mscale_all_dim", none)
	}
	return s
}

// wholeHead refuses heads of which only a part is rotated.
func (f *fields) wholeHead() {
	if key := "partial_rotary_factor"; f.number(key, 1) != 1 {
		f.refuse(key, "1: package nn rotates whole heads")
	}
}

func (d *described) readContext(f *fields, otherwise int) {
	d.limit = "max_position_embeddings"
	d.Context = f.sizeOr(d.limit, otherwise)
	if d.Context > mostPositions {
		d.limit, d.Context = "the accuracy of angles", mostPositions
	}
}

// readWindow makes no sequence longer than the sliding window.
func (d *described) readWindow(f *fields) {
	const key = "sliding_window"
	window := mistralWindow
	if raw := f.values[key]; string(raw) == "null" {
		return
	}
	if window = f.sizeOr(key, window); window < d.Context {
		d.limit, d.Context = key, window
	}
}

func (d *described) readMetadata(f *fields, c *checkpoint.Checkpoint) {
	d.readSizes(f)
	d.readHeads(f)
	d.NormEps = f.number("rms_norm_eps", 0)
	if !f.read("tie_word_embeddings", "true or false", &d.TieHead) {
		d.TieHead = c.Weight(headName) == nil
	}
	d.readContext(f, llamaPositions)
	d.readRopeText(f)
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
