package plan_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/plan"
)

// FuzzFromConfig: what a configuration describes is refused, or counted in numbers that can be.
func FuzzFromConfig(f *testing.F) {
	for _, text := range configs {
		f.Add([]byte(text), 64, 1)
	}
	f.Add([]byte(`{"model_type": "llama", "num_hidden_layers": 60000, "hidden_size": 16777216, "vocab_size": 16777216,
		"num_attention_heads": 16777216, "head_dim": 16, "intermediate_size": 16777216}`), 1<<31-1, 1<<31-1)
	f.Add([]byte(`{"model_type": "gpt_oss", "num_hidden_layers": 1, "hidden_size": 1, "vocab_size": 1, "num_attention_heads": 1,
		"num_local_experts": 1, "num_experts_per_tok": 1, "intermediate_size": 1, "sliding_window": 3}`), 1<<31-1, 1000)
	f.Fuzz(func(t *testing.T, text []byte, sequence, batch int) {
		var c checkpoint.Config
		if json.Unmarshal(text, &c.Model) != nil {
			return
		}
		m, err := plan.FromConfig(c)
		if err != nil {
			if !errors.Is(err, plan.ErrModel) {
				t.Fatal(err)
			}
			return
		}
		if m.Layers > 256 { // it takes long, and tells no more
			m.Layers = 256
		}
		p, err := m.Parameters()
		if err != nil {
			t.Fatal(err)
		}
		if p.Products <= 0 || p.Active > p.Total || p.Embedding <= 0 {
			t.Fatalf("%+v", p)
		}
		for _, precision := range plan.Precisions() {
			for _, library := range []plan.Library{plan.TransformerEngine, {Octavo: true}} {
				job := plan.TrainJob{Model: m, Precision: precision, Library: library, Sequence: sequence, Batch: batch}
				mem, err := job.Memory()
				countable(t, mem, err)
			}
			mem, err := plan.ServeJob{Model: m, Precision: precision, Tokens: sequence, Sequences: batch}.Memory()
			countable(t, mem, err)
		}
	})
}

// countable fails where a count is negative, as one is that is too large.
func countable(t *testing.T, mem plan.Memory, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, plan.ErrJob) && !errors.Is(err, plan.ErrModel) {
		t.Fatal(err)
	}
	for _, s := range mem.Stages {
		var classes int64
		for _, c := range s.Classes {
			if c.Bytes <= 0 {
				t.Fatalf("%+v", s)
			}
			classes += c.Bytes
		}
		if s.Classes != nil && classes != s.Microbatch {
			t.Fatalf("classes have %d bytes of %+v", classes, s)
		}
		for _, n := range []int64{
			s.Parameters, s.Weights, s.Gradients, s.Optimizer, s.Activations, s.Workspace, s.Cache,
			s.Microbatch, s.Turns, s.Again, s.Operations, s.Total(),
		} {
			if n < 0 {
				t.Fatalf("%+v", s)
			}
		}
	}
}
