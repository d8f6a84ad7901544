package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

// published are counts that were made of the weights' published shapes by other means.
var published = []struct {
	name                    string
	total, active, products int64
}{
	{"llama-3-8b", 8_030_261_248, 8_030_261_248, 7_504_658_432},
	{"llama-3-70b", 70_553_706_496, 70_553_706_496, 69_501_714_432},
	{"llama-3.1-405b", 405_853_388_800, 405_853_388_800, 0},
	{"deepseek-v2", 235_741_434_880, 21_375_800_320, 20_850_769_920},
	{"deepseek-v3", 671_026_419_200, 37_552_297_472, 36_624_596_992},
	{"kimi-k2", 1_026_408_232_448, 32_861_500_928, 31_686_066_176},
	{"gpt-oss-120b", 116_829_156_672, 5_711_982_912, 5_131_100_160},
	{"mixtral-8x7b", 46_702_792_704, 12_879_925_248, 0},
	{"qwen3-32b", 32_762_123_264, 32_762_123_264, 0},
}

func TestParameters(t *testing.T) {
	for _, c := range published {
		m, err := plan.Named(c.name)
		require.NoError(t, err)
		p, err := m.Parameters()
		require.NoError(t, err)
		require.Equal(t, c.total, p.Total, c.name)
		require.Equal(t, c.active, p.Active, c.name)
		if c.products > 0 {
			require.Equal(t, c.products, p.Products, c.name)
		}
	}
	require.Len(t, plan.Models(), len(published))
}
