package fp4

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

func TestFP4(t *testing.T) {
	labtest.Slow(t)
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 3, 14)
	losses := labtest.Table(t, r, "losses")
	require.Len(t, losses.Rows, 2*len(ways()))
	seen := map[any]any{}
	for _, row := range losses.Rows {
		require.Less(t, row[2], 5.6, "it learns: a guess costs ln 256 = 5.55")
		if row[0] == "1" {
			require.NotContains(t, seen, row[2], "%v is %v", row[1], seen[row[2]])
			seen[row[2]] = row[1]
		}
	}
}

// TestWays: each is what its name says.
func TestWays(t *testing.T) {
	list := ways()
	require.Len(t, list, plainMXFP4Way+1)
	require.Len(t, fourParts, partCount)
	names := map[string]bool{}
	for i, w := range list {
		require.False(t, names[w.name], w.name)
		names[w.name] = true
		config := training.Llama(32, 4, 32)
		w.use(&config, 9)
		require.NoError(t, config.Validate())
		if i == bf16Way {
			require.Equal(t, nn.DefaultRounding(nn.NarrowBF16), *config.Rounding)
			continue
		}
		require.Nil(t, config.Rounding)
		f := config.FP8
		has := []bool{f.Hadamard, f.Stochastic, f.Forward.B.Block.Rows == 16, config.BF16Last == 1}
		want := []bool{true, true, true, true}
		switch {
		case i == fp8Way || i == mxfp8Way || i == plainWay || i == plainMXFP4Way:
			want = []bool{false, false, false, false}
		case i >= firstPart && i < firstPart+partCount:
			want[i-firstPart] = false
		case i == mxfp4Way:
			want[2] = false
		}
		if i != fp8Way {
			require.Equal(t, want, has, w.name)
		}
		require.Equal(t, f.Stochastic, f.Seed == 9, w.name)
	}
	for i, p := range fourParts {
		require.Equal(t, "nvfp4 without "+p.String(), list[firstPart+i].name)
	}
	require.Equal(t, "nvfp4 without all parts", list[plainWay].name)
	require.Equal(t, "nvfp4-4over6", list[fourOverSixWay].name)
	require.Equal(t, "mxfp4 without all parts", list[plainMXFP4Way].name)
}
