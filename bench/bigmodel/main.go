// Command bigmodel writes a model of any size for measuring what works on checkpoints:
//
//	go run ./bench/bigmodel -o DIR -gb 20
//
// The directory gets config.json, an index and shards of BF16 weights with the names and shapes
// of a model of 4096 columns: an embedding and a head of more than 1 GiB, dense layers, and
// layers of eight experts, of which one tensor has almost 2 GiB. Weights are normally
// distributed, with an outlier in some blocks, and the same in every run.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// sizes are those of the model.
type sizes struct {
	hidden, intermediate, heads, keys, vocabulary, experts int

	shard int64 // bytes of a file, unless one tensor has more
}

var large = sizes{
	hidden: 4096, intermediate: 14336, heads: 32, keys: 8, vocabulary: 151936, experts: 8,
	shard: 2 << 30,
}

func main() {
	out := flag.String("o", "", "directory to write the model to, which must not be there")
	size := flag.Float64("gb", 20, "size of the model, at least, in 10^9 bytes")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := large.write(*out, int64(*size*1e9)); err != nil {
		fmt.Fprintln(os.Stderr, "bigmodel:", err)
		os.Exit(1)
	}
}

// write writes a model of at least so many bytes.
func (z *sizes) write(dir string, size int64) error {
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
					if err := noise.write(w, t.Bytes()); err != nil {
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

func (z *sizes) config(layers int) map[string]any {
	return map[string]any{
		"architectures": []string{"MixtralForCausalLM"}, "model_type": "mixtral",
		"hidden_size": z.hidden, "intermediate_size": z.intermediate, "vocab_size": z.vocabulary,
		"num_attention_heads": z.heads, "num_key_value_heads": z.keys, "num_hidden_layers": layers,
		"num_local_experts": z.experts, "num_experts_per_tok": 2, "rms_norm_eps": 1e-5,
		"tie_word_embeddings": false, "torch_dtype": "bfloat16",
	}
}

// tensors lists the tensors of as many layers as it takes, in turn four that are dense and one
// of experts.
func (z *sizes) tensors(size int64) (all []safetensors.Info, layers int) {
	total := int64(0)
	add := func(name string, shape ...int) {
		t := safetensors.Info{Name: name, DType: safetensors.BF16, Shape: shape}
		all = append(all, t)
		total += t.Bytes()
	}
	add("model.embed_tokens.weight", z.vocabulary, z.hidden)
	head := total
	for ; total+head < size; layers++ {
		layer := fmt.Sprintf("model.layers.%d.", layers)
		keys := z.hidden / z.heads * z.keys
		add(layer+"input_layernorm.weight", z.hidden)
		add(layer+"self_attn.q_proj.weight", z.hidden, z.hidden)
		add(layer+"self_attn.k_proj.weight", keys, z.hidden)
		add(layer+"self_attn.v_proj.weight", keys, z.hidden)
		add(layer+"self_attn.o_proj.weight", z.hidden, z.hidden)
		add(layer+"post_attention_layernorm.weight", z.hidden)
		if layers%5 == 4 {
			add(layer+"mlp.gate.weight", z.experts, z.hidden)
			add(layer+"mlp.experts.gate_up_proj", z.experts, 2*z.intermediate, z.hidden)
			add(layer+"mlp.experts.down_proj", z.experts, z.hidden, z.intermediate)
			continue
		}
		add(layer+"mlp.gate_proj.weight", z.intermediate, z.hidden)
		add(layer+"mlp.up_proj.weight", z.intermediate, z.hidden)
		add(layer+"mlp.down_proj.weight", z.hidden, z.intermediate)
	}
	add("model.norm.weight", z.hidden)
	add("lm_head.weight", z.vocabulary, z.hidden)
	return all, layers
}

// shards deals tensors out to files.
func (z *sizes) shards(tensors []safetensors.Info) (shards [][]safetensors.Info) {
	room := int64(0)
	for _, t := range tensors {
		if len(shards) == 0 || t.Bytes() > room {
			shards = append(shards, nil)
			room = z.shard
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

// write writes so many bytes.
func (n *noise) write(w *safetensors.Writer, size int64) error {
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
