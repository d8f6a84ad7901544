package checkpoint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPartsDocumented has the table of the guide, and names that are in no row of it.
func TestPartsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "checkpoints.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "| part | such as | why |\n|---|---|---|\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	require.Len(t, rows, len(parts))
	for i, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		require.Equal(t, []string{parts[i].Name, parts[i].Why}, []string{cells[0], cells[2]})
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.Same(t, &parts[i], Kept(name[1]), name[1])
		}
	}
	for _, name := range []string{
		"w", "a.weight", "0.weight", "conv1.weight", "fc.weight", // of no transformer
		"embeddings", "gate", "head", "output", "norm", "model.layers.0.output", "lm_head.output", "lm_head.input", // no weights of modules
		"model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.gate_up_proj.weight", "model.layers.0.mlp.experts.0.w1.weight",
		"model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.self_attn.indexer.wq_b.weight", "model.visual.weight", "bias_proj.weight", "rwkv.blocks.0.attention.output.weight", "rwkv.blocks.0.attention.gate.weight", "bert.encoder.layer.0.attention.output.dense.weight", "sinks.proj.weight",
	} {
		require.Nil(t, Kept(name), name)
	}
	require.Equal(t, "router", Kept("encoder.mlp.router.classifier.weight").Name, "and no head")
}
