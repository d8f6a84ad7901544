package bench

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/safetensors"
)

// WriteGGUF writes a Llama to a file that is not there, as llama.cpp reads it (GGUF, version 3,
// of ggml-org/llama.cpp's gguf-py): the values of [Model.Write] in blocks of 32 of Q8_0, gains of
// norms in FP32, and no tokenizer. Rows of queries and keys stay where they are, although
// llama.cpp rotates other pairs of them: that takes no other time.
func (z *Model) WriteGGUF(path string) error {
	if err := z.checkGGUF(); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := z.writeGGUF(w); err != nil {
		f.Close()
		return err
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Types of values and of tensors in a GGUF.
const (
	ggufUint32, ggufFloat32, ggufString = 4, 6, 8

	ggufF32, ggufQ8 = 0, 8
)

const (
	ggufAlign = 32 // of data
	q8Block   = 32 // values under a scale
	q8Bytes   = 2 + q8Block
)

// ggufNames are llama.cpp's names of tensors and of their parts.
var ggufNames = strings.NewReplacer("model.embed_tokens", "token_embd", "model.norm", "output_norm",
	"lm_head", "output", "model.layers", "blk", "input_layernorm", "attn_norm",
	"post_attention_layernorm", "ffn_norm", "self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k",
	"self_attn.v_proj", "attn_v", "self_attn.o_proj", "attn_output", "mlp.gate_proj", "ffn_gate",
	"mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down")

// ggufType returns the type of a tensor in a GGUF and its bytes.
func ggufType(t *safetensors.Info) (kind uint32, size int) {
	if n := int(t.Bytes() / 2); len(t.Shape) == 1 {
		return ggufF32, 4 * n
	} else {
		return ggufQ8, n / q8Block * q8Bytes
	}
}

func (z *Model) checkGGUF() error {
	if z.Experts > 0 || z.Hidden%q8Block != 0 || z.Intermediate%q8Block != 0 {
		return fmt.Errorf("a model of %d experts and %d and %d columns cannot be written as GGUF: "+
			"want a Llama whose columns are multiples of %d", z.Experts, z.Hidden, z.Intermediate, q8Block)
	}
	return nil
}

func (z *Model) writeGGUF(w io.Writer) error {
	tensors, layers := z.tensors(0)
	var h bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if s, ok := v.(string); ok {
				binary.Write(&h, binary.LittleEndian, uint64(len(s)))
				h.WriteString(s)
				continue
			}
			binary.Write(&h, binary.LittleEndian, v)
		}
	}
	fields := []struct {
		name  string
		kind  uint32
		value any
	}{
		{"general.architecture", ggufString, "llama"},
		{"general.file_type", ggufUint32, uint32(7)}, // mostly Q8_0
		{"llama.block_count", ggufUint32, uint32(layers)},
		{"llama.context_length", ggufUint32, uint32(2048)},
		{"llama.embedding_length", ggufUint32, uint32(z.Hidden)},
		{"llama.feed_forward_length", ggufUint32, uint32(z.Intermediate)},
		{"llama.attention.head_count", ggufUint32, uint32(z.Heads)},
		{"llama.attention.head_count_kv", ggufUint32, uint32(z.Keys)},
		{"llama.attention.layer_norm_rms_epsilon", ggufFloat32, float32(1e-5)},
		{"llama.vocab_size", ggufUint32, uint32(z.Vocabulary)},
		{"tokenizer.ggml.model", ggufString, "no_vocab"},
	}
	h.WriteString("GGUF")
	put(uint32(3), uint64(len(tensors)), uint64(len(fields)))
	for _, f := range fields {
		put(f.name, f.kind, f.value)
	}
	at := 0
	for i := range tensors {
		t := &tensors[i]
		kind, size := ggufType(t)
		put(ggufNames.Replace(t.Name), uint32(len(t.Shape)))
		for d := len(t.Shape) - 1; d >= 0; d-- {
			put(uint64(t.Shape[d]))
		}
		put(kind, uint64(at))
		at += (size + ggufAlign - 1) / ggufAlign * ggufAlign
	}
	h.Write(make([]byte, -h.Len()&(ggufAlign-1)))
	if _, err := w.Write(h.Bytes()); err != nil {
		return err
	}
	noise := newNoise()
	for i := range tensors {
		kind, size := ggufType(&tensors[i])
		if err := noise.write(&ggufWriter{w: w, kind: kind}, &tensors[i]); err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, -size&(ggufAlign-1))); err != nil {
			return err
		}
	}
	return nil
}

// ggufWriter writes what it is given in bfloat16 as another type.
type ggufWriter struct {
	w    io.Writer
	kind uint32
	left []byte // of a block that is not whole
	out  []byte
}

func (g *ggufWriter) Write(p []byte) (int, error) {
	const block = 2 * q8Block
	n := len(p)
	g.out = g.out[:0]
	if g.kind == ggufF32 {
		for ; len(p) > 0; p = p[2:] {
			g.out = append(g.out, 0, 0, p[0], p[1])
		}
	} else {
		p = append(g.left, p...)
		for ; len(p) >= block; p = p[block:] {
			g.out = appendQ8(g.out, p[:block])
		}
		g.left = append(g.left[:0:0], p...)
	}
	_, err := g.w.Write(g.out)
	return n, err
}

// appendQ8 appends a block of Q8_0: a scale in float16, the largest magnitude divided by 127,
// and values divided by that scale, rounded.
func appendQ8(to, block []byte) []byte {
	var values [q8Block]float32
	most := float32(0)
	for i := range values {
		bits := uint32(binary.LittleEndian.Uint16(block[2*i:])) << 16
		values[i] = math.Float32frombits(bits)
		most = max(most, math.Float32frombits(bits&^(1<<31)))
	}
	scale, inverse := most/127, float32(0)
	if scale > 0 {
		inverse = 1 / scale
	}
	to = binary.LittleEndian.AppendUint16(to, uint16(float16.Fromfloat32(scale)))
	for _, x := range values {
		to = append(to, byte(int8(math.RoundToEven(float64(x*inverse)))))
	}
	return to
}
