package bench

import (
	"path/filepath"
	"testing"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// TestWriteModel writes a small model of the kind, which is then sound, large enough, and runs.
func TestWriteModel(t *testing.T) {
	z := Model{Hidden: 64, Intermediate: 96, Heads: 4, Keys: 2, Vocabulary: 100, Experts: 2, shard: 1 << 16}
	dir := filepath.Join(t.TempDir(), "model")
	const size = 500_000
	if err := z.Write(dir, size); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := c.TotalSize(); n < size || n > 2*size || n != c.Index.TotalSize {
		t.Errorf("%d bytes, the index has %d", n, c.Index.TotalSize)
	}
	if len(c.Files()) < 4 {
		t.Errorf("%d files", len(c.Files()))
	}
	w := c.Weight("model.layers.4.mlp.experts.gate_up_proj")
	if w == nil || w.Len() != 2*2*96*64 {
		t.Error(w)
	}
	m, err := hf.Load(t.Context(), c, hf.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Blocks(); len(b) < 5 || b[3].Experts != nil || b[4].Experts == nil {
		t.Errorf("%d layers, experts are not in the fifth alone", len(b))
	}
	if _, err := evaluate.Run(t.Context(), m, []int32{1, 2, 3, 99, 0}, evaluate.Options{}); err != nil {
		t.Error(err)
	}
	layout, err := checkpoint.ParseLayout("deepseek-v3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.NewPlan(c, layout, checkpoint.PlanOptions{}); err != nil {
		t.Error(err)
	}
}
