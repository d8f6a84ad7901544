package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Model is the sizes of a model that is written to be measured: a mixture of Qwen3 with a layer of
// experts after each four that are dense or, without Experts, a Llama.
type Model struct {
	Hidden, Intermediate, Heads, Keys, Vocabulary, Experts int

	Layers int // 0: as many as its bytes take

	shard int64 // bytes of a file, unless one tensor has more; 0: 2 GiB
}

// The models.
var (
	// LargeModel is one of 4096 columns: an embedding and a head of more than 1 GiB each, dense
	// layers, and layers of eight experts, of which one tensor has almost 2 GiB.
	LargeModel = Model{
		Hidden: 4096, Intermediate: 14336, Heads: 32, Keys: 8, Vocabulary: 151936, Experts: 8,
	}

	// TokenModel is the Llama of a billion parameters whose tokens a second are measured.
	TokenModel = Model{
		Hidden: 2048, Intermediate: 8192, Heads: 32, Keys: 8, Vocabulary: 32000, Layers: 16,
	}
)

// Write writes a model of at least so many bytes to a directory that is not there: config.json,
// an index and shards of BF16 weights. Weights are normally distributed, with an outlier in
// some blocks, and the same in every run; gains of norms are 1.
func (z *Model) Write(dir string, size int64) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	tensors, layers := z.tensors(size)
	shards := z.shards(tensors)
	index := checkpoint.Index{Files: map[string]string{}}
	noise := newNoise()
	for i, shard := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		err := safetensors.WriteFileFunc(filepath.Join(dir, name), shard, checkpoint.Metadata(),
			func(w *safetensors.Writer) error {
				for _, t := range shard {
					if err := w.Next(t.Name); err != nil {
						return err
					}
					index.Files[t.Name] = name
					index.TotalSize += t.Bytes()
					if err := noise.write(w, &t); err != nil {
						return err
					}
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	documents := map[string]any{
		checkpoint.IndexName:  &index,
		checkpoint.ConfigName: z.config(layers),
		"tokenizer.json":      struct{}{},
	}
	for name, content := range documents {
		text, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (z *Model) config(layers int) map[string]any {
	config := map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama",
		"hidden_size": z.Hidden, "intermediate_size": z.Intermediate, "vocab_size": z.Vocabulary,
		"num_attention_heads": z.Heads, "num_key_value_heads": z.Keys, "num_hidden_layers": layers,
		"rms_norm_eps": 1e-5, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
	}
	if z.Experts > 0 {
		config["architectures"], config["model_type"] = []string{"Qwen3MoeForCausalLM"}, "qwen3_moe"
		config["num_experts"], config["num_experts_per_tok"] = z.Experts, 2
		config["moe_intermediate_size"], config["norm_topk_prob"] = z.Intermediate, true
		config["head_dim"], config["decoder_sparse_step"] = z.Hidden/z.Heads, period
	}
	return config
}

// period is from one layer of experts to the next.
const period = 5

// tensors lists the tensors of all layers, in turn four that are dense and one of experts.
func (z *Model) tensors(size int64) (all []safetensors.Info, layers int) {
	total := int64(0)
	add := func(name string, shape ...int) {
		t := safetensors.Info{Name: name, DType: safetensors.BF16, Shape: shape}
		all = append(all, t)
		total += t.Bytes()
	}
	add("model.embed_tokens.weight", z.Vocabulary, z.Hidden)
	head := total
	for ; z.Layers == 0 && total+head < size || layers < z.Layers; layers++ {
		layer := fmt.Sprintf("model.layers.%d.", layers)
		keys := z.Hidden / z.Heads * z.Keys
		add(layer+"input_layernorm.weight", z.Hidden)
		add(layer+"self_attn.q_proj.weight", z.Hidden, z.Hidden)
		add(layer+"self_attn.k_proj.weight", keys, z.Hidden)
		add(layer+"self_attn.v_proj.weight", keys, z.Hidden)
		add(layer+"self_attn.o_proj.weight", z.Hidden, z.Hidden)
		add(layer+"post_attention_layernorm.weight", z.Hidden)
		if z.Experts > 0 {
			add(layer+"self_attn.q_norm.weight", z.Hidden/z.Heads)
			add(layer+"self_attn.k_norm.weight", z.Hidden/z.Heads)
		}
		if z.Experts > 0 && (layers+1)%period == 0 {
			add(layer+"mlp.gate.weight", z.Experts, z.Hidden)
			add(layer+"mlp.experts.gate_up_proj", z.Experts, 2*z.Intermediate, z.Hidden)
			add(layer+"mlp.experts.down_proj", z.Experts, z.Hidden, z.Intermediate)
			continue
		}
		add(layer+"mlp.gate_proj.weight", z.Intermediate, z.Hidden)
		add(layer+"mlp.up_proj.weight", z.Intermediate, z.Hidden)
		add(layer+"mlp.down_proj.weight", z.Hidden, z.Intermediate)
	}
	add("model.norm.weight", z.Hidden)
	add("lm_head.weight", z.Vocabulary, z.Hidden)
	return all, layers
}

// shards deals tensors out to files.
func (z *Model) shards(tensors []safetensors.Info) (shards [][]safetensors.Info) {
	room := int64(0)
	for _, t := range tensors {
		if len(shards) == 0 || t.Bytes() > room {
			shards = append(shards, nil)
			room = cmp.Or(z.shard, 2<<30)
		}
		shards[len(shards)-1] = append(shards[len(shards)-1], t)
		room -= t.Bytes()
	}
	return shards
}

// noise is values of which every tensor takes some, from another place on: drawing each by
// itself would take longer than writing it.
type noise struct {
	data   []byte
	random *rand.Rand
}

func newNoise() *noise {
	n := &noise{data: make([]byte, 64<<20), random: rand.New(rand.NewPCG(17, 20))}
	for i := 0; i < len(n.data); i += 2 {
		x := 0.02 * n.random.NormFloat64()
		if n.random.Uint32()%(1<<14) == 0 {
			x *= 50
		}
		b := fp8.BFloat16(math.Float32bits(float32(x)) >> 16)
		n.data[i], n.data[i+1] = byte(b), byte(b>>8)
	}
	return n
}

// write writes the values of a tensor.
func (n *noise) write(w io.Writer, t *safetensors.Info) error {
	size := t.Bytes()
	if len(t.Shape) == 1 {
		_, err := w.Write(bytes.Repeat([]byte{0x80, 0x3F}, t.Shape[0]))
		return err
	}
	for size > 0 {
		from := 2 * n.random.IntN(len(n.data)/2)
		piece := n.data[from:min(int64(from)+size, int64(len(n.data)))]
		if _, err := w.Write(piece); err != nil {
			return err
		}
		size -= int64(len(piece))
	}
	return nil
}
