package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/checkpoint"
)

var smallModel = Model{Hidden: 64, Intermediate: 96, Heads: 4, Keys: 2, Vocabulary: 100, Layers: 2}

// fakeLlama answers as llama.cpp's llama-batched-bench does.
func fakeLlama(args []string) {
	flag := func(name string) string { return args[slices.Index(args, name)+1] }
	if magic, err := os.ReadFile(flag("-m")); err != nil || string(magic[:4]) != "GGUF" {
		os.Exit(1)
	}
	if flag("-npl") == "16" { // every second time it says nothing
		if said := flag("-m") + ".said"; os.Remove(said) != nil {
			os.WriteFile(said, nil, 0o666)
			return
		}
	}
	fmt.Println("adding 100 dummy tokens")
	fmt.Printf(`{"pp": 1, "tg": %s, "pl": %s, "speed_tg": %d}`+"\n", flag("-ntg"), flag("-npl"), 1000*len(flag("-t")))
}

// TestPeerTokens compares tokens with a program that always has a thousand a second.
func TestPeerTokens(t *testing.T) {
	needProcesses(t)
	t.Setenv(fakeVariable, "well")
	s := smallPeers(os.Args[0])
	s.Shapes, s.Elements, s.Workers = nil, 0, []int{1, 2}
	s.Llama, s.Model = os.Args[0], smallModel
	began := 0
	r, err := s.Run(t.Context(), func(string) { began++ })
	if err != nil {
		t.Fatal(err)
	}
	if began != 4 || len(r.Done) != 4 || r.Cases != 4 || len(r.Failures) > 0 {
		t.Fatalf("%d began, %d of %d done: %q", began, len(r.Done), r.Cases, r.Failures)
	}
	for i, c := range r.Done {
		want := []string{"tokens of 1 request", "tokens of 16 requests"}[i%2]
		if c.What != want || c.Unit != "tokens/s" || c.Workers != 1+i/2 || c.Rounds < 1 {
			t.Errorf("%+v, want %s", c, want)
		}
		to := map[string]float64{}
		for _, rate := range c.Rates {
			to[rate.By] = rate.Best
		}
		for _, ratio := range c.Ratios {
			if got := to[Octavo] / to[ratio.To]; len(s.Levels) == 1 && math.Abs(got/ratio.Best-1) > 1e-12 {
				t.Errorf("%+v, want %v", ratio, got)
			}
		}
		if to[LlamaCPP] != 1000 || !(to[Octavo] > 0) || len(c.Ratios) < len(s.Levels) {
			t.Errorf("%v of %+v", to, c)
		}
	}
}

// TestPeerTokensPart: octavo's tokens stay where llama.cpp fails.
func TestPeerTokensPart(t *testing.T) {
	needProcesses(t)
	t.Setenv(fakeVariable, "well")
	s := smallPeers(os.Args[0])
	s.Shapes, s.Elements, s.Workers = nil, 0, []int{1}
	s.Llama, s.Model = filepath.Join(t.TempDir(), "none"), smallModel
	r, err := s.Run(t.Context(), func(string) {})
	if err != nil || len(r.Done) != 2 || len(r.Failures) != 2 || !strings.HasPrefix(r.Failures[0], "llama.cpp, tokens of 1 request by 1: ") {
		t.Fatalf("%d done, failures %q: %v", len(r.Done), r.Failures, err)
	}
	s.Model.Experts = 2
	if _, err := s.Run(t.Context(), func(string) {}); err == nil || !strings.Contains(err.Error(), "cannot be written as GGUF") {
		t.Error(err)
	}
}

