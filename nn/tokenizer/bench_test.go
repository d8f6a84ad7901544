package tokenizer

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

var styles = []string{"llama3", "qwen", "deepseek", "gpt-oss", "llama2", "gemma"}

func BenchmarkEncode(b *testing.B) {
	text, err := os.ReadFile(testutil.Shared(b, "data", "tinyshakespeare.txt"))
	require.NoError(b, err)
	for _, style := range styles {
		b.Run(style, func(b *testing.B) {
			t, err := Read(testutil.Shared(b, "models", "tokenizers", style+".tokenizer.json"))
			require.NoError(b, err)
			var ids []int32
			for b.Loop() {
				ids, err = t.Encode(string(text))
			}
			require.NoError(b, err)
			b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