// TestWriteGGUF reads the file by the description of the format, and compares the values with
// those of the other form.
func TestWriteGGUF(t *testing.T) {
	dir := t.TempDir()
	if err := smallModel.Write(filepath.Join(dir, "model"), 0); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "model.gguf")
	if err := smallModel.WriteGGUF(path); err != nil {
		t.Fatal(err)
	}
	if smallModel.WriteGGUF(path) == nil {
		t.Error("a file that is there is written over")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(filepath.Join(dir, "model"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bytes.NewReader(text)
	number := func(v any) {
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	word := func() string {
		var n uint64
		number(&n)
		b := make([]byte, n)
		number(b)
		return string(b)
	}
	var head struct {
		Magic         [4]byte
		Version       uint32
		Tensors, Keys uint64
	}
	number(&head)
	if string(head.Magic[:]) != "GGUF" || head.Version != 3 || head.Tensors != 3+2*9 {
		t.Fatalf("%+v", head)
	}
	fields := map[string]any{}
	for range head.Keys {
		name := word()
		var kind, whole uint32
		var real float32
		switch number(&kind); kind {
		case 4:
			number(&whole)
			fields[name] = int(whole)
		case 6:
			number(&real)
			fields[name] = real
		case 8:
			fields[name] = word()
		default:
			t.Fatalf("%s is of type %d", name, kind)
		}
	}
	for name, want := range map[string]any{
		"general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
		"llama.feed_forward_length": 96, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
		"llama.vocab_size": 100, "llama.attention.layer_norm_rms_epsilon": float32(1e-5), "tokenizer.ggml.model": "no_vocab",
	} {
		if fields[name] != want {
			t.Errorf("%s is %v, want %v", name, fields[name], want)
		}
	}
	type tensor struct {
		shape  []uint64
		kind   uint32
		offset uint64
	}
	tensors := map[string]tensor{}
	for range head.Tensors {
		name := word()
		var dims uint32
		number(&dims)
		one := tensor{shape: make([]uint64, dims)}
		number(one.shape)
		number(&one.kind)
		number(&one.offset)
		tensors[name] = one
	}
	data := text[(len(text)-r.Len()+31)/32*32:]
	for name, of := range map[string]string{
		"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight",
		"output_norm.weight": "model.norm.weight", "blk.1.attn_norm.weight": "model.layers.1.input_layernorm.weight",
		"blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight", "blk.1.attn_k.weight": "model.layers.1.self_attn.k_proj.weight",
		"blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight", "blk.0.attn_output.weight": "model.layers.0.self_attn.o_proj.weight",
		"blk.0.ffn_norm.weight": "model.layers.0.post_attention_layernorm.weight", "blk.1.ffn_gate.weight": "model.layers.1.mlp.gate_proj.weight",
		"blk.1.ffn_up.weight": "model.layers.1.mlp.up_proj.weight", "blk.1.ffn_down.weight": "model.layers.1.mlp.down_proj.weight",
	} {
		w, one := c.Weight(of), tensors[name]
		values := make([]float32, w.Len())
		var reader checkpoint.Reader
		if err := checkpoint.ReadValues(&reader, w, 0, 0, values); err != nil {
			t.Fatal(err)
		}
		shape := []uint64{}
		for _, n := range slices.Backward(w.Shape) {
			shape = append(shape, uint64(n))
		}
		if !slices.Equal(one.shape, shape) || one.offset%32 != 0 {
			t.Fatalf("%s: %+v, want %v", name, one, shape)
		}
		from := data[one.offset:]
		for i, x := range values {
			if one.kind == 0 {
				if got := math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:])); got != x {
					t.Fatalf("%s: value %d is %v, want %v", name, i, got, x)
				}
				continue
			}
			block := from[i/32*34:]
			scale := float16.Frombits(binary.LittleEndian.Uint16(block)).Float32()
			// Half a step, and what the scale was rounded by, 127 times.
			if got := scale * float32(int8(block[2+i%32])); math.Abs(float64(got-x)) > float64(scale)*(0.5+127./2048)+1e-6 {
				t.Fatalf("%s: value %d is %v, want %v", name, i, got, x)
			}
		}
	}
	if one, ok := tensors["blk.0.ffn_down.weight"]; !ok || one.kind != 8 {
		t.Errorf("%+v", one)
	}
}
